package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"trainer/internal/chat"
	"trainer/internal/dataset"
	"trainer/internal/report"
	"trainer/internal/tokenizer"
	"trainer/runner"
)

func (a *app) dataShow() *cli.Command {
	return &cli.Command{
		Name: "show", Usage: "show rows in tokens, what trains marked", ArgsUsage: "recipe.yaml",
		Description: "Shows rows as they will train: who speaks, every control token, white space (· a space, ↵ a line end, ⇥ a tab), and what\n" +
			"trains: in green on a terminal, where every other token is underlined, else between ⟦ and ⟧; a weight other than 1 stands before it, as 0.5×.\n" +
			"Text that only spells a control token has its first character as a number, \\x3c|end|>: it is encoded as text, and ends nothing.\n" +
			"With --against, the first token is shown at which another template, tokenizer or recipe gives something else; then the exit code is 1.\n\n" +
			"Examples:\n  trainer data show recipes/quickstart.yaml\n  trainer data show recipe.yaml --from data/train.jsonl:311\n" +
			"  trainer data show recipe.yaml --row 7 --limit 20 --html rows.html\n  trainer data show recipe.yaml --against my.jinja",
		Flags: []cli.Flag{setFlag, sandboxFlag, jsonFlag, onlineFlag, splitFlag,
			&cli.IntFlag{Name: "row", Usage: "begin at row `N` of the set, counted from 1 in file order"},
			&cli.StringFlag{Name: "from", Usage: "begin at the row that stands at `FILE:LINE`"},
			&cli.IntFlag{Name: "limit", Usage: "show `N` rows: 3, or 1 from a place on; beside --against, compare so many rows instead of all"},
			&cli.StringFlag{Name: "html", Usage: "write a page to `FILE` instead"},
			&cli.StringFlag{Name: "against", Usage: "compare with a recipe, a template (a file, auto, none) or a tokenizer `NAME`"}},
		Action: func(c *cli.Context) error {
			path, err := one(c, "a recipe")
			if err != nil {
				return err
			}
			if c.IsSet("limit") && c.Int("limit") < 1 {
				return &usage{"trainer data show: --limit counts rows, so it is at least 1"}
			}
			in, err := a.openData(c, path)
			if err != nil {
				return err
			}
			set, err := setOf(c, in)
			if err != nil {
				return err
			}
			first, err := firstShown(c, set)
			if err != nil {
				return err
			}
			if c.IsSet("against") {
				return a.against(c, in, set, first)
			}
			limit := 3
			if c.IsSet("row") || c.IsSet("from") {
				limit = 1
			}
			if c.IsSet("limit") {
				limit = c.Int("limit")
			}
			rows, err := shownRows(in, set, c.String("split"), first, min(first+limit, set.Len()))
			if err != nil {
				return err
			}
			return a.printRows(c, in, rows)
		},
	}
}

func (a *app) printRows(c *cli.Context, in *runner.Inputs, rows []report.ShownRow) error {
	if page := c.String("html"); page != "" {
		text, err := report.RowsPage("Rows of "+filepath.Base(in.Recipe.Path()), rows)
		if err != nil {
			return err
		}
		return os.WriteFile(page, text, 0o600)
	}
	if c.Bool("json") {
		for _, r := range rows {
			if err := a.printLine(r); err != nil {
				return err
			}
		}
		return nil
	}
	return report.Rows(a.out, rows, a.outTTY && a.getenv("NO_COLOR") == "")
}

// firstShown is the index of the row that --row or --from names.
func firstShown(c *cli.Context, set *dataset.Set) (int, error) {
	switch {
	case c.IsSet("row") && c.IsSet("from"):
		return 0, &usage{"trainer data show: --row and --from both say where to begin; give one"}
	case c.IsSet("from"):
		return rowAt(set, c.String("from"))
	case !c.IsSet("row"):
		return 0, nil
	}
	if n := c.Int("row"); n < 1 || n > set.Len() {
		return 0, &usage{fmt.Sprintf("trainer data show: --row %d: the set has the rows 1 to %d", n, set.Len())}
	}
	return c.Int("row") - 1, nil
}

