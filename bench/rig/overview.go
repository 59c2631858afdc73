// Overview: the chart of the README, drawn from kept results.

package rig

import (
	"bytes"
	"fmt"
	"html"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
)

// OverviewFile is the name of the overview in the folder of drawings.
const OverviewFile = "overview.svg"

// overview lists the bars of the chart: what was measured, the file of the result, and the pattern that finds the
// milliseconds in it.
var overview = []struct {
	name, file string
	value      *regexp.Regexp
	slow       bool // the time of the API itself
}{
	{"A list, from the API itself", "next.txt", regexp.MustCompile(`(?m)^first page of a list, cold +\d+ +\S+ +(\S+)`), true},
	{"Its next page, a second later", "next.txt", regexp.MustCompile(`(?m)^next page, asked \S+ later +\d+ +\S+ +(\S+)`), false},
	{"A search in a million messages", "search.txt", regexp.MustCompile(`(?m)^(?:ok|missed) +a search, median +([\d.]+)`), false},
	{"A list in the viewer, 16 people", "html.txt", regexp.MustCompile(`(?m)^list +all +\S+ +\S+ +(\S+)`), false},
	{"A list through Understudy", "warm.txt", regexp.MustCompile(`(?m)^(?:ok|missed) +warm page at one client, p50 +([\d.]+)`), false},
}

// The measures of the overview, in units of the drawing. Its axis is logarithmic.
const (
	overviewTop    = 62.0
	overviewRow    = 34.0
	overviewFirst  = 0.01 // ms at the left end of the axis
	overviewLast   = 3000 // ms at the right end
	overviewMargin = 36.0
)

// DrawOverview draws the medians of several results, which it reads from the files of a folder. The SVG follows
// the reader's light or dark scheme, and contains the numbers as text, too.
func DrawOverview(results string) ([]byte, error) {
	x := func(ms float64) float64 {
		return plotLeft + (plotRight-plotLeft)*math.Log(ms/overviewFirst)/math.Log(overviewLast/overviewFirst)
	}
	bottom := overviewTop + overviewRow*float64(len(overview))
	const title = "Milliseconds to an answer, medians"
	var s bytes.Buffer
	fmt.Fprintf(&s, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" role="img" aria-labelledby="t" font-family="sans-serif" font-size="14">
<title id="t">%s</title>
<style>svg{background:#fff;color:#1c2430}.b{fill:#0b665c}.a{fill:#c8741a}.g{stroke:#d5dae2}
@media(prefers-color-scheme:dark){svg{background:#14181f;color:#e6e9ee}.b{fill:#5fd0bf}.a{fill:#e0a04a}.g{stroke:#333b48}}
text{fill:currentColor}</style>
<text x="12" y="26" font-size="16" font-weight="bold">%s</text>
`, plotWide, bottom+overviewMargin, title, title)
	for ms := overviewFirst; ms < overviewLast; ms *= 10 {
		fmt.Fprintf(&s, `<path class="g" d="M%.1f %gV%g"/><text x="%.1f" y="%g" text-anchor="middle" font-size="12">%s</text>`+"\n",
			x(ms), overviewTop-12, bottom, x(ms), bottom+20, Figure(ms))
	}
	for i, bar := range overview {
		text, err := os.ReadFile(filepath.Join(results, bar.file))
		if err != nil {
			return nil, fmt.Errorf("bench: draw overview: %w", err)
		}
		m := bar.value.FindSubmatch(text)
		if m == nil {
			return nil, fmt.Errorf("bench: draw overview: %s has no line for %q", bar.file, bar.name)
		}
		ms, err := strconv.ParseFloat(string(m[1]), 64)
		if err != nil || ms <= 0 {
			return nil, fmt.Errorf("bench: draw overview: %s: %q is no time", bar.file, m[1])
		}
		class := "b"
		if bar.slow {
			class = "a"
		}
		y := overviewTop + overviewRow*float64(i)
		fmt.Fprintf(&s, `<text x="%g" y="%.1f" text-anchor="end">%s</text><rect class="%s" x="%g" y="%.1f" width="%.1f" height="20"/>`,
			plotLeft-12, y+15, html.EscapeString(bar.name), class, plotLeft, y, x(ms)-plotLeft)
		fmt.Fprintf(&s, `<text x="%.1f" y="%.1f">%s</text>`+"\n", x(ms)+6, y+15, Figure(ms))
	}
	s.WriteString("</svg>\n")
	return s.Bytes(), nil
}
