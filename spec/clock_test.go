// Clocks: what the texts of times mean.

package spec

import "testing"

func TestUnix(t *testing.T) {
	for _, c := range []struct {
		typ, text string
		want      int64
	}{
		{TypeEpoch, "1700000000", 1_700_000_000}, {TypeEpoch, "1355517523.000005", 1_355_517_523}, {TypeEpoch, "x", 0}, {TypeEpoch, "", 0},
		{TypeMillis, "1700000000999", 1_700_000_000}, {TypeMillis, "1700000000000.5", 1_700_000_000}, {TypeMillis, "1e12", 0},
		{TypeISO, "2026-01-02T03:04:05.678Z", 1_767_323_045}, {TypeDate, "2026-01-02", 1_767_312_000},
		{TypeRFC2822, "Fri, 02 Jan 2026 03:04:05 +0000", 1_767_323_045}, {TypeText, "1700000000", 0},
		{TypeEpoch, "00000000000000000000000000000000000000000000000000000000000000001", 0},
	} {
		if got := Unix(c.typ, []byte(c.text)); got != c.want {
			t.Errorf("%s %q is %d, want %d", c.typ, c.text, got, c.want)
		}
		if IsTime(c.typ) != (c.typ != TypeText) {
			t.Errorf("%s tells a time: %v", c.typ, IsTime(c.typ))
		}
	}
}
