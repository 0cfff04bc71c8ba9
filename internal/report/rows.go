package report

import (
	"bytes"
	_ "embed" // the page
	"fmt"
	"html/template"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ShownRow is a row of a dataset in tokens, for a person to look at.
type ShownRow struct {
	At       string         `json:"at"`  // its file and line
	Set      string         `json:"set"` // train or validation
	Row      int            `json:"row"` // of the set, from 1
	Format   string         `json:"format"`
	Tokens   int            `json:"tokens"`
	Trained  int            `json:"trained_tokens"`
	Examples []ShownExample `json:"examples"`
}

// ShownExample is one sequence that trains.
type ShownExample struct {
	Pieces []ShownPiece `json:"pieces"`
}

// ShownPiece is the text of one token, or of the few that share a character.
type ShownPiece struct {
	IDs     []int32 `json:"ids"`
	Text    string  `json:"text"`
	Weight  float64 `json:"weight"`         // of its tokens in the loss
	Role    string  `json:"role,omitempty"` // of the message that it belongs to; empty: it is the template's
	Control bool    `json:"control,omitempty"`
	Spells  []int   `json:"spells,omitempty"` // byte offsets in Text, ascending: there begins text that only spells a control token
}

// Rows writes rows as text: a line a message, what trains between ⟦ and ⟧, or in green where color is true, in which each
// other token is underlined. White space is drawn (· a space, ↵ a line end, ⇥ a tab). What would steer the terminal is shown as
// its number, and so are brackets like ours, and the first character of text that only spells a control token.
func Rows(w io.Writer, rows []ShownRow, color bool) error {
	var b strings.Builder
	for i, r := range rows {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%s  %s row %s, %s, %s tokens, %s of them trained\n", printable(r.At), r.Set, Count(r.Row), r.Format, Count(r.Tokens), Count(r.Trained))
		for k, ex := range r.Examples {
			if len(r.Examples) > 1 {
				fmt.Fprintf(&b, "example %d of %d\n", k+1, len(r.Examples))
			}
			p := painter{out: &b, color: color, margin: margin(ex)}
			p.example(ex)
		}
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("writing rows: %w", err)
	}
	return nil
}

// margin is the columns of the longest role and a space; 0 without roles.
func margin(ex ShownExample) int {
	n := 0
	for _, p := range ex.Pieces {
		if p.Role != "" {
			n = max(n, utf8.RuneCountInString(printable(p.Role))+2)
		}
	}
	return n
}

// painter writes one example.
type painter struct {
	out    *strings.Builder
	color  bool
	margin int
	odd    bool // of the piece that is written, for its line
	open   bool // a bracket is
	inside bool // of a line, not at its start
}

func (p *painter) example(ex ShownExample) {
	for i, piece := range ex.Pieces {
		if i == 0 || piece.Role != ex.Pieces[i-1].Role {
			p.close()
			p.endLine()
			p.label(piece.Role)
		}
		if i > 0 && p.open && piece.Weight != ex.Pieces[i-1].Weight {
			p.close()
		}
		p.piece(piece)
	}
	p.close()
	p.endLine()
}

func (p *painter) endLine() {
	if p.inside {
		p.out.WriteByte('\n')
		p.inside = false
	}
}

// write writes text, every line of it behind the margin.
func (p *painter) write(text string) {
	for i, line := range strings.Split(text, "\n") {
		if i > 0 {
			p.endLine()
		}
		if line == "" {
			continue
		}
		if !p.inside {
			p.out.WriteString(strings.Repeat(" ", p.margin))
			p.inside = true
		}
		p.out.WriteString(line)
	}
}

func (p *painter) label(role string) {
	if p.margin > 0 {
		fmt.Fprintf(p.out, "%-*s", p.margin, printable(role))
		p.inside = true
	}
}

// piece writes one; in brackets where there is no colour, with its weight where that is not 1.
func (p *painter) piece(piece ShownPiece) {
	if piece.Weight > 0 && !p.open {
		p.open = true
		if !p.color {
			p.write("⟦")
		}
		if piece.Weight != 1 {
			p.write(weightText(piece.Weight) + "×")
		}
	}
	text := piece.drawn()
	if p.color {
		text = p.painted(piece, text)
	}
	p.write(text)
	p.odd = !p.odd
}

func (p *painter) close() {
	if p.open && !p.color {
		p.write("⟧")
	}
	p.open = false
}

// painted is text in the colours of its piece; a line end is written plain, so that nothing reaches over the margin.
func (p *painter) painted(piece ShownPiece, text string) string {
	var codes []string
	switch {
	case piece.Weight > 0 && piece.Control:
		codes = append(codes, "1", "32")
	case piece.Weight > 0:
		codes = append(codes, "32")
	case piece.Control:
		codes = append(codes, "35")
	default:
		codes = append(codes, "2")
	}
	if p.odd {
		codes = append(codes, "4")
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if line != "" {
			lines[i] = "\x1b[" + strings.Join(codes, ";") + "m" + line + "\x1b[0m"
		}
	}
	return strings.Join(lines, "\n")
}

func weightText(w float64) string { return strconv.FormatFloat(w, 'g', 4, 64) }

// drawn is the text of p with its white space drawn, and with what is not shown as its number.
func (p ShownPiece) drawn() string {
	var b strings.Builder
	for i := 0; i < len(p.Text); {
		r, n := utf8.DecodeRuneInString(p.Text[i:])
		hidden := slices.Contains(p.Spells, i) || r == '⟦' || r == '⟧'
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, p.Text[i])
		case r == ' ':
			b.WriteString("·")
		case r == '\n':
			b.WriteString("↵\n")
		case r == '\t':
			b.WriteString("⇥")
		case !hidden && (unicode.IsPrint(r) || unicode.Is(unicode.Cf, r) && !unicode.Is(unicode.Bidi_Control, r)):
			b.WriteRune(r)
		case r < utf8.RuneSelf:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		i += n
	}
	return b.String()
}

//go:embed rows.html
var rowsText string

var rowsTemplate = template.Must(template.New("rows").Funcs(template.FuncMap{
	"count": func(n int) string { return Count(n) }, "weight": weightText,
	"turns": turns, "trained": func(w float64) bool { return w > 0 },
	"next": func(k int) int { return k + 1 },
}).Parse(rowsText))

// turn is the pieces of one message.
type turn struct {
	Role   string
	Pieces []boxed
}

// boxed is a piece on the page.
type boxed struct {
	ShownPiece
	Text  string // drawn
	Tells string // its weight, where that is neither 0 nor 1, and not that of the piece before
}

func turns(ex ShownExample) []turn {
	var out []turn
	for i, p := range ex.Pieces {
		if i == 0 || p.Role != ex.Pieces[i-1].Role {
			out = append(out, turn{Role: p.Role})
		}
		last := &out[len(out)-1]
		box := boxed{ShownPiece: p, Text: p.drawn()}
		if p.Weight > 0 && p.Weight != 1 && (i == 0 || ex.Pieces[i-1].Weight != p.Weight) {
			box.Tells = weightText(p.Weight) + "×"
		}
		last.Pieces = append(last.Pieces, box)
	}
	return out
}

// RowsPage is rows as one page that needs no network and no script.
func RowsPage(title string, rows []ShownRow) ([]byte, error) {
	var b bytes.Buffer
	err := rowsTemplate.Execute(&b, struct {
		Title string
		Rows  []ShownRow
	}{title, rows})
	if err != nil {
		return nil, fmt.Errorf("writing rows: %w", err)
	}
	return b.Bytes(), nil
}
