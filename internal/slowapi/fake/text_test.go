package fake

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestBodiesHaveNoPlaceholdersAndAtMost1600Characters(t *testing.T) {
	empty := 0
	for i := range int64(2000) {
		body := Body(RngFor(1, 2, i), false)
		for _, placeholder := range []string{"{n}", "{c}", "{t}", "{a}"} {
			if strings.Contains(body, placeholder) {
				t.Errorf("body %d has the placeholder %s: %q", i, placeholder, body)
			}
		}
		if n := utf8.RuneCountInString(body); n > 1600 {
			t.Errorf("body %d has %d characters", i, n)
		}
		if body == "" {
			empty++
		}
	}
	if empty == 0 {
		t.Error("no body is empty")
	}
}
