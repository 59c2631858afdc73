// Agreement: what the drop-in answers beside what upstream itself does, over
// real HTTP.

package proxy_test

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"understudy/internal/checktest"
)

// raw sends a request byte by byte and reads one answer.
func (c *product) raw(server *httptest.Server, method, target, secret string, lines ...string) (status int, body string, h http.Header) {
	c.Helper()
	conn := c.dial(server)
	defer conn.Close()
	request := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: x\r\nAuthorization: %s\r\nConnection: close\r\n", method, target, basic(secret))
	for _, line := range lines {
		request += line + "\r\n"
	}
	_, err := io.WriteString(conn, request+"\r\n")
	check(c.T, err)
	return c.readOne(bufio.NewReader(conn), method)
}

func (c *product) dial(server *httptest.Server) net.Conn {
	c.Helper()
	conn, err := (&net.Dialer{}).DialContext(c.Context(), "tcp", server.Listener.Addr().String())
	check(c.T, err)
	check(c.T, conn.SetDeadline(time.Now().Add(30*time.Second)))
	return conn
}

func (c *product) readOne(in *bufio.Reader, method string) (status int, body string, h http.Header) {
	c.Helper()
	answer, err := http.ReadResponse(in, &http.Request{Method: method})
	check(c.T, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	check(c.T, err)
	return answer.StatusCode, string(text), answer.Header
}

func basic(secret string) string {
	r := httptest.NewRequest("GET", "/", nil)
	r.SetBasicAuth(account, secret)
	return r.Header.Get("Authorization")
}

// firstCall is the id of the newest call.
func (c *product) firstCall() string {
	c.Helper()
	_, body := c.ask(c.slow, "GET", root+"/Calls.json?PageSize=1", api, "")
	var list struct{ Calls []struct{ SID string } }
	check(c.T, json.Unmarshal([]byte(body), &list))
	return list.Calls[0].SID
}

// upstreamMessage is the message of an error of upstream.
var upstreamMessage = regexp.MustCompile(`"message":"[^"]*"`)

// Paths that look like others are what upstream makes of them, for every caller, and
// cost no upstream request where upstream has nothing.
func TestPathsAreUpstreams(t *testing.T) {
	c := build(t)
	// We escape what some would read as a parameter, and write escapes in
	// capitals; upstream repeats a path as it came.
	same := strings.NewReplacer("%3B", ";", "%FF", "%ff", `\\`, "%5C").Replace
	sid := c.firstCall()
	for _, test := range []struct {
		path  string
		asked bool // upstream is asked: it is a path of the spec
	}{
		{root + "/Calls.json", true}, {root + "/Calls/" + sid + ".json", true},
		{root + "/Calls.json/", false}, {"/" + root + "/Calls.json", false}, {root + "//Calls.json", false},
		{root + "/Calls//" + sid + ".json", false},
		{"/2010-04-01//Accounts/" + account + "/Calls.json", false}, {"/2010-04-01/Accounts//Calls.json", false}, {root + "/Calls/.json", false},
		{root + "/Calls/" + sid + ".json/", false}, {"///" + root[1:] + "/Calls.json//", false},
		{root + "%2FCalls.json", false}, {root + "%2fCalls.json", false}, {root + "/Calls%2F" + sid + ".json", false},
		{root + "/Calls/..%2fMessages.json", false}, {root + "/Messages%2F..%2FCalls.json", false},
		{"/2010-04-01/Accounts/x%2F..%2F" + account + "/Calls.json", false},
		{root + "/Calls/../Messages.json", false}, {root + "/Calls/%2e%2e/Messages.json", false}, {root + "/Calls/.%2E/Messages.json", false},
		{root + "/./Calls.json", false}, {root + "/%2E/Calls.json", false}, {root + "/Calls/..", false},
		{"/2010-04-01/Accounts/../Accounts/" + account + "/Calls.json", false}, {"/../2010-04-01/Accounts/" + account + "/Calls.json", false},
		{root + "/Calls/..;/Messages.json", false}, {root + "\\Calls.json", false}, {root + "/Calls%5C" + sid + ".json", false},
		{root + "/Calls.json%00", false}, {root + "/Calls%0a.json", false}, {root + "/Calls%7f.json", false},
		{root + "/calls.json", false}, {root + "/CALLS.JSON", false}, {root + "/Calls.JSON", false},
		{"/2010-04-01/accounts/" + account + "/Calls.json", false}, {root + "/calls/" + sid + ".json", false},
		{root + "/Calls/" + strings.ToLower(sid) + ".json", true}, {strings.ToLower(root) + "/Calls.json", false},
		{"/2010-04-01/Accounts/" + strings.ToLower(account) + "/Calls.json", true},
		{root + "/Calls.json;v=1", false}, {root + "/Calls;v=1.json", false}, {root + ";a=b/Calls.json", true},
		{root + "/Calls/" + sid + ".json;x", false}, {root + "/Calls/" + sid + ";x.json", true},
		{"/2010-04-01;x/Accounts/" + account + "/Calls.json", false},
		{root + "/Calls/" + sid + "%20.json", true}, {root + "/Calls/" + sid + ".json.json", true}, {root + "/Calls/%F0%9F%98%80.json", true},
		{root + "/Calls/%ff.json", true},
	} {
		for _, method := range []string{"GET", "POST"} {
			extra := []string{}
			if method == "POST" {
				extra = append(extra, "Content-Length: 0")
			}
			want, wantBody, _ := c.raw(c.slow, method, test.path, api, extra...)
			if !test.asked && want != 404 {
				t.Fatalf("%s %s: upstream itself says %d; the test is wrong", method, test.path, want)
			}
			c.journal.take()
			for _, secret := range []string{demo, masked} {
				got, body, h := c.raw(c.server, method, test.path, secret, extra...)
				wanted := want
				if test.asked && method == "POST" {
					wanted = 403 // no allow names it
				}
				if got != wanted {
					t.Errorf("%s %s as %s: %d %.150s, upstream says %d", method, test.path, secret, got, body, wanted)
					continue
				}
				want := same(wantBody)
				if !test.asked { // all is as upstream says it but the message, which is ours
					want = upstreamMessage.ReplaceAllLiteralString(want, `"message":"Understudy does not know this path of the API; `+
						`check its spelling, case, slashes and escapes"`)
				}
				if (!test.asked || method == "GET" && secret == demo) && same(body) != want {
					t.Errorf("%s %s as %s:\n%.300s, upstream says\n%.300s", method, test.path, secret, body, wantBody)
				}
				if got >= 400 && !strings.Contains(h.Get("Content-Type"), "application/json") {
					t.Errorf("%s %s: %s", method, test.path, h.Get("Content-Type"))
				}
			}
			if asked := c.journal.take(); len(asked) > 0 && (!test.asked || method == "POST") {
				t.Errorf("%s %s: upstream was asked %q", method, test.path, asked)
			}
		}
	}
}

// No spelling of a path that allow names, or nearly names, writes anything that
// it does not name.
func TestNoSpellingGetsPastAllow(t *testing.T) {
	c := build(t)
	for _, path := range []string{
		root + "/Messages.json/", root + "//Messages.json", root + "/x/../Messages.json", root + "/%2e/Messages.json", root + "/messages.json",
		root + "/Messages.json;x",
		root + "/Messages.json%2F..%2FCalls.json", "/2010-04-01/Accounts/" + account + "%2FCalls.json%2F../Messages.json",
		"/2010-04-01/Accounts/" + account + "%2F..%2F" + account + "/Messages.json",
		"/2010-04-01/Accounts//Messages.json", root + "/Calls.json?x=/Messages.json", root + "/Calls.json#/Messages.json", root +
			"/Calls.json%3F/Messages.json", root + "/Calls.json%23/Messages.json",
	} {
		if status, body, _ := c.raw(c.server, "POST", path, demo, "Content-Length: 0"); status != 404 && status != 403 {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	if asked := c.journal.take(); len(asked) != 0 {
		t.Errorf("upstream was asked %q", asked)
	}
	for _, path := range []string{"/-/../" + root + "/Messages.json", "/-/health/.." + root + "/Messages.json", root + "/Calls/", root +
		"/Calls"} {
		for _, method := range []string{"GET", "POST"} {
			if status, body, _ := c.raw(c.server, method, path, demo, "Content-Length: 0"); status != 404 && status != 403 {
				t.Errorf("%s %s: %d %s", method, path, status, body)
			}
		}
	}
	if asked := c.journal.take(); len(asked) != 0 {
		t.Errorf("upstream was asked %q", asked)
	}
	// A write's parameters go as they came, less our own.
	c.raw(c.server, "POST", root+"/Messages.json?b=2&understudy.x=1&a=1&Page=0", demo, "Content-Length: 0")
	if asked := c.journal.take(); len(asked) != 1 || asked[0] != "POST "+root+"/Messages.json?b=2&a=1&Page=0" {
		t.Errorf("upstream was asked %q", asked)
	}
	// The same path by another spelling of its letters is the same path.
	if status, body, _ := c.raw(c.server, "POST", root+"/%4dessages.json", demo, "Content-Length: 0"); status != 400 ||
		!strings.Contains(body, "21604") {
		t.Errorf("%d %s", status, body)
	}
	if asked := c.journal.take(); len(asked) != 1 || asked[0] != "POST "+root+"/Messages.json" {
		t.Errorf("upstream was asked %q", asked)
	}
}

// An upstream 404 is held for ten seconds; a record that appears ends it at
// once.
func TestNotFoundIsHeld(t *testing.T) {
	coming := build(t) // the same world, to learn from what will come
	_, made := coming.ask(coming.slow, "POST", root+"/Messages.json", api, "To=%2B14155551234&From=%2B14155550000&Body=hi")
	coming.ask(coming.slow, "POST", "/-/advance", "", `{"calls":1}`)
	var message struct{ SID string }
	check(t, json.Unmarshal([]byte(made), &message))
	call := coming.firstCall()

	c := build(t)
	status := func(path, secret, want string, code int) {
		t.Helper()
		answer, body := c.get(path, secret)
		if got := answer.Header.Get("Cache-Status"); answer.StatusCode != code || !regexp.MustCompile("^understudy; "+want+"$").MatchString(got) {
			t.Errorf("%s: %d %q, want %d %q: %.200s", path, answer.StatusCode, got, code, want, body)
		}
	}
	missing := root + "/Calls/" + call + ".json"
	status(missing, demo, "fwd=uri-miss; stored", 404)
	c.journal.take()
	status(missing, demo, "hit; ttl=(10|9)", 404)
	status(missing, masked, "hit; ttl=(10|9)", 404)
	c.later(9 * time.Second)
	status(missing, demo, "hit; ttl=0", 404)
	if asked := c.journal.take(); len(asked) != 0 {
		t.Errorf("upstream was asked %q", asked)
	}
	c.later(6 * time.Minute)
	status(missing, demo, "fwd=stale; stored", 404)

	// It appears in a list.
	if answer, _ := c.ask(c.slow, "POST", "/-/advance", "", `{"calls":1}`); answer.StatusCode != 200 {
		t.Fatal(answer.Status)
	}
	status(missing, demo, "hit; ttl=(10|9)", 404)
	status(root+"/Calls.json", demo, "fwd=uri-miss; stored", 200)
	status(missing, demo, `hit; detail="composed"`, 200)

	// It is made through us.
	created := root + "/Messages/" + message.SID + ".json"
	status(created, demo, "fwd=uri-miss; stored", 404)
	status(created, demo, "hit; ttl=(10|9)", 404)
	answer, body := c.ask(c.server, "POST", root+"/Messages.json", demo, "To=%2B14155551234&From=%2B14155550000&Body=hi")
	if answer.StatusCode != 201 || !strings.Contains(body, message.SID) {
		t.Fatalf("%d %s, want %s", answer.StatusCode, body, message.SID)
	}
	status(created, demo, "fwd=(stale|uri-miss|request); stored", 200)

	// What upstream refuses in other ways is held as long, in memory alone.
	status(root+"/Calls.json?PageSize=nonsense", demo, `fwd=uri-miss; detail="not stored: .*"`, 400)
	status(root+"/Calls.json?PageSize=nonsense", demo, `hit; ttl=(10|9); detail="not stored: .*"`, 400)
}

// What a request says of its answer's age, over HTTP.
func TestCacheControlOverHTTP(t *testing.T) {
	c := build(t)
	target := root + "/Calls.json?PageSize=3"
	ask := func(directives string, code int, want string) {
		t.Helper()
		answer, body := c.ask(c.server, "GET", target, demo, "", "Cache-Control", directives)
		if got := answer.Header.Get("Cache-Status"); answer.StatusCode != code || !regexp.MustCompile("^"+want+"$").MatchString(got) {
			t.Errorf("%s: %d %q, want %d %q", directives, answer.StatusCode, got, code, want)
		}
		if code == 504 && !strings.Contains(body, `"code":20500`) {
			t.Errorf("%s: %s", directives, body)
		}
	}
	ask("only-if-cached", 504, "")
	if asked := c.journal.take(); len(asked) != 0 {
		t.Errorf("upstream was asked %q", asked)
	}
	ask("no-store", 200, "understudy; fwd=uri-miss; stored")
	ask("only-if-cached", 200, `understudy; hit; ttl=\d+`)
	c.later(10 * time.Second)
	ask("max-age=20", 200, `understudy; hit; ttl=(20|19)`)
	ask("max-age=5", 200, `understudy; fwd=request; stored`)
	c.later(10 * time.Second)
	ask("min-fresh=15", 200, `understudy; hit; ttl=(20|19)`)
	ask("min-fresh=25, only-if-cached", 504, "")
	ask("min-fresh=25", 200, `understudy; fwd=request; stored`)
	c.later(20 * time.Minute)
	c.journal.take()
	ask("only-if-cached", 504, "")
	ask("only-if-cached, max-stale=60", 504, "")
	ask("only-if-cached, max-stale=1200", 200, `understudy; hit; ttl=-1[12]\d\d`)
	ask("only-if-cached, max-stale", 200, `understudy; hit; ttl=-1[12]\d\d`)
	asked := slices.DeleteFunc(c.journal.take(), func(one string) bool { return strings.Contains(one, "PageToken=") })
	if len(asked) != 0 { // a prefetch of the page after it, begun before, may come late
		t.Errorf("upstream was asked %q", asked)
	}
	ask("max-stale", 200, `understudy; hit; ttl=-1[12]\d\d`)
	c.later(time.Hour)
	ask("no-cache", 200, `understudy; fwd=request; (stored|collapsed)`)
}

// Every form of a body is the same body; lengths, of HEAD too, are those of the
// form.
func TestFormsOfABody(t *testing.T) {
	c := build(t)
	target := root + "/Calls.json?PageSize=50"
	for _, secret := range []string{demo, masked} {
		_, plain, _ := c.raw(c.server, "GET", target, secret)
		c.raw(c.server, "GET", target, secret)
		for accept, want := range map[string]string{
			"": "", "gzip": "gzip", "zstd": "zstd", "gzip;q=0.1, zstd": "zstd", "br, gzip, zstd": "gzip", "identity": "", "br": "", "gzip;q=0": "",
			"*;q=0": "", "*": "gzip",
		} {
			status, body, h := c.raw(c.server, "GET", target, secret, "Accept-Encoding: "+accept)
			checktest.MustEqual(t, status, 200, "%q: status", accept)
			checktest.MustEqual(t, h.Get("Content-Encoding"), want, `%q: h.Get("Content-Encoding")`, accept)
			checktest.MustEqual(t, h.Get("Content-Length"), strconv.Itoa(len(body)), `%q: h.Get("Content-Length")`,
				accept)
			checktest.MustContains(t, h.Get("Vary"), "Accept-Encoding", `%q: h.Get("Vary")`, accept)
			if got := unpack(t, h.Get("Content-Encoding"), body); got != plain {
				t.Errorf("%q: %d bytes, want %d", accept, len(got), len(plain))
			}
			if want != "" && len(body) > len(plain)/4 {
				t.Errorf("%q: %d bytes of %d", accept, len(body), len(plain))
			}
			_, none, head := c.raw(c.server, "HEAD", target, secret, "Accept-Encoding: "+accept)
			for _, name := range []string{"Content-Length", "Content-Encoding", "Etag", "Vary", "Content-Type"} {
				if head.Get(name) != h.Get(name) || none != "" {
					t.Errorf("HEAD with %q: %s is %q, of GET %q", accept, name, head.Get(name), h.Get(name))
				}
			}
			// The tag of any form is the version's.
			if status, _, _ := c.raw(c.server, "GET", target, secret, "Accept-Encoding: identity", "If-None-Match: "+h.Get("Etag")); status != 304 {
				t.Errorf("%q: %s gives %d, want 304", accept, h.Get("Etag"), status)
			}
		}
		// What is small or just fetched is compressed all the same where the
		// plain form is ruled out.
		small, _, h := c.raw(c.server, "GET", root+"/Calls/"+c.firstCall()+".json", secret, "Accept-Encoding: gzip, identity;q=0")
		if small != 200 || h.Get("Content-Encoding") != "gzip" {
			t.Errorf("small: %d %v", small, h)
		}
	}
	_, fetched, h := c.raw(c.server, "GET", root+"/Calls.json?PageSize=49", demo, "Accept-Encoding: zstd, *;q=0")
	checktest.Equal(t, h.Get("Content-Encoding"), "zstd", `just fetched: h.Get("Content-Encoding")`)
	checktest.True(t, strings.HasPrefix(h.Get("Cache-Status"), "understudy; fwd="),
		`just fetched: h.Get("Cache-Status") is %q`, h.Get("Cache-Status"))
	checktest.True(t, json.Valid([]byte(unpack(t, "zstd", fetched))),
		`just fetched: json.Valid([]byte(unpack(t, "zstd", fetched))) is false`)
}

// A strong ETag names bytes: what the proxy compresses itself, because nothing is ready
// yet, is what the mirror compresses.
func TestOneFormForOneTag(t *testing.T) {
	target, tags, bodies := root+"/Calls.json?PageSize=50", [2]string{}, [2]string{}
	for n, must := range []string{", identity;q=0", ""} {
		c := build(t)
		for range 50 * n { // the mirror compresses what is asked for often
			c.raw(c.server, "GET", target, demo)
		}
		_, body, h := c.raw(c.server, "GET", target, demo, "Accept-Encoding: gzip"+must)
		if tags[n], bodies[n] = h.Get("Etag"), body; h.Get("Content-Encoding") != "gzip" {
			t.Fatalf("%v", h)
		}
	}
	if tags[0] != tags[1] || bodies[0] != bodies[1] {
		t.Errorf("%s with %d bytes, and %s with %d others", tags[0], len(bodies[0]), tags[1], len(bodies[1]))
	}
}

func unpack(t *testing.T, coding, body string) string {
	t.Helper()
	var in io.Reader = strings.NewReader(body)
	var err error
	switch coding {
	case "gzip":
		in, err = gzip.NewReader(in)
	case "zstd":
		in, err = zstd.NewReader(in)
	}
	check(t, err)
	text, err := io.ReadAll(in)
	check(t, err)
	return string(text)
}
