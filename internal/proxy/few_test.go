// Few: a caller bound by row rules walks its lists, with all parts real: the store, the
// mirror, upstream's client and a slow API.

package proxy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/callers"
	"understudy/internal/checktest"
	"understudy/internal/proxy"
	"understudy/internal/slowapi"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
	"understudy/mirror"
	"understudy/request"
	"understudy/spec"
	"understudy/spec/spectest"
	"understudy/upstream"
)

// covered says that everything is held, from the moment it is set.
type covered struct {
	asked *sync.Map // from when on each kind was to be covered
	at    *atomic.Pointer[time.Time]
	all   *spec.Spec
}

func (c covered) Coverage(_, kind, _, _ string, from, to int64) (request.Coverage, bool) {
	if from == 0 || from != to { // an empty one asks for what has no clock
		c.asked.Store(kind, from)
	}
	at := c.at.Load()
	if at == nil {
		return request.Coverage{Missing: "nobody has walked them"}, false
	}
	var shapes []string
	for _, l := range c.all.Kind(kind).Lists {
		shapes = append(shapes, l.Shape)
	}
	return request.Coverage{At: *at, Newest: *at, Shapes: shapes}, true
}

func (covered) Recheck(string, string, int64, int64) {}

const fewToken = "understudyfewtoken"

// buildFew is a corridor in which one caller has row rules; full is called when
// everything is held.
func buildFew(t *testing.T, rules access.RowRules) (c *product, full func()) {
	t.Helper()
	world, err := slowapi.New(slowapi.Options{Records: 200, Epoch: time.Now().Add(-time.Hour)})
	check(t, err)
	c = &product{T: t}
	c.slow = httptest.NewServer(c.journal.over(world))
	t.Cleanup(func() { c.slow.Close(); check(t, world.Close()) })
	sp := spectest.BuiltIn(t, "twilio")
	c.source = &spec.Source{Name: "twilio", Spec: sp, User: account, Polls: []string{}}
	specs := map[string]*spec.Spec{"twilio": sp}
	db, err := store.Open(t.Context(), store.Options{Path: storetest.File(t), Specs: specs, Now: c.now, SaveTime: time.Minute})
	check(t, err)
	t.Cleanup(func() { check(t, db.Close()) })
	c.db = db
	client, err := upstream.New(upstream.Options{Source: c.source, Base: c.slow.URL, Secret: understudy.NewSecret(api), Rate: 1000,
		Now: c.now})
	check(t, err)
	t.Cleanup(func() { check(t, client.Close()) })
	at := new(atomic.Pointer[time.Time])
	c.mirror, err = mirror.New(mirror.Options{Sources: []mirror.Source{{Source: c.source, Upstream: client}}, Store: db,
		Coverage: covered{&c.spans, at, sp}, Writes: db.Writes, Now: c.now})
	check(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.mirror.Run(ctx) }()
	t.Cleanup(func() { cancel(); check(t, <-ended) })
	newest := func(source, kind, id string) *understudy.Record {
		for _, l := range sp.Kind(kind).Lists {
			if rec, err := db.Record(context.Background(), source, kind, l.Shape, id); err == nil {
				return rec
			}
		}
		return nil
	}
	gate, err := access.NewWith(access.Options{
		Specs: specs, Roles: access.Roles{"few": {"twilio": {"*": "see"}}}, Users: map[string]string{"twilio": account},
		Rows: map[string]map[string]access.RowRules{"few": {"twilio": rules}}, NewestVersion: newest, Now: c.now,
	})
	check(t, err)
	book, err := callers.New(callers.Options{Sources: []*spec.Source{c.source}, Credentials: []callers.Credential{
		{Name: "demo", Source: "twilio", User: account, Secret: understudy.NewSecret(demo), Grant: understudy.Grant{Role: "all"}},
		{Name: "few", Source: "twilio", User: account, Secret: understudy.NewSecret(fewToken), Grant: understudy.Grant{Role: "few"}},
	}})
	check(t, err)
	c.proxy, err = proxy.New(proxy.Options{Source: c.source, Mirror: c.mirror, Gate: gate, Callers: book, Now: c.now,
		Ready: c.mirror.FindReady, Admit: book.Admit})
	check(t, err)
	c.server = httptest.NewServer(c.proxy)
	c.source.PublicURL = c.server.URL
	t.Cleanup(c.server.Close)
	return c, func() { now := c.now(); at.Store(&now) }
}

// rows are the records of a page, and where the next one is.
func rowsOn(t *testing.T, body, key string) (rows []map[string]any, next string) {
	t.Helper()
	var page map[string]json.RawMessage
	check(t, json.Unmarshal([]byte(body), &page))
	check(t, json.Unmarshal(page[key], &rows))
	_ = json.Unmarshal(page["next_page_uri"], &next) // null at the end
	return rows, next
}

