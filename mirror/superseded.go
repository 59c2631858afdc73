// Superseded pages: if a record changes, the stored pages that show its older version become outdated at once.

package mirror

import (
	"net/http"
	"slices"
	"time"

	"understudy"
	"understudy/mirror/cache"
	"understudy/mirror/slide"
	"understudy/request"
	"understudy/spec"
)

// changeSet is a set of changes in which the records of a page can be looked up by their numbers.
type changeSet struct {
	versions map[int64]int64 // the newest version by record number; -1 if the record was deleted
	fields   map[int64]understudy.Names
	idents   map[uint64]bool
	lo, hi   int64
	shape    string
}

// markSuperseded marks pages in memory as outdated if they show changed records, except the page that brought the
// changes. It returns false if there are no changes. Otherwise it increases the kind's number of changes by one. A
// change of a record in one shape does not affect pages of other shapes, but a deletion affects all.
func (es *entries) markSuperseded(k *kind, shape string, changes []understudy.Change, except understudy.Key) bool {
	if len(changes) == 0 {
		return false
	}
	k.writes.AddChange()
	for _, c := range changes {
		if c.Type == understudy.Deleted {
			es.forgetContents(k, c.ID)
		}
	}
	// If all changes are new records, no list in memory can show any of them.
	came := !slices.ContainsFunc(changes, func(c understudy.Change) bool { return c.Type != understudy.Appeared })
	if !came || !es.hot.HasOnlyLists(k.pages) {
		es.markOthersSuperseded(k, shape, changes, except)
	}
	for _, p := range k.source.polls() {
		if p.kind == k && p.list.Target.Key != except && es.isSuperseded(p) {
			p.list.WakeUp()
		}
	}
	return true
}

// markOthersSuperseded marks or removes all pages in memory that show changed records, except the page with the key except.
func (es *entries) markOthersSuperseded(k *kind, shape string, changes []understudy.Change, except understudy.Key) {
	n := es.newChangeSet(changes, shape, understudy.NewNames(k.source.config.Spec.Kind(k.name).ID...))
	own := es.hot.Hash(except)
	var gone []*cache.Entry
	es.hot.WalkGroup(k.pages, func(e *cache.Entry) {
		switch {
		case e.Hash == own:
		case !e.Stored && !e.Composed && e.Shape() == shape:
			gone = append(gone, e) // the records on this page have no numbers, so it is not known whether they have changed
		case e.Ident != 0 && n.idents[e.Ident]:
			gone = append(gone, e) // the store has a newer version of the record, from which the page is composed again
		case e.List:
			n.markSuperseded(es, e)
		}
	})
	es.hot.DropAll(gone)
}

// newChangeSet returns the set of changes to records in a shape. A deletion counts as a change of the id.
func (es *entries) newChangeSet(changes []understudy.Change, shape string, ids understudy.Names) *changeSet {
	n := &changeSet{
		versions: make(map[int64]int64, len(changes)), fields: make(map[int64]understudy.Names, len(changes)),
		idents: make(map[uint64]bool, len(changes)), shape: shape,
	}
	for i, c := range changes {
		n.idents[es.hot.Ident(c.ID)] = true
		if c.Type == understudy.Appeared {
			continue // the record is new, so no list in memory can show it yet
		}
		version, fields := c.Version, c.Fields
		if c.Type == understudy.Deleted {
			version, fields = -1, ids
		}
		if len(n.versions) == 0 || i == 0 {
			n.lo, n.hi = c.Record, c.Record
		}
		n.versions[c.Record], n.fields[c.Record] = version, fields
		n.lo, n.hi = min(n.lo, c.Record), max(n.hi, c.Record)
	}
	return n
}

