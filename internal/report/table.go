package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Table writes rows under a header in aligned columns, two spaces apart. Cells may hold foreign text; an empty one is
// shown as "-". A nil header leaves the heading out.
func Table(w io.Writer, header []string, rows [][]string) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if header != nil {
		rows = append([][]string{header}, rows...)
	}
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			if cells[i] = printable(cell); cells[i] == "" {
				cells[i] = "-"
			}
		}
		fmt.Fprintln(tw, strings.Join(cells, "\t")) // Flush returns its error
	}
	if err := tw.Flush(); err != nil {
		return fmt.Errorf("writing a table: %w", err)
	}
	return nil
}
