package dataset

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"trainer/internal/chat"
	"trainer/internal/diag"
	"trainer/internal/hub"
	"trainer/recipe"
)

// source is a source of the recipe, opened: its files, and how to read a row of them.
type source struct {
	section recipe.Source
	files   []hub.File
	base    int // of the first of them in index.files
	format  format
	columns map[string]*column // by our field
	dialect *dialect           // of the rows, which are rewritten to the format; nil: they are as it wants them
	given   map[string]*column // by our field, of rows before they are rewritten
	// compared is what rewards compare an answer with, in rows that train; they are there where graded says so.
	compared *column
	graded   bool
	counts   Counts
	names    []string        // columns of the first row
	first    diag.Pos        // of the row that told the format; zero where the recipe named it
	takes    []string        // the formats that the loss trains on
	soft     bool            // rows say what a teacher finds likeliest
	teacher  *recipe.Teacher // who scores what is sampled; nil: nobody does
	taught   bool            // rows have what a teacher made of their tokens
	sampled  bool            // and what the weights that sampled them did
}

// problem is a fault of the source's section of the recipe: key is below it, as ".format".
type problem struct{ key, msg string }

func problemf(key, format string, a ...any) *problem { return &problem{key, fmt.Sprintf(format, a...)} }

// begin settles the format by the first row, and what that asks of fields.
func (s *source) begin(row value, at diag.Pos, t *chat.Template) *problem {
	s.names = columnNames(row)
	if s.dialect = s.listens(row); s.dialect != nil {
		return s.converse(row, at, t)
	}
	f, p := s.pick(row, at)
	if p != nil {
		return p
	}
	if !slices.Contains(s.takes, f.name) {
		return problemf(".format", "%s rows do not go with this loss; it %s%s%s", f.name, s.wants(), s.told(), s.otherwise(row))
	}
	if s.format = f; t == nil && !f.bare {
		return s.untokenized()
	}
	if p := s.compile(); p != nil {
		return p
	}
	if f.name == "prompt_completion" {
		s.hearSides(row)
	}
	return nil
}

// converse settles on conversations, whose rows are rewritten.
func (s *source) converse(row value, at diag.Pos, t *chat.Template) *problem {
	s.format, _ = named("messages", noColumn)
	if s.section.Format == "auto" {
		s.first = at
	}
	if t == nil {
		return s.untokenized()
	}
	if p := s.compile(); p != nil {
		return p
	}
	s.given = s.columns
	if _, mapped := s.section.Fields["messages"]; !mapped {
		if c, _ := s.listColumn(row); c != nil {
			s.given["messages"] = c
		}
	}
	s.given["prompt"], s.given["completion"] = newColumn("instruction", "input"), newColumn("output")
	s.columns = s.format.columns()
	return nil
}

// otherwise is the format that would take other columns of a row whose own the loss does not take.
func (s *source) otherwise(row value) string {
	if s.section.Format != "auto" || s.samples() {
		return ""
	}
	lacks := func(field string) bool { return row.member(field) == nil }
	for _, f := range formats() {
		if slices.Contains(s.takes, f.name) && !slices.ContainsFunc(f.required, lacks) {
			return fmt.Sprintf("; format: %s takes its %s, and leaves out the rest", f.name, strings.Join(f.required, " and "))
		}
	}
	return ""
}

func (s *source) untokenized() *problem {
	return problemf(".format", "%s rows need a tokenizer, and this model's is not at hand; rows that are tokenised already (format: tokens) do without%s", s.format.name, s.told())
}

// samples tells whether the rows are for a loss that samples what it trains on.
func (s *source) samples() bool { return slices.Contains(s.takes, "prompts") }

// wants says which rows the loss takes.
func (s *source) wants() string {
	if s.samples() {
		return "samples completions of prompts, whose columns fields maps, as {prompt: question, target: answer}"
	}
	return "trains on " + strings.Join(s.takes, ", ")
}

// told says by which row the format was told.
func (s *source) told() string {
	if s.first == (diag.Pos{}) {
		return ""
	}
	return fmt.Sprintf(" (told by the first row, %s)", s.first)
}

// info is the source for a person, without its rows.
func (s *source) info() SourceInfo {
	return SourceInfo{Name: s.section.Path, Format: s.format.name, Told: s.evidence(), Files: len(s.files), SHA256: s.hash(), Counts: s.counts}
}

// evidence says how the format was told.
func (s *source) evidence() string {
	by := "by the recipe"
	if s.first != (diag.Pos{}) {
		by = fmt.Sprintf("by the columns %s of %s", brieflyListed(s.names), s.first)
	}
	if s.dialect != nil {
		by += ": " + s.dialect.name
	}
	return by
}

func brieflyListed(names []string) string {
	if len(names) > 8 {
		names = append(slices.Clone(names[:8]), "…")
	}
	return strings.Join(names, ", ")
}

// shape reminds of the format where the row told it, for a row of another shape.
func (s *source) shape() string {
	if s.first == (diag.Pos{}) {
		return ""
	}
	return fmt.Sprintf(" (by its first row, %s, the source is %s)", s.first, s.format.name)
}

