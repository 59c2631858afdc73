// Lost: after every fault while clients write, the server holds in the end what
// upstream has.

package crashes

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"understudy/e2e/binary"
	"understudy/e2e/rig"
	"understudy/internal/checktest"
	"understudy/internal/sample"
)

const (
	lostUsual = 2000       // operations, a fiftieth of the full count
	lostRound = 200        // then everything is compared
	lostLife  = 10         // rounds of one folder, so that comparing stays quick
	lostWord  = "zwieback" // stands in every text that is written
	lostDisk  = 64 << 20   // bytes of the disk
)

// lostKinds are the kinds that are written to, as paths name them.
var lostKinds = []string{"Messages", "Calls", "IncomingPhoneNumbers"}

// TestNothingIsLost has 1 to 16 clients create, update, redact and delete through
// the drop-in, under faults of upstream, with the database locked by another
// process, on a full disk, and through kill -9. Then every record, list, search and change is
// compared with upstream's.
func TestNothingIsLost(t *testing.T) {
	t.Parallel()
	ops := sample.CountFrom("PROVE_WRITES", lostUsual)
	chance, began, done := rig.Random(t), time.Now(), 0
	var c lostCounts
	for done < ops {
		l := newLost(t, rand.New(rand.NewPCG(chance.Uint64(), 0)), &c)
		for n := range lostLife {
			if done < ops {
				l.round(n, min(lostRound, ops-done))
				done += min(lostRound, ops-done)
			}
		}
		l.end()
	}
	t.Logf("%d operations in %v: %d created, %d redacted, %d deleted, %d of unknown outcome, %d rounds with locks, %d with a full disk, %d kills, %d records compared",
		ops, time.Since(began).Round(time.Second), c.created.Load(), c.redacted.Load(), c.deleted.Load(), c.unknown.Load(), c.locks, c.full, c.kills, c.compared)
	checktest.True(t, c.created.Load() != 0, "the faults were not what this test is about: c.created.Load() is 0")
	checktest.True(t, c.redacted.Load() != 0, "the faults were not what this test is about: c.redacted.Load() is 0")
	checktest.True(t, c.deleted.Load() != 0, "the faults were not what this test is about: c.deleted.Load() is 0")
	checktest.True(t, !(ops >= lostUsual && (c.unknown.Load() == 0 || c.locks == 0 || c.full == 0 || c.kills == 0)),
		"the faults were not what this test is about: ops is %v, lostUsual is %v", ops, lostUsual)
}

type lostCounts struct {
	answered, unknown, created, redacted, deleted atomic.Int64
	locks, full, kills, compared                  int
}

// lost is one data folder through several servers.
type lost struct {
	*testing.T
	*lostCounts
	dir, up string
	chance  *rand.Rand
	server  *binary.Server
	disk    *disk

	mu    sync.Mutex
	sids  map[string][]string // what there was to write to, by kind; the newest last
	words int
}

const lostUser = "writer:" + rig.DemoToken

func newLost(t *testing.T, chance *rand.Rand, c *lostCounts) *lost {
	up := rig.StartAPI(t, "--latency", "10ms", "--records", "60").URL("slowapi")
	first, dir := rig.StartServer(t, rig.Settings{
		Upstream: up, Polls: "[messages, calls, incoming_phone_numbers]", Role: "all",
		Source: "sync: [messages, calls, incoming_phone_numbers], timeouts: {connect: 1s, first_byte: 1s, stall: 1s, total: 2s}",
		Mirror: "{newest: 1s, older: 1s, default_age: 1s, stale: 1s}",
		More: `  - {name: writer, source: twilio, user: writer, secret: "file:demo.secret", role: all, allow: [POST /2010-04-01/Accounts/*/*, POST /2010-04-01/Accounts/*/*/*, DELETE /2010-04-01/Accounts/*/*/*]}
  - {name: ruled, source: twilio, user: ruled, secret: "file:demo.secret", role: ruled}
`,
		Roles: fmt.Sprintf("  ruled: {twilio: {\"*\": see, rows: {\"*\": {number: [%q]}, accounts: all}}}\n", rig.OwnNumber),
	})
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	d := small(t, filepath.Join(dir, rig.DataFolder), lostDisk)
	l := &lost{T: t, lostCounts: c, dir: dir, disk: d, up: up, chance: chance, sids: map[string][]string{}}
	t.Cleanup(func() { // after a failure; what it holds open keeps the disk
		if l.server != nil {
			l.server.Kill()
		}
	})
	return l
}

