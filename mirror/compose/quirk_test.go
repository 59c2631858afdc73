// Quirks: slowapi with each of its switches, and the spec that says the same.

package compose_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"understudy/internal/sample"
	"understudy/spec"
	"understudy/upstream"
)

// spec is the built-in spec as an author would write it who knows better: the
// file's text, changed.
func sp(t *testing.T, change func(string) string) *spec.Spec {
	t.Helper()
	data, err := os.ReadFile("../../upstream/specs/twilio.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text := change(string(data))
	if text == string(data) {
		t.Fatal("nothing of the spec was changed")
	}
	out, err := upstream.ReadSpec("changed.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// replace changes the text wherever a pattern matches.
func replace(pattern, with string) func(string) string {
	return func(text string) string { return regexp.MustCompile(pattern).ReplaceAllString(text, with) }
}

// odd says one thing about odd requests.
func odd(what string) func(string) string {
	return func(text string) string { return text + "\nodd: {" + what + "}\n" }
}

// quirks are slowapi's switches and what the spec says then; docs/reference/specs.md tells
// it to people.
var quirks = map[string]func(string) string{
	"edge-exclusive":     replace(`op: (since|until)`, "op: $1, open: true"),
	"before-whole-day":   replace(`op: until, type`, "op: until, whole: true, type"),
	"before-midnight":    replace(` whole: true,`, ""),
	"operator-refused":   odd("operator: refused"),
	"page-ignored":       odd("page_alone: ignored"),
	"size-refused":       odd("size_above: refused"),
	"size-forgiven":      odd("size: default"),
	"retention":          replace(`field: date_sent,`, "field: date_sent, back: 400,"),
	"participants-kept":  replace(`    forgets: \{with_parent: true\}.*\n`, ""),
	"range-forgiven":     replace(` longest: 30,`, ""),
	"unfinished-refused": nil, // of writes
	"media-late":         nil, // of contents
}

func TestQuirks(t *testing.T) {
	data, err := os.ReadFile("../../docs/reference/slowapi.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(data), "\n## Quirks")
	table, _, _ = strings.Cut(table, "\n## ")
	var named []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z-]+)`").FindAllStringSubmatch(table, -1) {
		named = append(named, m[1])
	}
	if len(named) != len(quirks) {
		t.Fatalf("slowapi has the quirks %v, this test knows %d", named, len(quirks))
	}
	seed := sample.Seed(t)
	for _, name := range named {
		change, known := quirks[name]
		if !known {
			t.Errorf("the quirk %s is not compared", name)
			continue
		}
		t.Run(name, func(t *testing.T) {
			var changed *spec.Spec
			if change != nil {
				changed = sp(t, change)
			}
			r := newRig(t, seed, changed, name)
			r.run(max(requests()/40, 40))
			r.tell()
		})
	}
	t.Run("all at once", func(t *testing.T) {
		// Of two that speak of one thing slowapi lets the later one win; those are left out.
		on := slices.DeleteFunc(slices.Clone(named), func(name string) bool {
			return quirks[name] == nil || name == "before-midnight" || name == "before-whole-day" || name == "size-forgiven"
		})
		changed := sp(t, func(text string) string {
			for _, name := range on {
				if name != "operator-refused" && name != "page-ignored" && name != "size-refused" {
					text = quirks[name](text)
				}
			}
			return odd("operator: refused, page_alone: ignored, size_above: refused")(text)
		})
		r := newRig(t, seed, changed, on...)
		r.run(max(requests()/20, 100))
		r.tell()
	})
}

// A spec that says the usual where upstream does something else is found out:
// the comparison can fail.
func TestQuirksAreFoundOut(t *testing.T) {
	run := sample.OneIn(t, 4)
	for name, change := range quirks {
		if change == nil || !run() {
			continue
		}
		r := newRig(t, 1, nil, name)
		if !r.differs(4000) {
			t.Errorf("%s: 4000 requests, and no difference to an upstream without it", name)
		}
	}
}
