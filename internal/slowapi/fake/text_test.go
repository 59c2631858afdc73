package fake

import (
	"strings"
	"testing"
)

func TestSegmentsAreCutAsNetworksCutThem(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       int
	}{
		{"nothing", "", 1},
		{"one septet a character", strings.Repeat("a", 160), 1},
		{"one septet too many", strings.Repeat("a", 161), 2},
		{"two full parts", strings.Repeat("a", 306), 2},
		{"three parts", strings.Repeat("a", 307), 3},
		{"two septets a character", strings.Repeat("€", 80), 1},
		{"an escaped septet at the cut", strings.Repeat("a", 152) + "€" + strings.Repeat("a", 152), 3},
		{"one unit a character", strings.Repeat("ж", 70), 1},
		{"one unit too many", strings.Repeat("ж", 71), 2},
		{"surrogate pairs", strings.Repeat("👍", 35), 1},
		{"a surrogate pair at the cut", strings.Repeat("ж", 66) + "👍" + strings.Repeat("ж", 66), 3},
	} {
		if got := Segments(c.text); got != c.want {
			t.Errorf("%s: %d segments, want %d", c.name, got, c.want)
		}
	}
}