func (s *source) pick(row value, at diag.Pos) (format, *problem) {
	has := func(field string) bool {
		_, mapped := s.section.Fields[field]
		return mapped || row.member(field) != nil
	}
	if s.section.Format != "auto" {
		f, ok := named(s.section.Format, has)
		if !ok {
			return f, problemf(".format", "%q is not a format", s.section.Format)
		}
		return f, nil
	}
	s.first = at
	mapped := slices.DeleteFunc(slices.Collect(maps.Keys(s.section.Fields)), func(field string) bool { return field == "target" && !s.samples() })
	f, ok := recognise(has, mapped, func(f format) bool { return slices.Contains(s.takes, f.name) })
	if !ok {
		if len(s.names) == 0 {
			return f, problemf(".format", "auto: no format is known by %s, which has no column; give format, or leave the row out", at)
		}
		return f, problemf(".format", "auto: no format is known by the columns %s of %s; give format, and fields to map columns to it%s",
			strings.Join(s.names, ", "), at, s.hint())
	}
	if label := row.member("label"); label != nil && f.encode != nil && !f.untrained {
		if _, is := label.truth(); is {
			return f, problemf(".format", "auto: %s has a label of true or false, so its rows may be good and bad ones (labelled), which this loss cannot tell apart; format: %s trains on all of them", at, f.name)
		}
	}
	return f, nil
}

// usual are the names that others give to a prompt and its completion.
var usual = [][2]string{
	{"question", "answer"}, {"query", "response"}, {"instruction", "response"}, {"prompt", "response"}, {"input", "output"},
	{"problem", "solution"}, {"question", "response"}, {"input", "target"}, {"article", "highlights"}, {"document", "summary"},
}

// hint is the fields to give, where the names of the columns tell.
func (s *source) hint() string {
	if slices.Contains(s.takes, "preference") && slices.Contains(s.names, "preferred_output") {
		return ", such as fields: {prompt: input.messages, chosen: preferred_output, rejected: non_preferred_output}"
	}
	for _, pair := range usual {
		if slices.Contains(s.names, pair[0]) && slices.Contains(s.names, pair[1]) {
			other := "completion"
			if s.samples() {
				other = "target"
			}
			return fmt.Sprintf(", such as fields: {prompt: %s, %s: %s}", pair[0], other, pair[1])
		}
	}
	return ""
}

// compile makes the columns of the format out of fields.
func (s *source) compile() *problem {
	s.columns, s.compared = s.format.columns(), newColumn("target")
	known := s.format.mappable()
	if s.teacher == nil {
		known = slices.DeleteFunc(known, func(field string) bool { return field == "teacher_prompt" })
	}
	for field, paths := range s.format.joins {
		s.columns[field] = newColumn(paths...)
	}
	for _, field := range slices.Sorted(maps.Keys(s.section.Fields)) {
		key := ".fields." + field
		if field == "target" && !s.format.untrained {
			if p := s.compareWith(key); p != nil {
				return p
			}
			continue
		}
		if !slices.Contains(known, field) {
			return problemf(key, "not a field of %s rows (%s)%s%s", s.format.name, strings.Join(known, ", "), diag.DidYouMean(field, known), s.told())
		}
		c, err := compileColumn(s.section.Fields[field])
		if err != nil {
			return problemf(key, "%v", err)
		}
		if !c.whole() && !slices.Contains([]string{"prompt", "completion", "text", "system", "chosen", "rejected", "target", "teacher_prompt"}, field) {
			return problemf(key, "%s is a list in the row; neither several columns nor a regex make one", field)
		}
		s.columns[field] = c
	}
	return nil
}

// compareWith makes the column of what rewards compare with.
func (s *source) compareWith(key string) *problem {
	if !s.graded {
		return problemf(key, "is what rewards compare with, and nothing is sampled that they could grade; give reward and eval.sampling_params, or leave it out")
	}
	c, err := compileColumn(s.section.Fields["target"])
	if err != nil {
		return problemf(key, "%v", err)
	}
	s.compared = c
	return nil
}

// unseen are the columns of fields that no row had: joined columns may be missing in a row, so no row tells of a typo.
func (s *source) unseen() (ps []problem) {
	for _, field := range slices.Sorted(maps.Keys(s.section.Fields)) {
		c := s.columns[field]
		if s.given != nil {
			c = s.given[field]
		}
		if c == nil {
			c = s.compared
		}
		for i, path := range c.paths {
			if len(c.paths) > 1 && !c.seen[i].Load() {
				ps = append(ps, *problemf(".fields."+field, "no row has the column %s%s; the rows have %s", path, diag.DidYouMean(path, s.names), strings.Join(s.names, ", ")))
			}
		}
	}
	return ps
}

// hash names the source's bytes.
func (s *source) hash() string {
	if len(s.files) == 1 {
		return s.files[0].SHA256
	}
	h := sha256.New()
	for _, f := range s.files {
		fmt.Fprintln(h, f.SHA256)
	}
	return hex.EncodeToString(h.Sum(nil))
}
