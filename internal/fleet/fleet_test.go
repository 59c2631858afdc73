package fleet_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/fleet"
	"understudy/internal/store"
	"understudy/internal/store/nodes"
	"understudy/internal/store/storetest"
	"understudy/kit/accesslog"
	"understudy/request"
)

// openNode opens a store on a database and the membership of a process in it. It joins if url is not empty.
func openNode(t *testing.T, path, id string, settings map[string]string) (*store.DB, *fleet.Fleet) {
	t.Helper()
	db, err := store.Open(t.Context(), store.Options{Path: path, Specs: storetest.Specs(t), SaveTime: storetest.Patience})
	checktest.MustNoError(t, err, "open")
	t.Cleanup(func() { checktest.NoError(t, db.Close(), "close") })
	f := fleet.New(fleet.Options{Table: db.Nodes, Refresh: db.Refresh,
		Node: nodes.Node{ID: id, Version: "v", Settings: fleet.NewSettings(settings)}})
	db.Nodes.SetBarrier(f.Await)
	return db, f
}

// run runs a membership until the test ends.
func run(t *testing.T, f *fleet.Fleet) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- f.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		checktest.NoError(t, <-done, "run")
	})
}

func TestOtherSettingsAreNamed(t *testing.T) {
	path := storetest.File(t)
	_, a := openNode(t, path, "a", map[string]string{"roles.x": "1", "sources.s.rate": "5"})
	checktest.MustNoError(t, a.Join(t.Context(), ""), "join a")
	for name, settings := range map[string]map[string]string{
		"sources.s.rate": {"roles.x": "1", "sources.s.rate": "6"}, "roles.x": {"sources.s.rate": "5"},
		"roles.y": {"roles.x": "1", "roles.y": "", "sources.s.rate": "5"},
	} {
		_, b := openNode(t, path, "b", settings)
		err := b.Join(t.Context(), "")
		checktest.MustTrue(t, err != nil, "a process with another %s joins", name)
		checktest.True(t, strings.Contains(err.Error(), name), "the error %q does not name %s", err, name)
		checktest.True(t, !b.IsCurrent(), "a refused process answers from memory")
	}
	_, c := openNode(t, path, "c", map[string]string{"sources.s.rate": "5", "roles.x": "1"})
	checktest.NoError(t, c.Join(t.Context(), ""), "join with equal settings")
	checktest.Equal(t, len(c.Nodes()), 2, "nodes")
}

// TestSettingOfANewerVersionIsNoDifference: during an upgrade, a newer process may have settings that an older one does not know.
func TestSettingOfANewerVersionIsNoDifference(t *testing.T) {
	path := storetest.File(t)
	db, older := openNode(t, path, "older", map[string]string{"roles.x": "1"})
	checktest.MustNoError(t, older.Join(t.Context(), ""), "join the older process")
	join := func(role string) error {
		return fleet.New(fleet.Options{Table: db.Nodes, Refresh: db.Refresh, Node: nodes.Node{ID: "newer", Version: "w",
			Settings: fleet.NewSettings(map[string]string{"roles.x": role, "new": "2"})}}).Join(t.Context(), "")
	}
	checktest.NoError(t, join("1"), "join with a setting that the older process does not know")
	checktest.True(t, join("2") != nil, "a process with another setting that both know joins")
}

// TestWriteWaitsForOthers: a write returns after the other process has dropped what it had in memory.
func TestWriteWaitsForOthers(t *testing.T) {
	path := storetest.File(t)
	a, fa := openNode(t, path, "a", nil)
	b, fb := openNode(t, path, "b", nil)
	var mu sync.Mutex
	told := map[string]int64{}
	err := b.Nodes.SetOthers(t.Context(), nodes.Others{Deleted: func() {}, Written: func(_, kind string, generation int64, _ []string) {
		mu.Lock()
		defer mu.Unlock()
		told[kind] = generation
	}})
	checktest.MustNoError(t, err, "SetOthers")
	for _, f := range []*fleet.Fleet{fa, fb} {
		checktest.MustNoError(t, f.Join(t.Context(), ""), "join")
		run(t, f)
	}
	for range 5 {
		generation, err := a.Touch(t.Context(), request.Invalidation{Source: storetest.Source, Kind: "calls"})
		checktest.MustNoError(t, err, "touch")
		mu.Lock()
		checktest.Equal(t, told["calls"], generation, "generation that the other process knows when the write returns")
		mu.Unlock()
	}
}

