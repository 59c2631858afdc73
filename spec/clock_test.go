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
		{TypeISO, "2026-01-02T03:04Z", 1_767_323_040}, {TypeISO, "20260102T030405Z", 1_767_323_045},
		{TypeISO, "2026-01-02 03:04:05 Z", 1_767_323_045},
		{TypeISO, "2026-01-02T03:04:05 UTC", 1_767_323_045}, {TypeISO, "2026-01-02T05:04:05+02", 1_767_323_045},
		{TypeISO, "2026-01-02t03:04:05z", 1_767_323_045}, {TypeISO, "2026-01-02 05:04:05 +0200", 1_767_323_045},
		{TypeISO, "20260102", 1_767_312_000},
		{TypeISO, "2026-01-02 03:04:05", 1_767_323_045}, {TypeISO, "soon", 0}, {TypeISO, "", 0},
		{TypeRFC2822, "Fri, 02 Jan 2026 03:04:05 UT", 1_767_323_045}, {TypeRFC2822, "2 Jan 2026 03:04:05 Z", 1_767_323_045},
		{TypeRFC2822, "Thu, 01 Jan 2026 22:04:05 EST", 1_767_323_045}, {TypeRFC2822, "Fri, 02 Jan 2026 03:04:05 GMT", 1_767_323_045},
		{TypeRFC2822, "Fri, 02 Jan 2026 03:04:05 XYZ", 0}, {TypeRFC2822, "Fri, 2 Jan 2026 03:04 GMT", 1_767_323_040},
		{TypeRFC2822, "Fri, 02 Jan 2026 03:04:05 +0000 (UTC)", 1_767_323_045}, {TypeISO, "2026-01-02 03:04:05 GMT", 1_767_323_045},
		{TypeRFC2822, "Fri, 02 Jan 2026 03:04:05 +0000", 1_767_323_045}, {TypeText, "1700000000", 0},
		{TypeEpoch, "00000000000000000000000000000000000000000000000000000000000000001", 0},
	} {
		if got := Unix(c.typ, []byte(c.text)); got != c.want {
			t.Errorf("%s %q is %d, want %d", c.typ, c.text, got, c.want)
		}
		if IsTimeType(c.typ) != (c.typ != TypeText) {
			t.Errorf("%s tells a time: %v", c.typ, IsTimeType(c.typ))
		}
	}
}

func FuzzUnix(f *testing.F) {
	f.Add("2026-01-02t03:04:05 utc")
	f.Add("Thu, 01 Jan 2026 22:04:05 EST")
	f.Fuzz(func(t *testing.T, text string) {
		for _, typ := range []string{TypeISO, TypeRFC2822, TypeDate, TypeEpoch, TypeMillis} {
			if got := Unix(typ, []byte(text)); len(text) > maxTimeText && got != 0 {
				t.Errorf("%s of %d bytes is %d", typ, len(text), got)
			}
		}
	})
}