// walk reads a list to its end and looks at each page.
func (c *product) walk(target, key, secret string, between func(page int)) (rows []map[string]any, sizes []int) {
	c.Helper()
	for n := 0; target != ""; n++ {
		answer, body := c.get(target, secret)
		if answer.StatusCode != http.StatusOK {
			c.Fatalf("%s: %d %s", target, answer.StatusCode, body)
		}
		page, next := rowsOn(c.T, body, key)
		rows, sizes, target = append(rows, page...), append(sizes, len(page)), next
		if between != nil {
			between(n)
		}
	}
	return rows, sizes
}

func sids(rows []map[string]any, which func(map[string]any) bool) (all []string) {
	for _, r := range rows {
		if which == nil || which(r) {
			all = append(all, r["sid"].(string))
		}
	}
	return all
}

// Lists are filtered before they are cut: pages are full, in upstream's order,
// without gap or double, under filters and while new records arrive.
func TestListsAreFilteredBeforePaging(t *testing.T) {
	c, full := buildFew(t, access.RowRules{
		"calls":    {Where: map[string]access.Match{"direction": {In: []string{"inbound"}}}},
		"messages": {Age: 30 * 24 * time.Hour, Where: map[string]access.Match{"status": {In: []string{"delivered", "received"}}}},
	})
	mayCall := func(r map[string]any) bool { return r["direction"] == "inbound" }
	answer, body := c.get(root+"/Calls.json", fewToken)
	checktest.MustEqual(t, answer.StatusCode, 503, "before anything is held: answer.StatusCode; body %s", body)
	checktest.MustEqual(t, answer.Header.Get("Retry-After"), "30",
		`before anything is held: answer.Header.Get("Retry-After"); body %s`, body)
	checktest.MustContains(t, body, `"message":"not mirrored yet`, "before anything is held: body")
	calls, _ := c.walk(root+"/Calls.json?PageSize=100", "calls", demo, nil)
	messages, _ := c.walk(root+"/Messages.json?PageSize=100", "messages", demo, nil)
	recordings, _ := c.walk(root+"/Recordings.json?PageSize=100", "recordings", demo, nil)
	full()
	want := sids(calls, mayCall)
	if len(want) < 30 || len(want) > len(calls)-30 {
		t.Fatalf("the rule finds %d of %d calls; the test needs some of each", len(want), len(calls))
	}
	for _, size := range []int{1, 7, 50, 1000} {
		if size == 1 {
			continue
		}
		c.journal.take()
		got, sizes := c.walk(fmt.Sprintf("%s/Calls.json?PageSize=%d", root, size), "calls", fewToken, nil)
		if !slices.Equal(sids(got, nil), want) {
			t.Errorf("PageSize %d: %d calls, want %d, or in another order", size, len(got), len(want))
		}
		for i, n := range sizes {
			if i < len(sizes)-1 && n != size {
				t.Errorf("PageSize %d: page %d has %d", size, i, n)
			}
		}
		if asked := c.journal.take(); len(asked) > 0 {
			t.Errorf("upstream was asked: %v", asked)
		}
	}
	completed := func(r map[string]any) bool { return mayCall(r) && r["status"] == "completed" }
	if got, _ := c.walk(root+"/Calls.json?Status=completed&PageSize=5", "calls", fewToken, nil); !slices.Equal(sids(got, nil),
		sids(calls, completed)) {
		t.Errorf("under a filter: %d", len(got))
	}
	got, _ := c.walk(root+"/Messages.json?PageSize=9", "messages", fewToken, nil)
	young := func(r map[string]any) bool {
		sent, _ := r["date_sent"].(string)
		if sent == "" {
			sent = r["date_created"].(string)
		}
		at, err := time.Parse(time.RFC1123Z, sent)
		return err == nil && c.now().Sub(at) < 30*24*time.Hour && (r["status"] == "delivered" || r["status"] == "received")
	}
	if !slices.Equal(sids(got, nil), sids(messages, young)) || len(got) == 0 {
		t.Errorf("messages: %d, want %d", len(got), len(sids(messages, young)))
	}
	// Recordings have no rule of their own; that of their calls is theirs.
	got, _ = c.walk(root+"/Recordings.json?PageSize=3", "recordings", fewToken, nil)
	ofInbound := func(r map[string]any) bool {
		return r["call_sid"] == nil || slices.Contains(want, r["call_sid"].(string))
	}
	checktest.True(t, slices.Equal(sids(got, nil), sids(recordings, ofInbound)),
		"recordings: slices.Equal(sids(got, nil), sids(recordings, ofInbound)) is false")
	checktest.MustTrue(t, len(got) != 0, "recordings: len(got) is 0")
	checktest.True(t, len(got) != len(recordings), "recordings: len(got) is %v", len(got))
	if from, _ := c.spans.Load("messages"); c.now().Sub(time.Unix(from.(int64), 0)).Round(time.Hour) != 31*24*time.Hour {
		t.Errorf("of messages no older than 30 days those since %v had to be held", from)
	}
	if from, _ := c.spans.Load("calls"); from != int64(0) {
		t.Errorf("of calls of any age those since %v had to be held", from)
	}
	c.arriving(want, mayCall)
}