func (l *lost) start() {
	l.Helper()
	rig.ChooseLane(l, l.dir)
	house, err := binary.Start(rig.Program, l.dir, "serve")
	if err != nil {
		l.Fatal(err)
	}
	l.server, l.disk.server = house, house
}

// round has clients write while things fail, heals everything and compares. Each
// trouble is in one of a folder's first rounds, and in others by chance.
func (l *lost) round(n, ops int) {
	if l.server == nil || l.server.Exited() {
		l.start()
	}
	clients, faults, kill := 1+l.chance.IntN(16), l.chance.IntN(2) == 0, n == 1 || l.chance.IntN(2) == 0
	locks, full := n == 2 || l.chance.IntN(3) == 0, n <= 1 || l.chance.IntN(3) == 0
	if !l.disk.mounted && full {
		kill = false // such a disk keeps lines from being overwritten too
	}
	left := atomic.Int64{}
	left.Store(int64(ops))
	ctx, stop := context.WithCancel(l.Context())
	defer stop()
	var trouble, work sync.WaitGroup
	if seed := l.chance.Uint64(); faults {
		trouble.Go(func() { l.faults(ctx, rand.New(rand.NewPCG(seed, 2))) })
	}
	if seed := l.chance.Uint64(); locks {
		l.locks++
		trouble.Go(func() { l.lock(ctx, rand.New(rand.NewPCG(seed, 3))) })
	}
	if seed := l.chance.Uint64(); full {
		l.full++
		trouble.Go(func() { l.fill(ctx, rand.New(rand.NewPCG(seed, 4))) })
	}
	var until int64
	if kill {
		until = l.chance.Int64N(int64(ops))
	}
	for range clients {
		chance := rand.New(rand.NewPCG(l.chance.Uint64(), 1))
		work.Go(func() {
			for {
				n := left.Add(-1)
				if kill && n == until {
					l.server.Kill()
				}
				if n < 0 || !l.one(chance) {
					return
				}
			}
		})
	}
	work.Wait()
	stop()
	trouble.Wait()
	rig.Control(l, l.up, "/-/faults", `{"rules":[]}`)
	if kill {
		l.kills++
		l.server.Kill()
		l.start()
	}
	what := fmt.Sprintf("%d clients, faults %v, locks %v, full disk %v, killed %v", clients, faults, locks, full, kill)
	l.compare(what)
}

// end looks at the folder.
func (l *lost) end() {
	if err := l.server.Stop(); err != nil {
		l.Error(err)
	}
	(&life{T: l.T, dir: l.dir}).verify()
}

// faults lets upstream fail now and then.
func (l *lost) faults(ctx context.Context, chance *rand.Rand) {
	kinds := []string{
		`"status":500`, `"status":503`, `"status":429,"retry_after":1`, `"reset":true`, `"delay_ms":200`, `"delay_ms":1500`,
		`"stall_after":10`, `"truncate":20`, `"truncate":0,"reset":true`, `"gzip_cut":9`, `"length":7`,
	}
	for ctx.Err() == nil {
		rig.Control(l, l.up, "/-/faults", fmt.Sprintf(`{"rules":[{"match":%q,"times":%d,%s}]}`,
			[]string{"", "/Messages", "/Calls"}[chance.IntN(3)], 1+chance.IntN(4), kinds[chance.IntN(len(kinds))]))
		rig.Pause(ctx, time.Duration(50+chance.IntN(250))*time.Millisecond)
	}
}

// lock locks the database as another process would, for up to three seconds.
func (l *lost) lock(ctx context.Context, chance *rand.Rand) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(l.dir, rig.DataFolder, "understudy.db")+"?_pragma=busy_timeout(1000)")
	if err != nil {
		l.Error(err)
		return
	}
	defer db.Close()
	for ctx.Err() == nil {
		conn, err := db.Conn(ctx)
		if err != nil {
			return
		}
		if _, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err == nil {
			rig.Pause(ctx, time.Duration(chance.IntN(3000))*time.Millisecond)
			_, _ = conn.ExecContext(context.Background(), "ROLLBACK")
		}
		_ = conn.Close()
		rig.Pause(ctx, time.Duration(chance.IntN(1000))*time.Millisecond)
	}
}

