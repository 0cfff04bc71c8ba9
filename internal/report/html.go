package report

import (
	"bytes"
	_ "embed" // the page
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"os"
	"path/filepath"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// WriteHTML reads the run folder dir (run.json, events.jsonl, metrics.jsonl, lock.yaml, resolved.yaml, as far as they
// exist) and replaces its report.html: one page that needs no network and no script. It may be called while the run goes
// on; the page then shows what is known so far.
func WriteHTML(dir string) error {
	h, err := readHistory(dir)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := pageTemplate.Execute(&b, newPage(h)); err != nil {
		return fmt.Errorf("writing %s: %w", pageFile, err)
	}
	return replace(filepath.Join(dir, pageFile), b.Bytes())
}

// Restore writes the report.html of dir where it is not there any more.
func Restore(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, pageFile)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return WriteHTML(dir)
}
