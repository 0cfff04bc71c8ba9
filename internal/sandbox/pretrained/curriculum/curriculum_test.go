package curriculum

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"trainer/internal/chat"
	"trainer/internal/tokenizer"
	"trainer/recipe"
)

// firstSteps is the hash of the weights after the first steps of the course. It is the same on every machine; where it
// changes, the file beside package pretrained is no longer what the course teaches.
const firstSteps = "cfac3e3ee136f330bf603b53c363a74928ebcb8908edb86f3fc13568d199c6cf"

// The whole course takes minutes: its first steps stand for it.
func TestTheCourseBeginsAsItDid(t *testing.T) {
	told := 0
	m := Train(6, func(done int, loss float64) {
		if told++; done != told || !(loss > 1 && loss < 7) {
			t.Errorf("told of step %d with a loss of %v, want step %d with one below 7", done, loss, told)
		}
	})
	if got := fmt.Sprintf("%x", m.Hash()); got != firstSteps || told != 6 {
		t.Errorf("after 6 steps the weights are %s, want %s: teach the model anew, see CONTRIBUTING.md", got, firstSteps)
	}
}

func TestTheRateRisesAndFalls(t *testing.T) {
	for step, want := range map[int]float64{0: 3e-5, 99: 3e-3, 100: 3e-3, (Steps + 100) / 2: 1.5e-3, Steps - 1: 1e-4} {
		if got := rate(step); got < want*0.999 || got > want*1.001 {
			t.Errorf("rate of step %d: %v, want %v", step, got, want)
		}
	}
}

// Rows of recipes have the very ids and masks that the model was taught with.
func TestLessonsAreRenderedAsRecipesRenderThem(t *testing.T) {
	tpl, err := chat.New(recipe.Chat{Template: "auto", TrainOn: "all_assistant_messages"}, tokenizer.Bytes(), chat.Source{})
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]bool{}
	for i := range 400 {
		l := Draw(0, i)
		want, prompt := rendered(t, tpl, l)
		ids, trained := l.Encode()
		if !slices.Equal(ids, want.IDs) {
			t.Fatalf("%+v\nhas the ids  %v\ninstead of   %v", l, ids, want.IDs)
		}
		for k, w := range want.Weights {
			if trained[k] != (w > 0) {
				t.Fatalf("%+v: id %d trained: %v, want a weight of %v", l, k, trained[k], w)
			}
		}
		if prompt != nil && !slices.Equal(l.Prompt(), prompt) {
			t.Fatalf("%+v: prompt %v, want %v", l, l.Prompt(), prompt)
		}
		kinds[fmt.Sprintf("%s %d %v", l.Task, len(l.Turns), l.System != "")] = true
	}
	if !kinds["text 0 false"] || !kinds["story 4 true"] || !kinds["story 4 false"] || !kinds["talk 4 false"] {
		t.Errorf("400 lessons have only the kinds %v", kinds)
	}
}

func rendered(t *testing.T, tpl *chat.Template, l Lesson) (whole chat.Example, prompt []int32) {
	t.Helper()
	if l.Turns == nil {
		ex, err := tpl.Text(l.Text)
		if err != nil {
			t.Fatal(err)
		}
		return ex, nil
	}
	var ms []chat.Message
	if l.System != "" {
		ms = append(ms, chat.Message{Role: "system", Content: l.System})
	}
	for i, text := range l.Turns {
		ms = append(ms, chat.Message{Role: []string{"user", "assistant"}[i%2], Content: text})
	}
	exs, err := tpl.Encode(chat.Conversation{Messages: ms})
	if err == nil {
		prompt, err = tpl.Prompt(chat.Conversation{Messages: ms[:len(ms)-1]})
	}
	if err != nil {
		t.Fatal(err)
	}
	return exs[0], prompt
}

// Answers read off the questions by other means than those that made them.
func TestAnswersAreRight(t *testing.T) {
	last := func(q string) string {
		words := strings.FieldsFunc(q, func(r rune) bool { return strings.ContainsRune(" .?:", r) })
		return words[len(words)-1]
	}
	for i := range 3000 {
		l := Draw(1, i)
		var q, want string
		if l.Turns != nil {
			q = l.Turns[len(l.Turns)-2]
		}
		switch l.Task {
		case "sum":
			var a, b, c int
			if n, _ := fmt.Sscanf(q[strings.IndexAny(q, "0123456789"):], "%d %d %d", &a, &b, &c); n < 2 {
				t.Fatalf("%q has no two digits", q)
			}
			want = fmt.Sprint(a + b + c)
		case "add":
			var a, b int
			if n, _ := fmt.Sscanf(q[strings.IndexAny(q, "0123456789"):], "%d + %d", &a, &b); n != 2 {
				t.Fatalf("%q has no two numbers", q)
			}
			want = fmt.Sprint(a + b)
		case "reverse":
			w := strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(q, "Reverse: "), "Write "), " backwards.")
			for _, r := range w {
				want = string(r) + want
			}
		case "count":
			want = fmt.Sprint(len(strings.Split(last(q), "a")) - 1)
		default:
			continue
		}
		if l.Answer() != want {
			t.Errorf("%q is answered with %q, want %q", q, l.Answer(), want)
		}
	}
}

func TestWhatIsHeldOutIsNeverTrained(t *testing.T) {
	trained := map[string]bool{}
	for i := range 20000 {
		l := Draw(2, i)
		if l.HeldOut() {
			t.Fatalf("%+v is drawn", l)
		}
		trained[l.Task+"\n"+l.Key] = true
	}
	for _, task := range Examined() {
		lessons := Exam(task, 80)
		seen := map[string]bool{}
		for _, l := range lessons {
			if trained[l.Task+"\n"+l.Key] || seen[l.Key] {
				t.Errorf("%+v is trained, or asked twice", l)
			}
			seen[l.Key] = true
		}
		if len(lessons) < 80 {
			t.Errorf("%s: only %d lessons to ask", task, len(lessons))
		}
	}
}

func TestTheMannersOfAGreetingAreEqual(t *testing.T) {
	hello, all := 0, 0
	for i := range 20000 {
		if l := Draw(3, i); l.Task == "greet" {
			all++
			if strings.HasPrefix(l.Answer(), "Hello") {
				hello++
			}
		}
	}
	if all < 500 || hello*10 < all*4 || hello*10 > all*6 {
		t.Errorf("%d of %d greetings say hello, want about half", hello, all)
	}
}
