package dataset

import (
	"fmt"
	"strings"
	"testing"

	"trainer/recipe"
)

const silentRow = `{"messages": [{"role": "user", "content": "q"}]}`

func TestRowsThatTrainNothingAreToldTogether(t *testing.T) {
	all := strings.Repeat(silentRow+"\n", 43)
	some := ""
	for i := range 100 {
		row := `{"messages": [{"role": "assistant", "content": "a"}]}`
		if i%3 == 2 && i < 90 {
			row = silentRow
		}
		some += row + "\n"
	}
	for _, c := range []struct{ name, file, want string }{
		{"all of them", all, "rows.jsonl:1: 0 of 43 rows have trained tokens; first: rows.jsonl:1: no trained token; chat.train_on is all_assistant_messages"},
		{"some of them", some, "rows.jsonl:3: 30 of 100 rows have no trained token: rows.jsonl:3, :6, :9, :12, :15, :18, :21, :24, :27, :30, :33, :36, …; " +
			"chat.train_on is all_assistant_messages; dataset.on_bad_row: skip leaves them out, and counts them"},
		{"beside another fault", silentRow + "\n" + silentRow + "\n{}\n", "rows.jsonl:1: 2 of 3 rows have no trained token: rows.jsonl:1, :2; " +
			"chat.train_on is all_assistant_messages; dataset.on_bad_row: skip leaves them out, and counts them\n" +
			"rows.jsonl:3: messages: missing; the row is empty"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t, map[string]string{"rows.jsonl": c.file}, recipe.Source{Path: "rows.jsonl"})
			if _, err := f.open(); err == nil || err.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

func TestCountsAddUp(t *testing.T) {
	long := fmt.Sprintf(`{"messages": [{"role": "assistant", "content": %q}]}`, strings.Repeat("a", 50))
	file := strings.Join([]string{silentRow, `{"messages": [{"role": "assistant", "content": "a"}]}`, "{}", long}, "\n")
	f := newFixture(t, map[string]string{"rows.jsonl": file, "more.jsonl": file}, recipe.Source{Path: "rows.jsonl"}, recipe.Source{Path: "more.jsonl", Format: "messages"})
	f.r.Dataset.OnBadRow, f.r.Dataset.Overlong, f.r.Dataset.MaxLength = "skip", "drop", 20
	data := f.mustOpen(t)
	want := Counts{Seen: 4, Bad: 2, Untrained: 1, Overlong: 1, Tokens: 4, Trained: 2}
	for _, s := range data.Sources() {
		if s.Counts != want || s.Rows != 1 {
			t.Errorf("%s: %d rows, %+v, want 1 and %+v", s.Name, s.Rows, s.Counts, want)
		}
	}
}
