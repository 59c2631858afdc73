// Superseded: held pages grow old at once when what they show has changed.

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

// news is a set of changes, ready to be looked up by a page's records.
type news struct {
	versions map[int64]int64 // by record; -1: it went
	fields   map[int64]understudy.Names
	idents   map[uint64]bool
	lo, hi   int64
	shape    string
}

// supersede makes entries old that show what has changed, except the page that
// brought the change. It reports whether it went looking; the kind's counter
// has risen by one then. A change in one shape leaves pages of other shapes
// alone; a record that went is gone from all.
func (es *entries) supersede(k *kind, shape string, changes []understudy.Change, except understudy.Key) bool {
	if len(changes) == 0 {
		return false
	}
	k.writes.AddChange()
	for _, c := range changes {
		if c.Type == understudy.Went {
			es.recordWent(k, c.ID)
		}
	}
	// No list held can show what just came.
	came := !slices.ContainsFunc(changes, func(c understudy.Change) bool { return c.Type != understudy.Came })
	if !came || !es.hot.ListsOnly(k.pages) {
		es.makeOthersOld(k, shape, changes, except)
	}
	for _, p := range k.source.polls() {
		if p.kind == k && p.list.Target.Key != except && es.isSuperseded(p) {
			p.list.Nudge()
		}
	}
	return true
}

// dropUnstored drops the entries of a kind that are not stored: nobody knows which records they show.
func (es *entries) dropUnstored(k *kind) {
	var gone []*cache.Entry
	es.hot.Each(k.pages, func(e *cache.Entry) {
		if !e.Stored && !e.Composed {
			gone = append(gone, e)
		}
	})
	es.hot.DropAll(gone)
}

// makeOthersOld makes every entry old that changes concern, but for that of a key.
func (es *entries) makeOthersOld(k *kind, shape string, changes []understudy.Change, except understudy.Key) {
	n := es.newsOf(changes, shape, understudy.NamesOf(k.source.config.Spec.Kind(k.name).ID...))
	own := es.hot.Hash(except)
	var gone []*cache.Entry
	es.hot.Each(k.pages, func(e *cache.Entry) {
		switch {
		case e.Hash == own:
		case !e.Stored && !e.Composed && e.Shape() == shape:
			gone = append(gone, e) // its records have no numbers to look up
		case e.Ident != 0 && n.idents[e.Ident]:
			gone = append(gone, e) // the store composes a better one
		case e.List:
			n.makeOld(es, e)
		}
	})
	es.hot.DropAll(gone)
}

