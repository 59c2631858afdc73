// What may be made of texts that may be numbers.

package erase

import (
	"slices"
	"testing"

	"understudy"
)

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
		n := understudy.ParsePhone(text)
		if n.Digits == "" {
			return
		}
		if len(n.Digits) < understudy.MinPhoneDigits || len(n.Digits) > understudy.MaxPhoneDigits {
			t.Fatalf("%q: %d digits", text, len(n.Digits))
		}
		again := n.Digits
		if n.HasCountryCode {
			again = "+" + again
		}
		if m := understudy.ParsePhone(again); m != n {
			t.Fatalf("%q is %v, its digits are %v", text, n, m)
		}
		if !slices.Contains(slices.Collect(numbersIn("x "+n.Digits+" y")), understudy.ParsePhone(n.Digits).Digits) {
			t.Fatalf("%q is not found in a text", n.Digits)
		}
	})
}
