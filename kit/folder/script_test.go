// Scripts: random edits of a listing; the differences are the edits.

package folder

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"understudy/internal/sample"
)

// TestScripts edits listings at random: what Merge yields, applied to the old
// one, gives the new one, and is what two maps say. Each check is one script:
// 20,000 of them, ten times that when the checks of properties are ten times as
// many, a million with UNDERSTUDY_PROVE=1.
func TestScripts(t *testing.T) {
	checks := flag.Lookup("rapid.checks")
	before := checks.Value.String()
	scripts, err := strconv.Atoi(before)
	if err != nil {
		t.Fatal(err)
	}
	scripts = max(scripts*200, sample.Count(0, 1_000_000))
	if err := checks.Value.Set(strconv.Itoa(scripts)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := checks.Value.Set(before); err != nil {
			t.Error(err)
		}
	})
	ran := 0
	rapid.Check(t, func(t *rapid.T) {
		ran++
		script(t)
	})
	if ran < scripts {
		t.Errorf("%d scripts of %d were run", ran, scripts)
	}
}

// Keys are few and share beginnings, so that edits meet; values are few, so
// that some edits change nothing.
var (
	keys    = rapid.SampledFrom([]string{"", "a", "a\x00", "aa", "aab", "ab", "b", "b\xff", "ba", "CA0", "CA00", "CA01", "CA1", "\xff", "z"})
	letters = rapid.SampledFrom([]string{"", "1", "2", "12"})
)

func script(t *rapid.T) {
	old := map[string]string{}
	for range rapid.IntRange(0, 12).Draw(t, "entries") {
		k := keys.Draw(t, "key")
		old[k] = letters.Draw(t, "value")
	}
	now := maps.Clone(old)
	for range rapid.IntRange(0, 8).Draw(t, "edits") {
		k := keys.Draw(t, "edit")
		if rapid.Bool().Draw(t, "remove") {
			delete(now, k)
		} else {
			now[k] = letters.Draw(t, "new value")
		}
	}
	want := map[string]string{}
	for k, v := range old {
		if after, ok := now[k]; !ok {
			want[k] = "removed " + v + ">"
		} else if after != v {
			want[k] = "changed " + v + ">" + after
		}
	}
	for k, v := range now {
		if _, ok := old[k]; !ok {
			want[k] = "added >" + v
		}
	}
	a, b := listing(t, old), listing(t, now)
	got, applied, last := map[string]string{}, maps.Clone(old), []byte(nil)
	Merge(a, b, func(what Difference, key, oldValue, newValue []byte) bool {
		if len(got) > 0 && bytes.Compare(last, key) >= 0 {
			t.Fatalf("%q comes after %q", key, last)
		}
		last = key
		got[string(key)] = fmt.Sprintf("%v %s>%s", what, oldValue, newValue)
		switch what {
		case Removed:
			delete(applied, string(key))
		case Added, Changed:
			applied[string(key)] = string(newValue)
		}
		return true
	})
	if !maps.Equal(got, want) {
		t.Fatalf("%v -> %v: %v, want %v", old, now, got, want)
	}
	if !maps.Equal(applied, now) {
		t.Fatalf("applied to the old one: %v, want %v", applied, now)
	}
}

// listing is a folder of what the map holds, in random order, now and then with
// entries before that do not count because their key comes again.
func listing(t *rapid.T, m map[string]string) *Folder {
	f := New(0, 0)
	add := func(k, v string) {
		if err := f.Add([]byte(k), []byte(v)); err != nil {
			t.Fatal(err)
		}
	}
	order := rapid.Permutation(slices.Sorted(maps.Keys(m))).Draw(t, "order")
	for _, k := range order[:rapid.SampledFrom([]int{0, 0, 0, len(m)}).Draw(t, "twice")] {
		add(k, "stale")
	}
	for _, k := range order {
		add(k, m[k])
	}
	return f
}
