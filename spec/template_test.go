package spec

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"understudy"
	"understudy/internal/checktest"
)

func TestParseTemplate(t *testing.T) {
	for path, want := range map[string]string{
		"/v1/{Account}/Calls/{Sid}.json": "Account Sid",
		"/":                              "",
		"":                               "does not begin with a slash",
		"v1":                             "does not begin with a slash",
		"/{a}{b}":                        "at most one",
		"/{}":                            "at most one",
		"/{a":                            "at most one",
		"/{a/b}":                         "at most one",
	} {
		got, err := ParseTemplate(path)
		if err != nil && !strings.Contains(err.Error(), want) || err == nil && strings.Join(got.Vars(), " ") != want {
			t.Errorf("%q: %q %v, want %q", path, got.Vars(), err, want)
		}
	}
}

// What is filled in is read back; a prefix of a longer path fills the same.
func FuzzTemplate(f *testing.F) {
	f.Add("/v1/{Account}/Calls/{Sid}.json", "AC1", "CA1")
	f.Add("/a{b}c/{d}", "%2f", "x y")
	f.Add("/{a}/x/{b}", "{b}", "é/..")
	f.Add("//{a}", "", "0")
	f.Fuzz(func(t *testing.T, path, first, second string) {
		tmpl, err := ParseTemplate(path)
		if err != nil {
			return
		}
		var parts []string
		for _, seg := range tmpl.Segments() {
			parts = append(parts, "/"+seg.String())
		}
		if text := strings.Join(parts, ""); text != path || tmpl.String() != path {
			t.Fatalf("%q is %q by its segments", path, text)
		}
		values := map[string]string{}
		for i, name := range tmpl.Vars() {
			values[name] = []string{first, second}[i%2]
			if !tmpl.Has(name) {
				t.Fatalf("%q has no %q", path, name)
			}
		}
		value := func(name string) (string, bool) { v, ok := values[name]; return v, ok }
		plain, ok := tmpl.Fill(value)
		if want := replaced(path, values); !ok || plain != want {
			t.Fatalf("%q with %q: %q, want %q", path, values, plain, want)
		}
		filled, ok := tmpl.FillEscaped(value)
		if ok == slices.Contains(valuesOf(tmpl, values), "") && len(tmpl.Vars()) > 0 {
			t.Fatalf("%q with %q: %v", path, values, ok)
		}
		if !ok {
			return
		}
		if strings.Count(filled, "/") != strings.Count(path, "/") {
			t.Fatalf("%q with %q has other segments: %q", path, values, filled)
		}
		readBack(t, tmpl, filled, values)
	})
}

// readBack checks that a filled path matches with the values that filled it.
func readBack(t *testing.T, tmpl Template, filled string, values map[string]string) {
	segments, err := understudy.SplitPath(filled)
	if err != nil || strings.Contains(tmpl.String(), "%") {
		return // refused, or a template that reads otherwise when it is decoded
	}
	vars, ok := tmpl.match(segments)
	if !ok {
		t.Fatalf("%q does not match %q", filled, tmpl)
	}
	for _, v := range vars {
		if v.Value != values[v.Name] {
			t.Fatalf("%q in %q is %q, was %q", v.Name, filled, v.Value, values[v.Name])
		}
	}
	if utf8.ValidString(tmpl.String()+filled) && !tmpl.matchFolded(fold(segments)) {
		t.Fatalf("%q does not resemble %q", filled, tmpl)
	}
	longer, err := ParseTemplate(tmpl.String() + "/x")
	checktest.MustNoError(t, err, "%q begins %q", tmpl, longer)
	checktest.MustTrue(t, tmpl.IsPrefixOf(longer), "%q begins %q: tmpl.IsPrefixOf(longer) is false", tmpl, longer)
	checktest.MustTrue(t, !longer.IsPrefixOf(tmpl), "%q begins %q: longer.IsPrefixOf(tmpl) is true", tmpl, longer)
	last := len(tmpl.Segments()) - 1
	for i, seg := range tmpl.Segments() {
		if seg.Head != "" && seg.Name != "" || seg.Tail != "" && i < last {
			return // FillFrom is for variables that begin their segment
		}
	}
	if again, ok := tmpl.FillFromPath(strings.Split(filled+"/x", "/")[1:]); !ok || again != filled {
		t.Fatalf("%q from the beginning of %q: %q %v", tmpl, filled+"/x", again, ok)
	}
}

func valuesOf(tmpl Template, values map[string]string) (all []string) {
	for _, name := range tmpl.Vars() {
		all = append(all, values[name])
	}
	return all
}

func fold(segments []string) []string {
	out := make([]string, len(segments))
	for i, text := range segments {
		out[i] = strings.ToLower(text)
	}
	return out
}

// replaced fills a template in one pass from the left.
func replaced(path string, values map[string]string) string {
	var pairs []string
	for name, value := range values {
		pairs = append(pairs, "{"+name+"}", value)
	}
	return strings.NewReplacer(pairs...).Replace(path)
}
