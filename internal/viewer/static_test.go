// Static: the style and the scripts.

package viewer_test

import (
	"bytes"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"understudy/internal/checktest"
	"understudy/internal/viewer/viewertest"
)

func TestFiles(t *testing.T) {
	h := viewertest.Open(t)
	var script []byte
	for _, name := range []string{"choices.js", "comforts.js", "complete.js", "keys.js"} {
		part, err := os.ReadFile("static/viewer.js/" + name)
		viewertest.Must(t, err)
		if n := bytes.Count(part, []byte("\n")); n > 120 {
			t.Errorf("%s has %d lines", name, n)
		}
		script = append(script, part...)
	}
	if status, body, _ := h.Get(h.Viewer.Visitor.Files.Address["viewer.js"], viewertest.Browser{}); status != 200 || body != string(script) {
		t.Errorf("viewer.js is %d and %d bytes, want the %d of its source", status, len(body), len(script))
	}
	sheet, err := os.ReadFile("static/viewer.css")
	viewertest.Must(t, err)
	second, err := os.ReadFile("static/more.css")
	viewertest.Must(t, err)
	for _, bad := range []string{"@import", "url(", "http:", "https:"} {
		if bytes.Contains(slices.Concat(sheet, second, script), []byte(bad)) {
			t.Errorf("a static file holds %q", bad)
		}
	}
	for _, must := range []string{"light-dark(", "color-scheme", "prefers-reduced-motion", ":focus-visible"} {
		if !bytes.Contains(sheet, []byte(must)) {
			t.Errorf("viewer.css lacks %s", must)
		}
	}
	sent := regexp.MustCompile(`(?s)/\*.*?\*/`).ReplaceAll(sheet, nil)
	address := h.Viewer.Visitor.Files.Address["viewer.css"]
	status, body, head := h.Get(address, viewertest.Browser{})
	checktest.Equal(t, status, 200, "%s: status", address)
	checktest.Equal(t, body, string(sent), "%s: body", address)
	checktest.Contains(t, head.Get("Cache-Control"), "immutable", `%s: head.Get("Cache-Control")`, address)
	checktest.Equal(t, head.Get("Content-Type"), "text/css; charset=utf-8", `%s: head.Get("Content-Type")`, address)
	if status, _, _ := h.Get("/-/static/viewer.000000000000.css", viewertest.Browser{}); status != 404 {
		t.Errorf("a file of another version: %d", status)
	}
	length := strconv.Itoa(len(sent))
	if _, body, head := h.Do("HEAD", address, "", viewertest.Browser{}); body != "" || head.Get("Content-Length") != length {
		t.Errorf("HEAD of a file: %d bytes, %v", len(body), head)
	}
}

// Text stands out from what it stands on by 4.5 to 1 (WCAG 2.2, 1.4.3), in both
// schemes.
func TestContrast(t *testing.T) {
	sheet, err := os.ReadFile("static/viewer.css")
	viewertest.Must(t, err)
	colours := map[string][2]string{}
	for _, m := range regexp.MustCompile(`--([a-z-]+): light-dark\((#[0-9a-f]+), (#[0-9a-f]+)\)`).FindAllStringSubmatch(string(sheet), -1) {
		colours[m[1]] = [2]string{m[2], m[3]}
	}
	for _, pair := range []string{
		"ink ground", "ink sheet", "ink raised", "ink tint", "ink bad-tint", "soft ground", "soft sheet", "soft raised", "soft bad-tint",
		"accent ground", "accent sheet", "accent raised", "accent tint", "accent bad-tint", "bad bad-tint", "bad sheet", "busy busy-tint",
		"good good-tint",
	} {
		text, ground, _ := strings.Cut(pair, " ")
		for scheme := range 2 {
			a, b := colours[text][scheme], colours[ground][scheme]
			if a == "" || b == "" {
				t.Fatalf("no colours for %s", pair)
			}
			if c := contrast(a, b); c < 4.5 {
				t.Errorf("%s in scheme %d: %s on %s is %.2f to 1", pair, scheme, a, b, c)
			}
		}
	}
}

func contrast(a, b string) float64 {
	x, y := luminance(a), luminance(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

// luminance is the relative luminance of WCAG 2.2.
func luminance(hex string) float64 {
	if len(hex) == 4 {
		hex = "#" + strings.Repeat(hex[1:2], 2) + strings.Repeat(hex[2:3], 2) + strings.Repeat(hex[3:4], 2)
	}
	sum := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		n, err := strconv.ParseUint(hex[1+2*i:3+2*i], 16, 8)
		if err != nil {
			return math.NaN()
		}
		c := float64(n) / 255
		if c <= 0.04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum
}
