package cycle

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
)

// A cycle is found within three times the steps, whatever comes before it and however
// long it is. A sequence that does not repeat has none.
func TestFinder(t *testing.T) {
	for before := range 40 {
		for length := 1; length < 40; length++ {
			var f Finder
			steps := 0
			for n := 0; ; n++ {
				if n >= before+length {
					n = before
				}
				if steps++; f.Next(uint64(n)) > 0 {
					break
				}
				if steps > 3*(before+length)+3 {
					t.Fatalf("%d before a cycle of %d: not found after %d steps", before, length, steps)
				}
				raw, _ := json.Marshal(f) // a restart in between
				f = Finder{}
				if err := json.Unmarshal(raw, &f); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	var f Finder
	for n := range 10000 {
		if f.Next(uint64(n)) > 0 {
			t.Fatalf("found at %d", n)
		}
	}
}

func TestPages(t *testing.T) {
	ids := func(from int) []string { return []string{fmt.Sprint(from), fmt.Sprint(from + 1)} }
	for _, tt := range []struct {
		name   string
		link   func(n int) string
		rows   func(n int) []string
		circle bool
	}{
		{"an honest list", func(n int) string { return fmt.Sprint("p", n) }, ids, false},
		{"links in a circle", func(n int) string { return fmt.Sprint("p", n%7) }, ids, true},
		{"the same page under ever new links", func(n int) string { return fmt.Sprint("p", n) }, func(int) []string { return ids(0) }, true},
		{"pages in turn under ever new links", func(n int) string { return fmt.Sprint("p", n) }, func(n int) []string { return ids(n % 5) },
			true},
		{"one page twice", func(n int) string { return fmt.Sprint("p", n) }, func(n int) []string { return ids(n - n/100) }, false},
		{"empty pages", func(n int) string { return fmt.Sprint("p", n) }, func(int) []string { return nil }, true},
		{"some empty pages", func(n int) string { return fmt.Sprint("p", n) },
			func(n int) []string { return ids(n)[:2*(n%maxEmptyPages/(maxEmptyPages-1))] }, false},
	} {
		var p Pages
		found := false
		for n := range 1000 {
			found = found || p.EndlessReason(tt.link(n), slices.Values(tt.rows(n))) != ""
		}
		if found != tt.circle || !found && p.Count != 1000 {
			t.Errorf("%s: %v, %d pages", tt.name, found, p.Count)
		}
	}
}
