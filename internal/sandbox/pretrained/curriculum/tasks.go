package curriculum

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// task makes lessons of one kind. share is how many of Lessons' parts are of it.
type task struct {
	name  string
	share int
	make  func(*draw) Lesson
}

// tasks are in the order in which Draw counts their shares. What is checked by a program is in checkable, and asked for in one
// of two ways; what reads like prose is in prose.go.
func tasks() []task { return append(checkable(), prose()...) }

const letters = "abcdefghijklmnopqrstuvwxyz"

func checkable() []task {
	return []task{
		{"copy", 10, func(d *draw) Lesson {
			w := d.word(d.between(3, 7), letters)
			return ask(d, w, w, "Copy: %s", "Say %s.")
		}},
		{"upper", 10, func(d *draw) Lesson {
			w := d.word(d.between(3, 6), letters)
			return ask(d, w, strings.ToUpper(w), "Upper: %s", "Write %s in capitals.")
		}},
		{"reverse", 12, func(d *draw) Lesson {
			w := d.word(d.between(3, 5), letters)
			return ask(d, w, backwards(w), "Reverse: %s", "Write %s backwards.")
		}},
		{"last", 4, func(d *draw) Lesson {
			w := d.word(d.between(3, 7), letters)
			return ask(d, w, w[len(w)-1:], "Last letter: %s", "What does %s end with?")
		}},
		{"largest", 6, func(d *draw) Lesson {
			w := d.word(d.between(3, 5), "0123456789")
			return ask(d, spaced(w), string(slices.Max([]byte(w))), "Largest: %s", "Which is the largest of %s?")
		}},
		{"count", 8, func(d *draw) Lesson {
			w := d.word(d.between(3, 8), "abc")
			return ask(d, w, strconv.Itoa(strings.Count(w, "a")), "Count a: %s", "How often is there an a in %s?")
		}},
		{"sum", 8, func(d *draw) Lesson {
			w := d.word(d.between(2, 3), "0123456789")
			return ask(d, spaced(w), strconv.Itoa(digitSum(w)), "Sum: %s", "What is the sum of %s?")
		}},
		{"add", 8, func(d *draw) Lesson {
			a, b := d.below(30), d.below(30)
			return ask(d, fmt.Sprintf("%d + %d", a, b), strconv.Itoa(a+b), "Add: %s", "What is %s?")
		}},
	}
}

// ask is a question about content in one of its phrasings.
func ask(d *draw, content, answer string, phrasings ...string) Lesson {
	return Lesson{Key: content, Turns: []string{fmt.Sprintf(d.of(phrasings), content), answer}}
}

func backwards(w string) string {
	b := []byte(w)
	slices.Reverse(b)
	return string(b)
}

func spaced(w string) string { return strings.Join(strings.Split(w, ""), " ") }

func digitSum(w string) (sum int) {
	for _, c := range []byte(w) {
		sum += int(c - '0')
	}
	return sum
}
