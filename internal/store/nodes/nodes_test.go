package nodes_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"understudy/internal/checktest"
	"understudy/internal/store"
	"understudy/internal/store/nodes"
	"understudy/internal/store/storetest"
	"understudy/request"
)

// TestNodesAreListed: a node is listed with its lease and with how far it is behind, on each engine.
func TestNodesAreListed(t *testing.T) {
	for name, path := range map[string]func(testing.TB) string{"SQLite": storetest.File, "PostgreSQL": storetest.Database} {
		t.Run(name, func(t *testing.T) {
			at := path(t)
			open := func() *store.DB {
				db, err := store.Open(t.Context(), store.Options{Path: at, Specs: storetest.Specs(t), SaveTime: storetest.Patience})
				checktest.MustNoError(t, err, "open")
				t.Cleanup(func() { checktest.NoError(t, db.Close(), "close") })
				return db
			}
			a, b := open(), open()
			for _, n := range []struct {
				db   *store.DB
				node nodes.Node
			}{{a, nodes.Node{ID: "a", URL: "http://a", Version: "1", Settings: "x"}}, {b, nodes.Node{ID: "b", Version: "2"}}} {
				_, err := n.db.Nodes.Renew(t.Context(), n.node)
				checktest.MustNoError(t, err, "renew %s", n.node.ID)
			}
			_, err := a.Touch(t.Context(), request.Invalidation{Source: storetest.Source, Kind: "calls"})
			checktest.MustNoError(t, err, "touch")
			all, err := b.Nodes.Renew(t.Context(), nodes.Node{ID: "b", Version: "2"})
			checktest.MustNoError(t, err, "renew again")
			checktest.MustEqual(t, len(all), 2, "nodes")
			checktest.Equal(t, all[0].ID+" "+all[0].URL+" "+all[0].Version+" "+all[0].Settings, "a http://a 1 x", "first node")
			checktest.Equal(t, all[0].Behind, 1, "changes that node a has not reported yet")
			checktest.Equal(t, all[1].Behind, 0, "changes that node b has not seen")
			for _, n := range all {
				checktest.True(t, n.Left > 0 && n.Left <= nodes.Lease, "lease of %s is %v", n.ID, n.Left)
				checktest.True(t, time.Since(n.Started).Abs() < time.Minute, "start of %s is %v", n.ID, n.Started)
			}
			for _, c := range []struct {
				db     *store.DB
				writes int64
				done   bool
			}{{a, 0, true}, {b, 0, false}, {b, 1, true}} {
				done, err := c.db.Nodes.ReplaceParts(t.Context(), c.writes, fmt.Sprint("after ", c.writes))
				checktest.MustNoError(t, err, "replace the parts after %d writes", c.writes)
				checktest.Equal(t, done, c.done, "whether the parts are replaced after %d writes", c.writes)
			}
			all, err = a.Nodes.List(t.Context())
			checktest.MustNoError(t, err, "list the parts")
			checktest.Equal(t, all[0].Parts, "after 1", "parts")
			checktest.Equal(t, all[1].PartsWrites, 2, "writes of the parts")
			checktest.MustNoError(t, a.Nodes.Remove(t.Context(), "a"), "remove")
			all, err = b.Nodes.List(t.Context())
			checktest.MustNoError(t, err, "list")
			checktest.Equal(t, len(all), 1, "nodes after one has ended")
		})
	}
}

// writtenElsewhere has what a process has learned of the writes of other processes, by kind.
type writtenElsewhere struct {
	mu          sync.Mutex
	generations map[string]int64
	ids         map[string][]string // "any" for writes of which the records are not known
}

func (w *writtenElsewhere) add(_, kind string, generation int64, ids []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(ids) == 0 {
		ids = []string{"any"}
	}
	w.generations[kind] = generation
	w.ids[kind] = append(w.ids[kind], ids...)
}

// take returns what was learned since the last call.
func (w *writtenElsewhere) take() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []string
	for kind, ids := range w.ids {
		slices.Sort(ids)
		all = append(all, fmt.Sprint(kind, w.generations[kind], " ", ids))
	}
	slices.Sort(all)
	clear(w.ids)
	return strings.Join(all, " ")
}

// TestOthersLearnWhichRecordsWereWritten: a process learns the ids of the records that another one has written, as long as the
// database has all of them.
func TestOthersLearnWhichRecordsWereWritten(t *testing.T) {
	for name, path := range map[string]func(testing.TB) string{"SQLite": storetest.File, "PostgreSQL": storetest.Database} {
		t.Run(name, func(t *testing.T) {
			at := path(t)
			open := func() (*store.DB, *writtenElsewhere) {
				db, err := store.Open(t.Context(), store.Options{Path: at, Specs: storetest.Specs(t), SaveTime: storetest.Patience})
				checktest.MustNoError(t, err, "open")
				t.Cleanup(func() { checktest.NoError(t, db.Close(), "close") })
				w := &writtenElsewhere{generations: map[string]int64{}, ids: map[string][]string{}}
				err = db.Nodes.SetOthers(t.Context(), nodes.Others{Deleted: func() {}, Written: w.add})
				checktest.MustNoError(t, err, "SetOthers")
				return db, w
			}
			a, atA := open()
			b, atB := open()
			touch := func(db *store.DB, kind string, ids ...string) {
				t.Helper()
				for _, id := range ids {
					_, err := db.Touch(t.Context(), request.Invalidation{Source: storetest.Source, Kind: kind, ID: id})
					checktest.MustNoError(t, err, "touch %s", id)
				}
			}
			learn := func(db *store.DB, w *writtenElsewhere, want string) {
				t.Helper()
				checktest.MustNoError(t, db.Refresh(t.Context()), "refresh")
				checktest.Equal(t, w.take(), want, "what a process learns")
			}
			touch(a, "calls", "CA1", "CA2\x00\xff")
			touch(a, "messages", "SM1")
			learn(b, atB, "calls2 [CA1 CA2\x00\xff] messages1 [SM1]")
			touch(b, "calls", "CA3") // a process knows its own writes
			learn(b, atB, "")
			learn(a, atA, "calls3 [CA3]")
			touch(a, "calls", "")
			learn(b, atB, "calls4 [any]")
			for n := range 300 {
				touch(a, "messages", fmt.Sprint("SM", n))
			}
			checktest.MustNoError(t, b.Refresh(t.Context()), "refresh")
			for n, all := 0, atB.take(); n < 300 && !strings.Contains(all, "any"); n++ { // of more than 256 it does not know the ids
				checktest.True(t, strings.Contains(all, fmt.Sprint("SM", n)), "the process does not learn of the write to SM%d", n)
			}
			touch(a, "messages", "SM7")
			learn(b, atB, "messages302 [SM7]")
		})
	}
}
