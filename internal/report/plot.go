package report

import (
	"fmt"
	"math"
	"strings"
)

// plot draws values over their index in plain ASCII, height rows and width columns plus the labels at the left: a column
// shows all that falls into it, so a peak between two columns is seen. Values are finite, height is at least 2.
func plot(values []float64, width, height int, label func(float64) string) []string {
	if len(values) == 0 {
		return nil
	}
	low, high := values[0], values[0]
	for _, v := range values {
		low, high = min(low, v), max(high, v)
	}
	if low > 0 {
		low = 0 // a rate is read against nothing
	}
	if high == low {
		high = low + 1
	}
	margin := max(len(label(high)), len(label(low)))
	columns := max(1, min(len(values), width-margin-2))
	grid := raster(values, columns, height, low, high)
	lines := make([]string, 0, height+2)
	for row := range height {
		text := ""
		switch row {
		case 0:
			text = label(high)
		case height - 1:
			text = label(low)
		}
		lines = append(lines, strings.TrimRight(fmt.Sprintf("%*s |%s", margin, text, grid[row]), " "))
	}
	lines = append(lines, fmt.Sprintf("%*s +%s", margin, "", strings.Repeat("-", columns)))
	return append(lines, fmt.Sprintf("%*s  %s", margin, "", spread("1", Count(len(values)), columns)))
}

// raster marks, in each column, the rows from the lowest to the highest of its values.
func raster(values []float64, columns, height int, low, high float64) []string {
	grid := make([][]byte, height)
	for i := range grid {
		grid[i] = []byte(strings.Repeat(" ", columns))
	}
	row := func(v float64) int {
		return height - 1 - int(math.Round((v-low)/(high-low)*float64(height-1)))
	}
	for c := range columns {
		from, to := c*len(values)/columns, (c+1)*len(values)/columns
		top, bottom := height-1, 0
		for _, v := range values[from:to] {
			top, bottom = min(top, row(v)), max(bottom, row(v))
		}
		for r := top; r <= bottom; r++ {
			grid[r][c] = '*'
		}
	}
	lines := make([]string, height)
	for i := range grid {
		lines[i] = string(grid[i])
	}
	return lines
}

// spread sets left and right at the ends of width columns; where there is no room, left alone.
func spread(left, right string, width int) string {
	gap := width - len(left) - len(right)
	if gap < 1 {
		return left
	}
	return left + strings.Repeat(" ", gap) + right
}