// fakeTable is a table of nodes whose answers a test decides.
type fakeTable struct {
	mu     sync.Mutex
	others []nodes.Node
	err    error
}

func (f *fakeTable) set(others []nodes.Node, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.others, f.err = others, err
}

func (f *fakeTable) List(context.Context) ([]nodes.Node, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]nodes.Node{}, f.others...), f.err
}

func (f *fakeTable) Renew(ctx context.Context, _ nodes.Node) ([]nodes.Node, error) {
	return f.List(ctx)
}
func (f *fakeTable) ReplaceParts(context.Context, int64, string) (bool, error) { return true, nil }
func (f *fakeTable) Remove(context.Context, string) error                      { return nil }
func (f *fakeTable) EndClaim(context.Context, int64, string) error             { return nil }
func (f *fakeTable) Claim(context.Context, int64, string) (bool, error)        { return true, nil }
func (f *fakeTable) IsClaimed(context.Context, int64) (bool, error)            { return false, nil }

// TestAwait: a call waits for the living processes that have not seen its change, and for no others.
func TestAwait(t *testing.T) {
	for name, o := range map[string]struct {
		others []nodes.Node
		err    error
		waits  bool
	}{
		"alone":                 {nil, nil, false},
		"seen":                  {[]nodes.Node{{ID: "b", Seen: 7, Left: time.Second}}, nil, false},
		"lease has ended":       {[]nodes.Node{{ID: "b", Seen: 6, Left: 0}}, nil, false},
		"itself":                {[]nodes.Node{{ID: "a", Seen: 6, Left: time.Second}}, nil, false},
		"not seen":              {[]nodes.Node{{ID: "b", Seen: 6, Left: time.Second}}, nil, true},
		"database is not there": {nil, errors.New("away"), true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				table := &fakeTable{others: o.others, err: o.err}
				f := fleet.New(fleet.Options{Table: table, Node: nodes.Node{ID: "a"}})
				began := time.Now()
				f.Await(7)
				took := time.Since(began)
				checktest.Equal(t, took > 0, o.waits, "whether it waits (%v)", took)
				checktest.True(t, took <= 3*time.Second, "it waits %v", took)
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		table := &fakeTable{others: []nodes.Node{{ID: "b", Seen: 6, Left: time.Second}}}
		f := fleet.New(fleet.Options{Table: table, Node: nodes.Node{ID: "a"}})
		time.AfterFunc(time.Second, func() { table.set([]nodes.Node{{ID: "b", Seen: 7, Left: time.Second}}, nil) })
		began := time.Now()
		f.Await(7)
		took := time.Since(began)
		checktest.True(t, time.Second <= took && took < 1100*time.Millisecond, "it returns %v after the start, want soon after 1 s", took)
	})
}

// TestLeasesRunOut: the nodes that a process lists have what is left of their leases now, not at the last renewal.
func TestLeasesRunOut(t *testing.T) {
	table := &fakeTable{others: []nodes.Node{{ID: "a", Left: nodes.Lease}, {ID: "b", Left: time.Second}}}
	f := fleet.New(fleet.Options{Table: table, Node: nodes.Node{ID: "a"}, Refresh: func(context.Context) error { return nil }})
	checktest.Equal(t, len(f.Nodes()), 0, "nodes before it joins")
	checktest.MustNoError(t, f.Join(t.Context(), ""), "join")
	all := f.Nodes()
	checktest.MustEqual(t, len(all), 2, "nodes")
	for i, n := range all {
		was := table.others[i].Left
		checktest.True(t, 0 < n.Left && n.Left < was, "lease of %s is %v, and was %v when it was renewed", n.ID, n.Left, was)
	}
	checktest.True(t, all[0].Left < nodes.Lease-100*time.Millisecond, "the own lease is %v, want one that ends before it does for others",
		all[0].Left)
}

// slowTable is a table of nodes during whose renewals something happens.
type slowTable struct {
	fakeTable
	renewing func()
}

func (s *slowTable) Renew(ctx context.Context, n nodes.Node) ([]nodes.Node, error) {
	s.renewing()
	return s.fakeTable.Renew(ctx, n)
}

