// Numbers as people write them, and what may be made of anything else.

package store

import (
	"slices"
	"testing"
)

func TestSameNumber(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"+1 (415) 555-0100", "+14155550100", true},
		{"0014155550100", "+14155550100", true},
		{"tel:+1-415-555-0100", "+1 415.555.0100", true},
		{"sip:+14155550100@example.com;transport=tls", "14155550100", true},
		{"whatsapp:+14155550100", "+14155550100", true},
		{"(415) 555-0100", "+14155550100", true},
		{"0171 1234567", "+491711234567", true},
		{"0151 2345678", "+4915112345678", false},
		{"555-0100", "+14155550100", false}, // everybody's
		{"5550100", "555 0100", true},
		{"+14155550100", "+494155550100", false},
		{"+14155550100", "+14155550101", false},
		{"+4155550100", "+14155550100", false}, // both say their country
		{"client:anna", "client:anna", false},
		{"", "", false},
		{"+1", "+1", false},
		{"12345678901234567", "12345678901234567", false},
		{"2026-06-01T12:00:00Z", "20260601120000", false},
	} {
		if a, b := numberOf(c.a), numberOf(c.b); a.same(b) != c.same || b.same(a) != c.same {
			t.Errorf("%q (%v) and %q (%v): same is %v", c.a, a, c.b, b, !c.same)
		}
	}
}

func TestNumbersIn(t *testing.T) {
	got := slices.Collect(numbersIn("call +1 (415) 555-0100, or 0171 1234567; not 12, not SM00000000000000000000000000000001"))
	if !slices.Equal(got, []string{"14155550100", "01711234567"}) {
		t.Errorf("%q", got)
	}
}

// FuzzNumber makes sure that a number is itself however it is written, and that
// it is found wherever it stands.
func FuzzNumber(f *testing.F) {
	for _, s := range []string{"+1 (415) 555-0100", "0014155550100", "tel:5", "::@;", "00", "+00 1234567", "a1b2", "1-2-3-4-5-6-7-"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n := numberOf(text)
		if n.digits == "" {
			return
		}
		if len(n.digits) < leastNumber || len(n.digits) > mostNumber {
			t.Fatalf("%q: %d digits", text, len(n.digits))
		}
		again := n.digits
		if n.country {
			again = "+" + again
		}
		if m := numberOf(again); m != n {
			t.Fatalf("%q is %v, its digits are %v", text, n, m)
		}
		if !slices.Contains(slices.Collect(numbersIn("x "+n.digits+" y")), numberOf(n.digits).digits) {
			t.Fatalf("%q is not found in a text", n.digits)
		}
	})
}

// FuzzTreePage makes sure that no page, however broken, makes the walk claim a
// byte twice or panic.
func FuzzTreePage(f *testing.F) {
	page := make([]byte, 512)
	page[0] = tableLeaf
	f.Add(page, uint32(2))
	page = slices.Clone(page)
	copy(page, []byte{indexInterior, 0, 12, 0, 2, 1, 0})
	f.Add(page, uint32(1))
	l := layout{size: 512, usable: 512, pages: 10}
	f.Fuzz(func(t *testing.T, data []byte, number uint32) {
		data = append(data, make([]byte, 512)...)[:512]
		p, err := l.parse(number, data)
		if err != nil {
			return
		}
		if len(p.used) != l.size || p.leaf() != (len(p.children) == 0) {
			t.Fatalf("%d children on a page of kind %d", len(p.children), p.kind)
		}
	})
}
