package wordrows

import (
	"testing"

	"understudy/internal/checktest"
)

func TestLineIsReadBack(t *testing.T) {
	for _, row := range []Row{{}, {0: "0101a"}, {8: "0101a 0101b"}, {0: "0101a", 4: "0102b 0102c", 5: "0103\ue000"}} {
		got, ok := ReadLine(row.Line())
		checktest.True(t, ok, "%q is no line", row.Line())
		checktest.Equal(t, got, row, "the row of %q", row.Line())
	}
	for _, line := range []string{"", " ", " a ", " a  b ", (&Row{}).Line() + "  "} {
		_, ok := ReadLine(line)
		checktest.True(t, !ok, "%q is a line", line)
	}
}
