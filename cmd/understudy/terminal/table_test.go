// Tables on terminals of every width.

package terminal

import (
	"slices"
	"strings"
	"testing"
)

func TestTableFitsTheTerminal(t *testing.T) {
	var table Table
	table.Add("KIND", "PATH", "N")
	table.Add("calls", "/v1/accounts/{account}/calls/with/a/long/path", "3")
	table.Add("本の", "/short", "12")
	whole := []string{
		"KIND   PATH                                           N",
		"calls  /v1/accounts/{account}/calls/with/a/long/path  3",
		"本の   /short                                         12",
	}
	for _, width := range []int{0, 56, 80} {
		if lines := table.Lines(width); !slices.Equal(lines, whole) {
			t.Errorf("width %d:\n%s", width, strings.Join(lines, "\n"))
		}
	}
	want := []string{
		"KIND   PATH                   N",
		"calls  /v1/accounts/{accoun…  3",
		"本の   /short                 12",
	}
	if lines := table.Lines(32); !slices.Equal(lines, want) {
		t.Errorf("width 32:\n%s", strings.Join(lines, "\n"))
	}
	for width := 18; width < 60; width++ {
		for _, line := range table.Lines(width) {
			if Columns(line) > width {
				t.Errorf("width %d: %q has %d columns", width, line, Columns(line))
			}
		}
	}
	var out strings.Builder // no terminal: nothing is cut
	if err := table.Print(&out); err != nil || out.String() != strings.Join(whole, "\n")+"\n" {
		t.Errorf("%v\n%s", err, out.String())
	}
}