// TestLeaseThatEndsDuringItsRenewal: other processes may not have waited for this one, so it reads what they have changed.
func TestLeaseThatEndsDuringItsRenewal(t *testing.T) {
	table, refreshed := &slowTable{renewing: func() {}}, 0
	f := fleet.New(fleet.Options{Table: table, Node: nodes.Node{ID: "a"}, Refresh: func(context.Context) error {
		refreshed++
		return nil
	}})
	for i, c := range []struct {
		renewing func()
		want     int
	}{{func() {}, 1}, {func() {}, 1}, {f.EndLease, 2}} {
		table.renewing = c.renewing
		checktest.MustNoError(t, f.Join(t.Context(), ""), "join")
		checktest.Equal(t, refreshed, c.want, "times that memory was refreshed after renewal %d", i)
		checktest.True(t, f.IsCurrent(), "the lease lasts after renewal %d", i)
	}
}

// TestOnlySignedPokesAreAccepted: to everybody else the path does not exist.
func TestOnlySignedPokesAreAccepted(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	o := fleet.Options{Table: &fakeTable{}, Node: nodes.Node{ID: "b"}, Secret: understudy.NewSecret("s3cret"),
		Now: func() time.Time { return now }}
	b := fleet.New(o)
	var lines bytes.Buffer
	access := accesslog.New(&lines)
	poke := func(change func(r *http.Request)) int {
		r := httptest.NewRequest(http.MethodPost, fleet.PokePath, nil)
		b.SignPoke(r)
		change(r)
		w := httptest.NewRecorder()
		access.Handler(b, o.Now).ServeHTTP(w, r)
		checktest.MustNoError(t, access.Flush(), "write the access log")
		return w.Code
	}
	checktest.Equal(t, poke(func(*http.Request) {}), http.StatusNoContent, "a signed poke")
	checktest.Equal(t, lines.String(), "", "the access log after a signed poke")
	for name, change := range map[string]func(r *http.Request){
		"no header":      func(r *http.Request) { r.Header.Del("Understudy-Node") },
		"empty header":   func(r *http.Request) { r.Header.Set("Understudy-Node", "") },
		"no signature":   func(r *http.Request) { r.Header.Set("Understudy-Node", "1700000000:") },
		"bad signature":  func(r *http.Request) { r.Header.Set("Understudy-Node", r.Header.Get("Understudy-Node")+"0") },
		"bad time":       func(r *http.Request) { r.Header.Set("Understudy-Node", "x"+r.Header.Get("Understudy-Node")) },
		"another method": func(r *http.Request) { r.Method = http.MethodGet },
	} {
		checktest.Equal(t, poke(change), http.StatusNotFound, "status with %s", name)
	}
	checktest.Equal(t, strings.Count(lines.String(), "status=404"), 6, "refused pokes in the access log: %s", &lines)
	old := now
	now = now.Add(31 * time.Second)
	checktest.Equal(t, poke(func(r *http.Request) { r.Header.Set("Understudy-Node", b.SignedAt(old)) }), http.StatusNotFound, "an old poke")
	o.Node.ID = "c"
	c := fleet.New(o)
	other := func(r *http.Request) { r.Header.Set("Understudy-Node", c.SignedAt(now)) }
	checktest.Equal(t, poke(other), http.StatusNotFound, "a poke for another process")
	o.Node.ID, o.Secret = "b", understudy.Secret{}
	b = fleet.New(o)
	checktest.Equal(t, poke(func(*http.Request) {}), http.StatusNotFound, "a poke without a shared secret")
}

// refusals is a table of nodes that tells when a claim was refused.
type refusals struct {
	fleet.Table
	refused chan bool
}

func (r *refusals) Claim(ctx context.Context, key int64, id string) (claimed bool, err error) {
	claimed, err = r.Table.Claim(ctx, key, id)
	if err == nil && !claimed {
		select {
		case r.refused <- true:
		default:
		}
	}
	return claimed, err
}

