package runner

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"

	"trainer/internal/journal"
	"trainer/internal/rollout"
)

// samplesName is the folder of a run that holds what was sampled: a file a rollout batch, one an evaluation.
const samplesName = "samples"

// completion is a line of such a file: a member of a group, or a group without any, whose Member is -1. Its members are a
// contract: later versions read these files, and so do people.
type completion struct {
	Batch     int       `json:"batch"`
	Group     int       `json:"group"`
	Row       int       `json:"row"` // of the prompt in its set
	At        string    `json:"at"`
	Member    int       `json:"member"`
	Prompt    string    `json:"prompt"`
	Text      string    `json:"text"`
	Stop      string    `json:"stop"`
	Count     int       `json:"completion_tokens"`
	Version   int64     `json:"weights_version"`
	Reward    float64   `json:"reward"`
	Unscored  string    `json:"unscored,omitempty"`
	Rewards   []verdict `json:"rewards"`
	Advantage float64   `json:"advantage"`
	Trained   bool      `json:"trained"`
	Dropped   string    `json:"dropped,omitempty"` // why the group is
	Tokens    []int32   `json:"tokens"`
	Logprobs  []float64 `json:"logprobs"`
	Ref       []float64 `json:"ref_logprobs,omitempty"` // of what is trained, where the run compares with a reference
	Experts   string    `json:"routed_experts_key,omitempty"`
	// Observed are the stretches of the tokens that an environment wrote, [from, to); PromptTokens is what it began with,
	// and where a teacher has scored the completion, the prompt.
	Observed     [][2]int  `json:"observed,omitempty"`
	PromptTokens []int32   `json:"prompt_tokens,omitempty"`
	Teacher      []float64 `json:"teacher_logprobs,omitempty"`
	// TeacherTop is what a teacher finds likeliest in place of each of the tokens.
	TeacherTop [][]likely `json:"teacher_topk,omitempty"`
}

// likely is a token with the natural log of its probability, as [id, logprob].
type likely struct {
	id      int32
	logprob float64
}

// MarshalJSON implements json.Marshaler.
func (l likely) MarshalJSON() ([]byte, error) { return json.Marshal([2]any{l.id, l.logprob}) }

// UnmarshalJSON implements json.Unmarshaler.
func (l *likely) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, &[2]any{&l.id, &l.logprob}) }

// topOf is what lines hold of the likeliest tokens, [T][K]; nil where there are none.
func topOf(ids [][]int32, logprobs [][]float64) (top [][]likely) {
	for t := range ids {
		row := make([]likely, len(ids[t]))
		for k, id := range ids[t] {
			row[k] = likely{id, logprobs[t][k]}
		}
		top = append(top, row)
	}
	return top
}

// setTop is the inverse of topOf.
func setTop(m *rollout.Member, top [][]likely) {
	for _, row := range top {
		ids, logprobs := make([]int32, len(row)), make([]float64, len(row))
		for k, l := range row {
			ids[k], logprobs[k] = l.id, l.logprob
		}
		m.TopIDs, m.TopLogprobs = append(m.TopIDs, ids), append(m.TopLogprobs, logprobs)
	}
}

// verdict is what one grader gave.
type verdict struct {
	Name   string  `json:"name"`
	Value  float64 `json:"value"`
	Scored bool    `json:"scored"`
	Why    string  `json:"why,omitempty"`
}

// written are the lines of d.
func (r *run) written(batch int, d *drawn) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	for i, g := range d.groups {
		c := completion{Batch: batch, Group: i, Row: g.Row, At: d.places[i], Member: -1, Dropped: string(g.Dropped), Prompt: r.in.Tokenizer.Decode(g.Prompt)}
		if len(g.Members) == 0 {
			if err := enc.Encode(c); err != nil {
				return nil, err
			}
		}
		for j, m := range g.Members {
			if m.Prompt != nil {
				c.Prompt = r.in.Tokenizer.Decode(m.Prompt)
			}
			c.Member, c.Text, c.Stop, c.Count, c.Version = j, m.Text, string(m.Stop), len(m.Tokens), m.Version
			c.Reward, c.Unscored, c.Advantage, c.Trained = m.Reward, m.Unscored, m.Advantage, m.Trained
			c.Tokens, c.Logprobs, c.Ref, c.Experts, c.Rewards = m.Tokens, m.Logprobs, m.Ref, m.RoutedExperts, nil
			c.Teacher = m.Teacher
			c.Observed, c.PromptTokens, c.TeacherTop = nil, m.Prompt, topOf(m.TopIDs, m.TopLogprobs)
			if r.in.distils() {
				c.PromptTokens = g.Prompt // which makes the line a row of tokens that a teacher has scored
			}
			for _, s := range m.Observed {
				c.Observed = append(c.Observed, [2]int{s.From, s.To})
			}
			for _, p := range m.Parts {
				c.Rewards = append(c.Rewards, verdict(p))
			}
			if err := enc.Encode(c); err != nil {
				return nil, err
			}
		}
	}
	return b.Bytes(), nil
}

