package sandbox

import (
	"net/http"
	"strings"

	"trainer/internal/sandbox/fault"
	"trainer/internal/wire"
)

// request is a request on its way to a handler: its ids are the path's variable segments, in order.
type request struct {
	*http.Request
	ids   []string
	event fault.Event
}

// handler returns the answer's body, to be encoded as JSON, or an error. It has not written anything.
type handler func(s *Server, r *request) (any, error)

// route is one operation of the API. A segment "*" of the path is an id.
type route struct {
	method, path string
	serve        handler
	open         bool // a presigned address: no Authorization
}

const operations = "/v1/rl/training-sessions/*/operations/"

func routes() []route {
	return []route{
		{"GET", "/v1/rl/supported-models", (*Server).listModels, false},
		{"POST", "/v1/rl/model-resources", (*Server).createResource, false},
		{"GET", "/v1/rl/model-resources", (*Server).listResources, false},
		{"POST", "/v1/rl/model-resources/estimate-cost", (*Server).estimateCost, false},
		{"GET", "/v1/rl/model-resources/*", (*Server).getResource, false},
		{"POST", "/v1/rl/model-resources/*/extend-expiry", (*Server).extendExpiry, false},
		{"POST", "/v1/rl/model-resources/*/stop", (*Server).stopResource, false},
		{"POST", "/v1/rl/training-sessions", (*Server).createSession, false},
		{"GET", "/v1/rl/training-sessions", (*Server).listSessions, false},
		{"GET", "/v1/rl/training-sessions/*", (*Server).getSession, false},
		{"PATCH", "/v1/rl/training-sessions/*", (*Server).updateSession, false},
		{"POST", "/v1/rl/training-sessions/*/stop", (*Server).stopSession, false},
		{"POST", operations + "forward-backward", (*Server).submit, false},
		{"GET", operations + "forward-backward/*", (*Server).getOperation, false},
		{"POST", operations + "optim-step", (*Server).submit, false},
		{"GET", operations + "optim-step/*", (*Server).getOperation, false},
		{"POST", operations + "weights-sync", (*Server).submit, false},
		{"GET", operations + "weights-sync/*", (*Server).getOperation, false},
		{"POST", operations + "training-checkpoint", (*Server).submit, false},
		{"GET", operations + "training-checkpoint/*", (*Server).getOperation, false},
		{"POST", operations + "inference-checkpoint", (*Server).submit, false},
		{"GET", operations + "inference-checkpoint/*", (*Server).getOperation, false},
		{"POST", operations + "custom-forward-backward", (*Server).submit, false},
		{"GET", operations + "custom-forward-backward/*", (*Server).getOperation, false},
		{"POST", operations + "sample", (*Server).submit, false},
		{"GET", operations + "sample/*", (*Server).getOperation, false},
		{"POST", "/v1/rl/training-sessions/*/payloads/upload-url", (*Server).uploadURL, false},
		{"POST", "/v1/rl/training-sessions/*/payloads/*/download-url", (*Server).downloadURL, false},
		{"PUT", "/payloads/*", (*Server).putPayload, true},
		{"GET", "/payloads/*", (*Server).getPayload, true},
		{"GET", "/v1/rl/checkpoints", (*Server).listCheckpoints, false},
		{"GET", "/v1/rl/checkpoints/*", (*Server).getCheckpoint, false},
		{"GET", "/v1/rl/checkpoints/*/download", (*Server).downloadCheckpoint, false},
		{"GET", "/files/*", (*Server).getFile, true},
		{"POST", wire.PathPrepareFP4, (*Server).createJob, false},
		{"POST", wire.PathPrepareFP4 + "/estimate", (*Server).estimateJob, false},
		{"GET", wire.PathShaping, (*Server).listJobs, false},
		{"GET", wire.PathShaping + "/*", (*Server).getJob, false},
		{"POST", wire.PathShaping + "/*/cancel", (*Server).cancelJob, false},
		{"GET", wire.PathShaping + "/*/events", (*Server).listEvents, false},
	}
}

// find returns the route of a request and the ids in its path. A literal segment wins over "*" by the table's order.
func find(table []route, method, path string) (route, []string, error) {
	var others []string
	for _, rt := range table {
		ids, ok := match(rt.path, path)
		if !ok {
			continue
		}
		if rt.method == method {
			return rt, ids, nil
		}
		others = append(others, rt.method)
	}
	if others != nil {
		return route{}, nil, &problem{http.StatusMethodNotAllowed, invalidRequest, "method_not_allowed", "",
			method + " " + path + " does not exist; this path has " + strings.Join(others, ", ")}
	}
	return route{}, nil, &problem{http.StatusNotFound, invalidRequest, "not_found", "", "the path " + path + " does not exist"}
}

func match(pattern, path string) (ids []string, ok bool) {
	for {
		want, restWant, moreWant := strings.Cut(pattern, "/")
		got, restGot, moreGot := strings.Cut(path, "/")
		switch {
		case want == "*" && got != "":
			ids = append(ids, got)
		case want != got:
			return nil, false
		}
		if moreWant != moreGot {
			return nil, false
		}
		if !moreWant {
			return ids, true
		}
		pattern, path = restWant, restGot
	}
}
