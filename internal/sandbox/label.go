package sandbox

import (
	"slices"
	"strings"

	"trainer/internal/sandbox/fault"
	"trainer/internal/wire"
)

// things are the collections of the API as names of requests have them.
var things = map[string][2]string{
	"model-resources":   {"resource", "resources"},
	"training-sessions": {"session", "sessions"},
	"checkpoints":       {"checkpoint", "checkpoints"},
	"payloads":          {"payload", "payloads"},
	"files":             {"file", "files"},
	"supported-models":  {"model", "models"},
	"shaping":           {"job", "jobs"},
}

var verbs = map[string]string{"GET": "get", "PATCH": "update", "PUT": "put", "POST": "post", "DELETE": "delete"}

// adds says that the request asks for something new to be kept: where there is no room, only the rest is answered.
func (rt route) adds() bool {
	of := rt.labels()
	return slices.Contains(of, fault.Creates) || slices.Contains(of, fault.Operations) || rt.method == "PUT" || rt.name() == "upload-url"
}

// labels are what a fault can be put on: the route's name, then the groups that it is in.
func (rt route) labels() fault.Route {
	out := fault.Route{rt.name(), fault.Any, fault.Writes}
	if rt.method == "GET" {
		out[2] = fault.Reads
	}
	post, operation := rt.method == "POST", strings.HasPrefix(rt.path, operations)
	switch {
	case operation && post:
		return append(out, fault.Operations)
	case operation:
		return append(out, fault.Polls)
	case strings.Contains(rt.path, "payloads"):
		return append(out, fault.Payloads)
	case rt.path == wire.PathResources && post:
		return append(out, fault.Paid, fault.Creates)
	case strings.HasPrefix(out[0], "create-"):
		return append(out, fault.Creates)
	case rt.path == wire.PathPrepareFP4:
		return append(out, fault.Paid, fault.Creates)
	case rt.path == wire.PathPrepareFP4+"/estimate":
		return append(out, fault.Paid)
	case strings.HasPrefix(out[0], "stop-"), strings.HasPrefix(out[0], "cancel-"):
		return append(out, fault.Stops)
	}
	return out
}

// name is short and unlike every other route's: optim-step and get-optim-step, create-, list-, get- and stop-session.
func (rt route) name() string {
	parts := strings.Split(strings.TrimPrefix(rt.path, "/"), "/")
	last := parts[len(parts)-1]
	if strings.HasPrefix(rt.path, operations) {
		if last == "*" {
			return "get-" + parts[len(parts)-2]
		}
		return last
	}
	thing, isThing := things[last]
	switch {
	case last == "*":
		return verbs[rt.method] + "-" + things[parts[len(parts)-2]][0]
	case isThing && rt.method == "GET":
		return "list-" + thing[1]
	case isThing:
		return "create-" + thing[0]
	case slices.Contains([]string{"stop", "download", "cancel", "events", "estimate"}, last):
		i := slices.IndexFunc(parts, func(p string) bool { return things[p][0] != "" })
		return last + "-" + things[parts[i]][0]
	}
	return last
}

// faultRoutes is every request of the API.
func faultRoutes() []fault.Route {
	var out []fault.Route
	for _, rt := range routes() {
		out = append(out, rt.labels())
	}
	return out
}

// ParseFault reads NAME[:key=value,…] for Options.Faults.
func ParseFault(text string) (fault.Rule, error) { return fault.Parse(text, faultRoutes()) }
