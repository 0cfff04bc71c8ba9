package runner_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// The oracle reads a run folder's journal.jsonl and the sandbox's server.log by the protocol's words alone: it shares no
// code with the runner, the journal or the sandbox, so that a mistake there is not made twice.

// members are those of each record, as the protocol's table has them: name, and the JSON type; a question mark is a member
// that may be absent. n, t, type and crc belong to every line.
var members = map[string]string{
	"run":         "format:number run_id:string recipe_hash:string lock_hash:string parent?:object",
	"life":        "pid:number host:string boot_id:string binary:string reason:string folder:object lock_hash:string steps:number torn_bytes:number takeover:bool",
	"plan":        "gpu_type:string max_batch_size:number gradient_accumulation:number stand_in:bool price_usd_per_hour:number",
	"create":      "what:string attempt:number body:object known?:array server_time?:string gen?:number from?:object reason?:string skip?:array",
	"created":     "what:string attempt:number id:string how:string price_usd_per_hour?:number base_weights_ref?:string",
	"not_created": "what:string attempt:number why:string",
	"ready":       "resource:string ready_at:string",
	"session":     "gen:number id:string step0:number trainer_step0:number applied0:number keys:string",
	"witness":     "session:string key:string op:string",
	"intent":      "session:string pos:number step:number kind:string index:number attempt:number key:string body_sha256:string payload_id?:string expect:number",
	"ack":         "key:string op:string",
	"result":      "key:string status:string code?:string how:string loss?:number metrics?:object step?:number version?:number checkpoint?:object token_loss?:number out_sha256?:string",
	"step":        "gen:number step:number applied:bool why?:string updates:number rows_sha256:string metrics:object",
	"eval":        "gen:number done:number updates:number metrics:object",
	"checkpoint":  "gen:number done:number updates:number kind:string id:string server_step:number metric?:number registered?:string revision?:string adapter?:bool",
	"forget":      "id:string why:string",
	"meter":       "resource:string ready_seconds:number cost:number server_time:string",
	"stop":        "what:string id:string why?:string",
	"stopped":     "what:string id:string why?:string",
	"batch":       "batch:number draw:number prompts_sha256:string version:number",
	"rollout":     "batch:number gen:number draws:number file:string sha256:string version:number weights_version:number kept:number dropped:number",
	"unfit":       "gen:number step:number code:string why:string left_out?:string",
	"scored":      "batch:number gen:number file:string sha256:string",
	"salvage":     "kept:string line:number offset:number bytes:number",
	"end":         "outcome:string code?:string step:number released:array unsaved:number",
}

// paired are members that a record of one kind of thing has, and the other has not.
var paired = map[string][]string{"resource": {"known", "server_time"}, "session": {"gen", "from", "reason"}}

type entry map[string]any

func (e entry) text(name string) string { s, _ := e[name].(string); return s }
func (e entry) number(name string) int  { f, _ := e[name].(float64); return int(f) }

// oracle is what the two files say.
type oracle struct {
	records []entry
	served  []frame
	faults  []string
}

func (o *oracle) fault(format string, a ...any) {
	o.faults = append(o.faults, fmt.Sprintf(format, a...))
}

// frame is a record of the server's log.
type frame struct {
	head served
	sum  string // SHA-256 of the body
}

type served struct {
	Kind  string    `json:"kind"`
	T     time.Time `json:"t"`
	Until time.Time `json:"until"`
	ID    string    `json:"id"`
	Op    *struct {
		Session    string `json:"session"`
		Name       string `json:"name"`
		Key        string `json:"key"`
		SHA256     string `json:"sha256"`
		Checkpoint string `json:"checkpoint"`
	} `json:"op"`
	Result *struct {
		Code string `json:"code"`
	} `json:"result"`
}

// judge reads the run in dir, whose server kept its state in store, and returns every broken promise. over says that the
// run has come to its end, so that nothing may be left running.
func judge(t *testing.T, dir, store string, over bool) *oracle {
	t.Helper()
	o := &oracle{}
	o.readJournal(filepath.Join(dir, "journal.jsonl"))
	o.readServer(filepath.Join(store, "server.log"))
	o.shapes()
	o.operations()
	o.steps()
	o.checkpoints()
	o.taints()
	o.rollouts(dir)
	if over {
		o.released()
		o.known()
		o.bills()
	}
	return o
}

