package runner

import "testing"

func TestAMessageNamesEachRowOnce(t *testing.T) {
	var rows []string
	for _, row := range []string{"p.jsonl:1", "p.jsonl:2", "p.jsonl:3"} {
		rows = append(rows, row, row, row, row)
	}
	if got, want := ofRows(rows), ", rows [p.jsonl:1 p.jsonl:2 p.jsonl:3]"; got != want {
		t.Errorf("four completions of each of three prompts are %q, want %q", got, want)
	}
	if got, want := ofRows([]string{"1", "2", "3", "4", "5", "6", "7", "8", "9", "9"}), ", rows [1 2 3 4 5 6 7 8] and 1 more"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
