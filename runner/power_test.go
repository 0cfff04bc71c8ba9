package runner_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"testing"

	"trainer/runner"
)

var diskStride = flag.Int("every", 29, "TestDeathAtEveryDiskOperation tries every so many-th operation of the disk; 1: all of them")

// TestDeathAtEveryDiskOperation kills a run, or cuts its power, at each operation of its disk, and resumes it: it ends as the
// one that nothing disturbed, in the session that it had.
// go test ./runner -run TestDeathAtEveryDiskOperation -every 1 -timeout 0 is the long form.
func TestDeathAtEveryDiskOperation(t *testing.T) {
	t.Parallel()
	for _, lookahead := range []int{1, 0, 4} {
		t.Run(fmt.Sprintf("lookahead %d", lookahead), func(t *testing.T) {
			b := newBench(t, fmt.Sprintf("train.lookahead=%d", lookahead))
			want, stride := b.measured(), *diskStride
			if lookahead != 1 {
				stride *= 3
			}
			for i, how := range deaths {
				points := 0
				for at, over := 1+i*stride/len(deaths), false; !over; at += sparse(stride) {
					b.onDisk(func(t *testing.T) {
						d := newMortal(t.TempDir(), uint64(at), b.dir)
						over = !b.dies(t, d, how, at)
						if !over {
							points++
							b.revives(t, fmt.Sprintf("%s operation %d", how, at), want)
						}
					})
				}
				if t.Logf("%s: %d points", how, points); points < fewest(3) {
					t.Errorf("%s: %d points are too few", how, points)
				}
			}
		})
	}
}

// TestThreeDeathsInARow: what one life has left unsynced may be lost in the next, whose own death is another.
func TestThreeDeathsInARow(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	want := b.measured()
	for seed := range uint64(max(8, 200 / *diskStride)) {
		b.onDisk(func(t *testing.T) {
			dice := rand.New(rand.NewPCG(seed, 2))
			d := newMortal(t.TempDir(), seed, b.dir)
			point := fmt.Sprintf("seed %d:", seed)
			for range 3 {
				how, at := deaths[dice.IntN(len(deaths))], 1+dice.IntN(120)
				point += fmt.Sprintf(" %s operation %d,", how, at)
				if !b.dies(t, d, how, at) {
					break
				}
			}
			b.revives(t, point, want)
		})
	}
}

// dies lives a life on d that ends at operation at, and restarts the machine; false: the run was complete before.
func (b *bench) dies(t *testing.T, d *mortal, how death, at int) bool {
	t.Helper()
	ctx, cut := context.WithCancelCause(context.Background())
	defer cut(nil)
	d.live(how, at, func() { cut(errDead) })
	c := client(&mains{b.server, d})
	w := runner.World{Backend: c, Resources: c, Downloads: c, Dir: b.dir, Version: "test", Sandbox: true, Disk: d}
	_, err := runner.Run(ctx, ctx, b.in, b.plan, w)
	if !d.isDead() {
		if err != nil {
			t.Fatalf("%s operation %d: a life that nothing ended: %v", how, at, err)
		}
		return false
	}
	if err := d.restart(b.dir); err != nil {
		t.Fatalf("%s operation %d: %v", how, at, err)
	}
	return true
}

// mains is a transport that has no power when the disk has none.
type mains struct {
	next http.RoundTripper
	disk *mortal
}

func (m *mains) RoundTrip(r *http.Request) (*http.Response, error) {
	if m.disk.isDead() {
		return nil, errDead
	}
	res, err := m.next.RoundTrip(r)
	if err == nil && m.disk.isDead() {
		_, _ = io.Copy(io.Discard, res.Body)
		return nil, errors.Join(errDead, res.Body.Close())
	}
	return res, err
}

// revives continues a run that has died, and holds it to the one that nothing disturbed.
func (b *bench) revives(t *testing.T, point string, want outcome) {
	t.Helper()
	s, err := b.through(b.server)
	if err != nil || s.Outcome != "complete" {
		t.Fatalf("%s: resume: %s, %v", point, s.Outcome, err)
	}
	o := judge(t, b.dir, b.store, true)
	o.hold(t, point)
	sessions := slices.DeleteFunc(o.generations(), func(g *generation) bool { return g.id == "" }) // asked for, and not got
	if len(sessions) != 1 {
		t.Errorf("%s: %d sessions, begun at %v: %v", point, len(sessions), o.begun(), o.reasons())
	}
	b.compare(t, want)
	if left := b.ready(); len(left) > 0 {
		t.Errorf("%s: left running: %v", point, left)
	}
	for _, pattern := range []string{".*", "journal.reserve", "inflight/*", "inflight/.*"} {
		if left, err := filepath.Glob(filepath.Join(b.dir, pattern)); err != nil || len(left) > 0 {
			t.Errorf("%s: left in the folder: %v, %v", point, left, err)
		}
	}
	if t.Failed() {
		t.Fatalf("%s: the warnings: %s", point, b.warned.String())
	}
}

// TestTrajectoriesDieAtDiskOperations does the same to a run whose completions are conversations with an environment that answers a
// resumed life as it did the first: the same weights, whichever record was the last.
func TestTrajectoriesDieAtDiskOperations(t *testing.T) {
	b := newGame(t, &game{})
	want, stride, points := b.measured(), *diskStride, 0
	if stride > 1 {
		stride *= 30
	}
	for i, how := range deaths {
		for at, over := 1+i*stride/len(deaths), false; !over; at += sparse(stride) {
			b.onDisk(func(t *testing.T) {
				d := newMortal(t.TempDir(), uint64(at), b.dir)
				if over = !b.dies(t, d, how, at); !over {
					points++
					b.revives(t, fmt.Sprintf("%s operation %d", how, at), want)
				}
			})
		}
	}
	if t.Logf("%d points", points); points < fewest(3) {
		t.Errorf("%d points are too few", points)
	}
}
