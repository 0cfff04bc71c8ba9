package sandbox

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"trainer/internal/sandbox/fault"
)

// tables are the rows that docs/sandbox.md owes: every request, choice, profile and fault, in the words of the code.
func tables() (rows []string) {
	for _, rt := range routes() {
		path := strings.ReplaceAll(rt.path, "*", "{id}")
		rows = append(rows, fmt.Sprintf("| `%s` | `%s %s` | %s |", rt.name(), rt.method, path, strings.Join(rt.labels()[2:], ", ")))
	}
	for _, c := range AllChoices() {
		rows = append(rows, fmt.Sprintf("| `%s` | `%s` | %s |", c.Choice, strings.Join(c.Values, "`, `"), c.Does))
	}
	for _, p := range GPUProfiles() {
		cells := []string{fmt.Sprintf("`%s`", p.Name), p.Does}
		for _, k := range paced() {
			pace, ok := p.Time[k]
			if !ok {
				continue
			}
			cell := pace.Base.String()
			if pace.PerToken > 0 {
				cell += " + " + pace.PerToken.String()
			}
			cells = append(cells, cell)
		}
		rows = append(rows, "| "+strings.Join(cells, " | ")+" |")
	}
	for _, f := range fault.Kinds() {
		keys := "`" + strings.Join(f.Keys, "`, `") + "`"
		keys = strings.ReplaceAll(keys, "|", "`, `")
		if len(f.Keys) == 0 {
			keys = ""
		}
		rows = append(rows, fmt.Sprintf("| `%s` | `%s` | %s | %s |", f.Kind, f.On, keys, f.Does))
	}
	return rows
}

const document = "../../docs/sandbox.md"

// rewrite has TestTheDocumentHasEveryTable put the code's words in the place of older ones.
var rewrite = flag.Bool("rewrite", false, "renew the rows of "+document)

func rowName(row string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(row, "| "), " ")
	return name
}

// renewed is the document with each row as it should be. A row that it lacks is to be put in by hand.
func renewed(text string, rows []string) string {
	by := map[string]string{}
	for _, row := range rows {
		by[rowName(row)] = row
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if row, ok := by[rowName(line)]; ok && strings.HasPrefix(line, "| `") {
			lines[i] = row
		}
	}
	return strings.Join(lines, "\n")
}

func TestTheDocumentHasEveryTable(t *testing.T) {
	b, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	text, rows := string(b), tables()
	if *rewrite {
		text = renewed(text, rows)
		if err := os.WriteFile(document, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, row := range rows {
		if !strings.Contains(text, "\n"+row+"\n") {
			t.Errorf("docs/sandbox.md lacks the row below; go test ./internal/sandbox -run Document -rewrite renews those it has\n%s", row)
		}
	}
	if got := strings.Count(text, "\n| `"); got != len(rows) {
		t.Errorf("docs/sandbox.md has %d rows that begin with a name, the code %d", got, len(rows))
	}
}
