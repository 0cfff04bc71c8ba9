package layout

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "trainer"

// rooms says what each room may import of the others. A package inside a room (internal/tokenizer/x) belongs to it, and
// may be imported where the room may.
var rooms = map[string][]string{
	"recipe":                  {"loss", "schedule", "internal/diag", "internal/grader"},
	"loss":                    {},
	"schedule":                {},
	"runner":                  {"recipe", "loss", "schedule", "internal/diag", "internal/hub", "internal/tokenizer", "internal/chat", "internal/dataset", "internal/grader", "internal/rollout", "internal/journal", "internal/download"},
	"internal/diag":           {},
	"internal/hub":            {"internal/diag", "internal/journal"},
	"internal/tokenizer":      {},
	"internal/chat":           {"internal/tokenizer", "internal/diag", "recipe", "internal/chat/hf", "internal/chat/jinja"},
	"internal/chat/hf":        {"internal/chat/jinja", "internal/diag"},
	"internal/chat/jinja":     {},
	"internal/dataset":        {"internal/chat", "internal/chat/jinja", "internal/diag", "internal/hub", "loss", "recipe"},
	"internal/grader":         {},
	"internal/rollout":        {"internal/chat", "internal/grader", "loss", "recipe"},
	"internal/worker":         {},
	"internal/journal":        {},
	"internal/download":       {"internal/journal"},
	"internal/runs":           {},
	"internal/wire":           {"loss"},
	"internal/together":       {"internal/wire", "internal/download", "runner", "recipe", "loss"},
	"internal/probe":          {"internal/wire", "runner", "recipe"},
	"internal/sandbox":        {"internal/sandbox/engine", "internal/wire", "internal/tokenizer", "internal/diag", "loss"},
	"internal/sandbox/engine": {},
	"internal/report":         {"runner", "recipe", "internal/download"},
	"internal/gen":            {"recipe", "loss", "schedule", "internal/grader"},
	"internal/layout":         {},
}

// rim are the rooms that may import every other; none imports them.
var rim = []string{"cmd/trainer", "bench"}

// onlyStandard are the rooms without a module from outside, but for what modules names them for.
var onlyStandard = []string{"loss", "schedule", "internal/diag", "internal/hub", "internal/tokenizer", "internal/chat/hf", "internal/chat/jinja", "internal/worker", "internal/journal", "internal/download", "internal/runs", "internal/sandbox/engine", "internal/layout"}

// modules says who alone may import what from outside, a path and all below it; what is not here is free to every room that
// is not onlyStandard. C is cgo, which nobody may use.
var modules = map[string][]string{
	"github.com/urfave/cli":              {"cmd/trainer"},
	"github.com/rs/zerolog":              {"cmd/trainer", "internal/report"},
	"github.com/vbauerster/mpb":          {"internal/report"},
	"gopkg.in/yaml.v3":                   {"recipe", "internal/gen"},
	"github.com/go-playground/validator": {"recipe", "internal/gen"},
	"github.com/rogpeppe/go-internal":    {},
	"github.com/klauspost/compress":      {"internal/dataset"},
	"github.com/parquet-go/parquet-go":   {"internal/dataset"},
	"github.com/andybalholm/brotli":      {"internal/dataset"},
	"golang.org/x/sys/cpu":               {"internal/sandbox/engine"},
	"golang.org/x/term":                  {"cmd/trainer", "internal/report"},
	"os/exec":                            {"internal/worker"},
	"C":                                  {},

	"github.com/santhosh-tekuri/jsonschema": {"internal/grader"}, // and tests: the document that the sandbox's answers are held to
}

type listed struct {
	ImportPath string
	Imports    []string
}

func TestArrows(t *testing.T) {
	for _, p := range packages(t) {
		for _, problem := range problems(p) {
			t.Error(problem)
		}
	}
}

