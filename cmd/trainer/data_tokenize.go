package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"

	"github.com/urfave/cli/v2"

	"trainer/internal/chat"
	"trainer/internal/dataset"
	"trainer/internal/diag"
	"trainer/internal/tokenizer"
	"trainer/recipe"
	"trainer/runner"
)

func (a *app) dataTokenize() *cli.Command {
	return &cli.Command{
		Name: "tokenize", Usage: "turn rows into token ids, as JSON lines", ArgsUsage: "FILE|recipe.yaml",
		Description: "With --tokenizer, FILE (- is stdin; gzip and zstd are looked through) has a row a line, and its first row tells of what kind they are.\n" +
			"A row with text gives {\"ids\": […]}: the text alone, no token added before or behind it, and text that spells a control token,\n" +
			"such as <|im_end|>, gives that token, as encode(add_special_tokens=False) of Hugging Face does. Datasets never do that, since a\n" +
			"row must not be able to end its own turn: with --spelled, such text stays the text that it is here too.\n\n" +
			"Rows of messages, of prompt and completion, or of tokens go through the template, and give a line for each of their examples:\n" +
			"{\"at\", \"ids\", \"targets\", \"weights\"}, all of one length; entry t says what predicting targets[t] behind ids[0..t] counts.\n\n" +
			"Without --tokenizer, the argument is a recipe, and its rows are printed so, as they will train.\n\n" +
			"Examples:\n  trainer data tokenize --tokenizer qwen3/ texts.jsonl > ids.jsonl\n  echo '{\"text\": \"hi\"}' | trainer data tokenize --tokenizer bytes --offsets -\n" +
			"  trainer data tokenize --tokenizer qwen3/ --decode ids.jsonl\n  trainer data tokenize recipe.yaml --limit 3",
		Flags: []cli.Flag{setFlag, sandboxFlag, onlineFlag, splitFlag,
			&cli.StringFlag{Name: "tokenizer", Usage: "`PATH` of a tokenizer, a folder or file; bytes is the sandbox's own"},
			&cli.StringFlag{Name: "template", Value: "auto", Usage: "for chat rows: the `FILE` of a template, auto (the tokenizer's own) or none"},
			&cli.StringFlag{Name: "train-on", Value: "all_assistant_messages", Usage: "`MODE` of chat.train_on"},
			&cli.BoolFlag{Name: "spelled", Usage: "text that spells a control token stays text, as in a dataset"},
			&cli.BoolFlag{Name: "offsets", Usage: "add ends: the byte of the text behind each token"},
			&cli.BoolFlag{Name: "decode", Usage: "the other way round: rows with ids in, rows with text out"},
			&cli.IntFlag{Name: "limit", Usage: "stop behind `N` rows; 0 is all"}},
		Action: func(c *cli.Context) error {
			path, err := one(c, "a file of rows, or a recipe")
			if err == nil && c.Int("limit") < 0 {
				err = &usage{"trainer data tokenize: --limit counts rows, so it is at least 0"}
			}
			if err != nil {
				return err
			}
			out := bufio.NewWriterSize(a.out, 1<<20)
			if c.IsSet("tokenizer") {
				err = a.tokenizeFile(c, path, out)
			} else {
				err = a.tokenizeRecipe(c, path, out)
			}
			return errors.Join(err, out.Flush())
		},
	}
}

// notWith refuses flags that would have no effect beside another.
func notWith(c *cli.Context, why string, flags ...string) error {
	for _, f := range flags {
		if c.IsSet(f) {
			return &usage{fmt.Sprintf("%s: --%s %s", c.Command.HelpName, f, why)}
		}
	}
	return nil
}

func (a *app) tokenizeFile(c *cli.Context, path string, out io.Writer) error {
	if err := notWith(c, "is of a recipe, and --tokenizer reads a file of rows", "set", "sandbox", "split"); err != nil {
		return err
	}
	tok, err := runner.OpenTokenizer(c.Context, a.hub(c), c.String("tokenizer"))
	if err != nil {
		return &usage{fmt.Sprintf("trainer data tokenize: --tokenizer: %v", err)}
	}
	template, none := openTemplate(c.String("template"), c.String("train-on"), tok)
	if none != nil && (c.IsSet("template") || c.IsSet("train-on")) {
		return &usage{fmt.Sprintf("trainer data tokenize: %v%s", none, dayOut(none))}
	}
	in, name := a.in, "stdin"
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return diag.List{{Pos: diag.Pos{File: path}, Msg: reason(err)}}
		}
		defer f.Close()
		in, name = f, path
	}
	w := &tokenWriter{tok: tok, spelled: c.Bool("spelled"), offsets: c.Bool("offsets")}
	if c.Bool("decode") {
		if err := notWith(c, "has no effect beside --decode", "spelled", "offsets", "template", "train-on"); err != nil {
			return err
		}
	}
	s := dataset.Stream{Name: name, Template: template, NoTemplate: none, IDs: c.Bool("decode"), Limit: c.Int("limit"), Render: w.row}
	return s.Run(c.Context, in, out)
}