// TestOneFetchForAll: while one process fetches a key, another waits. It fetches itself only once the first has ended, or its
// lease has.
func TestOneFetchForAll(t *testing.T) {
	path := storetest.File(t)
	_, a := openNode(t, path, "a", nil)
	db, _ := openNode(t, path, "b", nil)
	table := &refusals{Table: db.Nodes, refused: make(chan bool, 1)}
	b := fleet.New(fleet.Options{Table: table, Refresh: db.Refresh, Node: nodes.Node{ID: "b", Settings: fleet.NewSettings(nil)}})
	for _, f := range []*fleet.Fleet{a, b} {
		checktest.MustNoError(t, f.Join(t.Context(), ""), "join")
		run(t, f)
	}
	for a.CountLiving() < 2 { // a learns of b when it renews its lease
		runtime.Gosched()
	}
	checktest.Equal(t, a.IsLeader(), true, "the process that was started first leads")
	checktest.Equal(t, b.IsLeader(), false, "the second process leads")
	key := understudy.Key{Source: "s", URI: "/x"}
	fetch, end, err := a.BeginFetch(t.Context(), key)
	checktest.MustNoError(t, err, "begin at a")
	checktest.Equal(t, fetch, true, "whether a fetches")
	other, endOther, err := b.BeginFetch(t.Context(), understudy.Key{Source: "s", URI: "/y"})
	checktest.MustNoError(t, err, "begin another key at b")
	checktest.Equal(t, other, true, "whether b fetches another key")
	endOther()
	waited := make(chan bool)
	go func() {
		fetch, _, err := b.BeginFetch(t.Context(), key)
		checktest.NoError(t, err, "begin at b")
		waited <- fetch
	}()
	<-table.refused
	end()
	checktest.Equal(t, <-waited, false, "whether b fetches what a has fetched")
	ctx, cancel := context.WithCancel(t.Context())
	_, end, err = a.BeginFetch(t.Context(), key)
	checktest.MustNoError(t, err, "begin at a again")
	defer end()
	cancel()
	_, _, err = b.BeginFetch(ctx, key)
	checktest.True(t, errors.Is(err, context.Canceled), "the error of an ended context is %v", err)
}

// TestReplacedDatabase: a node stops when another server answers for the database. In the first seconds of its next life it lets the
// leases of the former database end before a call returns.
func TestReplacedDatabase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := &fakeTable{err: understudy.ErrReplaced}
		f := fleet.New(fleet.Options{Table: table, Node: nodes.Node{ID: "a"}})
		checktest.True(t, errors.Is(f.Run(t.Context()), understudy.ErrReplaced), "Run does not say that the database was replaced")
		table.set(nil, nil)
		f = fleet.New(fleet.Options{Table: table, Node: nodes.Node{ID: "a"}, Replaced: true})
		began := time.Now()
		f.Await(1)
		took := time.Since(began)
		checktest.True(t, nodes.Lease-100*time.Millisecond < took && took <= nodes.Lease, "the first call returns after %v", took)
	})
}

// heard is a log that tells when it is written to.
type heard chan string

func (n heard) Write(p []byte) (int, error) {
	select {
	case n <- string(p):
	default:
	}
	return len(p), nil
}

// Nodes with TLS poke each other only if the database has the key of the node that answers, whatever its certificate says.
func TestPokesOverTLS(t *testing.T) {
	for _, isRight := range []bool{true, false} {
		table, seen, refused := &fakeTable{}, make(heard, 1), make(heard, 1)
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = seen.Write([]byte(r.Method + " " + r.URL.Path))
		}))
		server.Config.ErrorLog = log.New(refused, "", 0)
		server.StartTLS()
		defer server.Close()
		key := sha256.Sum256(server.Certificate().RawSubjectPublicKeyInfo)
		if !isRight {
			key[0]++
		}
		other := nodes.Node{ID: "b", Seen: 6, Left: time.Minute, URL: server.URL + "#" + hex.EncodeToString(key[:])}
		table.set([]nodes.Node{other}, nil)
		a := fleet.New(fleet.Options{Table: table, Node: nodes.Node{ID: "a"}, Secret: understudy.NewSecret("s3cret"),
			Refresh: func(context.Context) error { return nil }})
		checktest.MustNoError(t, a.Join(t.Context(), ""), "join")
		awaited := make(chan struct{})
		go func() { a.Await(7); close(awaited) }()
		select {
		case got := <-seen:
			checktest.True(t, isRight, "another server got the poke")
			checktest.Equal(t, got, http.MethodPost+" "+fleet.PokePath, "the poke")
		case text := <-refused:
			checktest.True(t, !isRight, "the node is refused: %s", text)
		case <-awaited:
			t.Errorf("no poke arrives; right key: %v", isRight)
		}
		other.Seen = 7
		table.set([]nodes.Node{other}, nil)
		<-awaited
	}
}
