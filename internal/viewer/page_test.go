// Pages as a whole: what they look like in HTML, what they weigh, that they are
// well-formed and load nothing from elsewhere.

package viewer

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tdewolff/minify/v2"
	"github.com/tdewolff/minify/v2/css"
	"github.com/tdewolff/minify/v2/js"

	"understudy"
	"understudy/internal/viewer/page"
	"understudy/request"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares a page with its file, the names of static files left out.
func golden(t *testing.T, name, page string) {
	t.Helper()
	page = regexp.MustCompile(`\.[0-9a-f]{8}\.(css|js|svg)`).ReplaceAllString(page, ".$1")
	file := filepath.Join("testdata", name+".golden")
	if *update {
		must(t, os.WriteFile(file, []byte(page), 0o644))
	}
	want, err := os.ReadFile(file)
	must(t, err)
	if page != string(want) {
		t.Errorf("%s is not as %s has it; look at the difference, then run the tests with -update", name, file)
		for i, line := range strings.Split(page, "\n") {
			if w := strings.Split(string(want), "\n"); i >= len(w) || w[i] != line {
				t.Fatalf("line %d: %s", i+1, line)
			}
		}
	}
}

// down makes the mirror fail as in an outage.
func (h *fixture) down() {
	h.mirror.mu.Lock()
	defer h.mirror.mu.Unlock()
	h.mirror.change = func(request.Request, *request.Response) (*request.Response, error) {
		return nil, fmt.Errorf("mirror: fill: %w", &understudy.UpstreamError{Why: understudy.FailServer, Status: 503,
			Err: errors.New("after 3 tries")})
	}
}

// firstID is the newest record's id of a kind, by the shape of its ids.
func (h *fixture) firstID(path, pattern string) string {
	h.Helper()
	id := regexp.MustCompile(pattern).FindString(h.page(path, all))
	if id == "" {
		h.Fatalf("%s shows no id like %s", path, pattern)
	}
	return id
}

var berlin = as{token: "alltoken", zone: "Europe/Berlin"}

func TestGolden(t *testing.T) {
	h := open(t)
	golden(t, "home", h.page("/", berlin))
	h.page("/twilio/incoming_phone_numbers", berlin) // so that our own numbers are held
	golden(t, "list", h.page("/twilio/messages?PageSize=5", berlin))
	failed := h.firstID("/twilio/calls?Status=failed", `CA[0-9a-f]{32}`)
	golden(t, "detail", h.page("/twilio/calls/"+failed, berlin))
	golden(t, "detail-masked", h.page("/twilio/calls/"+failed, as{token: "supporttoken", zone: "Europe/Berlin"}))
	_, body, _ := h.get("/twilio/calls?Form=1", berlin)
	golden(t, "failure", body)
	golden(t, "search", h.page("/search?q=hello", berlin))
	var data numberJSON
	number := "/twilio/number/" + h.ownNumber()
	_, body, _ = h.get(number+".json", all)
	must(t, json.Unmarshal([]byte(body), &data))
	golden(t, "number", h.page("/twilio/number/"+data.Partners[4].Number, berlin))
	golden(t, "conversation", h.page(data.Partners[4].Href, berlin))
	golden(t, "rollup", h.page("/twilio/alerts?PageSize=5", berlin))
	golden(t, "lacking", h.page("/twilio/queue_members", berlin))
}

// everyPage are addresses of every page there is, errors included.
func (h *fixture) everyPage() []string {
	return []string{
		"/", "/twilio/calls", "/twilio/messages?PageSize=100", "/twilio/incoming_phone_numbers",
		"/twilio/incoming_phone_numbers?understudy.list=local",
		"/twilio/accounts", "/twilio/calls?Status=busy", "/twilio/calls?From=%2B999", "/twilio/calls?Form=1", "/twilio/cals", "/twilo/calls",
		"/nowhere/at/all/",
		"/twilio/calls/" + h.firstID("/twilio/calls", `CA[0-9a-f]{32}`), "/twilio/messages/" + h.firstID("/twilio/messages", `SM[0-9a-f]{32}`),
		"/twilio/incoming_phone_numbers/" + h.firstID("/twilio/incoming_phone_numbers", `PN[0-9a-f]{32}`), "/twilio/accounts/" + account,
		"/twilio/calls/CA00000000000000000000000000000000", "/twilio/calls/~",
		"/twilio/number/" + h.ownNumber(), "/twilio/number/+15550001111", "/twilio/number/" + h.ownNumber() + "/+15550001111", "/twilio/number/x",
		"/search", "/search?q=hello", "/search?q=2125550100", "/twilio/alerts", "/twilio/participants", "/twilio/balance",
		"/twilio/usage_records", "/twilio/countries",
		"/twilio/recordings/" + h.firstID("/twilio/recordings", `RE[0-9a-f]{32}`), "/twilio/conferences/" +
			h.firstID("/twilio/conferences", `CF[0-9a-f]{32}`),
		"/twilio/alerts/" + h.firstID("/twilio/alerts", `NO[0-9a-f]{32}`),
	}
}