// markSuperseded marks a list as outdated if it shows an older version of a changed record, and notes which fields
// have changed. Usually the record numbers beside the packed page are enough to see that the list is not affected.
// Otherwise the page is unpacked to compare versions.
func (n *changeSet) markSuperseded(es *entries, e *cache.Entry) {
	if !n.matchEntry(e) {
		return
	}
	p, err := es.hot.Unpack(e)
	if err != nil {
		e.Superseded.CompareAndSwap(0, es.env.monotonicTime(es.env.now()))
		return
	}
	var fields []string
	older := false
	for _, r := range p.Rows {
		version, ok := n.versions[r.Record]
		if !ok || version == r.Version || version >= 0 && e.Shape() != n.shape {
			continue
		}
		older = true
		fields = slices.AppendSeq(fields, n.fields[r.Record].All())
	}
	if older {
		e.Note(fields)
		e.Superseded.CompareAndSwap(0, es.env.monotonicTime(es.env.now()))
	}
}

// matchEntry reports whether a list shows at least one of the changed records.
func (n *changeSet) matchEntry(e *cache.Entry) bool {
	if len(n.versions) == 0 {
		return false
	}
	for record := range e.RecordNumbers() {
		if record < n.lo || record > n.hi {
			continue
		}
		if version, ok := n.versions[record]; ok && (version < 0 || e.Shape() == n.shape) {
			return true
		}
	}
	return false
}

func (es *entries) isSuperseded(p *poll) bool {
	e := es.hot.Find(p.list.Target.Key)
	return e != nil && (e.Superseded.Load() != 0 || e.Generation < p.kind.writes.Generation())
}

// markIfMoved marks a stored page that is named by a number as outdated, if its list has moved since the page was
// fetched. Otherwise rows could be missing between this page and newer pages beside it.
func (es *entries) markIfMoved(t *spec.Target, h *storedPage, now time.Time) {
	name := t.SlidingList()
	if name == "" || h.composed || h.page.Status != http.StatusOK {
		return
	}
	if !es.slides.IsCurrent(name, t.Key, h.page.At, now) {
		h.state = outdated
	}
}

// judge decides how a stored page may be used for a request, and returns the age of the page.
func (es *entries) judge(ask *request.Request, k *kind, h *storedPage, now time.Time) (decision, time.Duration) {
	es.env.ages().applyRequest(ask, k, h)
	es.markIfMoved(ask.Target, h, now)
	return es.env.ages().decide(h, es.env.ages().requestBounds(ask), now)
}

const (
	maxLookBack      = 4      // how many earlier pages are searched for moved rows, and how many rows before a deleted record are tried
	maxPreviousPages = 10_000 // the maximum number of pages of which the page before is remembered
)

// findMovedRows is called for a fetched page that is named by a number. Its reader may have read the page before some
// time ago. If rows have moved since from this page to that one, they are added to the answer.
func (fl *filler) findMovedRows(f *flight, p *understudy.Page) {
	name := f.origin.target.SlidingList()
	if name == "" || f.origin.recordsOnly || p.Status != http.StatusOK {
		return
	}
	fl.flights.Lock()
	read := f.waiting.readers > 0
	fl.flights.Unlock()
	fl.entries.slides.AddFetched(name, p, p.At.Add(-p.Took-p.InitialAge), read)
	if f.origin.withoutNeighbors {
		return
	}
	key, given, at := fl.entries.slides.PreviousPage(name, f.origin.target.Key, fl.env.now())
	next, rows := fl.entries.slides.Rows(p), []slide.Row(nil)
	for n := 0; n < maxLookBack && !key.IsZero() && key != f.origin.target.Key; n++ {
		b := fl.currentPage(f, key, at, next)
		if b == nil {
			break
		}
		now, from, all := fl.entries.slides.Rows(b), len(b.Rows), true
		for _, g := range given {
			at, known := slide.FirstMissing(g, now, next)
			from, all = min(from, at), all && known
		}
		if rows = append(slide.RowsFrom(b, min(from, len(b.Rows))), rows...); all {
			break
		}
		key, _, at = fl.entries.slides.PreviousPage(name, key, fl.env.now())
	}
	f.result.movedRows = slices.DeleteFunc(rows, func(r slide.Row) bool {
		return slices.ContainsFunc(p.Rows, func(has understudy.Row) bool { return has.ID == r.Row.ID })
	})
}

