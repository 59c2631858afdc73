// The feed as subscribers meet it: forms, places, filters, refusals.

package feed

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
)

// some changes: 1 and 2 a call, 3 a message, 4 an alert, 5 a body, 6 a price, 7 fields
// that are not known.
func some() *table {
	tab := newTable()
	tab.put("twilio", came("calls", "CA1"), changed("calls", "CA1", "status", "from", "from_formatted"), came("messages", "SM1"),
		came("alerts", "NO1"), changed("messages", "SM1", "body"), changed("calls", "CA1", "price", "x_new"), changed("calls", "CA1"),
		understudy.Change{Kind: "messages", ID: "SM1", Type: understudy.Deleted})
	return tab
}

func TestPagesThroughTheGate(t *testing.T) {
	t.Parallel()
	r := open(t, some(), Options{})
	for role, want := range map[string][]string{
		"all": {"1 came calls CA1", "2 changed calls CA1 from from_formatted status", "3 came messages SM1", "4 came alerts NO1",
			"5 changed messages SM1 body", "6 changed calls CA1 price x_new", "7 changed calls CA1", "8 went messages SM1"},
		// What no spec names is hidden, but each record is seen.
		"open": {"1 came calls CA1", "2 changed calls CA1 from from_formatted status", "3 came messages SM1", "4 came alerts NO1",
			"5 changed messages SM1 body", "6 changed calls CA1 price", "7 changed calls CA1", "8 went messages SM1"},
		"support": {"came calls CA1", "changed calls CA1 from from_formatted status", "came messages SM1", "came alerts NO1",
			"changed calls CA1 price", "went messages SM1"},
		"desk": {"came calls CA1", "changed calls CA1 from from_formatted status", "came messages SM1", "changed messages SM1 body",
			"went messages SM1"},
		"blind": {"came messages SM1", "changed messages SM1 body", "went messages SM1"},
	} {
		a := r.page(t, role, "after=0")
		if got := lines(a.Changes); !slices.Equal(got, want) {
			t.Errorf("%s sees %q, want %q", role, got, want)
		}
		numbers := role == "all" || role == "open"
		for _, m := range a.Changes {
			_, n := m["n"]
			_, version := m["version"]
			_, cursor := m["cursor"]
			checktest.Equal(t, n, numbers, "n")
			checktest.Equal(t, version, numbers, "version")
			checktest.True(t, cursor != numbers, "cursor is %v", cursor)
		}
		if _, _, number := readNumber(a.Next); number != numbers {
			t.Errorf("%s goes on after %v", role, a.Next)
		}
	}
}

