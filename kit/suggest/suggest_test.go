// Tests of the nearest word.

package suggest

import "testing"

func TestWord(t *testing.T) {
	known := []string{"listen", "upstream", "concurrency", "rate", "role"}
	for word, want := range map[string]string{
		"listn": "listen", "lsiten": "listen", "UPSTREAM": "upstream", "conccurency": "concurrency",
		"rte": "rate", "zzzzzz": "", "": "", "listen": "listen",
	} {
		if got := ClosestWord(word, known); got != want {
			t.Errorf("Word(%q) = %q, want %q", word, got, want)
		}
	}
}

func TestHint(t *testing.T) {
	if got := Hint("rol", []string{"role"}); got != `; did you mean "role"?` {
		t.Errorf("Hint = %q", got)
	}
	if got := Hint("", []string{"g"}); got != "" {
		t.Errorf("the hint for an empty word is %q, want none", got)
	}
	if got := Hint("nothing like it", []string{"role"}); got != "" {
		t.Errorf("Hint = %q, want none", got)
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"abc", "acb", 1}, {"kitten", "sitting", 3}, {"ab", "ba", 1}} {
		if got := distance(c.a, c.b); got != c.want || distance(c.b, c.a) != c.want {
			t.Errorf("distance(%q, %q) = %d, want %d both ways", c.a, c.b, got, c.want)
		}
	}
}