// arriving walks while calls arrive: what was there when the walk began comes
// once, and what arrived is on a new walk's first page.
func (c *product) arriving(want []string, may func(map[string]any) bool) {
	c.Helper()
	got, _ := c.walk(root+"/Calls.json?PageSize=11", "calls", fewToken, func(page int) {
		if page < 4 {
			answer, err := http.Post(c.slow.URL+"/-/advance", "application/json", strings.NewReader(`{"calls":3,"seconds":60}`))
			check(c.T, err)
			check(c.T, answer.Body.Close())
			c.ask(c.server, "GET", root+"/Calls.json?PageSize=50", demo, "", "Cache-Control", "no-cache")
		}
	})
	if !slices.Equal(sids(got, nil), want) {
		c.Errorf("while calls arrive: %d, want %d", len(got), len(want))
	}
	_, body := c.get(root+"/Calls.json?PageSize=50", demo)
	now, _ := rowsOn(c.T, body, "calls")
	_, body = c.get(root+"/Calls.json?PageSize=1000", fewToken)
	after, _ := rowsOn(c.T, body, "calls")
	newest := sids(now, may)
	if len(after) < len(newest) || !slices.Equal(sids(after, nil)[:len(newest)], newest) {
		c.Errorf("a new walk begins %v, want %v", sids(after, nil)[:min(len(after), 5)], newest[:min(len(newest), 5)])
	}
}

// A list of a row rule that was made before is answered from memory, until the store is
// written or the time takes a record out.
func TestWarmListsOfRowRulesReadNothing(t *testing.T) {
	for name, rule := range map[string]access.RowRule{
		"where":  {Where: map[string]access.Match{"direction": {In: []string{"inbound"}}}},
		"prefix": {Where: map[string]access.Match{"direction": {Prefix: "in"}}},
		"age":    {Age: 30 * 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			c, full := buildFew(t, access.RowRules{"calls": rule})
			calls, _ := c.walk(root+"/Calls.json?PageSize=100", "calls", demo, nil)
			full()
			list := func() []string {
				_, body := c.get(root+"/Calls.json?PageSize=1000", fewToken)
				rows, _ := rowsOn(t, body, "calls")
				return sids(rows, nil)
			}
			first := list()
			c.until("a list is answered from memory", func() bool { // once what was saved is in the indexes
				before := c.read()
				if again := list(); !slices.Equal(again, first) {
					t.Errorf("%d calls at first, %d again", len(first), len(again))
				}
				return c.read() == before
			})
			may := func(r map[string]any) bool { return slices.Contains(first, r["sid"].(string)) }
			c.arriving(sids(calls, may), func(r map[string]any) bool { return name == "age" || r["direction"] == "inbound" })
			some := len(list())
			if c.later(20 * time.Hour); name == "age" && len(list()) >= some {
				t.Errorf("20 hours later the rule still finds %d calls of %d", len(list()), some)
			}
		})
	}
}

// What is answered again is ready for the express lane, though the page of upstream's is not.
func TestMadeListsOfRowRulesAreReady(t *testing.T) {
	c, full := buildFew(t, access.RowRules{"calls": {Where: map[string]access.Match{"direction": {In: []string{"inbound"}}}}})
	c.walk(root+"/Calls.json?PageSize=100", "calls", demo, nil)
	full()
	isReady := func() bool {
		r := httptest.NewRequestWithContext(t.Context(), "GET", root+"/Calls.json?PageSize=20", nil)
		r.SetBasicAuth(account, fewToken)
		_, ready := c.proxy.PrepareRepeat(r)
		if ready == nil {
			return false
		}
		_, ok := ready()
		return ok
	}
	if isReady() {
		t.Error("a list that was never made is ready")
	}
	c.get(root+"/Calls.json?PageSize=20", fewToken)
	if !isReady() {
		t.Error("a list that was made is not ready")
	}
}

