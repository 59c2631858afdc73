// Check: what every page must be, and pages that are compared with a file.

package viewertest

import (
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

// CheckGolden compares a page with its file in testdata, the names of static files left out.
func CheckGolden(t *testing.T, name, page string) {
	t.Helper()
	page = regexp.MustCompile(`\.[A-Za-z0-9_-]{6}\.(css|js|svg)`).ReplaceAllString(page, ".$1")
	file := filepath.Join("testdata", name+".golden")
	if *update {
		Must(t, os.WriteFile(file, []byte(page), 0o644))
	}
	want, err := os.ReadFile(file)
	Must(t, err)
	if page != string(want) {
		t.Errorf("%s is not as %s has it; look at the difference, then run the tests with -update", name, file)
		for i, line := range strings.Split(page, "\n") {
			if w := strings.Split(string(want), "\n"); i >= len(w) || w[i] != line {
				t.Fatalf("line %d: %s", i+1, line)
			}
		}
	}
}

// voids are the elements without an end tag.
var voids = []string{"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr", "line", "rect",
	"polyline"}

// CheckHTML checks that every element that is opened is closed where it
// should be, ids are unique, every label has its control and every input its
// label.
func CheckHTML(t *testing.T, where, page string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(strings.TrimPrefix(page, "<!doctype html>")))
	d.Strict, d.AutoClose, d.Entity = false, voids, xml.HTMLEntity
	var open []string
	ids, labels, controls := map[string]bool{}, []string{}, []string{}
	h1 := 0
	for {
		tok, err := d.RawToken()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%s: %v", where, err)
		}
		switch e := tok.(type) {
		case xml.StartElement:
			name := e.Name.Local
			attrs := map[string]string{}
			for _, a := range e.Attr {
				attrs[a.Name.Local] = a.Value
				if strings.HasPrefix(strings.ToLower(a.Name.Local), "on") || a.Name.Local == "style" {
					t.Errorf("%s: <%s %s=…> is inline", where, name, a.Name.Local)
				}
			}
			checkLinks(t, where, name, attrs)
			if id := attrs["id"]; id != "" {
				if ids[id] {
					t.Errorf("%s: id %s appears twice", where, id)
				}
				ids[id] = true
			}
			if name == "h1" {
				h1++
			}
			if name == "label" {
				labels = append(labels, attrs["for"])
			}
			if (name == "input" || name == "select") && attrs["type"] != "hidden" {
				controls = append(controls, attrs["id"])
			}
			if name == "th" && attrs["scope"] == "" {
				t.Errorf("%s: a heading of the table without scope", where)
			}
			if !slices.Contains(voids, name) {
				open = append(open, name)
			}
		case xml.EndElement:
			if slices.Contains(voids, e.Name.Local) {
				continue
			}
			if len(open) == 0 || open[len(open)-1] != e.Name.Local {
				t.Fatalf("%s: </%s> ends %v", where, e.Name.Local, open)
			}
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 {
		t.Errorf("%s: never closed: %v", where, open)
	}
	if h1 != 1 {
		t.Errorf("%s: %d h1", where, h1)
	}
	for _, c := range controls {
		if c == "" || !slices.Contains(labels, c) {
			t.Errorf("%s: control %q has no label", where, c)
		}
	}
	for _, l := range labels {
		if !ids[l] {
			t.Errorf("%s: label for %q, which is not there", where, l)
		}
	}
}

// checkLinks makes sure that a page loads nothing from elsewhere, and that a
// link away from here says so.
func checkLinks(t *testing.T, where, name string, attrs map[string]string) {
	t.Helper()
	for _, a := range []string{"src", "href", "action", "data", "srcset", "poster"} {
		v, ok := attrs[a]
		local := strings.HasPrefix(v, "/") && !strings.HasPrefix(v, "//") || strings.HasPrefix(v, "#")
		if ok && !local && !(name == "a" && strings.Contains(attrs["rel"], "external") && strings.HasPrefix(v, "https://")) {
			t.Errorf("%s: <%s %s=%q> leads elsewhere", where, name, a, v)
		}
	}
}
