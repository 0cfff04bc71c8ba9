package worker

import (
	"strings"
	"sync"
	"unicode"
)

// shortestSecret: what is shorter stands in every other line.
const shortestSecret = 4

// masker hides secrets in what a stranger says.
type masker struct{ secrets []string }

func (m masker) mask(s string) string {
	for _, secret := range m.secrets {
		if len(secret) >= shortestSecret {
			s = strings.ReplaceAll(s, secret, "…")
		}
	}
	return s
}

// tailBytes of stderr stand in error texts.
const tailBytes = 8 << 10

// listener takes what a process prints to stderr: whole lines, masked, to the log, and its end for error texts. It is safe for
// concurrent use.
type listener struct {
	masker
	log func(line string)

	mu   sync.Mutex
	line []byte
	tail []byte
}

// maxLogLine bounds a line of the log; what is longer is cut into several.
const maxLogLine = 8 << 10

// Write implements io.Writer and never fails: a process must not block on what it prints.
func (l *listener) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range p {
		if c != '\n' {
			l.line = append(l.line, c)
		}
		if c == '\n' || len(l.line) >= maxLogLine {
			l.flush()
		}
	}
	return len(p), nil
}

func (l *listener) flush() {
	text := l.mask(printable(string(l.line)))
	l.line = l.line[:0]
	if l.log != nil {
		l.log(text)
	}
	l.tail = append(append(l.tail, text...), '\n')
	if over := len(l.tail) - tailBytes; over > 0 {
		l.tail = l.tail[over:]
	}
}

// last is the end of what was printed.
func (l *listener) last() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.line) > 0 {
		l.flush()
	}
	return strings.TrimSpace(strings.ToValidUTF8(string(l.tail), ""))
}

// printable keeps a stranger's line from moving the cursor of a terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return -1
	}, strings.ToValidUTF8(s, "\ufffd"))
}