// voids are the elements without an end tag.
var voids = []string{"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr", "line", "rect",
	"polyline"}

// wellFormed checks that every element that is opened is closed where it
// should be, ids are unique, every label has its control and every input its
// label.
func wellFormed(t *testing.T, where, page string) {
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
					t.Errorf("%s: id %s is there twice", where, id)
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

func TestPagesAreWellFormed(t *testing.T) {
	h := open(t)
	for _, who := range []string{"alltoken", "supporttoken", "clerktoken", "countertoken", ""} {
		for _, path := range h.everyPage() {
			_, body, _ := h.get(path, as{token: who})
			wellFormed(t, who+" "+path, body)
		}
	}
	h.down()
	for _, path := range []string{"/", "/twilio/calls", "/twilio/calls/CA1"} {
		_, body, _ := h.get(path, all)
		wellFormed(t, "down "+path, body)
	}
}

func TestHeaders(t *testing.T) {
	h := open(t)
	for _, path := range append(h.everyPage(), "/index.json", "/twilio/calls.json", h.viewer.Visitor.Files.Address["viewer.css"]) {
		status, _, head := h.get(path, all)
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
			"X-Robots-Tag": "noindex",
		} {
			if !strings.Contains(head.Get(name), want) {
				t.Errorf("%s: %s is %q", path, name, head.Get(name))
			}
		}
		if own := strings.HasPrefix(path, page.ControlPrefix); !own &&
			(head.Get("Cache-Control") != "private, no-store" || !strings.Contains(head.Get("Server-Timing"), "total;dur=")) {
			t.Errorf("%s (%d): Cache-Control %q, Server-Timing %q", path, status, head.Get("Cache-Control"), head.Get("Server-Timing"))
		}
	}
	_, body, head := h.get("/twilio/calls", all)
	if !strings.Contains(head.Get("Server-Timing"), `cache;desc="held, 12 s old"`) || !strings.Contains(body, "held, 12 s old") {
		t.Errorf("a warm page says %q", head.Get("Server-Timing"))
	}
	_, body, head = h.get("/twilio/calls?PageSize=7", all)
	if !strings.Contains(head.Get("Server-Timing"), "upstream;dur=812.000") || !strings.Contains(body, "upstream 812 ms") {
		t.Errorf("a cold page says %q", head.Get("Server-Timing"))
	}
}

// A page of 50 rows with all that a first visit loads weighs at most 30,000 bytes.
func TestWeight(t *testing.T) {
	h := open(t, func(o *page.Options) { o.Media = studio{} })
	for _, path := range []string{"/", "/twilio/calls", "/twilio/messages", "/twilio/alerts", "/twilio/number/" + h.ownNumber(),
		"/twilio/messages/" + h.pictured(), "/twilio/recordings/" + h.firstID("/twilio/recordings", `RE[0-9a-f]{32}`)} {
		total := 0
		for _, p := range []string{path, h.viewer.Visitor.Files.Address["viewer.css"], h.viewer.Visitor.Files.Address["viewer.js"],
			h.viewer.Visitor.Files.Address["icon.svg"]} {
			_, body, head := h.get(p, as{token: "alltoken", headers: map[string]string{"Accept-Encoding": "gzip, br"}})
			if head.Get("Content-Encoding") != "gzip" || head.Get("Content-Length") != strconv.Itoa(len(body)) {
				t.Errorf("%s: encoding %q, length %s of %d", p, head.Get("Content-Encoding"), head.Get("Content-Length"), len(body))
			}
			zr, err := gzip.NewReader(strings.NewReader(body))
			must(t, err)
			if _, err := io.Copy(io.Discard, zr); err != nil {
				t.Errorf("%s: %v", p, err)
			}
			total += len(body)
		}
		t.Logf("%s: %d bytes on the wire", path, total)
		if total > 30_000 {
			t.Errorf("%s weighs %d bytes", path, total)
		}
	}
}

