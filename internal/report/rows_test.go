package report

import (
	"strings"
	"testing"
)

func shownRow(pieces ...ShownPiece) []ShownRow {
	return []ShownRow{{At: "a.jsonl:1", Set: "train", Row: 1, Format: "messages", Tokens: 3, Trained: 1, Examples: []ShownExample{{Pieces: pieces}}}}
}

func TestRowsAreDrawn(t *testing.T) {
	const head = "a.jsonl:1  train row 1, messages, 3 tokens, 1 of them trained\n"
	for _, c := range []struct {
		name   string
		color  bool
		pieces []ShownPiece
		want   string
	}{
		{"white space and what steers a terminal", false, []ShownPiece{{Text: " \t\x1b\u202e\xff\n"}, {Text: "x\u00a0"}}, "·⇥\\x1b\\u202e\\xff↵\nx\\u00a0\n"},
		{"a message a line, its text behind its role", false, []ShownPiece{{Text: "B"}, {Text: "u\n", Role: "user"}, {Text: "v", Role: "user"}, {Text: "a", Role: "tool", Weight: 1}},
			"      B\nuser  u↵\n      v\ntool  ⟦a⟧\n"},
		{"weights that change", false, []ShownPiece{{Text: "a", Weight: 1}, {Text: "b", Weight: 0.5}, {Text: "c", Weight: 0.5}, {Text: "d"}}, "⟦a⟧⟦0.5×bc⟧d\n"},
		{"brackets of the row, and text that spells a control token", false, []ShownPiece{{Text: "⟦a⟧"}, {Text: " <", Spells: []int{1}}, {Text: "e>é"}, {Text: "｜｜", Spells: []int{0, 3}}, {Text: "<e>", Control: true}},
			`\u27e6a\u27e7·\x3ce>é\uff5c\uff5c<e>` + "\n"},
		{"colours tell what trains, and control tokens", true, []ShownPiece{{Text: "a"}, {Text: "b", Weight: 1}, {Text: "<e>", Control: true}, {Text: "<f>", Control: true, Weight: 1}},
			"\x1b[2ma\x1b[0m\x1b[32;4mb\x1b[0m\x1b[35m<e>\x1b[0m\x1b[1;32;4m<f>\x1b[0m\n"},
		{"a colour ends with its line", true, []ShownPiece{{Text: "a\nb", Weight: 0.25}}, "0.25×\x1b[32ma↵\x1b[0m\n\x1b[32mb\x1b[0m\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out strings.Builder
			if err := Rows(&out, shownRow(c.pieces...), c.color); err != nil {
				t.Fatal(err)
			}
			if got := out.String(); got != head+c.want {
				t.Errorf("got  %q\nwant %q", got, head+c.want)
			}
		})
	}
}

func TestThePageOfRowsIsEscaped(t *testing.T) {
	page, err := RowsPage("<title>", shownRow(ShownPiece{Text: `<script>"'&`, Role: "<b>", Weight: 0.5, IDs: []int32{7}}, ShownPiece{Text: "x", Role: "<b>", Weight: 0.5}))
	if err != nil {
		t.Fatal(err)
	}
	text := string(page)
	for _, bad := range []string{"<script", "<b>", "http:", "https:", "src="} {
		if strings.Contains(text, bad) {
			t.Errorf("the page holds %s", bad)
		}
	}
	if n := strings.Count(text, "<sup>0.5×</sup>"); n != 1 {
		t.Errorf("the weight stands there %d times, want once, where it changes", n)
	}
	if !strings.Contains(text, `title="7 weight 0.5"`) {
		t.Error("the page does not tell the number and the weight of a token")
	}
}

func TestADifferenceIsOneLineASide(t *testing.T) {
	var out strings.Builder
	err := Difference(&out, "a.jsonl:3", 2, 17, "ids differ", []Excerpts{
		{Name: "long name", Before: []ShownPiece{{Text: "a\n"}}, From: []ShownPiece{{Text: "\x1b", IDs: []int32{9}, Weight: 1}, {Text: "z"}}, Cut: true},
		{Name: "b", Before: []ShownPiece{{Text: "a"}}},
	})
	want := "row a.jsonl:3 example 2 token 17: ids differ\n  long name  …a↵⟦\\x1b⟧z  (id 9, weight 1)\n  b          a⟦⟧ ends here\n"
	if err != nil || out.String() != want {
		t.Errorf("got  %q, %v\nwant %q", out.String(), err, want)
	}
}
