package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"trainer/internal/hub/hubtest"
	"trainer/internal/sandbox"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"trainer": main})
}

// TestScripts runs the real command: each script is a behaviour, with its recipes and the lines that it must print.
func TestScripts(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join(root, "testdata", "script"),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("ROOT", root)
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("HF_HUB_OFFLINE", "1") // a test asks no hub but its own
			e.Values[hubKey{}] = &scriptHub{}
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){"exits": exits, "faulty": faulty, "serves": serves, "hub": onHub, "tokenizer": writeTokenizer},
	})
}

// faulty starts a sandbox server with faults, and lets the commands that follow speak to it: faulty stale-address:at=1.
func faulty(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("usage: faulty FAULT…")
	}
	var o sandbox.Options
	for _, text := range args {
		rule, err := sandbox.ParseFault(text)
		ts.Check(err)
		o.Faults = append(o.Faults, rule)
	}
	s, err := sandbox.Open(o)
	ts.Check(err)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	web := &http.Server{Handler: s}
	go func() { _ = web.Serve(ln) }()
	ts.Defer(func() { _ = web.Close(); _ = s.Close() }) // it waits for no request, which a fault may hold
	ts.Setenv("TOGETHER_BASE_URL", "http://"+ln.Addr().String())
	ts.Setenv("TOGETHER_API_KEY", "any")
}

// exits runs trainer and holds it to an exit code: exits 2 validate bad.yaml.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE ARGS…")
	}
	code := 0
	var ended *exec.ExitError
	if err := ts.Exec("trainer", args[1:]...); errors.As(err, &ended) {
		code = ended.ExitCode()
	} else {
		ts.Check(err)
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("trainer %v: exit code %d, want %s", args[1:], code, args[0])
	}
}

// hubKey is where a script keeps its hub.
type hubKey struct{}

type scriptHub struct{ server *hubtest.Hub }

// onHub commits the files of a folder to a repository of a hub on the loopback, which the commands that follow use, and puts the
// commit into $COMMIT: hub datasets/org/name DIR [CARD.json]. hub stop ends it.
func onHub(ts *testscript.TestScript, neg bool, args []string) {
	h := ts.Value(hubKey{}).(*scriptHub)
	if len(args) == 1 && args[0] == "stop" && h.server != nil {
		h.server.Close()
		return
	}
	if neg || len(args) < 2 {
		ts.Fatalf("usage: hub KIND/ORG/NAME DIR [CARD.json] | hub stop")
	}
	if h.server == nil {
		h.server = hubtest.New()
		ts.Defer(h.server.Close)
		ts.Setenv("HF_ENDPOINT", h.server.URL)
		ts.Setenv("HF_HUB_OFFLINE", "")
	}
	var card any
	if len(args) == 3 {
		ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[2])), &card))
	}
	root, files := ts.MkAbs(args[1]), map[string]string{}
	ts.Check(filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(root, path)
		files[filepath.ToSlash(name)] = string(text)
		return err
	}))
	ts.Setenv("COMMIT", h.server.Add(args[0], files, card))
}

// writeTokenizer puts the files of a small published tokenizer into a folder: tokenizer DIR.
func writeTokenizer(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: tokenizer DIR")
	}
	dir := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(dir, 0o700))
	for name, text := range hubtest.Tokenizer() {
		ts.Check(os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
}
