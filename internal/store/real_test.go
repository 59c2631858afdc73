// The walk over the wire: slowapi's calls, read by upstream's record reader,
// at three page sizes, with the world moving on in between.

package store_test

import (
	"bytes"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/sample"
	"understudy/internal/slowapi"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
	"understudy/request"
	"understudy/spec"
	"understudy/upstream"
)

// wire is a slow API, a client of it, and a store to fill.
type wire struct {
	*testing.T
	slow   *httptest.Server
	spec   *spec.Spec
	client *upstream.Client
	path   string
	pages  map[understudy.Key]*understudy.Page // as upstream sent them last
}

func newWire(t *testing.T, records int) *wire {
	t.Helper()
	world, err := slowapi.New(slowapi.Options{Records: records})
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{T: t, slow: httptest.NewServer(world), spec: storetest.Specs(t)[storetest.Source], path: storetest.File(t),
		pages: map[understudy.Key]*understudy.Page{}}
	t.Cleanup(func() {
		w.slow.Close()
		if err := world.Close(); err != nil {
			t.Error(err)
		}
	})
	source := &spec.Source{Name: storetest.Source, Spec: w.spec, User: storetest.Account}
	w.client, err = upstream.New(upstream.Options{Source: source, Base: w.slow.URL, Secret: understudy.NewSecret("slowapitoken"), Rate: 1e6})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.client.Close() })
	return w
}

// walk saves every page of a list, loads each again, and returns how many
// records were on them and what changed.
func (w *wire) walk(list string, pageSize int) (records int, changes []understudy.Change) {
	w.Helper()
	db := storetest.OpenAt(w, w.path)
	next, err := w.spec.Resolve(storetest.Source, "/2010-04-01/Accounts/"+storetest.Account+"/"+list+".json",
		"PageSize="+strconv.Itoa(pageSize))
	for err == nil && next != nil {
		var p *understudy.Page
		if p, err = w.client.Fetch(w.Context(), request.Fetch{Target: next, RetryWindow: time.Minute}); err != nil {
			break
		}
		saved, serr := db.Save(w.Context(), p)
		if serr != nil {
			w.Fatal(serr)
		}
		records += len(p.Rows)
		changes = append(changes, saved.Changes...)
		w.pages[p.Key] = p
		w.same(db, p)
		if next = nil; !p.Next.IsZero() {
			next, err = w.spec.ResolveLink(storetest.Source, p.Next.URI)
		}
	}
	if err != nil {
		w.Fatal(err)
	}
	if err := db.Close(); err != nil {
		w.Fatal(err)
	}
	return records, changes
}

func (w *wire) same(db *store.DB, p *understudy.Page) *understudy.Page {
	w.Helper()
	got, err := db.ReadPage(w.Context(), p.Key)
	checktest.MustNoError(w, err, "page %s does not come back", p.Key)
	checktest.MustTrue(w, bytes.Equal(got.Body, p.Body), "page %s does not come back: got.Body is %q, want %q",
		p.Key, got.Body, p.Body)
	checktest.MustEqual(w, got.Next, p.Next, "page %s does not come back: got.Next", p.Key)
	checktest.MustEqual(w, len(got.Rows), len(p.Rows), "page %s does not come back: len(got.Rows)", p.Key)
	for i, r := range got.Rows {
		want := p.Rows[i]
		checktest.MustEqual(w, r.ID, want.ID, "page %s, record %d: r.ID", p.Key, i)
		checktest.MustEqual(w, r.Start, want.Start, "page %s, record %d: r.Start", p.Key, i)
		checktest.MustEqual(w, r.End, want.End, "page %s, record %d: r.End", p.Key, i)
		checktest.MustEqual(w, r.Clock, want.Clock, "page %s, record %d: r.Clock", p.Key, i)
		checktest.MustEqual(w, r.Final, want.Final, "page %s, record %d: r.Final", p.Key, i)
	}
	return got
}

func (w *wire) advance(body string) {
	w.Helper()
	r, err := http.NewRequestWithContext(w.Context(), "POST", w.slow.URL+"/-/advance", strings.NewReader(body))
	if err != nil {
		w.Fatal(err)
	}
	answer, err := w.slow.Client().Do(r)
	if err != nil {
		w.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != 200 {
		w.Fatalf("advance: %s", answer.Status)
	}
}

func TestWalkOverTheWire(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	if n, err := strconv.ParseUint(os.Getenv("PROVE_SEED"), 10, 64); err == nil {
		seed = n
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	sizes := []int{50, 35 + rng.IntN(60), 100 + rng.IntN(901)}
	t.Logf("PROVE_SEED=%d, page sizes %v", seed, sizes)
	walked := sample.Count(400, 10_000)
	w := newWire(t, walked)
	var last int64
	for i, pageSize := range sizes {
		records, changes := w.walk("Calls", pageSize)
		want := 0
		if i == 0 {
			want = records
		}
		if records < walked || len(changes) != want {
			t.Fatalf("page size %d: %d records, %d changes, want %d", pageSize, records, len(changes), want)
		}
		now := storetest.FileSize(t, w.path)
		if i > 0 && (now-last)*20 >= last {
			t.Errorf("page size %d added %d bytes to %d, want less than 5 %%", pageSize, now-last, last)
		}
		last = now
	}
	// The world moves on: calls come, those under way end and get a price.
	for i := range 4 {
		w.advance(`{"calls":` + strconv.Itoa(rng.IntN(20)) + `,"seconds":60}`)
		w.walk("Calls", sizes[i%3])
		if i == 1 {
			w.walk("Messages", sizes[2])
		}
	}
	db := storetest.OpenAt(t, w.path)
	superseded := 0
	for _, p := range w.pages {
		if w.same(db, p).Superseded {
			superseded++
		}
	}
	if superseded == 0 {
		t.Error("no page is superseded after the world has moved on")
	}
	if r, err := db.Verifier.Verify(t.Context()); err != nil || len(r.Problems) > 0 {
		t.Errorf("verify: %v, %v", r.Problems, err)
	}
	st, err := db.ReadStats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d records, %d versions, %d pages, %d changes: %.0f bytes per record", st.Records, st.Versions, st.Pages, st.Changes, st.PerRecord)
	// Of few records the first blocks and pages weigh more. With words the limit is 600;
	// a list page of 1,000 records makes terms merge at once, which leaves free pages.
	if most := 600.0; st.PerRecord > most && walked == 10_000 {
		t.Errorf("%.0f bytes per record, want at most %.0f", st.PerRecord, most)
	}
}
