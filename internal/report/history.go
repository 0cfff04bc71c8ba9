package report

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"trainer/runner"
)

// history is what a run folder tells about its run, over all lives. Steps that were taken back are not in the series;
// evaluations and checkpoints after them are kept, marked.
type history struct {
	dir        string // of the run
	about      about
	series     map[string]series // by metric, X is the steps done
	done       int               // steps of the lineage
	evals      []mile
	saves      []mile
	samples    []runner.Event // completions, the newest samplesKept
	log        []runner.Event // what is neither step, evaluation nor checkpoint; the newest logKept
	logged     int            // all of those
	first      time.Time
	last       time.Time
	outcome    string // empty while no end is recorded behind the newest event
	cost       float64
	hasCost    bool
	unreadable int // lines
	lock       string
	resolved   string
}

// mile is an evaluation or a checkpoint at done steps; abandoned when the run went back behind it.
type mile struct {
	done      int
	text      string
	metrics   map[string]float64
	abandoned bool
}

// logKept bounds what a page lists of stages, retries and warnings; lineLimit is the longest line that is read, and
// mostSteps the highest step that is believed.
const (
	logKept = 300
	// samplesKept bounds the completions that a page shows.
	samplesKept = 24
	lineLimit   = 1 << 20
	mostSteps   = 1_000_000_000
)

// readHistory reads a run folder, also while its run goes on: a file that is missing is empty, a half-written last line
// is left out, and other lines that cannot be read are counted.
func readHistory(dir string) (*history, error) {
	a, err := readAbout(dir)
	if err != nil {
		return nil, err
	}
	h := &history{dir: dir, about: a, series: map[string]series{}}
	if err := h.eachLine(filepath.Join(dir, eventsFile), h.addEvent); err != nil {
		return nil, err
	}
	if err := h.readMetrics(filepath.Join(dir, "metrics.jsonl")); err != nil {
		return nil, err
	}
	if h.lock, err = readText(filepath.Join(dir, "lock.yaml")); err != nil {
		return nil, err
	}
	h.resolved, err = readText(filepath.Join(dir, "resolved.yaml"))
	return h, err
}

// readMetrics takes the steps from metrics.jsonl, which is the lineage's own record, in place of those of the events.
func (h *history) readMetrics(path string) error {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	h.series, h.done = map[string]series{}, 0
	if err := h.eachLine(path, h.addStep); err != nil {
		return err
	}
	// A rollback that was followed by no step shows in this file alone; it may be a step behind the events.
	abandonFrom(h.evals, h.done+2)
	abandonFrom(h.saves, h.done+2)
	slices.SortStableFunc(h.evals, func(a, b mile) int { return a.done - b.done })
	return nil
}

// addStep takes a line of metrics.jsonl: numbers by name, "step" counted from 1; 0 is the evaluation before the first.
func (h *history) addStep(line []byte) bool {
	var fields map[string]json.RawMessage
	if json.Unmarshal(line, &fields) != nil {
		return false
	}
	var step int
	if json.Unmarshal(fields["step"], &step) != nil || step < 0 || step > mostSteps {
		return false
	}
	metrics := map[string]float64{}
	for name, raw := range fields {
		var n number
		if name != "step" && n.UnmarshalJSON(raw) == nil {
			metrics[name] = float64(n)
		}
	}
	scores := map[string]float64{}
	for _, name := range evalKeys(metrics) {
		scores[name] = metrics[name]
		delete(metrics, name)
	}
	if len(scores) > 0 {
		h.evals = mergeMile(h.evals, mile{done: step, metrics: scores})
	}
	if step > 0 {
		h.step(step, metrics)
	}
	return true
}