// fill fills the disk up, for up to three seconds.
func (l *lost) fill(ctx context.Context, chance *rand.Rand) {
	for ctx.Err() == nil {
		l.disk.fill()
		rig.Pause(ctx, time.Duration(chance.IntN(3000))*time.Millisecond)
		l.disk.free()
		rig.Pause(ctx, time.Duration(chance.IntN(1000))*time.Millisecond)
	}
}

// one does one thing; false: the server is gone.
func (l *lost) one(chance *rand.Rand) bool {
	method, path, form := http.MethodPost, "", url.Values{}
	kind := lostKinds[max(0, chance.IntN(6)-3)]
	sid := l.pick(chance, kind)
	switch n := chance.IntN(20); {
	case n < 3: // reads, which fill while others write
		method, path = http.MethodGet, "/"+kind+".json?PageSize="+strconv.Itoa(1+chance.IntN(60))
	case n < 5 && sid != "":
		method, path = http.MethodGet, "/"+kind+"/"+sid+".json"
	case n < 12 || sid == "":
		l.mu.Lock()
		l.words++
		text := fmt.Sprintf("%s number %d", lostWord, l.words)
		l.mu.Unlock()
		path, form = "/"+kind+".json", map[string]url.Values{
			"Messages":             {"From": {rig.OwnNumber}, "To": {"+14155550199"}, "Body": {text}},
			"Calls":                {"From": {rig.OwnNumber}, "To": {"+14155550199"}, "Url": {"http://example.com/"}},
			"IncomingPhoneNumbers": {"PhoneNumber": {fmt.Sprintf("+1415777%04d", chance.IntN(10_000))}, "FriendlyName": {text}},
		}[kind]
	case n < 16:
		path, form = "/"+kind+"/"+sid+".json", map[string]url.Values{
			"Messages":             {"Body": {""}},
			"Calls":                {"Status": {[]string{"canceled", "completed"}[chance.IntN(2)]}},
			"IncomingPhoneNumbers": {"FriendlyName": {fmt.Sprintf("%s again %d", lostWord, chance.IntN(1000))}},
		}[kind]
	default:
		method, path = http.MethodDelete, "/"+kind+"/"+sid+".json"
	}
	r, err := rig.Ask(method, lostUser, l.server.URL("twilio")+rig.Base+path, form.Encode())
	switch {
	case err != nil:
		l.unknown.Add(1)
		return !l.server.Exited()
	case r.Status >= 500:
		l.unknown.Add(1)
	case r.Status == http.StatusForbidden:
		l.Errorf("%s %s: %s", method, path, r.Body)
		return false
	default:
		l.answered.Add(1)
	}
	switch {
	case r.Status == http.StatusNoContent:
		l.deleted.Add(1)
	case r.Status == http.StatusOK && form.Has("Body"):
		l.redacted.Add(1)
	}
	if r.Status == http.StatusCreated {
		l.created.Add(1)
		var made struct{ Sid string }
		if err := json.Unmarshal(r.Body, &made); err != nil {
			l.Errorf("%s: %v in %s", path, err, r.Body)
		}
		l.mu.Lock()
		l.sids[kind] = append(l.sids[kind], made.Sid)
		l.mu.Unlock()
	}
	return true
}

// pick is a record to write to: mostly one of the newest, so that clients meet.
func (l *lost) pick(chance *rand.Rand, kind string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.sids[kind]
	if chance.IntN(4) > 0 {
		all = all[max(0, len(all)-8):]
	}
	if len(all) == 0 {
		return ""
	}
	return all[chance.IntN(len(all))]
}

// compare waits until what is held is what upstream has, in every way it can be
// asked for. What asks upstream comes last: it would mend what is wrong.
func (l *lost) compare(what string) {
	l.Helper()
	l.await(what, func(kind string, truth, own map[string]string) string {
		if why := l.found(kind, truth); why != "" {
			return why
		}
		if why := l.told(kind, truth); why != "" {
			return why
		}
		return l.listed(kind, "ruled:"+rig.DemoToken, "", own)
	})
	l.await(what, func(kind string, truth, _ map[string]string) string {
		if why := l.listed(kind, lostUser, "&understudy.order=asc", truth); why != "" {
			return why
		}
		return l.listed(kind, lostUser, "", truth)
	})
	l.await(what, func(kind string, truth, _ map[string]string) string {
		l.compared += len(truth)
		return l.instances(kind, truth)
	})
}