// reason is what is wrong with a file, without the name that stands before it.
func reason(err error) string {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

// openTemplate compiles the template of --template.
func openTemplate(name, trainOn string, tok *tokenizer.Tokenizer) (*chat.Template, error) {
	section, source := recipe.Chat{Template: name, TrainOn: trainOn}, chat.Source{}
	if section.IsFile() {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("--template: %s: %s", name, reason(err))
		}
		source = chat.Source{Name: name, Text: string(text)}
	}
	return chat.New(section, tok, source)
}

// dayOut is the way out where a template needs a day, which is said in a recipe alone.
func dayOut(err error) string {
	var faults diag.List
	if errors.As(err, &faults) && slices.ContainsFunc(faults, func(p diag.Problem) bool { return p.Key == "chat.date" }) {
		return ", in a recipe that names the rows and the tokenizer, and give that recipe instead of --tokenizer"
	}
	return ""
}

// tokenWriter writes rows as lines.
type tokenWriter struct {
	tok              *tokenizer.Tokenizer
	spelled, offsets bool
}

// row appends the line of a row, or those of its examples.
func (w *tokenWriter) row(dst []byte, row dataset.Passing) ([]byte, error) {
	switch row.Format {
	case "ids":
		return append(appendText(append(dst, `{"text":`...), w.tok.Decode(row.IDs)), "}\n"...), nil
	case "text":
		return w.text(dst, row.Text), nil
	}
	if w.offsets {
		return nil, diag.List{{Pos: row.At, Msg: "--offsets: bytes of a text are counted, and " + row.Format + " rows go through a template; leave it out"}}
	}
	for _, ex := range row.Examples {
		dst = appendExample(dst, row.At, ex)
	}
	return dst, nil
}

func (w *tokenWriter) text(dst []byte, text string) []byte {
	encode := w.tok.EncodeControl
	if w.spelled {
		encode = w.tok.Encode
	}
	ids, ends := encode(text)
	dst = appendInts(append(dst, `{"ids":`...), ids)
	if w.offsets {
		dst = appendInts(append(dst, `,"ends":`...), ends)
	}
	return append(dst, "}\n"...)
}

// appendExample appends the line of an example: what the model is given, and what it is to predict.
func appendExample(dst []byte, at diag.Pos, ex chat.Example) []byte {
	dst = appendShifted(appendText(append(dst, `{"at":`...), at.String()), ex.IDs)
	dst = append(dst, `,"weights":[`...)
	for i, weight := range ex.Weights[min(1, len(ex.IDs)):] {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendWeight(dst, weight)
	}
	return append(dst, "]}\n"...)
}

// appendShifted appends ids but the last, and as targets ids but the first: the digits of most are written once and copied.
func appendShifted(dst []byte, ids []int32) []byte {
	dst = append(dst, `,"ids":`...)
	if len(ids) < 3 {
		dst = appendInts(dst, ids[:max(0, len(ids)-1)])
		return appendInts(append(dst, `,"targets":`...), ids[min(1, len(ids)):])
	}
	dst = strconv.AppendInt(append(dst, '['), int64(ids[0]), 10)
	from := len(dst)
	for _, id := range ids[1 : len(ids)-1] {
		dst = strconv.AppendInt(append(dst, ','), int64(id), 10)
	}
	to := len(dst)
	dst = append(dst, `],"targets":[`...)
	dst = append(append(dst, dst[from+1:to]...), ',')
	return append(strconv.AppendInt(dst, int64(ids[len(ids)-1]), 10), ']')
}

// appendWeight appends a weight; most are 0 or 1, which need no search for the shortest digits.
func appendWeight(dst []byte, w float64) []byte {
	switch w {
	case 0:
		return append(dst, '0')
	case 1:
		return append(dst, '1')
	}
	return strconv.AppendFloat(dst, w, 'g', -1, 64)
}

func appendInts[T int | int32](dst []byte, ns []T) []byte {
	dst = append(dst, '[')
	for i, n := range ns {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(dst, int64(n), 10)
	}
	return append(dst, ']')
}

func (a *app) tokenizeRecipe(c *cli.Context, path string, out io.Writer) error {
	if err := notWith(c, "needs --tokenizer; a recipe says how its rows are read", "template", "train-on", "spelled", "offsets", "decode"); err != nil {
		return err
	}
	in, err := a.openData(c, path)
	if err != nil {
		return err
	}
	set, err := setOf(c, in)
	if err != nil {
		return err
	}
	n := set.Len()
	if limit := c.Int("limit"); limit > 0 {
		n = min(n, limit)
	}
	return writeRows(c.Context, set, n, out)
}

// writeRows writes the first n rows of a set in file order, a line for each of their examples.
func writeRows(ctx context.Context, set *dataset.Set, n int, out io.Writer) error {
	return eachRow(ctx, set, n, func(i int, exs []chat.Example) (line []byte, _ error) {
		for _, ex := range exs {
			line = appendExample(line, set.At(i), ex)
		}
		return line, nil
	}, func(line []byte) error {
		_, err := out.Write(line)
		return err
	})
}
