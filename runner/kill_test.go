package runner_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"trainer/internal/hub"
	"trainer/internal/sandbox"
	"trainer/internal/together"
	"trainer/recipe"
	"trainer/runner"
)

var (
	killPoints = flag.Int("kills", 12, "points at which TestKilledProcesses kills")
	killSeed   = flag.Uint64("kill-seed", 1, "draws those points; 0: a new one, printed")
	faultSeed  = flag.Uint64("fault-seed", 1, "draws what goes wrong in TestAFifthOfTheRequestsFail; 0: a new one, printed")
)

// drawn returns dice of a flag's seed, and says how to draw the same again.
func drawn(t *testing.T, name string, seed uint64) *rand.Rand {
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("-%s %d draws the same", name, seed)
	return rand.New(rand.NewPCG(seed, 1))
}

// role, when set, makes the test binary a process that can be killed: "run" lives one life, "serve" is a sandbox server.
const role = "RUNNER_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "run":
		os.Exit(liveHere(os.Args[1:]))
	case "serve":
		os.Exit(serveHere(os.Args[1], os.Args[2]))
	}
	os.Exit(m.Run())
}

// liveHere runs a life of the recipe in a folder; its sandbox is at an address, or embedded where that is empty.
func liveHere(args []string) int {
	path, dir, base := args[0], args[1], args[2]
	err := func() error {
		r, err := recipe.Load(path, args[3:]...)
		if err != nil {
			return err
		}
		in, err := runner.Open(context.Background(), r, &hub.Hub{}, true)
		if err != nil {
			return err
		}
		if in.Graders, err = runner.OpenGraders(context.Background(), r, nil, nil, false); err != nil {
			return err
		}
		p, err := runner.NewPlan(in)
		if err != nil {
			return err
		}
		o := together.Options{BaseURL: base, Key: "k"}
		if base == "" {
			s, err := sandbox.Open(sandbox.Options{Dir: filepath.Join(dir, "sandbox")})
			if err != nil {
				return err
			}
			defer func() { _ = s.Close() }()
			o.BaseURL, o.Transport = "http://sandbox", s
		}
		c := together.New(o)
		_, err = runner.Run(context.Background(), context.Background(), in, p, runner.World{Backend: c, Resources: c, Downloads: c, Dir: dir, Version: "test", Sandbox: true})
		return err
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// serveHere serves until it is killed.
func serveHere(dir, addr string) int {
	s, err := sandbox.Open(sandbox.Options{Dir: dir})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(ln.Addr())
	fmt.Fprintln(os.Stderr, http.Serve(ln, s))
	return 1
}

// process is one of them.
type process struct {
	cmd *exec.Cmd
	err bytes.Buffer
}

func start(t *testing.T, as string, args ...string) (*process, io.Reader) {
	t.Helper()
	p := &process{cmd: exec.Command(os.Args[0], args...)}
	p.cmd.Env = append(os.Environ(), role+"="+as)
	p.cmd.Stderr = &p.err
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	return p, out
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill() // SIGKILL; it may have ended
	_ = p.cmd.Wait()
}

// ended waits for it, and says what it died of; killed is no error.
func (p *process) ended() (killed bool, err error) {
	err = p.cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if s, ok := exit.Sys().(syscall.WaitStatus); ok && s.Signaled() {
			return true, nil
		}
		return false, errors.New(strings.TrimSpace(p.err.String()))
	}
	return false, err
}

// scene is a run whose processes are killed.
type scene struct {
	t      *testing.T
	recipe string
	sets   []string
	dir    string
	addr   string // of the server; empty: embedded
	store  string
	server *process
}

func newScene(t *testing.T, recipe string, apart bool, sets ...string) *scene {
	s := &scene{t: t, recipe: recipe, sets: sets, dir: t.TempDir()}
	s.store = filepath.Join(s.dir, "sandbox")
	if apart {
		s.store = t.TempDir()
		s.serve(reserved(t))
	}
	return s
}

// reserved is an address that nobody else is given until the test is over, also while no server listens there: the socket is
// bound to it, and Linux lets another beside it that listens.
func reserved(t *testing.T) string {
	t.Helper()
	if runtime.GOOS != "linux" {
		return "127.0.0.1:0"
	}
	syscall.ForkLock.RLock()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	at, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", at.(*syscall.SockaddrInet4).Port)
}

func (s *scene) serve(addr string) {
	s.t.Helper()
	p, out := start(s.t, "serve", s.store, addr)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		s.t.Fatalf("the server says nothing: %v %s", err, p.err.String())
	}
	s.server, s.addr = p, strings.TrimSpace(line)
}

func (s *scene) run() *process {
	s.t.Helper()
	base := ""
	if s.addr != "" {
		base = "http://" + s.addr
	}
	p, _ := start(s.t, "run", append([]string{s.recipe, s.dir, base}, s.sets...)...)
	return p
}

