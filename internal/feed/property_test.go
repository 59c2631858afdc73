// Properties: every subscriber sees exactly what the gate lets through, once and in
// order; parsers take any bytes.

package feed

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"understudy"
	"understudy/internal/checktest"
	"understudy/spec"
)

var (
	someKinds  = []string{"calls", "messages", "alerts", "participants"}
	someFields = []string{"status", "price", "body", "from", "from_formatted", "x_new", "subresource_uris.media", "sid"}
	someRoles  = []string{"all", "open", "support", "desk", "blind"}
)

func anyChange(t *rapid.T) understudy.Change {
	ch := understudy.Change{
		Kind: rapid.SampledFrom(someKinds).Draw(t, "kind"), ID: fmt.Sprint("X", rapid.IntRange(0, 9).Draw(t, "id")),
		Type: understudy.ChangeType(rapid.IntRange(1, 3).Draw(t, "what")),
	}
	if ch.Type == understudy.Changed {
		ch.Fields = understudy.NewNames(rapid.SliceOfN(rapid.SampledFrom(someFields), 0, 3).Draw(t, "fields")...)
	}
	return ch
}

// told is what was seen of a change, in words that leave out numbers of places.
func told(ch understudy.Change) string {
	return fmt.Sprint(ch.N, ch.Kind, ch.ID, ch.Type, strings.ReplaceAll(string(ch.Fields), "\n", ","), ch.Version)
}

// subscriber is a subscriber that comes and goes.
type subscriber struct {
	role   string
	query  url.Values
	begun  int64 // the number it began after
	at     string
	got    []string
	places map[string]bool
}

// request asks once, as a stream or for a page, and remembers where it was.
func (v *subscriber) request(t *rapid.T, f *Feed, stream bool, limit int) {
	q := url.Values{"after": {v.at}, "limit": {strconv.Itoa(limit)}, "kind": v.query["kind"], "field": v.query["field"]}
	path := "/-/feed.json?"
	if stream {
		path = "/-/feed?"
		q.Set("wait", "0s")
	}
	r := httptest.NewRequest(http.MethodGet, path+q.Encode(), nil)
	r.SetBasicAuth(v.role, "")
	w := httptest.NewRecorder()
	f.Handler().ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		t.Fatalf("%s asks %s: %d %s", v.role, r.URL, w.Code, w.Body)
	}
	if stream {
		v.hear(t, w.Body.String())
		return
	}
	a := parse(t, w.Body.String())
	for _, m := range a.Changes {
		v.take(t, m)
	}
	v.at = a.Next
}

func (v *subscriber) hear(t *rapid.T, body string) {
	for block := range strings.SplitSeq(body, "\n\n") {
		for line := range strings.SplitSeq(block, "\n") {
			if id, ok := strings.CutPrefix(line, "id: "); ok {
				v.at = id
			}
			if data, ok := strings.CutPrefix(line, "data: "); ok {
				v.take(t, parse(t, `{"changes":[`+data+`]}`).Changes[0])
			}
		}
	}
}

func (v *subscriber) take(t *rapid.T, m map[string]any) {
	n, _ := m["n"].(float64)
	version, _ := m["version"].(float64)
	var fields []string
	if list, ok := m["fields"].([]any); ok {
		for _, f := range list {
			fields = append(fields, f.(string))
		}
	}
	v.got = append(v.got, fmt.Sprint(int64(n), m["kind"], m["id"], m["what"], strings.Join(fields, ","), int64(version)))
	if cursor, ok := m["cursor"].(string); ok {
		if v.places[cursor] {
			t.Fatalf("the cursor %s comes twice", cursor)
		}
		v.places[cursor] = true
	}
}

// due is what the subscriber should have seen.
func (v *subscriber) due(f *Feed, rows []understudy.Change) (want []string) {
	caller := understudy.Caller{Name: v.role, Grant: &understudy.Grant{Role: v.role}}
	q := query{kinds: v.query["kind"], fields: v.query["field"]}
	for _, row := range rows[v.begun:] {
		if seen, ok := f.current.Load().rules.Gate.RedactChange(caller, row); ok && q.matchChange(&seen) {
			want = append(want, told(seen))
		}
	}
	return want
}