func TestFilters(t *testing.T) {
	t.Parallel()
	r := open(t, some(), Options{})
	for _, c := range []struct {
		role, query string
		want        []string
	}{
		{"all", "kind=messages", []string{"3 came messages SM1", "5 changed messages SM1 body", "8 went messages SM1"}},
		{"all", "kind=messages&kind=alerts&after=3", []string{"4 came alerts NO1", "5 changed messages SM1 body", "8 went messages SM1"}},
		{"all", "kind=calls&field=price&after=1", []string{"6 changed calls CA1 price x_new", "7 changed calls CA1"}},
		{"all", "kind=calls&field=x_new&after=2", []string{"6 changed calls CA1 price x_new", "7 changed calls CA1"}},
		{"all", "limit=2&after=2", []string{"3 came messages SM1", "4 came alerts NO1"}},
		{"all", "after=8", []string{}},
		{"all", "after=now", []string{}},
		{"support", "kind=calls&field=from", []string{"came calls CA1", "changed calls CA1 from from_formatted status"}},
	} {
		if got := lines(r.page(t, c.role, c.query).Changes); !slices.Equal(got, c.want) {
			t.Errorf("%s %s: %q, want %q", c.role, c.query, got, c.want)
		}
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	r := open(t, some(), Options{})
	sealed := r.page(t, "support", "after=now").Next
	for _, c := range []struct {
		role, query string
		status      int
		text        string
	}{
		{"", "", 401, "no credential"},
		{"other", "", 403, "can't see anything of"},
		{"all", "after=9", 400, "beyond the end"},
		{"all", "after=-1", 400, "after must be"},
		{"all", "after=01", 400, "after must be"},
		{"all", "after=one", 400, "after must be"},
		{"all", "after=" + strings.Repeat("9", 30), 400, "after must be"},
		{"all", "after=1&after=2", 400, "appears 2 times"},
		{"all", "source=twilo", 400, `did you mean \"twilio\"`},
		{"all", "kind=cals", 400, `did you mean \"calls\"`},
		{"all", "kind=", 400, "kind is empty"},
		{"all", "knd=calls", 400, `did you mean \"kind\"`},
		{"all", "limit=0", 400, "write a number from 1 to"},
		{"all", "limit=x", 400, "write a number from 1 to"},
		{"all", "wait=-1s", 400, "is not a time"},
		{"all", "wait=30", 400, "is not a time"},
		{"all", "wait=2h", 400, "at most"},
		{"all", "%zz", 400, "cannot be parsed"},
		{"support", "after=3", 400, "not of this feed"},
		{"support", "after=999", 400, "not of this feed"},
		{"desk", "after=" + sealed, 400, "not of this feed"},
		{"support", "after=" + sealed[:len(sealed)-1], 400, "not of this feed"},
		{"support", "kind=messages&field=body", 403, "can't see body of messages"},
		{"support", "field=body", 403, "can't see body of"},
		{"support", "field=x_new", 403, "can't see x_new"},
		{"desk", "kind=alerts", 403, "can't see alerts"},
		{"few", "kind=calls", 403, "can't see calls"},
	} {
		for _, path := range []string{"/-/feed?", "/-/feed.json?"} {
			resp, body := r.get(t, c.role, path+c.query)
			checktest.Equal(t, resp.StatusCode, c.status, "%s %s%s: resp.StatusCode; body %s", c.role, path, c.query,
				body)
			checktest.True(t, strings.HasPrefix(body, `{"error":"`), "%s %s%s: body is %q", c.role, path, c.query,
				body)
			checktest.Contains(t, body, c.text, "%s %s%s: body", c.role, path, c.query)
		}
	}
	if resp, _ := r.get(t, "all", "/-/feed.json?after=8"); resp.Header.Get("Cache-Control") != "no-store, no-transform" {
		t.Errorf("pages may be kept: %v", resp.Header)
	}
}

func TestSealedCursors(t *testing.T) {
	t.Parallel()
	r := open(t, some(), Options{})
	seen := map[string]bool{}
	var got []string
	for after := "0"; ; {
		a := r.page(t, "support", "limit=2&after="+after)
		after = a.Next
		if seen[after] || len(after) != sealedSize {
			t.Fatalf("the cursor %q was there before, or is longer than others", after)
		}
		seen[after] = true
		if len(a.Changes) == 0 {
			break
		}
		got = append(got, lines(a.Changes)...)
		// Each change's own cursor leads behind it.
		rest := r.page(t, "support", "after="+a.Changes[0]["cursor"].(string))
		if len(a.Changes) == 2 && line(rest.Changes[0]) != line(a.Changes[1]) {
			t.Errorf("after %s comes %s", line(a.Changes[0]), line(rest.Changes[0]))
		}
	}
	if want := lines(r.page(t, "support", "").Changes); !slices.Equal(got, want) {
		t.Errorf("by pages %q, at once %q", got, want)
	}
	// A role that now sees everything continues with its old cursor; a feed with another
	// key opens no old cursor.
	again := open(t, some(), Options{})
	cursor := r.page(t, "support", "after=now").Next
	if resp, body := again.get(t, "support", "/-/feed.json?after="+cursor); resp.StatusCode != 400 {
		t.Errorf("a cursor of another store: %d %s", resp.StatusCode, body)
	}
}

func TestForms(t *testing.T) {
	t.Parallel()
	for accept, pages := range map[string]bool{
		"": false, "*/*": false, "text/event-stream": false, "application/json": true, "application/json, text/plain, */*": true,
		"text/html,application/xhtml+xml,*/*;q=0.8": false, "application/json;q=0.5, text/event-stream": false,
		"application/json, text/event-stream;q=0.5": true,
		"application/json;q=0":                      false, "APPLICATION/JSON": true,
	} {
		if got := isJSONPreferred([]string{accept}); got != pages {
			t.Errorf("Accept: %s means pages %v, want %v", accept, got, pages)
		}
	}
	r := open(t, some(), Options{})
	resp, body := r.get(t, "all", "/-/feed?limit=1", "Accept", "application/json")
	if resp.Header.Get("Content-Type") != "application/json" || !strings.Contains(body, `"next":"1.`) {
		t.Errorf("a page: %v %s", resp.Header, body)
	}
	resp, body = r.get(t, "all", "/-/feed?after=6&wait=0s")
	if resp.Header.Get("Content-Type") != "text/event-stream" || resp.Header.Get("X-Accel-Buffering") != "no" {
		t.Errorf("a stream: %v", resp.Header)
	}
	run := "." + strconv.FormatInt(r.feed.places.runs.currentID(), 36)
	want := "retry: 2000\nid: 6" + run + "\n\n" +
		"id: 7" + run + "\ndata: " +
		"{\"n\":7,\"source\":\"twilio\",\"kind\":\"calls\",\"id\":\"CA1\",\"what\":\"changed\",\"version\":1007,\"at\":" +
		"\"2026-06-01T12:00:07Z\"}\n\n" +
		"id: 8" + run + "\ndata: " +
		"{\"n\":8,\"source\":\"twilio\",\"kind\":\"messages\",\"id\":\"SM1\",\"what\":\"went\",\"version\":1008,\"at\":" +
		"\"2026-06-01T12:00:08Z\"}\n\n"
	if body != want {
		t.Errorf("a stream is %q, want %q", body, want)
	}
}

func TestStreamFollows(t *testing.T) {
	t.Parallel()
	r := open(t, some(), Options{})
	all, support := r.listen(t, "all", ""), r.listen(t, "support", "")
	r.make(came("calls", "CA2"), changed("messages", "SM2", "body"), came("messages", "SM3"))
	for _, want := range []string{"9 came calls CA2", "10 changed messages SM2 body", "11 came messages SM3"} {
		id, m := all.event(t)
		if line(m) != want || !strings.HasPrefix(want, id+" ") {
			t.Errorf("all hears %s %s, want %s", id, line(m), want)
		}
	}
	var id string
	for _, want := range []string{"came calls CA2", "came messages SM3"} {
		var m map[string]any
		if id, m = support.event(t); line(m) != want || m["cursor"] != id {
			t.Errorf("support hears %s, want %s", line(m), want)
		}
	}
	r.make(came("messages", "SM4"))
	if _, m := r.listen(t, "support", "after=0", "Last-Event-ID", id).event(t); line(m) != "came messages SM4" {
		t.Errorf("after its last event support hears %s", line(m))
	}
	if _, m := r.listen(t, "all", "after=1", "Last-Event-ID", "11").event(t); line(m) != "12 came messages SM4" {
		t.Errorf("after its last event all hears %s", line(m))
	}
}

func TestLongPoll(t *testing.T) {
	t.Parallel()
	r := open(t, some(), Options{})
	done := make(chan answer)
	go func() { done <- r.page(t, "support", "after=now&wait=30s") }()
	for now := 0; now == 0; now = r.feed.limiter.Load().InUse {
	}
	r.make(changed("messages", "SM9", "body"), came("calls", "CA9")) // the first must not wake it
	if got := lines((<-done).Changes); !slices.Equal(got, []string{"came calls CA9"}) {
		t.Errorf("waited for %q", got)
	}
	if a := r.page(t, "all", "after=now&wait=10ms"); len(a.Changes) != 0 || place(a.Next) != "10" {
		t.Errorf("nothing came, and the answer is %v", a)
	}
}

func TestPlaces(t *testing.T) {
	t.Parallel()
	r := open(t, some(), Options{Limits: Limits{MaxSubscribers: 3, MaxEach: 2}})
	r.listen(t, "all", "")
	two := r.listen(t, "all", "")
	full := func(role string) {
		t.Helper()
		resp, body := r.get(t, role, "/-/feed")
		checktest.Equal(t, resp.StatusCode, 503, "one more of %s: resp.StatusCode; body %s", role, body)
		checktest.True(t, resp.Header.Get("Retry-After") != "",
			`one more of %s: resp.Header.Get("Retry-After") is empty; body %s`, role, body)
		checktest.Contains(t, body, "too many subscribers", "one more of %s: body", role)
	}
	full("all")
	r.listen(t, "support", "")
	full("desk")
	if got := lines(r.page(t, "all", "limit=1").Changes); len(got) != 1 {
		t.Error("a page that waits for nothing needs a place")
	}
	_ = two.body.Close()
	for now := 3; now == 3; now = r.feed.limiter.Load().InUse {
	}
	r.listen(t, "desk", "")
	s := r.feed.Load()
	checktest.Equal(t, s.Now, 3, "stats: s.Now")
	checktest.Equal(t, s.Limit, 3, "stats: s.Limit")
	checktest.Equal(t, s.Refused, 2, "stats: s.Refused")
}

func TestPolicyEndsStreams(t *testing.T) {
	t.Parallel()
	r := open(t, some(), Options{})
	l := r.listen(t, "support", "")
	p := r.feed.o.Policy
	if err := r.feed.SetPolicy(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if last := l.block(t); !strings.HasPrefix(last, ": the settings changed") || l.block(t) != "" {
		t.Errorf("the stream ends with %q", last)
	}
	r.listen(t, "support", "") // comes back
	r.feed.End()
	resp, _ := r.get(t, "all", "/-/feed")
	if resp.StatusCode != http.StatusOK { // it ends at once
		t.Errorf("a stream while the server ends: %d", resp.StatusCode)
	}
}

func TestGrantEndsStreams(t *testing.T) {
	t.Parallel()
	r := open(t, some(), Options{Policy: Policy{Callers: people{lasts: time.Second}}})
	l := r.listen(t, "all", "")
	if b := l.block(t); b != "" {
		t.Errorf("a stream whose grant ended says %q", b)
	}
}

func TestOneReaderForAll(t *testing.T) {
	t.Parallel()
	r := open(t, some(), Options{Limits: Limits{PollInterval: time.Hour}})
	var all []*listener
	for range 20 {
		all = append(all, r.listen(t, "all", ""))
	}
	for i := range 10 {
		r.make(came("calls", "CX"+strconv.Itoa(i)))
		for _, l := range all {
			if id, _ := l.event(t); id != strconv.Itoa(9+i) {
				t.Fatalf("heard %s", id)
			}
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reads > 22 { // one by each pull, and one that finds the end
		t.Errorf("the store was read %d times for 10 changes", r.reads)
	}
}

func TestLostBell(t *testing.T) {
	t.Parallel()
	r := open(t, some(), Options{Limits: Limits{PollInterval: 10 * time.Millisecond}})
	l := r.listen(t, "all", "")
	r.put("twilio", came("calls", "CA7")) // without a notification
	if _, m := l.event(t); line(m) != "9 came calls CA7" {
		t.Errorf("heard %s", line(m))
	}
}