// await asks again until nothing differs.
func (l *lost) await(what string, differs func(kind string, truth, own map[string]string) string) {
	l.Helper()
	// After a full disk a walk tries once a minute whether saving works again.
	deadline := time.Now().Add(3 * time.Minute)
	for why := "begun"; why != ""; time.Sleep(50 * time.Millisecond) {
		if why != "begun" && time.Now().After(deadline) {
			l.tell(why)
			l.Fatalf("after %s: %s", what, why)
		}
		why = ""
		for _, kind := range lostKinds {
			truth, bad := l.list(l.up, rig.Account+":"+rig.APIToken, kind, "")
			if bad != "" {
				l.Fatal(bad)
			}
			own := map[string]string{}
			for id, body := range truth {
				for _, field := range []string{"from", "to", "phone_number"} {
					if strings.Contains(body, `"`+field+`":"`+rig.OwnNumber+`"`) {
						own[id] = body
					}
				}
			}
			why = cmp.Or(why, differs(kind, truth, own))
		}
	}
}

// tell says of every record that a difference names what each place has of it,
// what the server logged last, and keeps its folder.
func (l *lost) tell(why string) {
	l.Helper()
	say := func(name, user, target string, headers ...string) {
		r, err := rig.Ask(http.MethodGet, user, target, "", headers...)
		l.Logf("%s: %d %v %v\n%s", name, r.Status, err, r.Header["Cache-Status"], head(string(r.Body), 600))
	}
	for _, sid := range regexp.MustCompile(`\b(SM|CA|PN)[0-9a-f]{32}\b`).FindAllString(why, -1) {
		kind := map[string]string{"SM": "Messages", "CA": "Calls", "PN": "IncomingPhoneNumbers"}[sid[:2]]
		path := rig.Base + "/" + kind + "/" + sid + ".json"
		say("upstream", rig.Account+":"+rig.APIToken, l.up+path)
		say("held", lostUser, l.server.URL("twilio")+path, "Cache-Control", "only-if-cached, max-stale")
		say("searched", "", l.server.URL("viewer")+"/-/search?limit=1&q="+url.QueryEscape("kind:"+rig.KindName(kind)+" "+sid))
	}
	var stats struct {
		Sources map[string]struct{ Kinds map[string]json.RawMessage }
	}
	if r, err := rig.Ask(http.MethodGet, "", l.server.URL("viewer")+"/-/stats", ""); err == nil && json.Unmarshal(r.Body, &stats) == nil {
		for _, kind := range lostKinds {
			l.Logf("%s: %s", kind, head(string(stats.Sources["twilio"].Kinds[rig.KindName(kind)]), 300))
		}
	}
	l.Logf("understudy wrote:\n%s", rig.Tail(l.server.Log(), 4000))
	if kept, err := os.MkdirTemp("", "understudy-lost-"); err == nil {
		l.Logf("the folder is kept in %s (%v)", kept, os.CopyFS(filepath.Join(kept, "dir"), os.DirFS(l.dir)))
	}
}

func head(text string, most int) string { return text[:min(len(text), most)] }

// listed compares a list with what it should be.
func (l *lost) listed(kind, user, query string, want map[string]string) string {
	have, why := l.list(l.server.URL("twilio"), user, kind, query)
	if why == "" {
		why = unequal(want, have)
	}
	if why != "" {
		return fmt.Sprintf("%s listed for %s%s: %s", kind, user[:5], query, why)
	}
	return ""
}

// unequal names the first record that two sets do not share.
func unequal(want, have map[string]string) string {
	for id, body := range want {
		switch got, ok := have[id]; {
		case !ok:
			return id + " is missing"
		case got != body:
			return id + ": " + rig.FirstDifference([]byte(body), []byte(got))
		}
	}
	for id := range have {
		if _, ok := want[id]; !ok {
			return id + " is no more upstream"
		}
	}
	return ""
}