// The map is worth nothing when it lets everything pass.
func TestArrowsThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		room string
		path string
		ok   bool
	}{
		"a loss knows no recipe":              {"loss", module + "/recipe", false},
		"a recipe knows losses":               {"recipe", module + "/loss", true},
		"a loss is pure":                      {"loss", "github.com/google/uuid", false},
		"the standard library is everybody's": {"loss", "math", true},
		"the client knows no sandbox":         {"internal/together", module + "/internal/sandbox", false},
		"the sandbox knows no client":         {"internal/sandbox", module + "/internal/together", false},
		"the engine knows no wire":            {"internal/sandbox/engine", module + "/internal/wire", false},
		"a part of a room is the room":        {"internal/sandbox/engine/kern", module + "/internal/sandbox/engine", true},
		"nobody imports the command":          {"runner", module + "/cmd/trainer", false},
		"the command imports everybody":       {"cmd/trainer", module + "/internal/sandbox", true},
		"flags stay in the command":           {"runner", "github.com/urfave/cli/v2", false},
		"YAML stays in the recipe":            {"runner", "gopkg.in/yaml.v3", false},
		"the recipe reads YAML":               {"recipe", "gopkg.in/yaml.v3", true},
		"processes are the worker's":          {"runner", "os/exec", false},
		"the worker starts processes":         {"internal/worker", "os/exec", true},
		"bars are the report's":               {"cmd/trainer", "github.com/vbauerster/mpb/v8", false},
		"nobody uses cgo":                     {"internal/sandbox/engine", "C", false},
		"the engine asks the processor":       {"internal/sandbox/engine/kernel", "golang.org/x/sys/cpu", true},
		"a room that is not on the map":       {"internal/helpers", "math", false},
	} {
		got := problems(listed{module + "/" + c.room, []string{c.path}})
		if (len(got) == 0) != c.ok {
			t.Errorf("%s: %s importing %s gives %q", name, c.room, c.path, got)
		}
	}
}

func problems(p listed) (all []string) {
	room := roomOf(p.ImportPath)
	if room == "" {
		return []string{p.ImportPath + " is no room of the map in arrows_test.go; put it there with its arrows, or into a room that is"}
	}
	for _, path := range p.Imports {
		if why := refused(room, path); why != "" {
			all = append(all, p.ImportPath+" imports "+path+": "+why)
		}
	}
	return all
}

// refused says why room may not import path, or "".
func refused(room, path string) string {
	for prefix, allowed := range modules {
		switch {
		case path != prefix && !strings.HasPrefix(path, prefix+"/"):
		case slices.Contains(allowed, room):
			return ""
		default:
			return "only for " + strings.Join(append(slices.Clone(allowed), "tests"), ", ")
		}
	}
	if inside, ok := strings.CutPrefix(path, module+"/"); ok {
		to := roomOf(path)
		switch {
		case to == room || slices.Contains(rim, room) && !slices.Contains(rim, to):
			return ""
		case !slices.Contains(rooms[room], to):
			return "no arrow from " + room + " to " + inside
		}
		return ""
	}
	first, _, _ := strings.Cut(path, "/")
	if strings.Contains(first, ".") && slices.Contains(onlyStandard, room) {
		return room + " is standard library only"
	}
	return ""
}

// roomOf is the longest room that holds the package, "" for none.
func roomOf(importPath string) string {
	path := strings.TrimPrefix(importPath, module+"/")
	for ; path != "." && path != "/"; path = filepath.ToSlash(filepath.Dir(path)) {
		if _, ok := rooms[path]; ok || slices.Contains(rim, path) {
			return path
		}
	}
	return ""
}

// packages asks the go command for every package of the module and what its code, not its tests, imports.
func packages(t *testing.T) (all []listed) {
	t.Helper()
	tool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("there is no go command to ask: ", err)
	}
	// -e: a package that does not compile has its own failing tests.
	list := exec.Command(tool, "list", "-e", "-json=ImportPath,Imports", "./...")
	list.Dir = filepath.Join("..", "..")
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	if len(all) < 5 {
		t.Fatalf("go list names %d packages", len(all))
	}
	return all
}