// currentPage returns the current content of a page beside the flight's page. It returns nil if upstream does not
// answer. A page that a reader has just received is used as it is, as if the reader read both from upstream. If it
// shares no row with the next page, it is fetched again in the background, because rows may lie between them.
func (fl *filler) currentPage(f *flight, key understudy.Key, at time.Time, next slide.Rows) *understudy.Page {
	t, err := f.origin.source.config.Spec.ResolveKey(key)
	if err != nil {
		return nil
	}
	want := fetchOptions{reason: f.origin.reason, requireNew: true, skipCacheCheck: true, withoutNeighbors: true, flow: f.waiting.flow}
	if now := fl.env.now(); now.Sub(at) <= slide.SameMoment {
		if h, ok, err := fl.holdings.find(f.signals.ctx, t, f.origin.kind, now); err == nil && ok && !h.page.At.Before(at) {
			if !fl.entries.slides.Rows(h.page).HasCommonRow(next) {
				want.reason = request.ReasonPrefetch
				fl.flights.startBackground(t, f.origin.source, f.origin.kind, want)
			}
			return h.page
		}
	}
	return fl.fetchNeighbor(f, t, want)
}

// fetchNeighbor fetches another page that a flight needs. It returns nil if upstream does not answer.
func (fl *filler) fetchNeighbor(f *flight, t *spec.Target, want fetchOptions) *understudy.Page {
	f.signals.free() // otherwise this fetch would wait for the memory that the body of the flight's own page uses
	b, _, err := fl.flights.join(t, f.origin.source, f.origin.kind, want)
	if err != nil {
		return nil
	}
	if f.origin.reason == request.ReasonWaiting {
		defer fl.flights.releaseReader(b, f.waiting.flow, true)
	} else {
		defer fl.flights.release(b, true)
	}
	select {
	case <-b.signals.done:
	case <-f.signals.ctx.Done():
		return nil
	}
	if b.result.err != nil || b.result.page.Status != http.StatusOK {
		return nil
	}
	return b.result.page
}

// resumeAfterDeleted handles a page of a list that continues after a record, if upstream no longer has that record.
// The reader has the record as the last row of a stored page. resumeAfterDeleted fetches the list after the last row
// before it that still exists. In all other cases it returns p.
func (fl *filler) resumeAfterDeleted(f *flight, p *understudy.Page) *understudy.Page {
	name := f.origin.target.CursorParam()
	if name == "" || f.origin.withoutNeighbors {
		return p
	}
	if p.Status == http.StatusOK {
		if !p.Next.IsZero() {
			fl.entries.previousPages.Put(p.Next, p.Key, 1)
		}
		return p
	}
	key, ok := fl.entries.previousPages.Get(f.origin.target.Key)
	if !ok || p.Status != http.StatusBadRequest && p.Status != http.StatusNotFound {
		return p
	}
	t, err := f.origin.source.config.Spec.ResolveKey(key)
	if err != nil {
		return p
	}
	h, ok, err := fl.holdings.find(f.signals.ctx, t, f.origin.kind, fl.env.now())
	if err != nil || !ok {
		return p
	}
	rows := h.page.Rows
	for i := len(rows) - 2; i >= max(0, len(rows)-1-maxLookBack); i-- {
		t, err := f.origin.target.WithParam(name, rows[i].ID)
		if err != nil {
			return p
		}
		want := fetchOptions{reason: f.origin.reason, requireNew: true, skipCacheCheck: true, withoutNeighbors: true, flow: f.waiting.flow}
		if b := fl.fetchNeighbor(f, t, want); b != nil {
			out := *b
			out.Key, out.Version, out.NotStored = p.Key, 0, "it continues after a deleted record"
			return &out
		}
	}
	return p
}

// addMovedRows returns the page of a flight together with the rows that have moved to the page before, if the reader
// does not have them. A reader that has the current version of the page before gets the page unchanged.
func (rd *reader) addMovedRows(r *reading, f *flight, p *understudy.Page) *understudy.Page {
	t := f.origin.target
	if len(f.result.movedRows) == 0 || p.Status != http.StatusOK {
		return p
	}
	has, now := rd.entries.slides.GivenRows(t.SlidingList(), t.Key, r.request.Flow, r.now)
	if now {
		return p
	}
	return slide.Splice(p, t.List.Key, rd.entries.slides.RemoveRows(f.result.movedRows, has))
}
