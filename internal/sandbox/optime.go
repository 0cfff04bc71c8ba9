package sandbox

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"trainer/internal/diag"
	"trainer/internal/wire"
)

// Pace is how long an operation runs: a base, and a time for each token that it is over.
type Pace struct{ Base, PerToken time.Duration }

// Scoring is the pace of a forward-backward with forward_only, beside the kinds of operations.
const Scoring wire.Kind = "forward-only"

// OpTime is the pace of each kind of operation, and of FP4 jobs, in virtual time. What is not in it runs as long as it takes. Read-only once a
// server has it.
type OpTime map[wire.Kind]Pace

// GPUProfile is a stated pace of training, by the arithmetic of docs/sandbox.md.
type GPUProfile struct {
	Name, Does string
	Time       OpTime
}

// GPUProfiles lists every profile: a model of so many parameters, on as many GPUs as the sandbox prices it at.
func GPUProfiles() []GPUProfile {
	return []GPUProfile{
		profile("b200-4b", 4, 1),
		profile("b200-8b", 8, 1),
		profile("b200-32b", 32, 4),
		profile("b200-70b", 70, 8),
	}
}

// profile takes 2.25e15 dense bfloat16 operations a second a GPU, of which 40 % are reached: 6 operations a parameter and
// token forward and backward, 2 forward, 20 for one of a sample, which waits for memory. Weights of 2 bytes a parameter leave at 20 GB/s a GPU. The bases are guesses at what
// one call costs.
func profile(name string, billions, gpus int) GPUProfile {
	reached := 2.25e15 * 0.4 * float64(gpus)
	token := func(operations float64) time.Duration {
		return time.Duration(operations * float64(billions) * 1e9 / reached * float64(time.Second))
	}
	weights := time.Duration(2 * float64(billions) / (20 * float64(gpus)) * float64(time.Second))
	return GPUProfile{name, fmt.Sprintf("%d billion parameters on %d B200", billions, gpus), OpTime{
		wire.KindForwardBackward:       {50 * time.Millisecond, token(6)},
		Scoring:                        {30 * time.Millisecond, token(2)},
		wire.KindCustomForwardBackward: {50 * time.Millisecond, token(6)},
		wire.KindSample:                {50 * time.Millisecond, token(20)},
		wire.KindOptimStep:             {Base: 100 * time.Millisecond},
		wire.KindWeightsSync:           {Base: 200*time.Millisecond + weights},
		wire.KindTrainingCheckpoint:    {Base: time.Second + 3*weights},
		wire.KindInferenceCheckpoint:   {Base: time.Second + weights},
		Preparing:                      {Base: 10*time.Minute + 2*weights},
	}}
}

// FindGPUProfile returns a profile's times.
func FindGPUProfile(name string) (OpTime, error) {
	var names []string
	for _, p := range GPUProfiles() {
		if p.Name == name {
			return p.Time, nil
		}
		names = append(names, p.Name)
	}
	return nil, fmt.Errorf("%q is not a GPU profile%s; there are %s", name, diag.DidYouMean(name, names), strings.Join(names, ", "))
}

func paced() []wire.Kind {
	return []wire.Kind{
		wire.KindForwardBackward, Scoring, wire.KindCustomForwardBackward, wire.KindOptimStep, wire.KindWeightsSync, wire.KindSample,
		wire.KindTrainingCheckpoint, wire.KindInferenceCheckpoint, Preparing,
	}
}

// With returns the times with those of text over them: KIND=BASE or KIND=BASE+PER_TOKEN, several separated by commas.
func (o OpTime) With(text string) (OpTime, error) {
	out := maps.Clone(o)
	if out == nil {
		out = OpTime{}
	}
	for word := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(word, "=")
		if !ok {
			return nil, fmt.Errorf("%q is not KIND=TIME", word)
		}
		if !slices.Contains(paced(), wire.Kind(name)) {
			var names []string
			for _, k := range paced() {
				names = append(names, string(k))
			}
			return nil, fmt.Errorf("%q is not an operation%s; there are %s", name, diag.DidYouMean(name, names), strings.Join(names, ", "))
		}
		var p Pace
		for i, part := range strings.SplitN(value, "+", 2) {
			d, err := time.ParseDuration(part)
			if err != nil || d < 0 || d > 24*time.Hour {
				return nil, fmt.Errorf("%s: %q is not a time such as 300ms or 50ms+40us, a base and a time for each token", name, value)
			}
			if i == 0 {
				p.Base = d
			} else {
				p.PerToken = d
			}
		}
		out[wire.Kind(name)] = p
	}
	return out, nil
}

// takes is how long an operation runs in virtual time; 0: as long as it takes.
func (s *Server) takes(op *operation, w *work) time.Duration {
	kind, tokens := op.spec.Name, 0
	if w.forwardOnly {
		kind = Scoring
	}
	for _, d := range w.data {
		tokens += len(d.Input)
	}
	if w.sample != nil {
		for _, p := range w.sample.Prompts {
			tokens += len(p)
		}
	}
	p := s.options.OpTime[kind]
	d := p.Base + time.Duration(tokens)*p.PerToken
	if f := op.spec.Fault; f != nil && !w.deferred {
		d += f.Publish
	}
	return d
}

// reach waits for a virtual time; false when the server closes first.
func (s *Server) reach(at time.Time) bool {
	for {
		s.mu.Lock()
		turn, there, closing := s.turn, !s.clock.now().Before(at), s.closing || s.broken != nil
		s.mu.Unlock()
		if there || closing {
			return there
		}
		s.wait(turn, at)
	}
}
