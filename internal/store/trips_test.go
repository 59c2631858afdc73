// The round trips of a save. The database may be a millisecond away, and only one node of a fleet saves at a time.

package store_test

import (
	"fmt"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/store"
	"understudy/internal/store/pgtest"
	"understudy/internal/store/storetest"
	"understudy/spec"
)

// maxTrips is how many round trips a save of a page of 50 records may take.
const maxTrips = 6

// tripsCase is one sort of page.
type tripsCase struct {
	name   string
	before func(w *storetest.World, save func(*understudy.Page)) // saves what is stored before
	page   func(w *storetest.World) *understudy.Page
}

func tripsCases() []tripsCase {
	const size = 50
	page := func(w *storetest.World, n int, later time.Duration) *understudy.Page {
		p, _ := w.List(size, n, n*size, storetest.Epoch.Add(time.Hour+later))
		return p
	}
	first := func(w *storetest.World) *understudy.Page { return page(w, 0, time.Minute) }
	known := func(w *storetest.World, save func(*understudy.Page)) { save(page(w, 0, 0)) }
	instance := func(w *storetest.World, status int, later time.Duration) *understudy.Page {
		body := w.AppendCall(nil, 7)
		uri := "/2010-04-01/Accounts/" + storetest.Account + "/Calls/" + w.ID(7) + ".json"
		p := &understudy.Page{Key: understudy.Key{Source: storetest.Source, URI: uri},
			Kind: "calls", Shape: "calls", ID: w.ID(7), Status: status, ContentType: "application/json", At: storetest.Epoch.Add(time.Hour + later)}
		if status == 404 {
			p.Body = []byte(`{"code": 20404, "status": 404}`)
			return p
		}
		p.Body, p.Rows = body, []understudy.Row{{ID: w.ID(7), End: len(body), Clock: storetest.Epoch.Unix() - 7*37}}
		return p
	}
	return []tripsCase{
		{"new records", nil, first},
		{"known records", known, first},
		{"changed records", known, func(w *storetest.World) *understudy.Page {
			for i := range size {
				w.Changed[i]++
			}
			return first(w)
		}},
		{"new, known and changed records", known, func(w *storetest.World) *understudy.Page {
			for i := range 10 {
				w.Changed[20+i]++
			}
			p, _ := w.List(size, 0, -10, storetest.Epoch.Add(time.Hour+time.Minute))
			return p
		}},
		{"new records above a stored page", func(w *storetest.World, save func(*understudy.Page)) { save(page(w, 1, 0)) }, first},
		{"new records below a stored page", known, func(w *storetest.World) *understudy.Page { return page(w, 1, time.Minute) }},
		{"new records between stored pages", func(w *storetest.World, save func(*understudy.Page)) {
			save(page(w, 0, 0))
			save(page(w, 2, 0))
		}, func(w *storetest.World) *understudy.Page { return page(w, 1, time.Minute) }},
		{"a deleted record", known, func(w *storetest.World) *understudy.Page { return instance(w, 404, time.Minute) }},
		{"a deleted record that has a page", func(w *storetest.World, save func(*understudy.Page)) {
			save(page(w, 0, 0))
			save(instance(w, 200, time.Second))
		}, func(w *storetest.World) *understudy.Page { return instance(w, 404, time.Minute) }},
		{"a record that is not there", nil, func(w *storetest.World) *understudy.Page { return instance(w, 404, time.Minute) }},
		{"records of which one was deleted", func(w *storetest.World, save func(*understudy.Page)) {
			save(page(w, 0, 0))
			save(instance(w, 404, time.Second))
		}, func(w *storetest.World) *understudy.Page {
			w.Gone[7] = true
			return first(w)
		}},
		{"a deleted record that is there again", func(w *storetest.World, save func(*understudy.Page)) {
			save(page(w, 0, 0))
			save(instance(w, 404, time.Second))
		}, first},
	}
}

func TestASaveTakesFewRoundTrips(t *testing.T) {
	specs := map[string]*spec.Spec{}
	for i := range 100 {
		specs[fmt.Sprint("twilio", i)] = storetest.Specs(t)[storetest.Source]
	}
	proxy := pgtest.NewProxy(t, storetest.Database(t), 0)
	d, err := store.Open(t.Context(), store.Options{Path: proxy.DSN(), Specs: specs, SaveTime: storetest.Patience})
	checktest.MustNoError(t, err, "open the store")
	t.Cleanup(func() { checktest.NoError(t, d.Close(), "close the store") })
	worlds := 0
	// measure saves the pages of a case in a source of its own, and returns the round trips of the last one.
	measure := func(c tripsCase) int64 {
		worlds++
		save := func(p *understudy.Page) {
			t.Helper()
			p.Key.Source = fmt.Sprint("twilio", worlds)
			if p.Next.URI != "" {
				p.Next.Source = p.Key.Source
			}
			_, err := d.Save(t.Context(), p)
			checktest.MustNoError(t, err, "%s: save %s", c.name, p.Key)
		}
		w := storetest.NewWorld(uint64(worlds), 400)
		elsewhere, _ := w.List(50, 6, 300, storetest.Epoch)
		save(elsewhere) // then the names of the source and of the kind are known
		if c.before != nil {
			c.before(w, save)
		}
		p := c.page(w)
		checktest.MustNoError(t, d.Index.Flush(t.Context()), "flush the indexes")
		before := proxy.RoundTrips()
		save(p)
		return proxy.RoundTrips() - before
	}
	for _, c := range tripsCases() {
		// Writing the indexes in the background adds to the round trips of a save that it meets.
		least := measure(c)
		for range 4 {
			if least > maxTrips {
				least = min(least, measure(c))
			}
		}
		t.Logf("%s: %d round trips", c.name, least)
		checktest.True(t, least <= maxTrips, "%s: a save takes %d round trips, more than %d", c.name, least, maxTrips)
	}
}
