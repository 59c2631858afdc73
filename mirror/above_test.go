// What stands above the newest page: a list from records ends where that did.

package mirror

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"understudy"
	"understudy/internal/query"
	"understudy/mirror/compose"
	"understudy/mirror/shadow"
	"understudy/request"
)

// tips says what the newest page showed, and when it came.
func (c *claims) tips(newest time.Time, ids ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.c.At, c.c.Newest, c.c.Head = newest, newest, append([]string{}, ids...)
}

// TestNoHoleBelowWhatCameAlone: a small page brings the newest record, and not
// those between it and what the newest page showed. No list shows it before
// they are held, too, and no walk goes on below it.
func TestNoHoleBelowWhatCameAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, c := covered(t, 7, pinned(shadow.Records))
		c.tips(time.Now(), sid(7), sid(6))
		time.Sleep(time.Second)
		for n := range 5 {
			s.set(sid(8+n), "queued", false)
		}
		fill := func(params string) {
			t.Helper()
			if _, err := s.Fill(t.Context(), request.Fill{Target: s.target(t, "Calls.json", params), RecordsOnly: true}); err != nil {
				t.Fatal(err)
			}
		}
		fill("PageSize=1")
		wish := func(w request.LocalQuery, params string) (*request.Response, error) {
			return s.Answer(t.Context(), request.Request{Target: s.target(t, "Calls.json", params), Local: &w})
		}
		all := func(*understudy.Record) bool { return true }
		shows := func(a *request.Response, err error, ids ...string) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
			want(t, a, request.Composed, "composed")
			if got := shown(a.Page); !slices.Equal(got, ids) {
				t.Errorf("the list shows %v, want %v", got, ids)
			}
		}
		shows(s.get(t, s.target(t, "Calls.json", "PageSize=3")), nil, sid(7), sid(6), sid(5))
		shows(s.get(t, s.target(t, "Calls.json", "Status=queued")), nil)
		a, err := wish(request.LocalQuery{CanFind: all}, "PageSize=2")
		shows(a, err, sid(7), sid(6))
		a, err = wish(request.LocalQuery{OldestFirst: true}, "PageSize=9")
		shows(a, err, sid(1), sid(2), sid(3), sid(4), sid(5), sid(6), sid(7))
		a, err = wish(request.LocalQuery{Since: 7}, "PageSize=2") // by the number of its change nothing is passed over
		shows(a, err, sid(12))
		if _, err = wish(request.LocalQuery{CanFind: all}, "PageSize=1&Page=1&PageToken=PA"+sid(12)); !errors.Is(err, understudy.ErrNotMirrored) {
			t.Errorf("a walk goes on below it: %v", err)
		}
		shows(s.get(t, s.target(t, "Calls.json", "PageSize=2&Page=1&PageToken=PA"+sid(7))), nil, sid(6), sid(5))

		// The newest one is deleted: where its page ended is known all the same.
		gone := &understudy.Page{Key: understudy.Key{Source: "twilio", URI: "/gone"}, Kind: "calls", Shape: "calls", ID: sid(7), Status: 404,
			At: time.Now()}
		if _, err := s.store.Save(t.Context(), gone); err != nil {
			t.Fatal(err)
		}
		a, err = wish(request.LocalQuery{CanFind: all}, "PageSize=2")
		shows(a, err, sid(6), sid(5))

		// A list that was empty shows nothing yet.
		c.tips(time.Now())
		a, err = wish(request.LocalQuery{CanFind: all}, "PageSize=2")
		shows(a, err)

		fill("PageSize=50")
		c.tips(time.Now(), sid(12), sid(11))
		a, err = wish(request.LocalQuery{CanFind: all}, "PageSize=3")
		shows(a, err, sid(12), sid(11), sid(10))
		a, err = wish(request.LocalQuery{CanFind: all}, "PageSize=1&Page=1&PageToken=PA"+sid(12))
		shows(a, err, sid(11))
	})
}

// TestWhatTheNewestPageNeverShowsIsShown: what stands above the newest page's
// records and was held long before it came is of a list that shows more.
func TestWhatTheNewestPageNeverShowsIsShown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, c := covered(t, 7, pinned(shadow.Records))
		c.tips(time.Now(), sid(5))
		a := s.get(t, s.target(t, "Calls.json", "PageSize=1"))
		if got := shown(a.Page); !slices.Equal(got, []string{sid(5)}) {
			t.Errorf("the list shows %v", got)
		}
		time.Sleep(2 * time.Minute)
		c.tips(time.Now(), sid(5))
		for params, id := range map[string]string{"PageSize=1": sid(7), "PageSize=1&Page=1&PageToken=PA" + sid(7): sid(6)} {
			a := s.get(t, s.target(t, "Calls.json", params))
			want(t, a, request.Composed, "composed")
			if got := shown(a.Page); !slices.Equal(got, []string{id}) {
				t.Errorf("%s shows %v, want %v", params, got, id)
			}
		}
	})
}