func (o *oracle) hold(t *testing.T, point string) {
	t.Helper()
	for _, f := range o.faults {
		t.Errorf("%s: %s", point, f)
	}
}

// readJournal checks the chain: CRC-32C over the previous line's eight digits and this line up to its crc.
func (o *oracle) readJournal(path string) {
	data, err := os.ReadFile(path)
	if err != nil {
		o.fault("%v", err)
		return
	}
	table, prev := crc32.MakeTable(crc32.Castagnoli), "00000000"
	for i, line := range bytes.SplitAfter(data, []byte("\n")) {
		if len(line) == 0 {
			break
		}
		body, crc, ok := bytes.Cut(bytes.TrimSuffix(line, []byte("\"}\n")), []byte(`,"crc":"`))
		want := fmt.Sprintf("%08x", crc32.Checksum(append([]byte(prev), body...), table))
		if !ok || string(crc) != want {
			o.fault("journal line %d: crc %q, want %q", i+1, crc, want)
			return
		}
		prev = want
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			o.fault("journal line %d: %v", i+1, err)
			return
		}
		if e.number("n") != i {
			o.fault("journal line %d has n %d", i+1, e.number("n"))
		}
		o.records = append(o.records, e)
	}
}

// readServer reads frames: two little-endian lengths, the head, the body, and a CRC-32C over the CRC before and all that.
func (o *oracle) readServer(path string) {
	data, err := os.ReadFile(path)
	if err != nil {
		o.fault("%v", err)
		return
	}
	table, chain := crc32.MakeTable(crc32.Castagnoli), make([]byte, 4)
	for len(data) >= 12 {
		head, body := int(binary.LittleEndian.Uint32(data)), int(binary.LittleEndian.Uint32(data[4:]))
		end := 8 + head + body
		if end+4 > len(data) {
			return // the last record is being written
		}
		crc := crc32.Update(crc32.Checksum(chain, table), table, data[:end])
		if crc != binary.LittleEndian.Uint32(data[end:]) {
			o.fault("server log: record %d has a wrong CRC", len(o.served))
			return
		}
		sum := sha256.Sum256(data[8+head : end])
		f := frame{sum: hex.EncodeToString(sum[:])}
		if err := json.Unmarshal(data[8:8+head], &f.head); err != nil {
			o.fault("server log: record %d: %v", len(o.served), err)
			return
		}
		o.served = append(o.served, f)
		chain, data = data[end:end+4], data[end+4:]
	}
}

// shapes holds every record to the table.
func (o *oracle) shapes() {
	for _, e := range o.records {
		spec, ok := members[e.text("type")]
		if !ok {
			o.fault("record %d: type %q is not in the table", e.number("n"), e.text("type"))
			continue
		}
		due := map[string]string{"n": "number", "t": "number", "type": "string", "crc": "string"}
		for _, m := range strings.Fields(spec) {
			name, kind, _ := strings.Cut(m, ":")
			name, optional := strings.CutSuffix(name, "?")
			if due[name] = kind; !optional && e[name] == nil {
				o.fault("record %d (%s): %s is missing", e.number("n"), e.text("type"), name)
			}
		}
		for name, v := range e {
			if got := jsonType(v); got != due[name] {
				o.fault("record %d (%s): %s is %s, the table has %q", e.number("n"), e.text("type"), name, got, due[name])
			}
		}
		if e.text("type") == "create" {
			for _, name := range paired[e.text("what")] {
				if e[name] == nil {
					o.fault("record %d: a create of a %s without %s", e.number("n"), e.text("what"), name)
				}
			}
		}
	}
	if len(o.records) > 0 && o.records[0].text("type") != "run" {
		o.fault("the first record is %s", o.records[0].text("type"))
	}
}

func jsonType(v any) string {
	switch v.(type) {
	case string:
		return "string"
	case float64:
		return "number"
	case bool:
		return "bool"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	}
	return "null"
}

func trains(kind string) bool {
	return kind == "forward_backward" || kind == "custom_forward_backward" || kind == "optim_step"
}