// list walks a list to its end; bodies by id.
func (l *lost) list(at, user, kind, query string) (map[string]string, string) {
	all := map[string]string{}
	for path := rig.Base + "/" + kind + ".json?PageSize=1000" + query; path != ""; {
		r, err := rig.Ask(http.MethodGet, user, at+path, "")
		if err != nil || r.Status != http.StatusOK {
			return nil, fmt.Sprintf("%s: %d %s %v", path, r.Status, r.Body, err)
		}
		var page map[string]json.RawMessage
		var rows []json.RawMessage
		var next string
		if err := json.Unmarshal(r.Body, &page); err != nil {
			return nil, err.Error()
		}
		_ = json.Unmarshal(page[rig.KindName(kind)], &rows)
		_ = json.Unmarshal(page["next_page_uri"], &next)
		for _, row := range rows {
			id, body := rowOf(row)
			all[id] = body
		}
		path = next
	}
	return all, ""
}

// rowOf is a record's id and its body in one form.
func rowOf(row []byte) (id, body string) {
	var one struct{ Sid string }
	_ = json.Unmarshal(row, &one)
	var text bytes.Buffer
	_ = json.Compact(&text, row)
	return one.Sid, text.String()
}

// found compares what the search finds by the word that stands in every text.
func (l *lost) found(kind string, truth map[string]string) string {
	want, have := map[string]string{}, map[string]string{}
	for id, body := range truth {
		if strings.Contains(body, lostWord) {
			want[id] = body
		}
	}
	query := url.Values{"q": {"kind:" + rig.KindName(kind) + " " + lostWord}, "limit": {"200"}}
	for more := true; more; {
		r, err := rig.Ask(http.MethodGet, "", l.server.URL("viewer")+"/-/search?"+query.Encode(), "")
		var page struct {
			Hits []struct {
				ID     string
				Record json.RawMessage
			}
			Next string
		}
		if err == nil {
			err = json.Unmarshal(r.Body, &page)
		}
		if err != nil || r.Status != http.StatusOK {
			return fmt.Sprintf("search: %d %s %v", r.Status, r.Body, err)
		}
		for _, h := range page.Hits {
			_, have[h.ID] = rowOf(h.Record)
		}
		query.Set("cursor", page.Next)
		more = page.Next != ""
	}
	if why := unequal(want, have); why != "" {
		return kind + " found: " + why
	}
	return ""
}

// told replays the feed: what came and did not go is what upstream has.
func (l *lost) told(kind string, truth map[string]string) string {
	present, after := map[string]string{}, int64(0)
	for {
		r, err := rig.Ask(http.MethodGet, "", fmt.Sprintf("%s/-/feed.json?limit=1000&after=%d", l.server.URL("viewer"), after), "")
		var page struct {
			Changes []struct {
				N              int64
				Kind, ID, What string
			}
		}
		if err == nil {
			err = json.Unmarshal(r.Body, &page)
		}
		if err != nil || r.Status != http.StatusOK {
			return fmt.Sprintf("feed: %d %s %v", r.Status, r.Body, err)
		}
		for _, c := range page.Changes {
			if c.N != after+1 {
				l.Fatalf("the feed goes from %d to %d", after, c.N)
			}
			if after = c.N; c.Kind != rig.KindName(kind) {
				continue
			}
			switch _, there := present[c.ID]; {
			case there == (c.What == "came"):
				l.Fatalf("change %d: %s %s, and it was there: %v", c.N, c.ID, c.What, there)
			case c.What == "went":
				delete(present, c.ID)
			default:
				present[c.ID] = truth[c.ID]
			}
		}
		if len(page.Changes) == 0 {
			break
		}
	}
	if why := unequal(truth, present); why != "" {
		return kind + " told: " + why
	}
	return ""
}

// instances compares records that were written to, the deleted ones too, and a
// few others.
func (l *lost) instances(kind string, truth map[string]string) string {
	l.mu.Lock()
	sids := slices.Clone(l.sids[kind])
	l.mu.Unlock()
	for _, sid := range sids[max(0, len(sids)-100):] {
		r, err := rig.Ask(http.MethodGet, lostUser, l.server.URL("twilio")+rig.Base+"/"+kind+"/"+sid+".json", "")
		body, there := truth[sid]
		if err != nil || there != (r.Status == http.StatusOK) || !there && r.Status != http.StatusNotFound {
			return fmt.Sprintf("%s: %d %v, and upstream has it: %v", sid, r.Status, err, there)
		}
		if _, have := rowOf(r.Body); there && have != body {
			return sid + ": " + rig.FirstDifference([]byte(body), []byte(have))
		}
	}
	return ""
}
