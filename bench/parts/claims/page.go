// Page: docs/claims.md, from the findings.

package claims

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"understudy/bench/place"
	"understudy/bench/rig"
)

// maxCellWords is the most words of a table's cell in a document.
const maxCellWords = 30

// render returns the page. It returns an error if a cell is too long to be scanned.
func render(r *rig.Run, claims []claim, found []finding) ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, `# The articles' claims, measured again

The articles behind Understudy ([Where the ideas came from](lineage.md)) contain figures that are often repeated. This page says which of them
hold today, beside our own way to do the same. One command writes the page and its drawings:

%s

It was measured on %s at revision %s: %s.

| verdict | meaning |
|---|---|
| holds | the same experiment, done fairly, still has this result |
| held then | the figure was right for the programs of its time, and is not today |
| wrong | the figure does not show what the article concludes from it |

All ways of one experiment run in turns. Figures are medians of the rounds, and the line on a bar reaches from the lower to the upper
quartile. Inputs are random, and results are used, so that the compiler removes nothing. The numbers of systems are those of
[the list](lineage.md).

| system | claim | the article's figure | today | verdict |
|---|---|---|---|---|
`, "```sh\nmake bench ONLY=claims\n```", time.Now().UTC().Format("2006-01-02"), place.Revision("."), place.Machine())
	for i, c := range claims {
		f := found[i]
		row := []string{c.systems, fmt.Sprintf("[%s](#%s)", c.says, c.name), c.figure, f.ours, string(f.verdict)}
		for _, cell := range row {
			if n := len(strings.Fields(cell)); n > maxCellWords {
				return nil, fmt.Errorf("a cell of %s has %d words: %s", c.name, n, cell)
			}
		}
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
	}
	for i, c := range claims {
		f := found[i]
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n![%s](%s/%s.svg)\n\n", c.heading(), f.text, f.title, folder, c.name)
		for n, row := range f.table {
			fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
			if n == 0 {
				fmt.Fprintf(&b, "|%s\n", strings.Repeat("---|", len(row)))
			}
		}
	}
	b.WriteString("\n## Not measured yet\n\n")
	for _, text := range missing {
		fmt.Fprintf(&b, "- %s\n", text)
	}
	return b.Bytes(), nil
}
