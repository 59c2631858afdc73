// Search: the real searcher over records of the simulated API.

package viewertest

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"understudy/internal/search"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
	"understudy/internal/viewer/page"
	"understudy/request"
	"understudy/spec"
)

// WithSearch lets a viewer search records of the simulated API: those of four lists, and of more lists by their paths.
func WithSearch(t testing.TB, more ...string) func(*page.Options) {
	return func(o *page.Options) {
		mem := storetest.Open(t, store.Options{Specs: map[string]*spec.Spec{o.Sources[0].Name: o.Sources[0].Spec},
			Now: func() time.Time { return Noon }})
		src := o.Sources[0]
		for _, path := range append([]string{"/Calls.json", "/Messages.json", "/Conferences.json", "/Recordings.json"}, more...) {
			for next := "/2010-04-01/Accounts/" + Account + path + "?PageSize=100"; next != ""; {
				at, params, _ := strings.Cut(next, "?")
				target, err := src.Spec.Resolve("twilio", at, params)
				Must(t, err)
				found, err := o.Mirror.(*Mirror).Fetch(t.Context(), request.Fetch{Target: target, Reason: request.ReasonWaiting,
					RetryWindow: time.Minute})
				Must(t, err)
				_, err = mem.Save(t.Context(), found)
				Must(t, err)
				next = ""
				if !found.Next.IsZero() {
					next = found.Next.URI
				}
			}
		}
		searcher, err := search.New(search.Options{
			Sources: o.Sources, Store: mem, Gate: o.Gate, Masked: o.Gate, KV: mem.KV, Key: bytes.Repeat([]byte{7}, 32),
			Now:    o.Now,
			Limits: search.Limits{Count: time.Minute, Facets: time.Minute, Time: time.Minute}, // the race detector takes its time
		})
		Must(t, err)
		o.Search, o.Shelf, o.Sums = searcher, searcher, searcher
		t.Cleanup(func() { Must(t, mem.Close()) })
	}
}