// paths gives the operation that each kind is at the server.
var paths = map[string]string{"forward_backward": "forward-backward", "optim_step": "optim-step", "weights_sync": "weights-sync",
	"training_checkpoint": "training-checkpoint", "inference_checkpoint": "inference-checkpoint", "eval": "forward-backward", "witness": "forward-backward",
	"forward": "forward-backward", "reference": "forward-backward", "custom_forward_backward": "custom-forward-backward",
	"sample": "sample", "eval_sample": "sample"}

// operations: no operation without an intent of equal body; one key, one body, and where it trains, executed once; the
// server's order is that of pos, which has no gaps, but for what trains nothing and is asked for again.
func (o *oracle) operations() {
	intents, next := map[string]entry{}, map[string]int{}
	for _, e := range o.records {
		if e.text("type") != "intent" {
			continue
		}
		if old, ok := intents[e.text("key")]; ok {
			o.fault("record %d: key %s has an intent in record %d already", e.number("n"), e.text("key"), old.number("n"))
		}
		intents[e.text("key")] = e
		if s := e.text("session"); e.number("pos") != next[s] {
			o.fault("record %d: pos %d, want %d", e.number("n"), e.number("pos"), next[s])
		}
		next[e.text("session")]++
		if e.number("attempt") > 0 && trains(e.text("kind")) {
			o.fault("record %d: %s has attempt %d", e.number("n"), e.text("kind"), e.number("attempt"))
		}
	}
	last, trained, seen := map[string]int{}, map[string]int{}, map[string]bool{}
	for _, f := range o.served {
		op := f.head.Op
		if op == nil {
			continue
		}
		key, _, _ := strings.Cut(op.Key, "#") // the mark of a test double that ignores keys
		in, ok := intents[key]
		switch {
		case !ok:
			o.fault("operation %s (%s) was accepted without an intent", f.head.ID, op.Name)
			continue
		case in.text("body_sha256") != f.sum || f.sum != op.SHA256:
			o.fault("operation %s (%s): its body is not that of its intent", f.head.ID, op.Name)
		case in.text("session") != op.Session || paths[in.text("kind")] != op.Name:
			o.fault("operation %s: %s on %s, the intent is %v", f.head.ID, op.Name, op.Session, in)
		case paths[in.text("kind")] == "sample": // goes beside the trainer's operations, in no order with them
			seen[key] = true
			continue
		case seen[key] && trains(in.text("kind")):
			o.fault("operation %s (%s): its key was executed before", f.head.ID, op.Name)
		case in.number("pos") < last[op.Session] && trains(in.text("kind")), in.number("pos") < trained[op.Session] && !seen[key]:
			o.fault("operation %s (%s, pos %d) was accepted behind pos %d", f.head.ID, op.Name, in.number("pos"), last[op.Session])
		}
		if trains(in.text("kind")) {
			trained[op.Session] = in.number("pos")
		}
		seen[key], last[op.Session] = true, in.number("pos")
	}
}

// intended says that an operation of a step that trains is in the journal.
func (o *oracle) intended(step entry) bool {
	session := ""
	for _, e := range o.records {
		switch {
		case e.number("n") > step.number("n"):
			return false
		case e.text("type") == "created" && e.text("what") == "session":
			session = e.text("id")
		case e.text("type") == "intent" && e.text("session") == session && trains(e.text("kind")) && e.number("step") == step.number("step"):
			return true
		}
	}
	return false
}

// generation is a session of the journal.
type generation struct {
	id         string
	from, upto int   // steps in it when it began, and when the next one did
	updates    int   // optimiser steps in it when it began
	skip       []any // steps that it leaves out
}

func (o *oracle) generations() []*generation {
	var all []*generation
	for _, e := range o.records {
		switch {
		case e.text("type") == "create" && e.text("what") == "session":
			from, _ := e["from"].(map[string]any)
			done := entry(from).number("done")
			for _, g := range all {
				g.upto = min(g.upto, done)
			}
			skip, _ := e["skip"].([]any)
			all = append(all, &generation{from: done, upto: 1 << 30, updates: entry(from).number("updates"), skip: skip})
		case e.text("type") == "created" && e.text("what") == "session":
			all[len(all)-1].id = e.text("id")
		}
	}
	return all
}

