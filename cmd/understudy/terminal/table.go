// Table: rows in columns, no wider than a terminal.

package terminal

import (
	"fmt"
	"io"
	"strings"
)

// minColumn is how narrow a column may become, and columnGap what lies between two, in columns of
// the terminal.
const minColumn, columnGap = 6, 2

// Table is rows of cells that stand in columns.
type Table [][]string

// Add adds a row.
func (t *Table) Add(cells ...string) { *t = append(*t, cells) }

// Print writes the table, as wide as it is. On a terminal the widest columns are cut until the
// table fits.
func (t Table) Print(out io.Writer) error {
	for _, line := range t.Lines(Width(out)) {
		if _, err := fmt.Fprintln(out, line); err != nil {
			return err
		}
	}
	return nil
}

// Lines returns the rows as lines of at most so many columns; 0: as wide as they are.
func (t Table) Lines(width int) []string {
	var widths []int
	for _, row := range t {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], Columns(cell))
		}
	}
	total := columnGap * (len(widths) - 1)
	for _, n := range widths {
		total += n
	}
	for ; width > 0 && total > width; total-- {
		widest := 0
		for i, n := range widths {
			if n > widths[widest] {
				widest = i
			}
		}
		if widths[widest] <= minColumn {
			break
		}
		widths[widest]--
	}
	lines := make([]string, len(t))
	for n, row := range t {
		for i, cell := range row {
			cell = Fitted(cell, widths[i])
			if i < len(row)-1 {
				cell += strings.Repeat(" ", widths[i]+columnGap-Columns(cell))
			}
			lines[n] += cell
		}
	}
	return lines
}
