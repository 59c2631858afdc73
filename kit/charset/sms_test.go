package charset_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"understudy/internal/checktest"
	"understudy/kit/charset"
)

func ExampleCountSMS() {
	s := charset.CountSMS(strings.Repeat("a", 80) + "’")
	fmt.Println(s.Segments, s.UCS2, s.Units, string(s.NonGSM7[0].Char), s.NonGSM7[0].At)
	// Output: 2 true 81 ’ 81
}

func TestCountSMS(t *testing.T) {
	for _, c := range []struct {
		name, text      string
		units, segments int
		ucs2            bool
	}{
		{"empty", "", 0, 1, false},
		{"one full message", strings.Repeat("a", 160), 160, 1, false},
		{"one septet more", strings.Repeat("a", 161), 161, 2, false},
		{"two full messages", strings.Repeat("a", 306), 306, 2, false},
		{"an escaped septet", "€" + strings.Repeat("a", 159), 161, 2, false},
		{"an escaped septet that would be cut", strings.Repeat("a", 152) + "€" + strings.Repeat("a", 152), 306, 3, false},
		{"Greek and umlauts are in GSM-7", "ÄÖÜß ΔΩ", 7, 1, false},
		{"one message of UCS-2", strings.Repeat("ж", 70), 70, 1, true},
		{"one unit more", strings.Repeat("ж", 71), 71, 2, true},
		{"a pair that would be cut", strings.Repeat("ж", 66) + "😀" + strings.Repeat("ж", 66), 134, 3, true},
		{"a quote forces UCS-2", strings.Repeat("a", 70) + "’", 71, 2, true},
		{"an accent below GSM-7", "ê", 1, 1, true},
	} {
		s := charset.CountSMS(c.text)
		checktest.Equal(t, s.Units, c.units, "%s: s.Units", c.name)
		checktest.Equal(t, s.Segments, c.segments, "%s: s.Segments", c.name)
		checktest.Equal(t, s.UCS2, c.ucs2, "%s: s.UCS2", c.name)
		checktest.Equal(t, s.UCS2, (len(s.NonGSM7) > 0), "%s: s.UCS2", c.name)
	}
}

func FuzzCountSMS(f *testing.F) {
	f.Add("Guten Tag, 5 €")
	f.Add("😀’\xff")
	f.Fuzz(func(t *testing.T, text string) {
		s := charset.CountSMS(text)
		checktest.MustTrue(t, s.Segments >= 1, "s.Segments is %v, want >= 1", s.Segments)
		checktest.MustTrue(t, s.Units >= 0, "s.Units is %v, want >= 0", s.Units)
		checktest.MustTrue(t, len(s.NonGSM7) <= charset.MaxNonGSM7, "len(s.NonGSM7) is %v", len(s.NonGSM7))
		checktest.MustTrue(t, s.UCS2 != (len(s.NonGSM7) == 0), "s.UCS2 is %v", s.UCS2)
		for _, o := range s.NonGSM7 {
			if o.End > len(text) && utf8.ValidString(text) || utf8.ValidString(text) && text[o.Start:o.End] != string(o.Char) {
				t.Fatalf("%+v of %q", o, text)
			}
		}
	})
}

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
		if got := charset.CountSMS(c.text).Segments; got != c.want {
			t.Errorf("%s: %d segments, want %d", c.name, got, c.want)
		}
	}
}
