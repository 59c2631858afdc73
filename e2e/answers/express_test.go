// Express: who loses a right loses it on the express lane, too, and what is on it looks as
// what net/http sends.

package answers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"understudy/e2e/binary"
	"understudy/e2e/rig"
	"understudy/internal/checktest"
)

// pageReaders are eight clients that read one page again and again. state says what an answer must
// be that begins and ends in it; -1: it may be anything.
type pageReaders struct {
	t              *testing.T
	viewer         string
	state, answers atomic.Int64
}

// startReaders begins to read until stop is called. right says whether an answer is right in a state.
func startReaders(t *testing.T, house *binary.Server, user, path string, right func(state int64, r rig.Reply) bool) (c *pageReaders, stop func()) {
	t.Helper()
	c = &pageReaders{t: t, viewer: house.URL("viewer")}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for ctx.Err() == nil {
				before := c.state.Load()
				r, err := rig.Ask(http.MethodGet, user, house.URL("twilio")+path, "")
				if err != nil {
					t.Error(err)
					return
				}
				if c.answers.Add(1); before >= 0 && c.state.Load() == before && !right(before, r) {
					t.Errorf("in state %d: %d %q %.300s", before, r.Status, r.Header.Get("Cache-Status"), r.Body)
					return
				}
			}
		})
	}
	return c, func() { cancel(); wg.Wait() }
}

// become changes the state, and waits until the clients have been answered in the new one, so
// often without net/http at least.
func (c *pageReaders) become(state int64, change func(), express int64) {
	c.t.Helper()
	c.state.Store(-1)
	change()
	before, asked := rig.ExpressAnswers(c.t, c.viewer), c.answers.Load()
	c.state.Store(state)
	rig.Await(c.t, func() string {
		n := c.answers.Load() - asked
		if lane := rig.ExpressAnswers(c.t, c.viewer) - before; !c.t.Failed() && (n < 200 || lane < express) {
			return fmt.Sprintf("%d answers in state %d, %d of them of the lane", n, state, lane)
		}
		return ""
	})
}

const aPage = rig.Base + "/Calls.json?PageSize=20"

