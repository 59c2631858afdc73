// Numbered pages: what the mirror remembers of lists whose pages are named by numbers.

// Package slide keeps stored pages consistent if the pages of a list are named by a number or an offset. Each new or deleted
// row moves the rows after it, some of them to another page. If a page stored before that is read beside a page stored after
// it, rows are missing or occur twice.
//
// Pages are consistent as long as each page has the same rows when it is fetched again. If it has other rows, the list has
// moved, and pages stored before are no longer used. But a reader who has just received such a page continues with the page
// after it. FirstMissing finds the rows that have moved since from that page to the page the reader already has.
package slide

import (
	"hash/maphash"
	"slices"
	"time"

	"understudy"
	"understudy/kit/lockwatch"
	"understudy/kit/lru"
)

const (
	// SameMoment is how far apart the fetches of two pages may be for the pages to count as consistent. A client that
	// reads two pages from upstream itself takes about as long.
	SameMoment = 2 * time.Second
	// readerWindow is how long a reader may take from one page to the next.
	readerWindow = time.Minute
	// maxRows is the maximum number of rows that are remembered, with 8 bytes each.
	maxRows = 1 << 21
	// maxOlder is the maximum number of older versions that are remembered of a page.
	maxOlder = 4
	// maxGiven is the maximum number of readers, each with a page they received, that are remembered of a list. Each
	// counts as much as givenRows rows.
	maxGiven, givenRows = 1024, 8
)

// Lists remembers the rows of numbered pages. It exists only in memory, so after a restart every page must be fetched
// again once. It is safe for concurrent use.
type Lists struct {
	seed maphash.Seed

	mu    lockwatch.Mutex
	lists *lru.Cache[string, *list]
}

// list is a list with certain filters and a certain page size.
type list struct {
	movedAt  int64 // when the list is known to have moved last, in Unix nanoseconds
	pages    map[understudy.Key]*page
	previous map[understudy.Key]understudy.Key // the key of the page before, by the key of the page after it
	rows     int64                             // the number of rows that are remembered
	given    map[reading]givenPage
}

// reading identifies a page that a certain reader has received.
type reading struct {
	key    understudy.Key
	reader uint64
}

// givenPage says how often a reader has received a page. It is reset when the reader has continued from every copy of the page.
type givenPage struct {
	first int64 // when the oldest copy of the page was received
	until int64 // until when the reader may continue from this page
	open  int   // how often the reader received the page, minus how often it received the page after it
	rows  Rows  // the rows of the page; nil if they are not known or if the copies differ
}

// page is what is remembered of a page: how upstream last showed it, and how before.
type page struct {
	fetch      fetch
	lastFetch  fetch // the fetch before; its page is still in use until the page of the newer fetch is saved
	changedAt  int64 // when upstream last showed different rows on the page
	wasRead    bool  // whether a reader has received the page of the last fetch
	mayHaveGap bool  // whether rows of the list may lie between the page before and this page
	rows       Rows
	older      []older
}

// fetch is when a fetch of a page began, and when upstream answered it.
type fetch struct{ start, at int64 }

// older has the rows that a page had before the list moved.
type older struct {
	rows  Rows
	until int64 // until when readers may continue from this version of the page
}

// Rows are the hashes of the ids of a page's rows, in order.
type Rows []uint64

// New returns a Lists that remembers nothing yet.
func New() *Lists { return &Lists{seed: maphash.MakeSeed(), lists: lru.New[string, *list](maxRows)} }

// Rows returns the hashes of a page's rows. A page without records counts as a single row, its body.
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

// AddFetched remembers the rows of a fetched page. began is when the fetch started, and read says whether a reader
// waited for it. moved is true if the list has moved since the page was fetched before.
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
		return false // a newer fetch of the page has been remembered before this one
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

// noteBorders decides whether rows may lie between a page and the pages beside it. None do if the two pages share a
// row, or if one of them did not change around the time at which the other was fetched.
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

// isPrefixOf reports whether other begins with these rows. Rows that were added after them move no row.
func (r Rows) isPrefixOf(other Rows) bool {
	return len(other) >= len(r) && slices.Equal(r, other[:len(r)])
}

// HasCommonRow reports whether this page and the next share a row. If they do, no rows lie between them.
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

// addOlder remembers the rows that the page had before the list moved.
func (p *page) addOlder(at int64) {
	if n := len(p.older); n > 0 && slices.Equal(p.older[n-1].rows, p.rows) {
		p.older[n-1].until = at + int64(readerWindow)
		return
	}
	p.older = append(p.older, older{p.rows, at + int64(readerWindow)})
	p.older = p.older[max(0, len(p.older)-maxOlder):]
}

// IsCurrent reports whether a page that was fetched at a certain time may be used as an answer. It must not if the
// list has moved since, or if a reader may continue with it from an older version of the page before.
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

// PreviousPage returns the key of the page before a page, and the versions of its rows that readers may have
// received. at is when that page was last fetched for a reader, or zero if readers received it from memory. The key
// is zero if no reader has received the page before.
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

// NoteGiven remembers that a reader has received a page, which upstream answered at the time at. The reader has so
// continued from the page before.
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
		clear(li.given) // there are too many, so those of all readers are forgotten
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

// GivenRows returns the rows that a reader has of the page before the requested page. now is true if that page still
// has these rows. If it is not known what the reader has, it returns nil and false.
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

// RemoveRows returns the rows that are not among others.
func (l *Lists) RemoveRows(rows []Row, others Rows) []Row {
	has := others.idSet()
	return slices.DeleteFunc(slices.Clone(rows), func(r Row) bool { return has[maphash.String(l.seed, r.Row.ID)] })
}

// FirstMissing returns the index of the first row that is missing for a reader. The reader has the rows in given and
// continues with the page next. now has the current rows of the pages before next. known is false if none of the
// reader's rows is in now or next any more.
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
