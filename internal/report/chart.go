package report

import (
	"fmt"
	"math"
	"strings"
)

// curvePoints is how many points of a series a curve draws. Places that answer to the mouse are one for every
// hoverWidth units of a chart.
const (
	curvePoints = 1000
	hoverWidth  = 4
)

// curve is one series of a chart. Class is its style in the page; dots marks each point.
type curve struct {
	name, class string
	points      series
	dots        bool
}

// chart is a figure with everything placed, in the units of its view box; the page only writes it down.
type chart struct {
	Title, Note              string
	Width, Height            float64
	Left, Right, Top, Bottom float64 // of the plot's rectangle
	Legend                   []legendEntry
	Paths                    []path
	Dots                     []dot
	XTicks, YTicks           []tick
	Gaps                     []tick   // where a value could not be drawn
	Columns                  []column // stripes that answer to the mouse
}

type (
	legendEntry struct{ Name, Class string }
	path        struct{ Class, D string }
	dot         struct {
		X, Y        string
		Class, Text string
	}
	tick   struct{ At, Text string }
	column struct{ X, Width, Middle, Y, Text string }
)

// Empty tells that there is nothing to draw.
func (c *chart) Empty() bool { return len(c.YTicks) == 0 }

// figure places curves on a width by height canvas; format writes their values.
type figure struct {
	chart
	x, y   axis
	format func(float64) string
	linear bool
}

// newFigure is an empty canvas.
func newFigure(title string, width, height float64, format func(float64) string) *figure {
	return &figure{chart: chart{Title: title, Width: width, Height: height, Left: 62, Right: width - 26, Top: 22, Bottom: height - 26}, format: format}
}

// draw makes the chart of curves over the steps. The first one answers to the mouse. A chart of nothing is Empty.
func (f *figure) draw(curves ...curve) chart {
	if !f.scale(curves) {
		return f.chart
	}
	f.grid()
	for _, c := range curves {
		if len(c.points) == 0 {
			continue
		}
		f.Legend = append(f.Legend, legendEntry{c.name, c.class})
		f.Paths = append(f.Paths, path{c.class, f.path(c.points.downsample(curvePoints))})
		if c.dots {
			f.mark(c)
		}
	}
	f.gaps(curves[0])
	f.hover(curves)
	return f.chart
}

// scale finds the axes; false when no curve has a point that can be drawn.
func (f *figure) scale(curves []curve) bool {
	var low, high float64
	first, last, any := math.MaxInt, 0, false
	for _, c := range curves {
		l, h, ok := c.points.span()
		if !ok {
			continue
		}
		first, last = min(first, c.points[0].X), max(last, c.points[len(c.points)-1].X)
		if !any {
			low, high, any = l, h, true
		}
		low, high = min(low, l), max(high, h)
	}
	if !any {
		return false
	}
	f.y = newAxis(low, high, f.linear)
	f.x = axis{low: float64(first), high: math.Max(float64(last), float64(first+1))}
	if f.y.log {
		f.Note = "logarithmic scale"
	}
	return true
}

func (f *figure) grid() {
	for _, v := range f.y.ticks(int(f.Height / 45)) {
		f.YTicks = append(f.YTicks, tick{f.atY(v), f.y.label(v)})
	}
	for _, v := range stepTicks(int(f.x.low), int(f.x.high), int(f.Width/110)) {
		f.XTicks = append(f.XTicks, tick{f.atX(v), Count(v)})
	}
}

// path is the curve as drawing instructions. A run of points between gaps starts with a stroke of no length, which its
// round cap makes visible where the run is a single point.
func (f *figure) path(points series) string {
	var b strings.Builder
	pen := false
	for _, p := range points {
		switch {
		case p.gap():
			pen = false
			continue
		case !pen:
			fmt.Fprintf(&b, "M%s %sh0", f.atX(p.X), f.atY(p.Y))
		default:
			fmt.Fprintf(&b, "L%s %s", f.atX(p.X), f.atY(p.Y))
		}
		pen = true
	}
	return b.String()
}

func (f *figure) mark(c curve) {
	for _, p := range c.points.downsample(int(f.Width / hoverWidth)) {
		if !p.gap() {
			text := fmt.Sprintf("step %s: %s %s", Count(p.X), c.name, f.format(p.Y))
			f.Dots = append(f.Dots, dot{f.atX(p.X), f.atY(p.Y), c.class, text})
		}
	}
}

// gaps marks the steps whose value cannot be drawn, as many as the downsampled curve still has.
func (f *figure) gaps(c curve) {
	n := c.points.gaps()
	if n == 0 {
		return
	}
	for _, p := range c.points.downsample(curvePoints) {
		if p.gap() {
			f.Gaps = append(f.Gaps, tick{f.atX(p.X), fmt.Sprintf("step %s: no finite %s", Count(p.X), c.name)})
		}
	}
	note := fmt.Sprintf("%s no finite value", plural(float64(n), "step has", "steps have"))
	if f.Note != "" {
		note = f.Note + ", " + note
	}
	f.Note = note
}

// hover cuts the plot into stripes round the points of the first curve, each with the values there.
func (f *figure) hover(curves []curve) {
	points := curves[0].points.downsample(int(f.Width / hoverWidth))
	edge := func(i int) float64 { // left end of stripe i
		switch {
		case i == 0:
			return f.Left
		case i == len(points):
			return f.Right
		}
		return f.placeX(float64(points[i-1].X+points[i].X) / 2)
	}
	for i, p := range points {
		if p.gap() {
			continue
		}
		texts := make([]string, 0, len(curves))
		for _, c := range curves {
			if v, ok := c.points.at(p.X); ok {
				texts = append(texts, c.name+" "+f.format(v))
			}
		}
		f.Columns = append(f.Columns, column{
			X: decimal(edge(i)), Width: decimal(edge(i+1) - edge(i)), Middle: f.atX(p.X), Y: f.atY(p.Y),
			Text: "step " + Count(p.X) + ": " + strings.Join(texts, ", "),
		})
	}
}

func (f *figure) placeX(x float64) float64 { return f.Left + (f.Right-f.Left)*f.x.share(x) }

func (f *figure) atX(step int) string { return decimal(f.placeX(float64(step))) }

func (f *figure) atY(v float64) string { return decimal(f.Bottom - (f.Bottom-f.Top)*f.y.share(v)) }

// decimal is a coordinate to a tenth of a unit.
func decimal(v float64) string { return fmt.Sprintf("%.1f", v) }
