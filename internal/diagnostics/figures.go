// This file reads figures.txt, which describes each figure of /-/stats.

package diagnostics

import (
	_ "embed"
	"strings"
)

//go:embed figures.txt
var figuresText string

// Figure describes a figure of /-/stats. figures.txt explains the names and kinds of figures.
type Figure struct {
	Name string `json:"name"`
	Kind string `json:"kind"` // the kind of figure: counter, gauge, state, time, label or limit
	Unit string `json:"unit"` // the figure's unit, or ""
	Help string `json:"help"`
	Page string `json:"page,omitempty"` // the page of the documentation that explains the figure
}

// Figures returns the figures in the order of figures.txt, one for each name.
func Figures() (all []Figure) {
	for line := range strings.Lines(figuresText) {
		cells := append(strings.Split(line, "|"), "")
		if line[0] == '#' || len(cells) < 5 {
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		for name := range strings.SplitSeq(cells[0], ", ") {
			all = append(all, Figure{name, cells[1], cells[2], cells[3], cells[4]})
		}
	}
	return all
}