// TestExpressEndsWithTheRight: under load, no request that begins after a credential has
// ended or has another role is answered by what it had before. That is so as soon as the
// settings are read.
func TestExpressEndsWithTheRight(t *testing.T) {
	t.Parallel()
	up := rig.StartAPI(t, "--latency", "1ms", "--records", "500").URL("slowapi")
	house, dir := rig.StartServer(t, rig.Settings{Upstream: up, Mirror: "{newest: 1h, older: 1h, settled_age: 1h}"})
	file := filepath.Join(dir, "understudy.yml")
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	masked := `secret: "file:masked.secret", role: support}`
	policies := []struct {
		settings string
		right    func(rig.Reply) bool
	}{
		{string(whole), func(r rig.Reply) bool { return r.Status == 200 && !strings.Contains(string(r.Body), "+1") }},
		{strings.Replace(string(whole), masked, `secret: "file:masked.secret", role: all}`, 1),
			func(r rig.Reply) bool { return r.Status == 200 && strings.Contains(string(r.Body), "+1") }},
		{strings.Replace(string(whole), masked, `secret: "file:masked.secret", role: support, expires: 2020-01-01}`, 1),
			func(r rig.Reply) bool { return r.Status == 401 }},
	}
	loaded := func() string {
		var h struct {
			LoadedAt string `json:"loaded_at"`
		}
		if err := json.Unmarshal(rig.Get(t, "", house.URL("viewer")+"/-/health").Body, &h); err != nil {
			t.Fatal(err)
		}
		return h.LoadedAt
	}
	clients, stop := startReaders(t, house, rig.Account+":"+rig.MaskedToken, aPage, func(state int64, r rig.Reply) bool { return policies[state].right(r) })
	defer stop()
	for round := range 12 {
		next := round % len(policies)
		express := int64(1)
		if next == 2 {
			express = 0
		}
		clients.become(int64(next), func() {
			before := loaded()
			if err := os.WriteFile(file, []byte(policies[next].settings), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := house.Reload(); err != nil {
				t.Fatal(err)
			}
			rig.Await(t, func() string {
				if loaded() == before {
					return "the settings have not been read again"
				}
				return ""
			})
		}, express)
	}
}

// TestExpressEndsWithRevocation: under load, no request that begins after a credential was
// revoked, or its secret replaced, is answered 200.
func TestExpressEndsWithRevocation(t *testing.T) {
	t.Parallel()
	up := rig.StartAPI(t, "--latency", "1ms", "--records", "500").URL("slowapi")
	house, dir := rig.StartServer(t, rig.Settings{Upstream: up, Mirror: "{newest: 1h, older: 1h, settled_age: 1h}"})
	token := "Bearer " + rig.CommandToken(t, dir)
	control := func(path, body string) rig.Reply {
		r, err := rig.Ask(http.MethodPost, "", house.URL("viewer")+"/-/credentials"+path, body, "Content-Type", "application/json", "Authorization", token)
		if err != nil || r.Status != http.StatusOK {
			t.Fatalf("POST %s: %d %s %v", path, r.Status, r.Body, err)
		}
		return r
	}
	for round := range 9 {
		name := fmt.Sprint("program", round)
		var made struct{ User, Secret string }
		if err := json.Unmarshal(control("", fmt.Sprintf(`{"name":%q,"source":"twilio","role":"support"}`, name)).Body, &made); err != nil {
			t.Fatal(err)
		}
		clients, stop := startReaders(t, house, made.User+":"+made.Secret, aPage, func(state int64, r rig.Reply) bool { return (r.Status == 200) == (state == 0) })
		clients.become(0, func() {}, 100)
		clients.become(1, func() {
			switch round % 3 {
			case 0:
				control("/"+name+"/revoke", "{}")
			case 1:
				control("/"+name+"/rotate", `{"overlap":"0s"}`)
			default:
				cmd := exec.CommandContext(t.Context(), rig.Program, "credentials", "revoke", name)
				cmd.Dir = dir
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
			}
		}, 0)
		stop()
	}
}

// TestExpressForgets: under load, no request that begins after a write was answered, after a
// newer version of a record was, or after an erasure, is answered by what was held before.
func TestExpressForgets(t *testing.T) {
	t.Parallel()
	up := rig.StartAPI(t, "--latency", "1ms", "--records", "500").URL("slowapi")
	house, dir := rig.StartServer(t, rig.Settings{Upstream: up, Mirror: "{newest: 1h, older: 1h, settled_age: 1h}"})
	const number, user = "+14155557788", rig.Account + ":" + rig.DemoToken
	list := rig.Base + "/Messages.json?To=" + url.QueryEscape(number)
	var shown [12]string // what an answer in each state holds
	clients, stop := startReaders(t, house, user, list, func(state int64, r rig.Reply) bool {
		return r.Status == 200 && bytes.Contains(r.Body, []byte(shown[state]))
	})
	var message struct{ SID string }
	for n := range shown {
		clients.become(int64(n), func() {
			if n%2 == 0 { // by a write
				r, err := rig.Ask(http.MethodPost, user, house.URL("twilio")+rig.Base+"/Messages.json", "From=%2B15005550006&Body=x&To="+url.QueryEscape(number))
				checktest.MustNoError(t, err, "")
				checktest.MustTrue(t, json.Unmarshal(r.Body, &message) == nil,
					"json.Unmarshal(r.Body, &message) is %v", json.Unmarshal(r.Body, &message))
				checktest.MustTrue(t, message.SID != "", "message.SID is empty")
				shown[n] = message.SID
				return
			}
			shown[n] = fmt.Sprintf("-7.%04d", n) // upstream, and another client reads the record anew
			rig.Control(t, up, "/-/edit", fmt.Sprintf(`{"kind":"messages","records":[{"sid":%q,"price":%q}]}`, message.SID, shown[n]))
			r := rig.Get(t, user, house.URL("twilio")+rig.Base+"/Messages/"+message.SID+".json", "Cache-Control", "no-cache")
			if !bytes.Contains(r.Body, []byte(shown[n])) {
				t.Fatalf("%d %s: %s", r.Status, r.Header.Get("Cache-Status"), r.Body)
			}
		}, 20)
	}
	stop()
	// What upstream still shows of it is read anew once: it is known by another price.
	clients, stop = startReaders(t, house, user, list, func(state int64, r rig.Reply) bool {
		return r.Status == 200 && bytes.Contains(r.Body, []byte("-8.0000")) == (state == 1)
	})
	defer stop()
	clients.become(0, func() {}, 20)
	clients.become(1, func() {
		rig.Control(t, up, "/-/edit", fmt.Sprintf(`{"kind":"messages","records":[{"sid":%q,"price":"-8.0000"}]}`, message.SID))
		cmd := exec.CommandContext(t.Context(), rig.Program, "erase", "twilio", number, "--yes", "--data", rig.DataFolder)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "erased ") {
			t.Fatalf("%v: %s", err, out)
		}
	}, 0)
}

