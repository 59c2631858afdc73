// Figures: figures.txt describes each figure of /-/stats.

package diagnostics

import (
	_ "embed"
	"strings"
)

//go:embed figures.txt
var figuresText string

// Figure describes a figure of /-/stats. figures.txt explains its name and the kinds.
type Figure struct {
	Name string `json:"name"`
	Kind string `json:"kind"` // counter, gauge, state, time, label or limit
	Unit string `json:"unit"` // the figure's unit, or ""
	Help string `json:"help"`
	Page string `json:"page,omitempty"` // the page of docs that explains the figure
}

// Figures returns the figures of figures.txt in their order, one for each name.
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