func TestFiles(t *testing.T) {
	h := open(t)
	small := minify.New()
	small.AddFunc(".css", css.Minify)
	small.AddFunc(".js", js.Minify)
	minified := func(kind string, source []byte) string {
		text, err := small.String(kind, string(source))
		must(t, err)
		return text
	}
	var script []byte
	for _, name := range []string{"choices.js", "comforts.js", "complete.js", "keys.js"} {
		part, err := os.ReadFile("static/viewer.js/" + name)
		must(t, err)
		if n := bytes.Count(part, []byte("\n")); n > 120 {
			t.Errorf("%s has %d lines", name, n)
		}
		script = append(script, part...)
	}
	if status, body, _ := h.get(h.viewer.Visitor.Files.Address["viewer.js"], as{}); status != 200 || body != minified(".js", script) {
		t.Errorf("viewer.js is %d and %d bytes, want the %d of its source minified", status, len(body), len(script))
	}
	sheet, err := os.ReadFile("static/viewer.css")
	must(t, err)
	second, err := os.ReadFile("static/more.css")
	must(t, err)
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
	address := h.viewer.Visitor.Files.Address["viewer.css"]
	status, body, head := h.get(address, as{})
	if status != 200 || body != minified(".css", sheet) || !strings.Contains(head.Get("Cache-Control"), "immutable") ||
		head.Get("Content-Type") != "text/css; charset=utf-8" {
		t.Errorf("%s: %d, %v", address, status, head)
	}
	if status, _, _ := h.get("/-/static/viewer.000000000000.css", as{}); status != 404 {
		t.Errorf("a file of another version: %d", status)
	}
	length := strconv.Itoa(len(minified(".css", sheet)))
	if _, body, head := h.do("HEAD", address, "", as{}); body != "" || head.Get("Content-Length") != length {
		t.Errorf("HEAD of a file: %d bytes, %v", len(body), head)
	}
}

func TestAcceptsGzip(t *testing.T) {
	for value, want := range map[string]bool{
		"": false, "gzip": true, "br, gzip;q=0.5": true, "gzip;q=0": false, "GZIP": true, "identity": false, "*": true, "*;q=0": false,
		"gzip; q=0.0": false, "deflate, *": true, "gzip;q=x": false, "br": false,
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Accept-Encoding", value)
		if page.AcceptsGzip(r) != want {
			t.Errorf("Accept-Encoding %q: %v", value, !want)
		}
	}
}

// Text stands out from what it stands on by 4.5 to 1 (WCAG 2.2, 1.4.3), in both
// schemes.
func TestContrast(t *testing.T) {
	sheet, err := os.ReadFile("static/viewer.css")
	must(t, err)
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

// Every route is in docs/viewer.md.
func TestRoutesAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/viewer.md")
	must(t, err)
	routes := open(t).viewer.Routes()
	if len(routes) < 8 {
		t.Errorf("only %d routes", len(routes))
	}
	for _, r := range routes {
		if !bytes.Contains(text, []byte("`"+r+"`")) {
			t.Errorf("docs/viewer.md does not name `%s`", r)
		}
	}
}

// The footer of a page says how long upstream takes for what it shows (22), to who
// sees everything.
func TestFooterSaysUpstreamsTimes(t *testing.T) {
	h := open(t)
	const calls, whole = "Calls upstream (waiting) 1.01 s ± 110 ms, 860 ms – 1.22 s, p50 1.04 s, p99 1.21 s",
		"Twilio upstream 1.01 s"
	call := "/twilio/calls/" + h.firstID("/twilio/calls", `CA[0-9a-f]{32}`)
	message := "/twilio/messages/" + h.firstID("/twilio/messages", `SM[0-9a-f]{32}`)
	for path, want := range map[string]string{call: calls, message: whole, "/twilio/number/" + h.ownNumber(): whole, "/": "",
		"/twilio/calls": ""} {
		page := h.page(path, all)
		foot := page[strings.Index(page, "<footer>"):]
		if got := strings.Contains(foot, "p99") || strings.Contains(foot, "(waiting)"); got != (want != "") ||
			!strings.Contains(foot, want) {
			t.Errorf("%s: %s", path, foot)
		}
	}
	if page := h.page(call, as{token: "supporttoken"}); strings.Contains(page[strings.Index(page, "<footer>"):], "p99") {
		t.Error("a role that does not see everything is told upstream's times")
	}
}