// TestExpressLooksLikeTheOther: an answer of the lane has the header and the body of one of
// net/http, in each form and for each role; both stand in the access log.
func TestExpressLooksLikeTheOther(t *testing.T) {
	t.Parallel()
	up := rig.StartAPI(t, "--latency", "1ms", "--records", "500").URL("slowapi")
	house, dir := rig.StartServer(t, rig.Settings{Upstream: up, Mirror: "{newest: 1h, older: 1h, settled_age: 1h}"})
	url := house.URL("twilio") + rig.Base + "/Calls.json?PageSize=50"
	rig.Await(t, func() string { // the page is in memory in the form it goes out in
		rig.Get(t, rig.Account+":"+rig.DemoToken, url)
		if rig.ExpressAnswers(t, house.URL("viewer")) == 0 {
			return "the lane answers nothing"
		}
		return ""
	})
	for _, user := range []string{rig.Account + ":" + rig.DemoToken, rig.Account + ":" + rig.MaskedToken} {
		for _, form := range []string{"gzip", "zstd", "identity"} {
			for _, method := range []string{http.MethodGet, http.MethodHead} {
				for _, match := range []string{"", "*"} {
					say := func(more ...string) rig.Reply {
						r, err := rig.Ask(method, user, url, "", append(more, "Accept-Encoding", form, "If-None-Match", match)...)
						if err != nil {
							t.Fatal(err)
						}
						for _, name := range []string{"Age", "Date", "Server-Timing", "X-Request-Id", "Cache-Status"} {
							hidden := name == "Server-Timing" && strings.Contains(user, rig.MaskedToken) // it would tell what is held
							if r.Header.Get(name) == "" && !hidden {
								t.Errorf("%s %s %s: no %s", method, user, form, name)
							}
							r.Header.Del(name)
						}
						return r
					}
					before := rig.ExpressAnswers(t, house.URL("viewer"))
					say()
					second := say()
					if n := rig.ExpressAnswers(t, house.URL("viewer")) - before; n != 1 {
						t.Errorf("%s %s %q: the lane gave %d answers", method, form, match, n)
					}
					// One that differs in a header field that means nothing is net/http's.
					other := say("User-Agent", "another "+time.Now().String())
					if fmt.Sprint(second) != fmt.Sprint(other) {
						t.Errorf("%s %s %q: %d %v, and by net/http %d %v", method, form, match, second.Status, second.Header, other.Status, other.Header)
					}
				}
			}
		}
	}
	house.Stop()
	log, err := os.ReadFile(filepath.Join(dir, rig.AccessLog))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(log), "/Calls.json"); n < 2*3*2*2*3 {
		t.Errorf("%d lines in the access log, want one of each request", n)
	}
}

// TestTracedRequestsAreOnTheExpressLane: a client that traces each request with a new id is answered by the
// lane, and the answer names its own id.
func TestTracedRequestsAreOnTheExpressLane(t *testing.T) {
	t.Parallel()
	demo := rig.StartDemo(t) // without settings, so it has the lane
	one := func(n int) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, demo.URL("twilio")+"/2010-04-01/Accounts/"+rig.Account+"/Messages.json?PageSize=20", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.SetBasicAuth(rig.Account, rig.DemoToken)
		id := fmt.Sprintf("trace-%c", 'a'+n)
		r.Header.Set("X-Request-Id", id)
		r.Header.Set("Traceparent", fmt.Sprintf("00-%032x-%016x-01", n+1, n+1))
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		{
			_, err := io.Copy(io.Discard, answer.Body)
			checktest.MustNoError(t, err, "request %d", n)
			checktest.MustEqual(t, answer.StatusCode, http.StatusOK, "request %d: answer.StatusCode", n)
			checktest.MustEqual(t, answer.Header.Get("X-Request-Id"), id,
				`request %d: answer.Header.Get("X-Request-Id")`, n)
		}
	}
	before := int64(0)
	for n := 0; before == 0 && n < 10; n++ { // the page is fetched, encoded, and learnt
		one(n)
		before = rig.ExpressAnswers(t, demo.URL("viewer"))
	}
	for n := range 25 {
		one(n)
	}
	// A page that is being refreshed is net/http's.
	if n := rig.ExpressAnswers(t, demo.URL("viewer")) - before; n < 15 {
		t.Errorf("%d of 25 traced requests are answered by the lane", n)
	}
}