// read is how many entries of indexes and blocks of bodies the store has read.
func (c *product) read() [2]int64 {
	c.Helper()
	space, err := c.db.MeasureSpace(c.Context())
	check(c.T, err)
	return [2]int64{space.Read.Index, space.Read.Blocks}
}

// A token that names a hidden record is one that names none; one that names a
// record the caller may find goes on behind it.
func TestTokensOfHiddenRecords(t *testing.T) {
	c, full := buildFew(t, access.RowRules{"calls": {Where: map[string]access.Match{"direction": {In: []string{"inbound"}}}}})
	calls, _ := c.walk(root+"/Calls.json?PageSize=100", "calls", demo, nil)
	full()
	inbound := sids(calls, func(r map[string]any) bool { return r["direction"] == "inbound" })
	hidden := sids(calls, func(r map[string]any) bool { return r["direction"] != "inbound" })[0]
	token := func(id string) string {
		return root + "/Calls.json?PageSize=5&Page=1&PageToken=" + url.QueryEscape("PA"+id)
	}
	a, bodyA := c.get(token(hidden), fewToken)
	b, bodyB := c.get(token("CA00000000000000000000000000000000"), fewToken)
	checktest.Equal(t, a.StatusCode, http.StatusBadRequest, "hidden: a.StatusCode")
	checktest.Equal(t, a.StatusCode, b.StatusCode, "hidden: a.StatusCode")
	checktest.Equal(t, bodyA, bodyB, "hidden: bodyA")
	_, body := c.get(token(inbound[3]), fewToken)
	if rows, _ := rowsOn(t, body, "calls"); !slices.Equal(sids(rows, nil), inbound[4:9]) {
		t.Errorf("behind %s: %s", inbound[3], body)
	}
}

// Instances, held or not, as the real mirror has them: hidden and never-seen
// are one answer, and upstream is asked alike.
func TestHiddenInstancesAgainstUpstream(t *testing.T) {
	c, full := buildFew(t, access.RowRules{"calls": {Where: map[string]access.Match{"direction": {In: []string{"inbound"}}}}})
	calls, _ := c.walk(root+"/Calls.json?PageSize=100", "calls", demo, nil)
	full()
	inbound := sids(calls, func(r map[string]any) bool { return r["direction"] == "inbound" })
	hidden := sids(calls, func(r map[string]any) bool { return r["direction"] != "inbound" })
	const never = "CA00000000000000000000000000000000"
	say := func(id, below string) (string, []string) {
		c.journal.take()
		answer, body := c.get(root+"/Calls/"+id+below, fewToken)
		for _, name := range []string{"Date", "X-Request-Id"} {
			answer.Header.Del(name)
		}
		asked := c.journal.take()
		for i := range asked {
			asked[i] = strings.ReplaceAll(asked[i], id, "ID")
		}
		return strings.ReplaceAll(fmt.Sprint(answer.StatusCode, answer.Header, body), id, "ID"), asked
	}
	for _, below := range []string{".json", "/Recordings.json", "/Recordings/RE00000000000000000000000000000000.json", "/Events.json",
		"/Notifications.json"} {
		for _, round := range []string{"first", "again"} {
			a, askedA := say(hidden[1], below)
			b, askedB := say(never, below)
			checktest.Equal(t, a, b, "%s, %s: a", below, round)
			checktest.True(t, slices.Equal(askedA, askedB), "%s, %s: askedA is %v, want %v", below, round, askedA,
				askedB)
			checktest.True(t, strings.HasPrefix(a, "404"), "%s, %s: a is %q", below, round, a)
		}
		c.later(3 * time.Second)
	}
	answer, body := c.get(root+"/Calls/"+inbound[0]+".json", fewToken)
	_, want := c.get(root+"/Calls/"+inbound[0]+".json", demo)
	if answer.StatusCode != http.StatusOK || body != want {
		t.Errorf("what it may find: %d %s", answer.StatusCode, body)
	}
	c.slow.Close()
	c.later(10 * time.Minute)
	began := time.Now()
	a, _ := say(hidden[2], ".json")
	b, _ := say(never, ".json")
	if took := time.Since(began); took > 7*time.Second { // each would take 8 s
		t.Errorf("two answers in an outage took %v", took)
	}
	if a != b || !strings.HasPrefix(a, "503") {
		t.Errorf("in an outage: hidden %s\nnever %s", a, b)
	}
	if answer, again := c.get(root+"/Calls/"+inbound[0]+".json", fewToken); answer.StatusCode != http.StatusOK || again != want {
		t.Errorf("in an outage what it may find: %d %s", answer.StatusCode, again)
	}
}
