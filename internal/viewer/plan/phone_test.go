// Phone: what is a number, and how it is grouped.

package plan_test

import (
	"strings"
	"testing"

	"understudy/internal/viewer/plan"
)

func TestIsNumber(t *testing.T) {
	for text, want := range map[string]bool{
		"+15551234567": true, "72975": true, "123": true, "+491": false, "+0555123456": false, "": false, "+": false, "12": false,
		"sip:a@b":      false,
		"client:alice": false, "+1555123456789012": false, "+155512345 67": false, "0123456": false,
	} {
		if plan.IsNumber(text) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}

func FuzzGroupPhone(f *testing.F) {
	for _, s := range []string{"+14155551234", "", "+", "+1", "+999999999999999", "72975", "+12345678x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if got := strings.ReplaceAll(plan.GroupPhone(s), "\u00a0", ""); got != strings.ReplaceAll(s, "\u00a0", "") {
			t.Errorf("%q became %q", s, got)
		}
	})
}