// steps: the step records of the lineage ascend, once each; one trains unless its session leaves it out, and the count of
// updates goes with that. A session that leaves a step out does so for good.
func (o *oracle) steps() {
	done, updates, skip := 0, 0, []any(nil)
	for _, e := range o.records {
		switch e.text("type") {
		case "run": // a fork begins with the steps of another run
			begun, _ := e["parent"].(map[string]any)
			done, updates = entry(begun).number("done"), entry(begun).number("updates")
		case "create":
			if from, ok := e["from"].(map[string]any); ok {
				done = min(done, entry(from).number("done"))
				if entry(from).number("done") != done {
					o.fault("record %d: a session begins at %d steps, %d are done", e.number("n"), entry(from).number("done"), done)
				}
				updates = entry(from).number("updates")
				left, _ := e["skip"].([]any)
				for _, s := range skip {
					if !slices.Contains(left, s) {
						o.fault("record %d: a session does not leave out step %v, as the one before did", e.number("n"), s)
					}
				}
				skip = left
			}
		case "unfit":
			if e.number("step") < done || o.intended(e) {
				o.fault("record %d: step %d is unfit, %d are done", e.number("n"), e.number("step"), done)
			}
			if e.text("left_out") != "" && !slices.Contains(skip, e["step"]) {
				skip = append(slices.Clone(skip), e["step"])
			}
		case "step":
			if e.number("step") != done {
				o.fault("record %d: step %d where %d is due", e.number("n"), e.number("step"), done)
			}
			done = e.number("step") + 1
			out := slices.Contains(skip, e["step"]) || strings.HasPrefix(e.text("why"), "nothing to train on: ") && !o.intended(e)
			if out == (e["applied"] == true) || out == (e.text("why") == "") {
				o.fault("record %d: step %d: applied %v, why %q, the session leaves out %v", e.number("n"), e.number("step"), e["applied"], e.text("why"), skip)
			}
			if e["applied"] == true {
				updates++
			}
			if e.number("updates") != updates {
				o.fault("record %d: step %d has %d updates, want %d", e.number("n"), e.number("step"), e.number("updates"), updates)
			}
		}
	}
}

// lineage is what the weights were trained with, in order: the bodies of the forward_backwards and optim_steps that the
// server has carried out, of each session those before the next one began.
func (o *oracle) lineage() (bodies []string) {
	step, completed := map[string]int{}, map[string]bool{}
	for _, e := range o.records {
		if e.text("type") == "intent" {
			step[e.text("key")] = e.number("step")
		}
	}
	for _, f := range o.served {
		if f.head.Kind == "result" && f.head.Result != nil && f.head.Result.Code == "" {
			completed[f.head.ID] = true
		}
	}
	kinds := map[string]string{}
	for _, e := range o.records {
		if e.text("type") == "intent" {
			kinds[e.text("key")] = e.text("kind")
		}
	}
	for _, g := range o.generations() {
		for _, f := range o.served {
			op := f.head.Op
			if op == nil || op.Session != g.id || !completed[f.head.ID] {
				continue
			}
			if key, _, _ := strings.Cut(op.Key, "#"); trains(kinds[key]) && step[key] < g.upto {
				bodies = append(bodies, op.Name+" "+f.sum)
			}
		}
	}
	return bodies
}

// taints: behind the failure of an operation that trains, and behind the word that its session is tainted, nothing is
// intended in it that trains.
func (o *oracle) taints() {
	why, of := map[string]string{}, map[string]entry{}
	for _, e := range o.records {
		switch e.text("type") {
		case "intent":
			of[e.text("key")] = e
			if s := e.text("session"); trains(e.text("kind")) && why[s] != "" {
				o.fault("record %d: %s of step %d in a session that is tainted by %s", e.number("n"), e.text("kind"), e.number("step"), why[s])
			}
		case "result":
			if in := of[e.text("key")]; e.text("status") == "FAILED" && trains(in.text("kind")) {
				why[in.text("session")] = e.text("code")
			}
		case "stop":
			if strings.HasPrefix(e.text("why"), "tainted") {
				why[e.text("id")] = e.text("why")
			}
		}
	}
}

