// Table: rows of cells in columns that fit the width of a terminal.

package terminal

import (
	"fmt"
	"io"
	"strings"
)

// minColumn is the minimum width to which a column is cut, and columnGap is the space between two columns. Both are
// in columns of the terminal.
const minColumn, columnGap = 6, 2

// Table has rows of cells, which are printed in columns.
type Table [][]string

// Add adds a row.
func (t *Table) Add(cells ...string) { *t = append(*t, cells) }

// Print prints the table. On a terminal, it cuts the widest columns until the table fits. Otherwise it cuts nothing.
func (t Table) Print(out io.Writer) error {
	for _, line := range t.Lines(Width(out)) {
		if _, err := fmt.Fprintln(out, line); err != nil {
			return err
		}
	}
	return nil
}

// Lines returns the rows as lines that are at most width columns wide. If width is 0, it cuts nothing.
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
			cell = Shorten(cell, widths[i])
			if i < len(row)-1 {
				cell += strings.Repeat(" ", widths[i]+columnGap-Columns(cell))
			}
			lines[n] += cell
		}
	}
	return lines
}