// newsOf are changes of records in a shape. Who sees the ids sees that one went.
func (es *entries) newsOf(changes []understudy.Change, shape string, ids understudy.Names) *news {
	n := &news{
		versions: make(map[int64]int64, len(changes)), fields: make(map[int64]understudy.Names, len(changes)),
		idents: make(map[uint64]bool, len(changes)), shape: shape,
	}
	for i, c := range changes {
		n.idents[es.hot.Ident(c.ID)] = true
		if c.Type == understudy.Came {
			continue // no list held can show it yet
		}
		version, fields := c.Version, c.Fields
		if c.Type == understudy.Went {
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

// makeOld makes a list old that shows an older version of what changed, and notes
// which fields did. The record numbers beside the packed page settle nearly every
// case; only a page that shows a changed record is unpacked to compare versions.
func (n *news) makeOld(es *entries, e *cache.Entry) {
	if !n.concerns(e) {
		return
	}
	p, err := es.hot.Unpack(e)
	if err != nil {
		e.Superseded.CompareAndSwap(0, es.env.monotonic(es.env.now()))
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
		e.Superseded.CompareAndSwap(0, es.env.monotonic(es.env.now()))
	}
}

// concerns reports whether a list shows one of the records that changed.
func (n *news) concerns(e *cache.Entry) bool {
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

// together makes what is held of a page that is named by a number outdated, where the
// list has moved since: it would stand with a gap beside the pages that were fetched anew.
func (es *entries) together(t *spec.Target, h *held, now time.Time) {
	name := t.Sliding()
	if name == "" || h.composed || h.page.Status != http.StatusOK {
		return
	}
	if !es.slides.Together(name, t.Key, h.page.At, now) {
		h.state = outdated
	}
}

// judge decides what one request may get of what is held for it.
func (es *entries) judge(ask *request.Request, k *kind, h *held, now time.Time) (decision, time.Duration) {
	es.env.ages().asFor(ask, k, h)
	es.together(ask.Target, h, now)
	return es.env.ages().decide(h, es.env.ages().bounds(ask), now)
}

const (
	mostBefore = 4      // pages before one that are looked at for rows that have moved, or rows before one that is gone
	mostLeads  = 10_000 // pages of which it is known which one leads to them
)

// moved notes a page that is named by a number. A reader may go on here from the page
// before as it was a while ago: what has moved from this page into that one since is
// looked up there, now that this one is fetched, and given with it.
func (fl *filler) moved(f *flight, p *understudy.Page) {
	name := f.origin.target.Sliding()
	if name == "" || f.origin.recordsOnly || p.Status != http.StatusOK {
		return
	}
	fl.flights.Lock()
	read := f.waiting.readers > 0
	fl.flights.Unlock()
	fl.entries.slides.Fetched(name, p, p.At.Add(-p.Took-p.InitialAge), read)
	if f.origin.alone {
		return
	}
	key, given, at := fl.entries.slides.Before(name, f.origin.target.Key, fl.env.now())
	next, rows := fl.entries.slides.Rows(p), []slide.Row(nil)
	for n := 0; n < mostBefore && !key.Zero() && key != f.origin.target.Key; n++ {
		b := fl.asItIs(f, key, at, next)
		if b == nil {
			break
		}
		now, from, all := fl.entries.slides.Rows(b), len(b.Rows), true
		for _, g := range given {
			at, known := slide.Missing(g, now, next)
			from, all = min(from, at), all && known
		}
		if rows = append(slide.RowsFrom(b, min(from, len(b.Rows))), rows...); all {
			break
		}
		key, _, at = fl.entries.slides.Before(name, key, fl.env.now())
	}
	f.result.behind = slices.DeleteFunc(rows, func(r slide.Row) bool {
		return slices.ContainsFunc(p.Rows, func(has understudy.Row) bool { return has.ID == r.Row.ID })
	})
}

// asItIs is a page that was fetched then, as upstream gives it now; nil when it does not.
// One that has just come to a reader is taken as it came, as a walk over upstream itself takes it. It
// stays beside the next one for long, so it is fetched once more behind the answer, where
// the budget has room, unless the two share a row: then nothing lies between them.
func (fl *filler) asItIs(f *flight, key understudy.Key, at time.Time, next slide.Rows) *understudy.Page {
	t, err := f.origin.source.config.Spec.TargetOf(key)
	if err != nil {
		return nil
	}
	want := fetchOptions{reason: f.origin.reason, direct: true, blind: true, alone: true, flow: f.waiting.flow}
	if now := fl.env.now(); now.Sub(at) <= slide.Soon {
		if h, ok, err := fl.holdings.find(f.signals.ctx, t, f.origin.kind, now); err == nil && ok && !h.page.At.Before(at) {
			if !fl.entries.slides.Rows(h.page).Meet(next) {
				want.reason = request.Prefetch
				fl.flights.startBackground(t, f.origin.source, f.origin.kind, want)
			}
			return h.page
		}
	}
	return fl.beside(f, t, want)
}

// beside is a page that a flight needs besides its own; nil when upstream does not give it.
func (fl *filler) beside(f *flight, t *spec.Target, want fetchOptions) *understudy.Page {
	f.signals.free() // or it would wait for room that its own body takes
	b, _, err := fl.flights.join(t, f.origin.source, f.origin.kind, want)
	if err != nil {
		return nil
	}
	if f.origin.reason == request.Waiting {
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

// pastGone is the page of a list that goes on after a record which upstream does not have any
// more. The reader was given that record as the last of a held page: the rows after the last
// one before it that is still there are those after it. Else it is the page itself.
func (fl *filler) pastGone(f *flight, p *understudy.Page) *understudy.Page {
	name := f.origin.target.After()
	if name == "" || f.origin.alone {
		return p
	}
	if p.Status == http.StatusOK {
		if !p.Next.Zero() {
			fl.entries.leads.Put(p.Next, p.Key, 1)
		}
		return p
	}
	key, ok := fl.entries.leads.Get(f.origin.target.Key)
	if !ok || p.Status != http.StatusBadRequest && p.Status != http.StatusNotFound {
		return p
	}
	t, err := f.origin.source.config.Spec.TargetOf(key)
	if err != nil {
		return p
	}
	h, ok, err := fl.holdings.find(f.signals.ctx, t, f.origin.kind, fl.env.now())
	if err != nil || !ok {
		return p
	}
	rows := h.page.Rows
	for i := len(rows) - 2; i >= max(0, len(rows)-1-mostBefore); i-- {
		t, err := f.origin.target.WithParam(name, rows[i].ID)
		if err != nil {
			return p
		}
		want := fetchOptions{reason: f.origin.reason, direct: true, blind: true, alone: true, flow: f.waiting.flow}
		if b := fl.beside(f, t, want); b != nil {
			out := *b
			out.Key, out.Version, out.NotStored = p.Key, 0, "it goes on after a record that is gone"
			return &out
		}
	}
	return p
}

// shown returns a flight's page as one of its readers gets it: before its own rows those that have
// moved from it into the page before, unless the reader has that page as it is now.
func (rd *reader) shown(r *reading, f *flight, p *understudy.Page) *understudy.Page {
	t := f.origin.target
	if len(f.result.behind) == 0 || p.Status != http.StatusOK {
		return p
	}
	has, now := rd.entries.slides.Has(t.Sliding(), t.Key, r.request.Flow, r.now)
	if now {
		return p
	}
	return slide.Splice(p, t.List.Key, rd.entries.slides.Without(f.result.behind, has))
}

// gave notes that a reader has a page that is named by a number.
func (es *entries) gave(t *spec.Target, reader uint64, p *understudy.Page) {
	if name := t.Sliding(); name != "" && p.Status == http.StatusOK {
		es.slides.Gave(name, t.Key, reader, p.At, es.env.now())
	}
}
