// The same random calls to a store on SQLite and to one on PostgreSQL get the same answers, byte for byte.

package store_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"understudy"
	"understudy/internal/query"
	"understudy/internal/sample"
	"understudy/internal/store"
	"understudy/internal/store/erase"
	"understudy/internal/store/storetest"
	"understudy/request"
)

// engine is what these tests use of a store.
type engine interface {
	storetest.Seeker
	storetest.Erasing
}

// engines are two stores that get the same calls at the same time of one clock: the first is on SQLite, the second on
// PostgreSQL.
type engines struct {
	t   testing.TB
	rng *rand.Rand
	all []engine
	now *atomic.Int64 // in Unix seconds

	vocabulary []string
	things     []*thing
	keys       []understudy.Key
	shapes     []string // a list's shape and others
	orders     []query.OrderKey
	changes    map[string]int64 // the last change by source
	writer     *writer          // set if this is one of many writers, which keeps to its own records
	calls      int
}

// listsPerRound is how many lists, and how many searches, are compared for one pair of stores.
const listsPerRound = 40

// TestEnginesAnswerTheSame makes random calls to both stores, and compares what they return.
func TestEnginesAnswerTheSame(t *testing.T) {
	seed := sample.Seed(t)
	lists, searches, found, calls := 0, 0, [2]int{}, 0
	for round := range sample.Count(1, 50) {
		t.Run(fmt.Sprint("round-", round), func(t *testing.T) { // its end closes the stores
			e := newEngines(t, rand.New(rand.NewPCG(seed, uint64(round))), 1+(seed+uint64(round))%2)
			for range 20 + e.rng.IntN(10)*e.rng.IntN(20) {
				e.step()
			}
			for range listsPerRound {
				for range e.rng.IntN(3) {
					e.step()
				}
				found[0] += e.compareSeek(e.drawQuery())
				lists++
				found[1] += e.compareSeek(e.drawSearch())
				searches++
				e.compareReads()
			}
			e.compareWhole()
			calls += e.calls
		})
	}
	t.Logf("%d lists with %d records and %d searches with %d records are the same, in %d calls", lists, found[0], searches, found[1], calls)
	if found[0] == 0 || found[1] == 0 {
		t.Error("nothing was found")
	}
}

// newEngines opens two empty stores. The one on PostgreSQL has one or two handles.
func newEngines(t *testing.T, rng *rand.Rand, handles uint64) *engines {
	t.Helper()
	e := &engines{t: t, rng: rng, now: new(atomic.Int64), changes: map[string]int64{}, shapes: []string{"brief", "detail"}}
	e.now.Store(storetest.Epoch.Unix())
	o := storetest.EraseOptions(t, func() time.Time { return time.Unix(e.now.Load(), 0).UTC() })
	o.Specs["items"] = storetest.ItemsSpec(t)
	d, err := store.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	e.all = append(e.all, tested{d, d.Eraser, d.Verifier})
	if handles == 1 {
		e.all = append(e.all, openPostgres(t, o))
	} else {
		o.Path = storetest.Database(t)
		e.all = append(e.all, openHandles(t, o))
	}
	for range 30 {
		e.vocabulary = append(e.vocabulary, drawWord(rng))
	}
	return e
}

// compare calls do with both stores, and fails the test if they return different texts. It returns the text.
func (e *engines) compare(what string, do func(s engine) (string, error)) string {
	e.t.Helper()
	e.calls++
	var told [2]string
	for i, s := range e.all {
		text, err := do(s)
		if err != nil {
			text += "\nerror " + err.Error()
		}
		told[i] = text
	}
	if told[0] != told[1] {
		at := 0
		for at < min(len(told[0]), len(told[1])) && told[0][at] == told[1][at] {
			at++
		}
		around := func(s string) string { return s[max(min(at, len(s))-300, 0):min(at+300, len(s))] }
		e.t.Fatalf("call %d, %s: the answers differ at byte %d:\n    SQLite ...%s\nPostgreSQL ...%s", e.calls, what, at,
			around(told[0]), around(told[1]))
	}
	return told[0]
}