func TestEachSeesItsOwn(t *testing.T) {
	t.Parallel()
	twilio := &spec.Source{Name: "twilio", Spec: sp(t)}
	o := Options{Sources: []*spec.Source{twilio}}
	o.Policy = Policy{Gate: gate(t, o), Callers: people{}}
	rapid.Check(t, func(t *rapid.T) {
		tab := newTable()
		o.Store, o.KV, o.Limits.MaxBuffered = tab, tab, rapid.IntRange(1, 40).Draw(t, "buffer")
		for range rapid.IntRange(0, 20).Draw(t, "before") {
			tab.put("twilio", anyChange(t))
		}
		f, err := New(context.Background(), o)
		if err != nil {
			t.Fatal(err)
		}
		var all []*subscriber
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"save", "save quietly", "come", "request", "request"}).Draw(t, "step") {
			case "save":
				for range rapid.IntRange(1, 30).Draw(t, "changes") {
					tab.put("twilio", anyChange(t))
				}
				if err := f.readers["twilio"].readNew(context.Background()); err != nil {
					t.Fatal(err)
				}
			case "save quietly":
				tab.put("twilio", anyChange(t))
			case "come":
				v := &subscriber{role: rapid.SampledFrom(someRoles).Draw(t, "role"), query: url.Values{}, at: "0", places: map[string]bool{}}
				if v.role == "all" {
					v.query["field"] = rapid.SliceOfN(rapid.SampledFrom(someFields), 0, 2).Draw(t, "asked fields")
					v.query["kind"] = rapid.SliceOfN(rapid.SampledFrom(someKinds), 0, 2).Draw(t, "asked kinds")
				}
				if rapid.Bool().Draw(t, "now") {
					v.begun, _ = f.readers["twilio"].readLast(context.Background(), 0)
					v.at = "now"
				}
				if v.at == "now" {
					v.request(t, f, true, 1) // so that it has a place of its own
				}
				all = append(all, v)
			case "request":
				if len(all) > 0 {
					rapid.SampledFrom(all).Draw(t, "who").request(t, f, rapid.Bool().Draw(t, "stream"), rapid.IntRange(1, 50).Draw(t, "limit"))
				}
			}
		}
		if err := f.readers["twilio"].readNew(context.Background()); err != nil {
			t.Fatal(err)
		}
		for _, v := range all {
			want := v.due(f, tab.rows["twilio"])
			for range len(tab.rows["twilio"]) + 1 {
				v.request(t, f, len(v.got)%2 == 0, 1000)
			}
			if !slices.Equal(v.got, want) {
				t.Fatalf("%s after %d with %v saw %q, want %q", v.role, v.begun, v.query, v.got, want)
			}
		}
	})
}

// Streams that stay, while changes come and others leave.
func TestManyListenWhileChangesCome(t *testing.T) {
	t.Parallel()
	r := open(t, some(), Options{Limits: Limits{MaxBuffered: 8}})
	rng := rand.New(rand.NewPCG(1, 2))
	const total = 600
	var wg sync.WaitGroup
	for i := range 24 {
		role := someRoles[i%len(someRoles)]
		l := r.listen(t, role, "after=0")
		wg.Go(func() {
			caller := understudy.Caller{Name: role, Grant: &understudy.Grant{Role: role}}
			for n := 0; n < total; n++ {
				r.mu.Lock()
				for len(r.rows["twilio"]) <= n {
					r.mu.Unlock()
					r.feed.NotifySource("twilio")
					r.mu.Lock()
				}
				row := r.rows["twilio"][n]
				r.mu.Unlock()
				seen, ok := r.feed.current.Load().rules.Gate.RedactChange(caller, row)
				if !ok {
					continue
				}
				_, m := l.event(t)
				heard := fmt.Sprint(m["id"], " ", m["kind"], " ", m["what"])
				if want := fmt.Sprint(seen.ID, " ", seen.Kind, " ", seen.Type); heard != want {
					t.Errorf("%s hears %s at %d, want %s", role, heard, n+1, want)
					return
				}
			}
		})
	}
	for n := 8; n < total; {
		var some []understudy.Change
		for range min(1+rng.IntN(20), total-n) {
			ch := came(someKinds[rng.IntN(len(someKinds))], fmt.Sprint("X", n))
			if rng.IntN(2) == 0 {
				ch = changed(ch.Kind, ch.ID, someFields[rng.IntN(len(someFields))])
			}
			some = append(some, ch)
			n++
		}
		r.make(some...)
		if rng.IntN(4) == 0 {
			_ = r.listen(t, "all", "").body.Close()
		}
	}
	wg.Wait()
}

