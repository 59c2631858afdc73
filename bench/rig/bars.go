// Bars: one figure a row as a drawing.

package rig

import (
	"bytes"
	"fmt"
	"html"
)

// Bar is a row of a bar chart. Low and High are the ends of its whisker; if both are 0, it has none.
type Bar struct {
	Name             string
	Value, Low, High float64
	Theirs           bool // drawn in the colour of what others have measured
}

// The measures of a bar chart, in units of the drawing.
const (
	barTop    = 44.0
	barRow    = 26.0
	barMargin = 14.0
	barRight  = 660.0 // the end of the longest bar; its figure stands behind it
)

// DrawBars draws rows over one axis that begins at 0. The SVG follows the reader's light or dark scheme, and contains
// the numbers as text, too.
func DrawBars(title string, bars []Bar) []byte {
	most := 1e-12
	for _, b := range bars {
		most = max(most, b.Value, b.High)
	}
	x := func(v float64) float64 { return plotLeft + (barRight-plotLeft)*v/most }
	var s bytes.Buffer
	fmt.Fprintf(&s, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" role="img" aria-labelledby="t" font-family="sans-serif" font-size="13">
<title id="t">%s</title>
<style>svg{background:#fff;color:#1c2430}.b{fill:#0b665c}.a{fill:#c8741a}
@media(prefers-color-scheme:dark){svg{background:#14181f;color:#e6e9ee}.b{fill:#5fd0bf}.a{fill:#e0a04a}}
text{fill:currentColor}.l{stroke:currentColor}</style>
<text x="12" y="24" font-size="15" font-weight="bold">%s</text>
`, plotWide, barTop+barRow*float64(len(bars))+barMargin, html.EscapeString(title), html.EscapeString(title))
	for i, b := range bars {
		class, y := "b", barTop+barRow*float64(i)
		if b.Theirs {
			class = "a"
		}
		fmt.Fprintf(&s, `<text x="%g" y="%.1f" text-anchor="end">%s</text><rect class="%s" x="%g" y="%.1f" width="%.1f" height="17"/>`,
			plotLeft-10, y+13, html.EscapeString(b.Name), class, plotLeft, y, max(x(b.Value)-plotLeft, 1))
		end := b.Value
		if b.High > 0 {
			end = max(end, b.High)
			fmt.Fprintf(&s, `<path class="l" d="M%.1f %.1fH%.1f"/>`, x(b.Low), y+8.5, x(b.High))
		}
		fmt.Fprintf(&s, `<text x="%.1f" y="%.1f">%s</text>`+"\n", x(end)+7, y+13, Figure(b.Value))
	}
	s.WriteString("</svg>\n")
	return s.Bytes()
}
