package worker

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestMain makes the test binary a stranger's program where STRANGER says which.
func TestMain(m *testing.M) {
	if how := os.Getenv("STRANGER"); how != "" {
		(&stranger{in: bufio.NewReader(os.Stdin)}).be(how, os.Getenv("STRANGER_ARG"))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// stranger is a program as others write them.
type stranger struct{ in *bufio.Reader }

type asked struct {
	ID      int    `json:"id"`
	Type    string `json:"type"`
	Attempt int    `json:"attempt"`
	Sample  string `json:"sample"`
	Episode string `json:"episode"`
	Text    string `json:"text"`
	Kind    string
	Params  map[string]any
}

// next is the next request; the program leaves at the end of its input.
func (s *stranger) next() asked {
	line, err := s.in.ReadString('\n')
	if err != nil {
		os.Exit(0)
	}
	var a asked
	if err := json.Unmarshal([]byte(line), &a); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return a
}

func (s *stranger) score(a asked, v any) {
	text, _ := json.Marshal(map[string]any{"v": 1, "id": a.ID, "score": v})
	fmt.Println(string(text))
}

func (s *stranger) be(how, arg string) {
	if how == "child" {
		time.Sleep(time.Hour)
	}
	if how == "not ready" {
		fmt.Fprintln(os.Stderr, "no module named grade; the key is "+arg)
		os.Exit(3)
	}
	if how == "parent" { // before it is ready, and told beside its replies: how long that takes is then no reply's affair
		child := exec.Command(os.Args[0])
		child.Env = []string{"STRANGER=child"}
		if err := child.Start(); err != nil {
			os.Exit(1)
		}
		fmt.Fprintln(os.Stderr, child.Process.Pid)
	}
	hello := s.next()
	inFlight := 1
	if how == "backwards" {
		inFlight = 3
	}
	fmt.Printf("\n{\"v\":1,\"type\":\"ready\",\"name\":%q,\"max_in_flight\":%d}\n", hello.Type, inFlight)
	switch how {
	case "backwards":
		for {
			all := []asked{s.next(), s.next(), s.next()}
			for i := range all {
				s.score(all[2-i], len(all[2-i].Sample))
			}
		}
	case "dies":
		s.next()
		fmt.Fprintln(os.Stderr, "segmentation fault of "+arg)
		os.Exit(1)
	case "one reply a life":
		s.score(s.next(), 1)
		os.Exit(0)
	case "parent":
		s.next()
		time.Sleep(time.Hour)
	case "line without end":
		s.next()
		for {
			fmt.Print(strings.Repeat("x", 1<<20))
		}
	case "game":
		s.play(arg)
	case "talkative":
		fmt.Fprintln(os.Stderr, strings.Repeat("noise ", 1<<20))
	}
	for {
		a := s.next()
		switch how {
		case "environment":
			s.score(a, os.Environ())
		case "nan at times":
			fmt.Fprintln(os.Stderr, "divided by zero")
			if a.Sample == "" {
				fmt.Printf("{\"v\":1,\"id\":%d,\"score\":NaN}\n", a.ID)
				continue
			}
			s.score(a, os.Getpid())
		case "second attempt":
			if a.Attempt == 0 {
				os.Exit(1)
			}
			s.score(a, a.Attempt)
		case "hangs at first":
			if a.Attempt == 0 {
				time.Sleep(time.Hour)
			}
			s.score(a, a.Attempt)
		case "says":
			if arg != "timeout" {
				fmt.Println(arg)
			}
			if arg == "" {
				s.score(a, 1)
			}
			if arg == "timeout" {
				time.Sleep(time.Hour)
			}
		default:
			s.score(a, len(a.Sample))
		}
	}
}

// play remembers how often each episode was asked in this life. "die" ends the program, "busy" is asked again, "hang" has no reply.
func (s *stranger) play(string) {
	turns := map[string]int{}
	for {
		a := s.next()
		switch {
		case a.Type == "close":
			delete(turns, a.Episode)
			continue
		case a.Text == "die":
			os.Exit(1)
		case a.Text == "hang":
			time.Sleep(time.Hour)
		case a.Text == "busy":
			fmt.Printf("{\"v\":1,\"id\":%d,\"error\":\"busy\",\"retry\":true}\n", a.ID)
			continue
		case a.Type == "reset":
			turns[a.Episode] = a.Attempt * 100
		default:
			turns[a.Episode]++
		}
		text, _ := json.Marshal(map[string]any{"v": 1, "id": a.ID, "turns": turns, "pid": os.Getpid()})
		fmt.Println(string(text))
	}
}