func parse(t *rapid.T, body string) (a answer) {
	if err := unmarshal(body, &a); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	return a
}

func FuzzQuery(f *testing.F) {
	for _, seed := range [][2]string{
		{"source=twilio&after=3&kind=calls&field=from&limit=3&wait=30s", ""}, {"after=now", "12"}, {"after=%zz", ""}, {"", "9223372036854775808"},
		{"limit=1&limit=2", ""}, {"kind=&field=", "0"}, {"wait=1h;after=1", "-1"}, {"after=+1", "01"}, {`field=\`, ""},
	} {
		f.Add(seed[0], seed[1])
	}
	src := &spec.Source{Name: "twilio", Spec: sp(f)}
	o := Options{Sources: []*spec.Source{src}, Store: some(), KV: some()}
	o.Policy = Policy{Gate: gate(f, o), Callers: people{}}
	feed, err := New(context.Background(), o)
	if err != nil {
		f.Fatal(err)
	}
	all, err := feed.findRoleGroup(feed.current.Load(), "twilio", "all")
	if err != nil {
		f.Fatal(err)
	}
	support, err := feed.findRoleGroup(feed.current.Load(), "twilio", "support")
	if err != nil {
		f.Fatal(err)
	}
	f.Add("after="+support.cursor(7), all.cursor(7))
	f.Fuzz(func(t *testing.T, raw, last string) {
		q, err := readQuery(raw, last)
		if err != nil {
			if !errors.Is(err, understudy.ErrInvalid) {
				t.Fatalf("%q: %v", raw, err)
			}
			return
		}
		checktest.MustTrue(t, q.limit >= 0, "%q, %q: q.limit is %v, want >= 0", raw, last, q.limit)
		checktest.MustTrue(t, q.limit <= maxPageChanges, "%q, %q: q.limit is %v", raw, last, q.limit)
		checktest.MustTrue(t, q.wait >= -1, "%q, %q: q.wait is %v, want >= -1", raw, last, q.wait)
		checktest.MustTrue(t, len(q.kinds) <= maxNames, "%q, %q: len(q.kinds) is %v", raw, last, len(q.kinds))
		checktest.MustTrue(t, len(q.fields) <= maxNames, "%q, %q: len(q.fields) is %v", raw, last, len(q.fields))
		checktest.MustTrue(t, !(q.fromNow && q.after != ""),
			`%q, %q: q.now && q.after != ""`, raw, last)
		if n, err := all.parseCursor(q.after); err == nil && (n < 0 || place(q.after) != strconv.FormatInt(n, 10) && len(q.after) < sealedSize) {
			t.Fatalf("%q is the place %d, which is %q", q.after, n, all.cursor(n))
		}
		if n, err := support.parseCursor(q.after); err == nil && n != 0 && len(q.after) != sealedSize {
			t.Fatalf("support's %q is the place %d", q.after, n)
		}
		r := httptest.NewRequest(http.MethodGet, "/-/feed.json", nil)
		r.URL.RawQuery = raw
		if last != "" {
			r.Header["Last-Event-Id"] = []string{last}
		}
		r.SetBasicAuth("support", "")
		ctx, cancel := context.WithTimeout(r.Context(), time.Second)
		defer cancel()
		if s, err := feed.subscribe(ctx, r, true); err == nil && (s.start < 0 || s.start > 8) {
			t.Fatalf("%q begins at %d", raw, s.start)
		} else if err != nil && understudy.OwnPathStatus(err) == http.StatusServiceUnavailable {
			t.Fatalf("%q: %v", raw, err)
		}
	})
}