// rowAt finds the row at FILE:LINE, or the row that the line is in; the file may be given by the end of its name.
func rowAt(set *dataset.Set, place string) (int, error) {
	at := strings.LastIndexByte(place, ':')
	line := 0
	if at > 0 {
		line, _ = strconv.Atoi(place[at+1:])
	}
	if line < 1 {
		return 0, &usage{fmt.Sprintf("trainer data show: --from %q: give FILE:LINE, as data/train.jsonl:311", place)}
	}
	file, found := filepath.ToSlash(filepath.Clean(place[:at])), -1
	for i := range set.Len() {
		pos := set.At(i)
		name := filepath.ToSlash(pos.File)
		if (name == file || strings.HasSuffix(name, "/"+file) || strings.HasSuffix(file, "/"+name)) && pos.Line <= line {
			if found < 0 || pos.Line >= set.At(found).Line {
				found = i
			}
		}
	}
	if found < 0 {
		return 0, &usage{fmt.Sprintf("trainer data show: --from %s: no row of the set stands there; it may be in the other set (--split), or left out: `trainer data stats` lists what is", place)}
	}
	return found, nil
}

// shownRows renders the rows [from, to) for a person.
func shownRows(in *runner.Inputs, set *dataset.Set, split string, from, to int) ([]report.ShownRow, error) {
	rows := make([]report.ShownRow, 0, to-from)
	for i := from; i < to; i++ {
		exs, err := set.Examples(i)
		if err != nil {
			return nil, err
		}
		r := report.ShownRow{At: set.At(i).String(), Set: split, Row: i + 1, Format: set.Format(i)}
		r.Tokens, r.Trained = set.Count(i)
		for _, ex := range exs {
			r.Examples = append(r.Examples, report.ShownExample{Pieces: shownPieces(in.Tokenizer, ex)})
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// shownPieces are the tokens of an example. Without a tokenizer a token's text is its number.
func shownPieces(tok *tokenizer.Tokenizer, ex chat.Example) []report.ShownPiece {
	roles := rolesOf(ex)
	var out []report.ShownPiece
	add := func(text string, from, to int) {
		control := tok != nil && to-from == 1 && tok.IsControl(ex.IDs[from])
		out = append(out, report.ShownPiece{IDs: ex.IDs[from:to], Text: text, Weight: ex.Weights[from], Role: roles[from], Control: control})
	}
	if tok == nil {
		for i, id := range ex.IDs {
			add(strconv.Itoa(int(id))+" ", i, i+1)
		}
		return out
	}
	at := 0
	for _, p := range tok.Pieces(ex.IDs) {
		add(p.Text, at, at+p.Tokens)
		at += p.Tokens
	}
	for from := 0; from < len(out); from++ {
		to := from
		for to < len(out) && !out[to].Control {
			to++
		}
		spelled(tok, out[from:to])
		from = to
	}
	return out
}

// spelled marks where pieces, none of which is a control token, spell one.
func spelled(tok *tokenizer.Tokenizer, pieces []report.ShownPiece) {
	var text strings.Builder
	for _, p := range pieces {
		text.WriteString(p.Text)
	}
	ids, ends := tok.EncodeControl(text.String())
	k, before := 0, 0 // the piece, and the bytes before it
	for i, id := range ids {
		if !tok.IsControl(id) {
			continue
		}
		at := strings.LastIndex(text.String()[:ends[i]], tok.Decode([]int32{id}))
		for ; at >= 0 && at >= before+len(pieces[k].Text); k++ {
			before += len(pieces[k].Text)
		}
		if at >= before {
			pieces[k].Spells = append(pieces[k].Spells, at-before)
		}
	}
}

// rolesOf is the role of each token, "" for the template's own.
func rolesOf(ex chat.Example) []string {
	roles := make([]string, len(ex.IDs))
	for _, p := range ex.Parts {
		for i := p.From; i < p.To; i++ {
			roles[i] = p.Role
		}
	}
	return roles
}