// step makes one random change to both stores.
func (e *engines) step() {
	e.now.Add(pick(e.rng, []int64{1, 1, 10, 10, 100, 4000}))
	of := pick(e.rng, thingKinds)
	switch e.rng.IntN(40) {
	default:
		e.save(e.drawList(of.source, of.kind, of.path))
	case 0, 1, 2, 3, 4, 5, 6, 7:
		e.save(e.drawInstance(e.drawThing(of.source, of.kind)))
	case 8, 9, 10:
		x := e.drawThing(of.source, of.kind)
		x.deleted = e.rng.IntN(3) > 0
		p := e.newPage(x.source, x.kind, "/gone/"+x.id)
		p.ID, p.Status, p.Body = x.id, pick(e.rng, []int{404, 410, 204}), nil
		e.save(p)
	case 11:
		p := e.newPage(of.source, "", fmt.Sprint("/any/", e.rng.IntN(5)))
		p.Status, p.Body = pick(e.rng, []int{200, 400, 404}), []byte(e.drawWords(9)+"\x00\xff\xfe")
		e.save(p)
	case 12, 13:
		t := request.Invalidation{Source: of.source, Kind: of.kind}
		if e.rng.IntN(2) == 0 {
			t.ID = e.drawThing(of.source, of.kind).id
		}
		e.compare(fmt.Sprintf("touch %+v", t), func(s engine) (string, error) {
			n, err := s.Touch(e.t.Context(), t)
			return fmt.Sprint(n), err
		})
	case 14:
		if len(e.keys) > 0 {
			key := pick(e.rng, e.keys)
			e.compare("forget page "+key.String(), func(s engine) (string, error) {
				held, err := s.ForgetPage(e.t.Context(), key)
				return fmt.Sprint(held), err
			})
		}
	case 15:
		x := e.drawThing(of.source, of.kind)
		e.compare("forget record "+x.id, func(s engine) (string, error) {
			pages, versions, err := s.ForgetRecord(e.t.Context(), x.source, x.kind, x.id)
			return fmt.Sprint(pages, versions), err
		})
	case 16:
		e.erase()
	case 17:
		e.now.Add(86_400 * e.rng.Int64N(2))
		e.compare("expire", func(s engine) (string, error) {
			n, err := s.Expire(e.t.Context(), "twilio", "messages")
			return fmt.Sprint(n, s.Horizon("twilio", "messages")), err
		})
	case 18, 19:
		e.eraseListed()
	case 20:
		world := fmt.Sprint("world", e.rng.IntN(8)/7)
		e.compare("keep origin "+world, func(s engine) (string, error) { return "", s.KeepOrigin(e.t.Context(), of.source, world) })
	}
}

// erase lists a person's records, or one record, for erasing.
func (e *engines) erase() {
	what := pick(e.rng, people)
	if e.rng.IntN(3) > 0 {
		x := e.drawThing("twilio", pick(e.rng, []string{"calls", "messages"}))
		what = x.kind + "/" + x.id
	}
	e.compare("erase "+what, func(s engine) (string, error) {
		r, f, err := s.EraseNumber(e.t.Context(), "twilio", what)
		return fmt.Sprintf("%s %v %d", showErasures(r), f.Kinds, f.Records()), err
	})
}

func (e *engines) eraseListed() {
	e.compare("erase what is listed", func(s engine) (string, error) {
		done, err := s.EraseListed(e.t.Context(), erase.Job{})
		return showErasures(done...), err
	})
}

// showErasures returns receipts as a text. Their hashes have a key of the store's own.
func showErasures(all ...erase.Erasure) string {
	all = slices.Clone(all)
	for i := range all {
		all[i].Hash = fmt.Sprint(len(all[i].Hash))
	}
	return fmt.Sprintf("%#v", all)
}

// save saves a page in both stores.
func (e *engines) save(p *understudy.Page) {
	e.t.Helper()
	if p.Key.URI != "" {
		e.keys = append(e.keys, p.Key)
	}
	e.compare("save "+p.Key.String(), func(s engine) (string, error) {
		saved, err := s.Save(e.t.Context(), p)
		if err != nil {
			return "", err
		}
		for _, c := range saved.Changes {
			e.changes[p.Key.Source] = c.N
		}
		return showPage(saved.Page) + fmt.Sprintf("\n%#v", saved.Changes), nil
	})
}

// compareWhole compares the feeds of both stores, and verifies them.
func (e *engines) compareWhole() {
	e.eraseListed()
	for _, of := range thingKinds {
		e.compare("changes of "+of.source, func(s engine) (string, error) {
			all, err := s.ReadChanges(e.t.Context(), of.source, 0, store.MaxChanges)
			for i, c := range all {
				if c.N != int64(i+1) {
					err = errors.Join(err, fmt.Errorf("change %d has number %d", i+1, c.N))
				}
			}
			return fmt.Sprintf("%#v", all), err
		})
	}
	for _, x := range e.things {
		if e.rng.IntN(8) == 0 {
			e.compareRecord(x)
		}
	}
	for _, key := range e.keys {
		if e.rng.IntN(8) == 0 {
			e.comparePage(key)
		}
	}
	e.compare("verify", func(s engine) (string, error) {
		r, err := s.Verify(e.t.Context())
		if err == nil && len(r.Problems) > 0 {
			err = fmt.Errorf("%q", r.Problems)
		}
		if err != nil {
			e.t.Errorf("verify: %v", err)
		}
		return fmt.Sprintf("%d pages, %d versions, %d records, %d gone", r.Pages, r.Versions, r.Records, r.Gone), err
	})
}
