package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"trainer/internal/sandbox"
	"trainer/internal/wire"
)

// serves starts a sandbox with choices, and a resource on it: serves CREATE-BODY NAME=VALUE… It sets TOGETHER_BASE_URL, and
// RESOURCE to the resource's id.
func serves(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: serves CREATE-BODY NAME=VALUE…")
	}
	o := sandbox.Options{Choices: sandbox.Choices{}}
	for _, text := range args[1:] {
		ts.Check(o.Choices.Set(text))
	}
	s, err := sandbox.Open(o)
	ts.Check(err)
	srv := httptest.NewServer(s)
	ts.Defer(func() { srv.Close(); _ = s.Close() })
	res, err := http.Post(srv.URL+wire.PathResources, "application/json", strings.NewReader(args[0]))
	ts.Check(err)
	var r wire.Resource
	ts.Check(json.NewDecoder(res.Body).Decode(&r))
	ts.Check(res.Body.Close())
	ts.Setenv("TOGETHER_BASE_URL", srv.URL)
	ts.Setenv("RESOURCE", r.ID)
}
