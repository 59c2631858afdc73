// What is wrong with kevinburke/go-html-boilerplate and its package handlers, from which the frame of the viewer descends, is absent here.
// One test for each:
//
//	its mistake                                            the test that it is absent
//	a path with a slash at its end leads to another site   TestNoPathLeadsToAnotherSite
//	such a redirect loses the query                        TestNoPathLeadsToAnotherSite
//	files have another validator after each start          TestFilesKeepTheirValidators
//	a request's own id is taken as it is                   TestOddRequestIDsAreReplaced
//	the id is not in the answer                            TestOddRequestIDsAreReplaced
//	writers without Flush and Unwrap                       TestAStreamBegunEarlyIsSentAsItComes, in internal/frontend
//	a panic has no line in the log                         TestPanicsAreLogged, in internal/frontend
//	cookies of messages without Secure and an end          TestCookies, in internal/signin
//	keys of cookies cannot be replaced                     TestKeysTurn, in internal/signin
//	no time limits                                         TestHeadsAreBounded, in internal/frontend
//	unknown settings are ignored                           TestSettingsSayWhereTheyAreWrong, in internal/config

package operation

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"understudy/e2e/rig"
)

// redirectSlash is TrailingSlashRedirect of handlers 0.50.0.
func redirectSlash(w http.ResponseWriter, r *http.Request) {
	if path := r.URL.Path; len(path) > 1 && strings.HasSuffix(path, "/") {
		http.Redirect(w, r, path[:len(path)-1], http.StatusMovedPermanently)
	}
}

func TestNoPathLeadsToAnotherSite(t *testing.T) {
	t.Parallel()
	original := httptest.NewRecorder()
	redirectSlash(original, &http.Request{Method: http.MethodGet, URL: mustParse(t, "http://example.com//evil.example/?page=2")})
	if to := original.Header().Get("Location"); to != "//evil.example" {
		t.Errorf("the original leads to %q", to)
	}
	up := rig.StartAPI(t, "--latency", "0s", "--records", "5").URL("slowapi")
	s, _ := rig.StartServer(t, rig.Settings{Upstream: up})
	for _, path := range []string{
		"//evil.example/", "//evil.example/?page=2", "//evil.example/..", "/\\evil.example/", "/%2fevil.example/", "/.//evil.example/",
		"/twilio//evil.example/", "/twilio/calls/?page=2", "/-//evil.example/", "/static//evil.example/",
	} {
		for _, port := range []string{"viewer", "twilio"} {
			got := raw(t, strings.TrimPrefix(s.URL(port), "http://"), "GET "+path+" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
			at := got.Header.Get("Location")
			to := mustParse(t, at)
			if to.Host != "" || strings.HasPrefix(at, "//") || strings.ContainsRune(at, '\\') {
				t.Errorf("%s %s leads to %q", port, path, at)
			}
			if at != "" && strings.Contains(path, "?page=2") && !strings.Contains(to.RawQuery, "page=2") && !strings.Contains(at, "page%3D2") {
				t.Errorf("%s %s leads to %q without its query", port, path, at)
			}
		}
	}
}

var styleSheet = regexp.MustCompile(`href="(/[^"]*viewer[^"]*\.css)"`)

func TestFilesKeepTheirValidators(t *testing.T) {
	t.Parallel()
	up := rig.StartAPI(t, "--latency", "0s", "--records", "5").URL("slowapi")
	s, dir := rig.StartServer(t, rig.Settings{Upstream: up})
	user := rig.Account + ":" + rig.DemoToken
	read := func(viewer string) (path string, validators [3]string) {
		t.Helper()
		page, err := rig.Get(t, user, viewer+"/").Decode()
		if err != nil {
			t.Fatal(err)
		}
		m := styleSheet.FindSubmatch(page)
		if m == nil {
			t.Fatalf("no style sheet in\n%s", page)
		}
		file := rig.Get(t, user, viewer+string(m[1]))
		return string(m[1]), [3]string{file.Header.Get("ETag"), file.Header.Get("Last-Modified"), file.Header.Get("Cache-Control")}
	}
	path, before := read(s.URL("viewer"))
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	again := rig.StartAgain(t, dir)
	other, after := read(again.URL("viewer"))
	if path != other || before != after {
		t.Errorf("%s has %q, after a restart %s has %q", path, before, other, after)
	}
	if !strings.Contains(before[2], "immutable") {
		t.Errorf("a file whose address has its hash has Cache-Control: %s", before[2])
	}
}

func TestOddRequestIDsAreReplaced(t *testing.T) {
	t.Parallel()
	up := rig.StartAPI(t, "--latency", "0s", "--records", "5").URL("slowapi")
	s, dir := rig.StartServer(t, rig.Settings{Upstream: up})
	const good = "0f8fad5b-d9cb-469f-a165-70867728950e"
	for _, id := range []string{good, "an id\x1b[2J", "a\x7fb", "a\xc2\x9bb", "\"status=200", strings.Repeat("a", 4000)} {
		got := raw(t, strings.TrimPrefix(s.URL("twilio"), "http://"), fmt.Sprintf("GET %s/Calls.json HTTP/1.1\r\nHost: localhost\r\n"+
			"X-Request-Id: %s\r\nConnection: close\r\n\r\n", rig.Base, id))
		switch sent := got.Header.Get("X-Request-Id"); {
		case got.StatusCode == http.StatusBadRequest && id != good: // the whole request may be refused
		case sent == "" || (sent == id) != (id == good):
			t.Errorf("%q: %s has the id %q", id, got.Status, sent)
		}
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(filepath.Join(dir, rig.AccessLog))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(log, []byte(good)) || bytes.ContainsAny(log, "\x1b\x7f\u009b") || bytes.Contains(log, []byte("aaaaaaaaaaaaaaaa")) {
		t.Errorf("the access log has\n%q", log)
	}
}

func mustParse(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// raw sends bytes and reads the head of the answer.
func raw(t *testing.T, address, request string) *http.Response {
	t.Helper()
	conn, err := net.DialTimeout("tcp", address, rig.Patience)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(rig.Patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write([]byte(request)); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("%q: %v", request, err)
	}
	_ = answer.Body.Close()
	return answer
}