// store brings a rollout batch to the disk, then writes into the journal that it is there, then gives it to who waits.
func (f *fromRollouts) store(b int, d *drawn, draws int, under served) error {
	r := f.r
	text, err := r.written(b, d)
	if err != nil {
		return fmt.Errorf("write down what was sampled: %w", err)
	}
	rec := rolloutRecord{Batch: b, Gen: r.gen.gen, Draws: draws, File: fmt.Sprintf("%s/batch-%06d.g%d.jsonl", samplesName, b+1, r.gen.gen),
		SHA256: hashOf(text), Version: under.updates, Served: under.version, Kept: full(d.groups)}
	rec.Dropped = len(d.groups) - rec.Kept
	if err := r.putSamples(rec.File, text); err != nil {
		return err
	}
	if err := r.journal.Append(recRollout, rec); err != nil {
		return &journalError{fmt.Errorf("journal the rollout batch: %w", err)}
	}
	r.note(func(p *past) { p.rollouts[b] = rec })
	r.ledger.forget(func(s slot) bool { return s.kind == kindSample && s.step == b*f.per })
	if r.anchor != nil {
		r.anchor.stored(b * f.per)
	}
	f.change(func() { f.stored[b] = d })
	r.show(b*f.per, d)
	return nil
}

// putSamples brings a file to the folder of samples. The first of a life sees to the folder, and whoever stores beside it waits
// for that: the name of one that is found may not have come to the disk yet.
func (r *run) putSamples(name string, text []byte) error {
	r.folder.Do(func() {
		if err := os.Mkdir(filepath.Join(r.world.Dir, samplesName), 0o700); err != nil && !os.IsExist(err) {
			r.noFolder = err
			return
		}
		r.noFolder = r.disk.SyncFolder(r.world.Dir)
	})
	err := r.noFolder
	if err == nil {
		err = journal.Put(r.disk, filepath.Join(r.world.Dir, filepath.FromSlash(name)), text)
	}
	if err != nil {
		return &journalError{fmt.Errorf("store what was sampled: %w", err)}
	}
	return nil
}

// load reads a rollout batch that is stored. Rewards and advantages are those that were written down: a grader is not asked
// twice.
func (f *fromRollouts) load(rec rolloutRecord) (*drawn, error) {
	text, err := os.ReadFile(filepath.Join(f.r.world.Dir, filepath.FromSlash(rec.File)))
	if err != nil {
		return nil, fmt.Errorf("read the samples of rollout batch %d: %w", rec.Batch+1, err)
	}
	if hashOf(text) != rec.SHA256 {
		return nil, fmt.Errorf("%w: %s is not what was written there", ErrDrift, rec.File)
	}
	d := &drawn{}
	in := bufio.NewReader(bytes.NewReader(text))
	for dec := json.NewDecoder(in); dec.More(); {
		var c completion
		if err := dec.Decode(&c); err != nil {
			return nil, fmt.Errorf("read %s: %w", rec.File, err)
		}
		if err := f.take(d, c); err != nil {
			return nil, err
		}
	}
	d.metrics = f.r.in.figures(d.groups)
	return d, nil
}

// take adds a line to the groups.
func (f *fromRollouts) take(d *drawn, c completion) error {
	if c.Group == len(d.groups) {
		p, err := f.rows.set.Prompt(c.Row)
		if err != nil {
			return drifted(err)
		}
		d.groups = append(d.groups, rollout.Group{Row: c.Row, Prompt: p.IDs, Taught: p.Taught, Dropped: rollout.Drop(c.Dropped)})
		d.places = append(d.places, c.At)
	}
	if c.Member < 0 {
		return nil
	}
	m := rollout.Member{Sequence: rollout.Sequence{Tokens: c.Tokens, Logprobs: c.Logprobs, Stop: rollout.Stop(c.Stop), RoutedExperts: c.Experts}, Ref: c.Ref, Text: c.Text,
		Version: c.Version, Reward: c.Reward, Unscored: c.Unscored, Advantage: c.Advantage, Teacher: c.Teacher, Trained: c.Trained}
	if c.TeacherTop != nil {
		setTop(&m, c.TeacherTop)
	}
	if !f.r.in.distils() {
		m.Prompt = c.PromptTokens // of a completion that a teacher has scored it is the group's
	}
	for _, s := range c.Observed {
		m.Observed = append(m.Observed, rollout.Span{From: s[0], To: s[1]})
	}
	for _, v := range c.Rewards {
		m.Parts = append(m.Parts, rollout.Part(v))
	}
	g := &d.groups[c.Group]
	g.Members = append(g.Members, m)
	return nil
}

// show tells some of the completions of a batch: one a group, as many as logging.completions says.
func (r *run) show(done int, d *drawn) {
	left := r.in.Recipe.Logging.Completions
	for i, g := range d.groups {
		if len(g.Members) == 0 || left == 0 {
			continue
		}
		left--
		m := g.Members[i%len(g.Members)]
		prompt := g.Prompt
		if m.Prompt != nil {
			prompt = m.Prompt
		}
		e := Event{Kind: SampleEvent, Done: done, Prompt: r.in.Tokenizer.Decode(prompt), Text: m.Text,
			Metrics: map[string]float64{"tokens": float64(len(m.Tokens))}}
		maps.Copy(e.Metrics, r.in.worth(m))
		r.tell(e)
	}
}

// worth is what a completion is learnt from by: what it earned, or how far the teacher finds it.
func (in *Inputs) worth(m rollout.Member) map[string]float64 {
	if in.distils() {
		kl, ok := rollout.Divergence([]rollout.Group{{Members: []rollout.Member{m}}})
		if !ok {
			return nil
		}
		return map[string]float64{"reverse_kl": kl}
	}
	w := map[string]float64{}
	if in.samples() {
		w["advantage"] = m.Advantage
	}
	if m.Unscored == "" && !in.Unjudged {
		w["reward"] = m.Reward
	}
	return w
}
