// Numbered pages: what is remembered of lists whose pages are named by numbers.

// Package slide keeps pages consistent that are cut by number or by offset. Each new or deleted row moves the
// rows behind it across page borders. A stored page from before then has missing or repeated rows next to a
// page from after.
//
// Pages of a list are consistent as long as each page fetched again has its earlier rows. If a page has other
// rows, the list has moved, and older pages are no longer answered. A reader who was given a page shortly
// before continues with the next page. FirstMissing finds the rows that have moved from the next page into
// the page that the reader has.
package slide

import (
	"hash/maphash"
	"slices"
	"sync"
	"time"

	"understudy"
	"understudy/kit/lru"
)

const (
	// SameMoment is the maximum time between the fetches of two pages that count as consistent. A client
	// that reads directly from upstream takes about as long between two pages.
	SameMoment = 2 * time.Second
	// readerWindow is how long a reader may take to go from one page to the next.
	readerWindow = time.Minute
	// maxRows is the maximum number of remembered rows, at 8 bytes each.
	maxRows = 1 << 21
	// maxOlder is the maximum number of older versions remembered of one page.
	maxOlder = 4
	// maxGiven is the maximum number of remembered pairs of page and reader in a list. Each counts as
	// givenRows rows.
	maxGiven, givenRows = 1024, 8
)

// Lists remembers numbered pages in memory only, so after a start every page is fetched again once. Many
// goroutines may use it at once.
type Lists struct {
	seed maphash.Seed

	mu    sync.Mutex
	lists *lru.Cache[string, *list]
}

// list is one list: a path with filters and a page size.
type list struct {
	movedAt  int64 // when the list was last known to have moved, in Unix nanoseconds
	pages    map[understudy.Key]*page
	previous map[understudy.Key]understudy.Key // the page before, by the next page
	rows     int64                             // number of remembered rows
	given    map[reading]givenPage
}

// reading is a page and a reader of it.
type reading struct {
	key    understudy.Key
	reader uint64
}

// givenPage remembers how a page was given to a reader. It starts anew when the reader has continued from all
// copies of the page.
type givenPage struct {
	first int64 // time of the oldest copy given
	until int64 // until when the reader may continue from the page
	open  int   // how often the page was answered, minus how often the next page was
	rows  Rows  // the page's rows; nil if unknown or if the copies differ
}

// page is a page as upstream last gave it.
type page struct {
	fetch      fetch
	lastFetch  fetch // the fetch before, whose page is in use until this one is saved
	changedAt  int64 // when upstream last answered the page with different rows
	wasRead    bool  // the fetched page was answered to a reader
	mayHaveGap bool  // rows may lie between the page before it and this one
	rows       Rows
	older      []older
}

// fetch is when a page was requested and when upstream gave it.
type fetch struct{ start, at int64 }

// older are the rows of a page before the list moved.
type older struct {
	rows  Rows
	until int64 // until when readers may continue from the page
}

// Rows are the hashes of a page's row ids, in order.
type Rows []uint64

// New returns an empty Lists.
func New() *Lists { return &Lists{seed: maphash.MakeSeed(), lists: lru.New[string, *list](maxRows)} }

// Rows returns the rows of a page. A page without records counts as one row, its body.
func (l *Lists) Rows(p *understudy.Page) Rows {
	if len(p.Rows) == 0 && len(p.Body) > 0 {
		return Rows{maphash.Bytes(l.seed, p.Sum[:])}
	}
	rows := make(Rows, len(p.Rows))
	for i := range p.Rows {
		rows[i] = maphash.String(l.seed, p.Rows[i].ID)
	}
	return rows
}

// AddFetched stores a fetched page, when its fetch started, and whether a reader waited for it. It reports
// whether the list has moved since the page was fetched before.
func (l *Lists) AddFetched(name string, p *understudy.Page, began time.Time, read bool) (moved bool) {
	rows, at := l.Rows(p), p.At.UnixNano()
	l.mu.Lock()
	defer l.mu.Unlock()
	li, ok := l.lists.Get(name)
	if !ok {
		li = &list{pages: map[understudy.Key]*page{}, previous: map[understudy.Key]understudy.Key{}, given: map[reading]givenPage{}}
	}
	have, known := li.pages[p.Key]
	if !known {
		have = &page{rows: rows}
		li.pages[p.Key] = have
		li.rows += int64(len(rows)) + 16
	}
	if at < have.fetch.at {
		return false // a newer answer was recorded already
	}
	if moved = !have.rows.isPrefixOf(rows); moved {
		li.movedAt, have.changedAt = at, at
		for _, other := range li.pages {
			other.addOlder(at)
		}
	}
	li.noteBorders(p, have, rows, fetch{began.UnixNano(), at}, moved || !known)
	li.rows += int64(len(rows) - len(have.rows))
	have.lastFetch, have.fetch, have.wasRead, have.rows = have.fetch, fetch{began.UnixNano(), at}, read, rows
	if !p.Next.IsZero() {
		li.previous[p.Next] = p.Key
	}
	l.lists.Put(name, li, li.rows)
	return moved
}

// noteBorders updates whether rows may lie between a page and its neighbors. Two pages are consistent if they
// share a row, or if one of them has not changed around the fetch of the other.
func (li *list) noteBorders(p *understudy.Page, have *page, rows Rows, f fetch, changed bool) {
	rests := func(other *page) bool {
		return !changed && have.fetch.at <= other.fetch.start && other.fetch.at <= f.start
	}
	if b := li.pages[li.previous[p.Key]]; b != nil {
		have.mayHaveGap = (have.mayHaveGap || changed) && !rests(b) && !b.rows.HasCommonRow(rows)
	}
	next := li.pages[p.Next]
	switch {
	case next == nil || next == have:
	case changed && next.fetch.at < f.start-int64(SameMoment):
		next.mayHaveGap = true
	case rests(next):
		next.mayHaveGap = false
	}
}