// killAt ends p once the journal has so many bytes, and tells whether it was still alive.
func (s *scene) killAt(p *process, size int64) bool {
	dead := make(chan struct{})
	killed := false
	var err error
	go func() { killed, err = p.ended(); close(dead) }()
	for {
		select {
		case <-dead:
			if !killed && err != nil {
				s.t.Errorf("life: %v", err)
			}
			return false
		case <-time.After(200 * time.Microsecond):
		}
		if info, err := os.Stat(filepath.Join(s.dir, "journal.jsonl")); err == nil && info.Size() >= size {
			_ = p.cmd.Process.Kill()
			<-dead
			return true
		}
	}
}

func (s *scene) metrics() string {
	s.t.Helper()
	b := &bench{t: s.t, dir: s.dir}
	return b.steps()
}

// TestKilledProcesses kills, with SIGKILL and at random lengths of the journal, a run with its sandbox in it, a run beside
// its server, the server, and both; whatever was killed is started again, up to three times in a row, and the end must be
// that of the run which nothing disturbed: the same metrics, the same weights bit for bit, nothing left running.
// go test ./runner -run TestKilledProcesses -kills 200 is the long form.
func TestKilledProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	killed(t, newBench(t).in.Recipe.Path(), *killPoints, []string{"train.lookahead=0", "train.lookahead=1", "train.lookahead=4"})
}

// TestKilledRollouts does the same to runs that sample.
// go test ./runner -run TestKilledRollouts -kills 200 is the long form.
func TestKilledRollouts(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	killed(t, newRollouts(t).in.Recipe.Path(), max(4, *killPoints/3), []string{"rollout.max_policy_lag=0", "rollout.max_policy_lag=1"})
}

// killed kills processes of the recipe at path at so many points, each under one of the settings.
func killed(t *testing.T, path string, points int, settings []string) {
	dice := drawn(t, "kill-seed", *killSeed)
	type end struct {
		metrics, weights, lineage string
		size                      int64
	}
	whole := func(setting string) end {
		s := newScene(t, path, false, setting)
		if _, err := s.run().ended(); err != nil {
			t.Fatal(err)
		}
		o := judge(t, s.dir, s.store, true)
		o.hold(t, "unbroken")
		info, err := os.Stat(filepath.Join(s.dir, "journal.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		return end{s.metrics(), o.weights(t, s.store), strings.Join(o.lineage(), "\n"), info.Size()}
	}
	want := map[string]end{}
	for n := range points {
		setting := settings[dice.IntN(len(settings))]
		if _, ok := want[setting]; !ok {
			want[setting] = whole(setting)
		}
		w := want[setting]
		what := []string{"run embedded", "run", "server", "both"}[n%4]
		s := newScene(t, path, what != "run embedded", setting)
		point := fmt.Sprintf("point %d: %s, %s,", n, what, setting)
		for range 1 + dice.IntN(3) {
			size := dice.Int64N(w.size)
			point += fmt.Sprintf(" at %d bytes", size)
			p := s.run()
			if what == "server" {
				s.killServer(size, 0)
				if err := s.lives(p); err != nil {
					point += fmt.Sprintf(" (life: %v)", err)
				}
				continue
			}
			if s.killAt(p, size) && what == "both" {
				s.killServer(0, dice.IntN(20))
			}
			judge(t, s.dir, s.store, false).hold(t, point)
		}
		if err := s.lives(s.run()); err != nil {
			t.Errorf("%s: the last life: %v", point, err)
			continue
		}
		o := judge(t, s.dir, s.store, true)
		o.hold(t, point)
		if got := s.metrics(); got != w.metrics {
			t.Errorf("%s: metrics\n%swant\n%s", point, got, w.metrics)
		}
		if o.weights(t, s.store) != w.weights {
			t.Errorf("%s: other weights than those of the unbroken run", point)
		}
		if got := strings.Join(o.lineage(), "\n"); got != w.lineage {
			t.Errorf("%s: trained with\n%s\nwant\n%s", point, got, w.lineage)
		}
	}
}

// lives waits for the end of a life.
func (s *scene) lives(p *process) error {
	_, err := p.ended()
	return err
}

// killServer kills the server once the journal has so many bytes, and starts it again at its address after a while.
func (s *scene) killServer(size int64, ms int) {
	s.t.Helper()
	for range 20_000 {
		if info, err := os.Stat(filepath.Join(s.dir, "journal.jsonl")); err == nil && info.Size() >= size {
			break
		}
		time.Sleep(500 * time.Microsecond)
	}
	s.server.kill()
	time.Sleep(time.Duration(ms) * time.Millisecond)
	s.serve(s.addr)
}
