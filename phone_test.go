// Numbers as people write them.

package understudy

import "testing"

func TestSamePhone(t *testing.T) {
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
		{"+44 (0)20 5550 0100", "+442055500100", true},
		{"＋１（４１５）５５５−０１００", "+14155550100", true},
		{"+١٤١٥٥٥٥٠١٠٠", "+14155550100", true},
		{"+𝟏𝟒𝟏𝟓𝟓𝟓𝟓𝟎𝟏𝟎𝟎", "+14155550100", true},
		{"\u202a+1 415 555\u20110100\u202c", "+14155550100", true},
		{"2026-06-01T12:00:00Z", "20260601120000", false},
	} {
		if a, b := ParsePhone(c.a), ParsePhone(c.b); a.Match(b) != c.same || b.Match(a) != c.same {
			t.Errorf("%q (%v) and %q (%v): same is %v", c.a, a, c.b, b, !c.same)
		}
	}
}