// isPrefixOf reports whether other begins with these rows. Rows added at the end move nothing.
func (r Rows) isPrefixOf(other Rows) bool {
	return len(other) >= len(r) && slices.Equal(r, other[:len(r)])
}

// HasCommonRow reports whether two pages of a list share a row. Then no row lies between them.
func (r Rows) HasCommonRow(next Rows) bool {
	has := r.idSet()
	return slices.ContainsFunc(next, func(id uint64) bool { return has[id] })
}

func (r Rows) idSet() map[uint64]bool {
	has := make(map[uint64]bool, len(r))
	for _, id := range r {
		has[id] = true
	}
	return has
}

// addOlder remembers the rows of a page from before the list moved.
func (p *page) addOlder(at int64) {
	if n := len(p.older); n > 0 && slices.Equal(p.older[n-1].rows, p.rows) {
		p.older[n-1].until = at + int64(readerWindow)
		return
	}
	p.older = append(p.older, older{p.rows, at + int64(readerWindow)})
	p.older = p.older[max(0, len(p.older)-maxOlder):]
}

// IsCurrent reports whether a page fetched at that time may be answered. The list must not have moved since,
// and no reader may continue here from an older version of the page before.
func (l *Lists) IsCurrent(name string, key understudy.Key, at, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	li, ok := l.lists.Get(name)
	if !ok {
		return false
	}
	p := li.pages[key]
	if p == nil {
		return false
	}
	of := p.fetch
	if at.UnixNano() == p.lastFetch.at {
		of = p.lastFetch
	}
	if at.UnixNano() < of.at || of.start < li.movedAt && of.at != li.movedAt {
		return false
	}
	if p.mayHaveGap && now.UnixNano() > p.fetch.at+int64(SameMoment) {
		return false
	}
	b := li.pages[li.previous[key]]
	return b == nil || !b.hasOlder(now)
}

// hasOlder reports whether a reader may still continue from an older version of the page.
func (p *page) hasOlder(now time.Time) bool {
	p.older = slices.DeleteFunc(p.older, func(o older) bool { return o.until < now.UnixNano() })
	return len(p.older) > 0
}

// PreviousPage returns the page before a page, and the rows that readers may have of it. at is when it was
// last fetched for a reader, or zero if it was given from memory. The zero key means that nobody was given
// the page before.
func (l *Lists) PreviousPage(name string, key understudy.Key, now time.Time) (before understudy.Key, given []Rows, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	li, ok := l.lists.Get(name)
	if !ok || li.pages[li.previous[key]] == nil {
		return before, nil, at
	}
	before = li.previous[key]
	p := li.pages[before]
	p.hasOlder(now)
	for _, o := range p.older {
		given = append(given, o.rows)
	}
	if p.wasRead {
		at = time.Unix(0, p.fetch.at)
	}
	return before, append(given, p.rows), at
}

// NoteGiven notes that a reader was given a page that upstream gave at that time. The reader has thereby
// continued from the page before it.
func (l *Lists) NoteGiven(name string, key understudy.Key, reader uint64, at, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	li, ok := l.lists.Get(name)
	if !ok {
		return
	}
	if before, ok := li.given[reading{li.previous[key], reader}]; ok && before.open > 0 {
		before.open--
		li.given[reading{li.previous[key], reader}] = before
	}
	this := reading{key, reader}
	g, ok := li.given[this]
	if !ok && len(li.given) == maxGiven {
		clear(li.given) // the entries of these readers are lost
		li.rows -= maxGiven * givenRows
	}
	if !ok {
		li.rows += givenRows
		l.lists.Put(name, li, li.rows)
	}
	var rows Rows
	if p := li.pages[key]; p != nil && p.fetch.at == at.UnixNano() {
		rows = p.rows
	}
	if g.open == 0 || g.until < now.UnixNano() {
		g = givenPage{first: at.UnixNano(), rows: rows}
	} else if !slices.Equal(g.rows, rows) {
		g.rows = nil
	}
	g.first, g.until, g.open = min(g.first, at.UnixNano()), now.Add(readerWindow).UnixNano(), g.open+1
	li.given[this] = g
}

// GivenRows returns the rows that a reader has of the page before the requested one. now reports that the
// reader has that page as it is now. It returns nil and false if this is unknown.
func (l *Lists) GivenRows(name string, key understudy.Key, reader uint64, at time.Time) (rows Rows, now bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	li, ok := l.lists.Get(name)
	if !ok {
		return nil, false
	}
	before, ok := li.previous[key]
	p, g := li.pages[before], li.given[reading{before, reader}]
	if !ok || p == nil || g.until < at.UnixNano() {
		return nil, false
	}
	return g.rows, g.first >= p.changedAt
}

// RemoveRows returns the rows whose ids are not among others.
func (l *Lists) RemoveRows(rows []Row, others Rows) []Row {
	has := others.idSet()
	return slices.DeleteFunc(slices.Clone(rows), func(r Row) bool { return has[maphash.String(l.seed, r.Row.ID)] })
}

// FirstMissing returns the first row of now that a reader lacks who has the rows given and continues with
// next. now are the present rows of the pages before next. known is false if no row of given is left in now
// or next.
func FirstMissing(given, now, next Rows) (from int, known bool) {
	if given.HasCommonRow(next) || len(given) == 0 {
		return len(now), true
	}
	has := given.idSet()
	for i := len(now) - 1; i >= 0; i-- {
		if has[now[i]] {
			return i + 1, true
		}
	}
	return 0, false
}
