// Box plot: quantiles of several rows as a drawing.

package rig

import (
	"bytes"
	"fmt"
	"html"
	"math"
	"os"
	"path/filepath"
)

// Box is a row of a box plot: the whiskers reach from the first to the last quantile, the
// box from the second to the fourth, and a line is at the third.
type Box struct {
	Name      string
	Quantiles [5]float64
}

// The measures of a box plot, in units of the drawing.
const (
	plotWide   = 760.0
	plotLeft   = 250.0 // of the axis
	plotRight  = 730.0
	plotTop    = 52.0
	plotRow    = 38.0
	plotMarks  = 5 // of the axis, about
	plotMargin = 40.0
)

// BoxPlot draws rows over one axis that begins at 0. The SVG follows the reader's light or dark scheme, and
// contains the numbers as text, too.
func BoxPlot(title string, rows []Box) []byte {
	most := 0.0
	for _, b := range rows {
		most = max(most, b.Quantiles[4])
	}
	step := markStep(most)
	x := func(v float64) float64 { return plotLeft + (plotRight-plotLeft)*v/max(most*1.02, 1e-9) }
	bottom := plotTop + plotRow*float64(len(rows))
	var s bytes.Buffer
	fmt.Fprintf(&s, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" role="img" aria-labelledby="t" font-family="sans-serif" font-size="13">
<title id="t">%s</title>
<style>svg{background:#fff;color:#1c2430}.b{fill:#9db8e8;stroke:#1c2430}.g{stroke:#d5dae2}
@media(prefers-color-scheme:dark){svg{background:#14181f;color:#e6e9ee}.b{fill:#31507f;stroke:#e6e9ee}.g{stroke:#333b48}}
text{fill:currentColor}.l{stroke:currentColor}</style>
<text x="12" y="26" font-size="15" font-weight="bold">%s</text>
`, plotWide, bottom+plotMargin, html.EscapeString(title), html.EscapeString(title))
	for v := 0.0; v <= most; v += step {
		fmt.Fprintf(&s, `<path class="g" d="M%.1f %gV%g"/><text x="%.1f" y="%g" text-anchor="middle">%s</text>`+"\n",
			x(v), plotTop-8, bottom, x(v), bottom+20, Figure(v))
	}
	for i, b := range rows {
		q, y := b.Quantiles, plotTop+plotRow*(float64(i)+0.5)
		fmt.Fprintf(&s, `<g><title>%s: %s</title><text x="%g" y="%.1f" text-anchor="end">%s</text>`,
			html.EscapeString(b.Name), figures(q), plotLeft-12, y+4, html.EscapeString(b.Name))
		fmt.Fprintf(&s, `<path class="l" fill="none" d="M%.1f %.1fH%.1fM%.1f %.1fH%.1fM%.1f %.1fv12M%.1f %.1fv12"/>`,
			x(q[0]), y, x(q[1]), x(q[3]), y, x(q[4]), x(q[0]), y-6, x(q[4]), y-6)
		fmt.Fprintf(&s, `<rect class="b" x="%.1f" y="%.1f" width="%.1f" height="20"/><path class="l" stroke-width="2.5" d="M%.1f %.1fv20"/></g>`+"\n",
			x(q[1]), y-10, max(x(q[3])-x(q[1]), 0.5), x(q[2]), y-10)
	}
	s.WriteString("</svg>\n")
	return s.Bytes()
}

func figures(q [5]float64) (text string) {
	for i, v := range q {
		if i > 0 {
			text += ", "
		}
		text += Figure(v)
	}
	return text
}

// markStep returns the distance between the marks of the axis: 1, 2 or 5 times a power of ten.
func markStep(most float64) float64 {
	if !(most > 0) {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(most/plotMarks)))
	for _, times := range []float64{1, 2, 5} {
		if most/(power*times) <= plotMarks+1 {
			return power * times
		}
	}
	return power * 10
}

// Draw writes a drawing into the folder of drawings, if there is one. A quick run writes no drawings.
func (r *Run) Draw(name string, svg []byte) error {
	if r.Drawings == "" || r.Quick {
		return nil
	}
	r.Say("drawn: %s", name)
	return os.WriteFile(filepath.Join(r.Drawings, name), svg, 0o644)
}