// limited is a shelf that hands out no more than it is asked for.
type limited struct{ shelf }

func (l limited) Seek(ctx context.Context, q query.RecordQuery, yield func(query.Hit) bool) error {
	n := 0
	return l.shelf.Seek(ctx, q, func(f query.Hit) bool {
		n++
		return yield(f) && n != q.Limit
	})
}

// TestUpwardsNothingIsLostBehindWhatDoesNotCount: of a page upwards that is cut at
// its size nothing is lost behind a record that is of no list yet.
func TestUpwardsNothingIsLostBehindWhatDoesNotCount(t *testing.T) {
	t.Parallel()
	s := open(t, 0)
	now := time.Now()
	var held shelf
	for n := 7; n > 0; n-- {
		rec := &understudy.Record{ID: sid(n), Since: now.Add(-time.Hour)}
		if n == 6 {
			rec.Since = now
		}
		held = append(held, rec)
	}
	w := &compose.Bounded{Store: limited{held}, Kind: s.newest(t).Kind}
	if err := w.EndAtNewest(t.Context(), "twilio", []string{sid(5)}, now); err != nil {
		t.Fatal(err)
	}
	for below, want := range map[query.OrderKey][]string{3: {sid(4), sid(5)}, 4: {sid(5), sid(7)}, 5: {sid(7)}, 7: nil} {
		var got []string
		err := w.Seek(t.Context(), query.RecordQuery{OldestFirst: true, Below: below, Limit: 2}, func(f query.Hit) bool {
			got = append(got, f.Record.ID)
			return true
		})
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("above %d: %v, %v, want %v", below, got, err, want)
		}
	}
}

// TestWhoHasWrittenFindsIt: who finds some records alone, whose lists are never
// upstream's own, waits for the newest page once after a write. It shows what
// was written and what came before that.
func TestWhoHasWrittenFindsIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var newest atomic.Pointer[understudy.Key]
		var c *claims
		s, c := covered(t, 7, polls("calls"), func(o *Options) {
			o.PageSaved = func(l request.PageSaved) {
				if key := newest.Load(); key != nil && l.Page.Key == *key {
					c.tips(l.Page.At, l.Page.Rows[0].ID)
				}
			}
		})
		key := s.newest(t).Key
		c.tips(time.Now(), sid(7))
		newest.Store(&key)
		time.Sleep(5 * time.Second) // the poll has completed
		ask := request.Request{Target: s.target(t, "Calls.json", "PageSize=3"),
			Local: &request.LocalQuery{CanFind: func(*understudy.Record) bool { return true }}}
		list := func(ids ...string) {
			t.Helper()
			a, err := s.Answer(t.Context(), ask)
			if err != nil {
				t.Fatal(err)
			}
			if got := shown(a.Page); !slices.Equal(got, ids) {
				t.Errorf("the list shows %v, want %v", got, ids)
			}
		}
		list(sid(7), sid(6), sid(5))
		write := func() {
			t.Helper()
			if _, err := s.Mirror.Write(t.Context(), request.Write{Target: s.newest(t), Method: "POST"}); err != nil {
				t.Fatal(err)
			}
		}
		s.write = func(w request.Write) (*understudy.Page, error) {
			s.set(sid(8), "queued", false) // of another caller
			s.set(sid(9), "queued", false)
			return instance(s.call(t, sid(9)), 201, call{sid(9), "queued", false}), nil
		}
		n := s.count()
		write()
		list(sid(9), sid(8), sid(7))
		for range 5 {
			list(sid(9), sid(8), sid(7))
		}
		// The poll that follows a write comes twice when the first began before
		// the version was saved.
		if all, by := s.since(n); all > 2 {
			t.Errorf("upstream was asked %d times, by reason %v", all, by)
		}

		// While nothing comes from upstream the list is as it was.
		time.Sleep(time.Minute)
		s.script(func() {
			s.fail = func(int, request.Fetch) error { return down(503) }
		})
		s.write = func(w request.Write) (*understudy.Page, error) {
			s.set(sid(10), "queued", false)
			return instance(s.call(t, sid(10)), 201, call{sid(10), "queued", false}), nil
		}
		write()
		list(sid(9), sid(8), sid(7))
	})
}
