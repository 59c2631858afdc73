// Exports over a reading of the settings: they go on when nothing that decides
// of their caller has changed, and are broken off when anything has.

package app

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/config"
	"understudy/internal/datadir"
	"understudy/internal/slowapi"
)

const exportSettings = `
viewer: {listen: "127.0.0.1:0", role: clerk}
sources:
  twilio: {spec: twilio, user: AC00000000000000000000000000000001, secret: "file:upstream", upstream: UPSTREAM,
    listen: "127.0.0.1:0", polls: []}
credentials:
  - {name: reports, source: twilio, user: reports, secret: "file:one", role: support}
  - {name: desk, source: twilio, user: desk, secret: "file:two", role: clerk}
roles:
  support: {twilio: {"*": see, phone: last4}}
  clerk: {twilio: {"*": see, price: hide}}
mirror: {newest: 30s}
`

// exporting is an application that holds some records, whose settings can be changed.
type exporting struct {
	testing.TB
	h        *App
	settings string
}

func openExporting(t testing.TB) *exporting {
	t.Helper()
	api, err := slowapi.New(slowapi.Options{Records: 150, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(api)
	t.Cleanup(web.Close)
	e := &exporting{TB: t, settings: strings.ReplaceAll(exportSettings, "UPSTREAM", web.URL)}
	read := func() (*config.Settings, error) { return config.Parse([]byte(e.settings), noEnv) }
	cfg, err := read()
	if err != nil {
		t.Fatal(err)
	}
	cfg.Log.Access = "off"
	dir, err := datadir.Open(t.TempDir(), false)
	if err != nil {
		t.Fatal(err)
	}
	if e.h, err = Build(t.Context(), Options{Settings: cfg, Secrets: namedSecrets, Dir: dir, By: "config", Stderr: io.Discard,
		ReadSettings: read}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(e.h.close(), dir.Close()); err != nil {
			t.Error(err)
		}
	})
	w := httptest.NewRecorder()
	list := e.request("reports", "/2010-04-01/Accounts/AC00000000000000000000000000000001/Messages.json?PageSize=1000")
	e.h.ports.servers[1].ServeHTTP(w, list)
	if w.Code != 200 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	return e
}

// namedSecrets reads secrets that are their settings.
func namedSecrets(_ context.Context, setting config.SecretRef) (understudy.Secret, error) {
	if setting == "file:upstream" {
		return understudy.NewSecret("slowapitoken"), nil
	}
	return understudy.NewSecret(string(setting)), nil
}

// request is one of a credential's, or of somebody on this machine.
func (e *exporting) request(who, target string) *http.Request {
	r := httptest.NewRequestWithContext(e.Context(), "GET", "http://127.0.0.1"+target, nil)
	r.RemoteAddr = "127.0.0.1:9"
	switch who {
	case "reports":
		r.SetBasicAuth(who, "file:one")
	case "desk":
		r.SetBasicAuth(who, "file:two")
	case "token":
		r.Header.Set("Authorization", "Bearer "+e.h.opts.Dir.Token)
	}
	return r
}

// slow is an answer whose reader takes nothing from its first piece on until it
// is released.
type slow struct {
	*httptest.ResponseRecorder
	first, release chan struct{}
	once           sync.Once
}

func newSlow() *slow {
	return &slow{ResponseRecorder: httptest.NewRecorder(), first: make(chan struct{}), release: make(chan struct{})}
}

func (s *slow) Write(b []byte) (int, error) {
	s.once.Do(func() { close(s.first) })
	<-s.release
	return s.ResponseRecorder.Write(b)
}

func (s *slow) SetWriteDeadline(time.Time) error { return nil }

// over exports, and reads the settings again meanwhile.
func (e *exporting) over(who, target string, change ...string) string {
	e.Helper()
	w, done := newSlow(), make(chan struct{})
	go func() {
		defer close(done)
		e.h.ports.servers[0].ServeHTTP(w, e.request(who, target))
	}()
	select {
	case <-w.first:
	case <-done:
		e.Fatalf("%s: %d %.300s", target, w.Code, w.Body)
	}
	was := e.settings
	e.settings = strings.NewReplacer(change...).Replace(was)
	if len(change) > 0 && e.settings == was {
		e.Fatalf("%q changes nothing", change)
	}
	if _, _, err := e.h.enforcer.load(e.Context()); err != nil {
		e.Fatalf("%q: %v", change, err)
	}
	close(w.release)
	<-done
	e.settings = was
	if _, _, err := e.h.enforcer.load(e.Context()); err != nil {
		e.Fatal(err)
	}
	return w.Body.String()
}

// How exports say that they are not whole.
const (
	brokenSearch = `{"error":"interrupted"}` + "\n"
	brokenViewer = `{"understudy.incomplete":"your access rights changed during the export; export again"`
)

func TestExportsOverAReading(t *testing.T) {
	e := openExporting(t)
	for target, broken := range map[string]string{"/-/search?format=jsonl&q=kind:messages": brokenSearch,
		"/search.jsonl?q=kind:messages": brokenViewer} {
		whole := e.over("reports", target, "newest: 30s", "newest: 20s")
		// The kind was not walked, and the viewer's export says so in a last line.
		rows := strings.Count(whole, "\n") - strings.Count(whole, `{"understudy.incomplete":"not all messages`)
		if n := rows; n != 300 || strings.Contains(whole, broken) {
			t.Fatalf("%s: %d lines", target, n)
		}
		goesOn := func(name string, change ...string) {
			t.Helper()
			if got := e.over("reports", target, change...); got != whole {
				t.Errorf("%s, %s: %d lines of %d, the end %q", target, name, strings.Count(got, "\n"), strings.Count(whole, "\n"), tail(got))
			}
		}
		ends := func(name string, change ...string) {
			t.Helper()
			got := e.over("reports", target, change...)
			{
				n := strings.Count(got, "\n")
				checktest.True(t, n < 300, "%s, %s: n is %v, want < 300", target, name, n)
				checktest.True(t, n >= 2, "%s, %s: n is %v, want >= 2", target, name, n)
				checktest.Contains(t, tail(got), strings.TrimSpace(broken), "%s, %s: tail(got)", target, name)
			}
		}
		ends("another role", "role: support}", "role: clerk}")
		goesOn("what is others'", "price: hide", "price: see", "role: clerk}\nsources",
			"role: support, exports: 1}\nsearch: {exports: 1}\nsources",
			"  support:", "  third: {twilio: {calls: see}}\n  support:", "name: desk", "name: late")
		if broken == brokenViewer {
			continue
		}
		ends("a wider role", "role: support}", "role: all}")
		ends("a field hidden", "phone: last4}", "phone: last4, body: hide}")
		ends("row rules", "phone: last4}}", "phone: last4, rows: {messages: {age: 30d}}}}")
		ends("gone", "  - {name: reports, source: twilio, user: reports, secret: \"file:one\", role: support}\n", "")
		ends("another secret", "file:one", "file:won")
	}
}

// People without a credential, and who bears the token, stand for themselves.
func TestExportsOfPeopleOverAReading(t *testing.T) {
	e := openExporting(t)
	const search = "/-/search?format=jsonl&q=kind:messages"
	for who, of := range map[string][]string{"local": {"role: clerk}\nsources", "role: support}\nsources"}, "token": nil} {
		got := e.over(who, search, "phone: last4", "phone: see", "newest: 30s", "newest: 20s")
		if n := strings.Count(got, "\n"); n != 300 {
			t.Errorf("%s: %d lines, the end %q", who, n, tail(got))
		}
		if of == nil {
			continue
		}
		if got := e.over(who, search, of...); !strings.HasSuffix(got, brokenSearch) {
			t.Errorf("%s: the end %q", who, tail(got))
		}
	}
	x := e.h.enforcer.exports
	checktest.Equal(t, x.viewer.Load().InUse, 0, "x.viewer.Load().InUse")
	checktest.Equal(t, x.search.Load().InUse, 0, "x.search.Load().InUse")
	checktest.Equal(t, len(x.running), 0, "len(x.running)")
}

// An export whose request came under a policy that is no longer in force, and
// which begins after that was replaced, ends at once where the two differ.
func TestExportsBegunLate(t *testing.T) {
	e := openExporting(t)
	caller, err := e.h.enforcer.current.Load().policy.book.IdentifyPerson(e.request("reports", "/"))
	if err != nil {
		t.Fatal(err)
	}
	former := e.h.enforcer.exports.begin(e.h.enforcer.current.Load().policy)
	ended := func() bool {
		over, done := former(caller)
		defer done()
		select {
		case <-over:
			return true
		default:
			return false
		}
	}
	if ended() {
		t.Error("it ends under its own policy")
	}
	for _, c := range []struct {
		from, to string
		ends     bool
	}{{"newest: 30s", "newest: 20s", false}, {"phone: last4", "phone: hide", true}, {"phone: hide", "phone: last4", false}} {
		e.settings = strings.ReplaceAll(e.settings, c.from, c.to)
		if _, _, err := e.h.enforcer.load(t.Context()); err != nil {
			t.Fatal(err)
		}
		if ended() != c.ends {
			t.Errorf("%s: ended %v", c.to, !c.ends)
		}
	}
}

func tail(text string) string { return text[max(0, len(text)-150):] }

func noEnv(string) (string, bool) { return "", false }