// step takes the metrics of a step. One without a loss has a gap there: numbers that are not finite may be left out. But a step
// of sampled groups that was left out had nothing to train on, which is no fault of the loss.
func (h *history) step(done int, metrics map[string]float64) {
	if done <= h.done {
		for name, s := range h.series {
			h.series[name] = s.until(done)
		}
	}
	for name, v := range metrics {
		if name != skipped {
			h.series[name] = h.series[name].add(point{done, v})
		}
	}
	_, sampled := metrics[groups]
	if _, ok := metrics[trainLoss]; !ok && !(sampled && metrics[skipped] == 1) {
		h.series[trainLoss] = h.series[trainLoss].add(point{done, math.NaN()})
	}
	h.done = done
}

// addEvent takes a line of events.jsonl.
func (h *history) addEvent(line []byte) bool {
	e, err := decodeEvent(line)
	if err != nil || e.Done < 0 || e.Done > mostSteps {
		return false
	}
	if h.first.IsZero() {
		h.first = e.Time
	}
	h.last, h.outcome = e.Time, ""
	if v, ok := e.Metrics[costUSD]; ok {
		h.cost, h.hasCost = v, true
	}
	switch e.Kind {
	case runner.StepEvent:
		abandonFrom(h.evals, e.Done)
		abandonFrom(h.saves, e.Done)
		h.step(e.Done, e.Metrics)
	case runner.EvalEvent:
		h.evals = mergeMile(h.evals, mile{done: e.Done, metrics: e.Metrics})
	case runner.SaveEvent:
		h.saves = mergeMile(h.saves, mile{done: e.Done, text: e.Text})
	case runner.SampleEvent:
		if h.samples = append(h.samples, e); len(h.samples) > 2*samplesKept {
			h.samples = slices.Delete(h.samples, 0, samplesKept)
		}
	case runner.EndEvent:
		h.outcome = e.Text
		h.note(e)
	default:
		h.note(e)
	}
	return true
}

func (h *history) note(e runner.Event) {
	h.logged++
	if h.log = append(h.log, e); len(h.log) > 2*logKept {
		h.log = slices.Delete(h.log, 0, logKept)
	}
}

// abandonFrom marks what was measured or saved at done steps or later: step done is only now taken.
func abandonFrom(miles []mile, done int) {
	for i := range miles {
		if miles[i].done >= done {
			miles[i].abandoned = true
		}
	}
}

// mergeMile adds m, or joins it with what was said of the same: a resumed life may say it again.
func mergeMile(miles []mile, m mile) []mile {
	for i := len(miles) - 1; i >= 0; i-- {
		if old := &miles[i]; old.done == m.done && old.text == m.text && !old.abandoned {
			for name, v := range m.metrics {
				old.metrics[name] = v
			}
			return miles
		}
	}
	if m.metrics == nil {
		m.metrics = map[string]float64{}
	}
	return append(miles, m)
}

// eachLine calls take for each whole line of a file and counts those that it refuses. A missing file has no lines.
func (h *history) eachLine(path string, take func([]byte) bool) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the run folder: %w", err)
	}
	defer f.Close()
	refused, err := readLines(f, take)
	h.unreadable += refused
	if err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	return nil
}

// readLines is eachLine over a reader; refused is how many lines take did not understand, or were too long. What stands
// behind the last line break is a line being written, or one that a kill cut, and is left out.
func readLines(r io.Reader, take func([]byte) bool) (refused int, err error) {
	b := bufio.NewReaderSize(r, 64<<10)
	var line []byte
	long := false
	for {
		chunk, err := b.ReadSlice('\n')
		if long = long || len(line)+len(chunk) > lineLimit; long {
			line = line[:0]
		} else {
			line = append(line, chunk...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF):
			return refused, nil
		case err != nil:
			return refused, err
		}
		if long || (len(line) > 1 && !take(line)) {
			refused++
		}
		line, long = line[:0], false
	}
}

// readText reads a whole file of the folder; missing is empty, and a huge one is cut, which its text says.
func readText(path string) (string, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading the run folder: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, lineLimit+1))
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", path, err)
	}
	if len(data) > lineLimit {
		data = append(data[:lineLimit], "\n… cut here: the file is longer"...)
	}
	return string(data), nil
}