// weights are the tensors of the newest training checkpoint of the lineage, from the files of the server.
func (o *oracle) weights(t *testing.T, store string) string {
	t.Helper()
	id := ""
	for _, e := range o.records {
		if e.text("type") == "checkpoint" && e.text("kind") == "training" {
			id = e.text("id")
		}
	}
	data, err := os.ReadFile(filepath.Join(store, "checkpoints", id+".safetensors"))
	if err != nil {
		t.Error(err)
		return ""
	}
	return string(data[8+binary.LittleEndian.Uint64(data):])
}

// checkpoints: one is named by the steps that its weights contain, counted at the server.
func (o *oracle) checkpoints() {
	contains, count := map[string]int{}, map[string]int{}
	for _, g := range o.generations() {
		count[g.id] = g.updates
	}
	ops := map[string]frame{}
	for _, f := range o.served {
		if f.head.Op != nil {
			ops[f.head.ID] = f
		}
		if f.head.Kind != "result" || f.head.Result == nil || f.head.Result.Code != "" {
			continue
		}
		switch op := ops[f.head.ID].head.Op; op.Name {
		case "optim-step":
			count[op.Session]++
		case "training-checkpoint", "inference-checkpoint":
			contains[op.Checkpoint] = count[op.Session]
		}
	}
	for _, e := range o.records {
		if e.text("type") != "checkpoint" {
			continue
		}
		if n, ok := contains[e.text("id")]; !ok || n != e.number("updates") || n != e.number("server_step") {
			o.fault("record %d: checkpoint of %d updates (server step %d) contains %d (%v)", e.number("n"), e.number("updates"), e.number("server_step"), n, ok)
		}
	}
}

// released: every resource at the server was stopped, and is in the journal.
func (o *oracle) released() {
	alive := map[string]bool{}
	for _, f := range o.served {
		switch f.head.Kind {
		case "resource":
			alive[f.head.ID] = true
		case "stop", "expire":
			delete(alive, f.head.ID)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(alive)) {
		o.fault("resource %s is left running", id)
	}
}

// TestOracleSeesWhatIsWrong: an oracle that finds nothing proves nothing.
func TestOracleSeesWhatIsWrong(t *testing.T) {
	line := func(prev, body string) (string, string) {
		crc := fmt.Sprintf("%08x", crc32.Checksum([]byte(prev+body), crc32.MakeTable(crc32.Castagnoli)))
		return body + `,"crc":"` + crc + "\"}\n", crc
	}
	first, crc := line("00000000", `{"n":0,"t":1700000000000,"type":"run","format":1`)
	if crc != "b6d3f9fe" {
		t.Errorf("the first line of the protocol's vector has crc %s", crc)
	}
	second, crc := line(crc, `{"n":1,"t":1700000000001,"type":"life"`)
	if crc != "69cbe94a" {
		t.Errorf("the second line of the protocol's vector has crc %s", crc)
	}
	dir := t.TempDir()
	for name, c := range map[string]struct{ journal, want string }{
		"a member is missing":  {first, "run_id is missing"},
		"the chain is broken":  {first + strings.Replace(second, "life", "lief", 1), "journal line 2: crc"},
		"a line is left out":   {second, "journal line 1: crc"},
		"an operation unasked": {first, "was accepted without an intent"},
	} {
		write(t, filepath.Join(dir, "journal.jsonl"), c.journal)
		head := `{"kind":"operation","id":"o","op":{"session":"s","name":"optim-step","key":"k"}}`
		log := binary.LittleEndian.AppendUint32(nil, uint32(len(head)))
		log = append(binary.LittleEndian.AppendUint32(log, 0), head...)
		table := crc32.MakeTable(crc32.Castagnoli)
		log = binary.LittleEndian.AppendUint32(log, crc32.Update(crc32.Checksum(make([]byte, 4), table), table, log))
		write(t, filepath.Join(dir, "server.log"), string(log))
		o := judge(t, dir, dir, false)
		if !strings.Contains(strings.Join(o.faults, "\n"), c.want) {
			t.Errorf("%s: the oracle says %q, want %q in it", name, o.faults, c.want)
		}
	}
}

func write(t *testing.T, path, data string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
}
