// Slide: what is remembered of lists whose pages are named by numbers.

// Package slide keeps pages together that are cut by number or by offset. Every row that
// comes or goes moves the rows behind it, across the borders of pages: a page held from
// before that stands beside one from after it with a gap or with rows twice.
//
// Pages of a list stand together as long as each that is fetched anew has the rows that
// it had. When one has others, the list has moved: what was fetched before is not given
// any more. A reader who was given a page shortly before goes on with the page after it;
// the rows that have moved from that one into the page that the reader has are told by
// Missing.
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
	// Soon is how far apart two pages may be fetched and still stand together: a walk
	// that asks upstream itself waits as long.
	Soon = 2 * time.Second
	// window is how long a reader may take from a page to the page after it.
	window = time.Minute
	// most bounds the rows that are remembered, at 8 bytes each.
	most = 1 << 21
	// mostOlder bounds what is remembered of one page from before the list moved.
	mostOlder = 4
	// mostGiven bounds of how many pages and readers of a list it is remembered that one had the
	// other, at givenRows rows each.
	mostGiven, givenRows = 1024, 8
)

// Lists remember the pages of lists by number, in memory alone: after a start every page
// is asked for anew once. Many goroutines may use it at once.
type Lists struct {
	seed maphash.Seed

	mu    sync.Mutex
	lists *lru.Cache[string, *list]
}

// list is one list: a path with filters and a page size.
type list struct {
	moved int64 // when it was last known to have moved, in Unix nanoseconds
	pages map[understudy.Key]*page
	from  map[understudy.Key]understudy.Key // the page before, by the page that it leads to
	rows  int64                             // remembered
	given map[reading]given
}

// reading is a page and a reader of it.
type reading struct {
	key    understudy.Key
	reader uint64
}

// given is how a reader was given a page, since that reader last had gone on from all of it.
type given struct {
	first int64 // when upstream gave the oldest of them
	until int64 // when the reader does not go on from it any more
	open  int   // how often it was given, less how often the page after it was
	rows  Rows  // of the page, if it was given once; nil: they are not known, or differ
}

// page is a page as upstream last gave it.
type page struct {
	fetch   fetch
	last    fetch // the fetch before: it is held until the page of this one is saved
	changed int64 // when upstream gave it with other rows than before
	read    bool  // it was given to a reader as it came
	apart   bool  // nothing has shown yet that no row lies between the page before it and this one
	rows    Rows
	older   []older
}

// fetch is when a page was asked for and when upstream gave it.
type fetch struct{ began, at int64 }

// older are the rows of a page before the list moved.
type older struct {
	rows  Rows
	until int64 // when nobody goes on from it any more
}

// Rows are a page's rows by their ids, in order.
type Rows []uint64

// New makes an empty one.
func New() *Lists { return &Lists{seed: maphash.MakeSeed(), lists: lru.New[string, *list](most)} }

// Rows are those of a page. What has no records is one row: its body.
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

// Fetched notes a page that upstream gave, whose fetch began then, and whether a reader
// waited for it. It reports whether the list has moved since the page was fetched before.
func (l *Lists) Fetched(name string, p *understudy.Page, began time.Time, read bool) (moved bool) {
	rows, at := l.Rows(p), p.At.UnixNano()
	l.mu.Lock()
	defer l.mu.Unlock()
	li, ok := l.lists.Get(name)
	if !ok {
		li = &list{pages: map[understudy.Key]*page{}, from: map[understudy.Key]understudy.Key{}, given: map[reading]given{}}
	}
	have, known := li.pages[p.Key]
	if !known {
		have = &page{rows: rows}
		li.pages[p.Key] = have
		li.rows += int64(len(rows)) + 16
	}
	if at < have.fetch.at {
		return false // an answer that was overtaken
	}
	if moved = !have.rows.begin(rows); moved {
		li.moved, have.changed = at, at
		for _, other := range li.pages {
			other.replaced(at)
		}
	}
	li.meet(p, have, rows, fetch{began.UnixNano(), at}, moved || !known)
	li.rows += int64(len(rows) - len(have.rows))
	have.last, have.fetch, have.read, have.rows = have.fetch, fetch{began.UnixNano(), at}, read, rows
	if !p.Next.Zero() {
		li.from[p.Next] = p.Key
	}
	l.lists.Put(name, li, li.rows)
	return moved
}

// meet notes what a fetch shows of the borders of a page. Two pages stand together where they
// share a row, or where one of them is as it was before the other was fetched.
func (li *list) meet(p *understudy.Page, have *page, rows Rows, f fetch, changed bool) {
	rests := func(other *page) bool {
		return !changed && have.fetch.at <= other.fetch.began && other.fetch.at <= f.began
	}
	if b := li.pages[li.from[p.Key]]; b != nil {
		have.apart = (have.apart || changed) && !rests(b) && !b.rows.Meet(rows)
	}
	next := li.pages[p.Next]
	switch {
	case next == nil || next == have:
	case changed && next.fetch.at < f.began-int64(Soon):
		next.apart = true
	case rests(next):
		next.apart = false
	}
}

// begin reports whether other rows are the same, or these and then more: what is added
// at the end moves nothing.
func (r Rows) begin(other Rows) bool { return len(other) >= len(r) && slices.Equal(r, other[:len(r)]) }

// Meet reports whether two pages of a list have a row in common: no row lies between them
// then.
func (r Rows) Meet(next Rows) bool {
	has := r.set()
	return slices.ContainsFunc(next, func(id uint64) bool { return has[id] })
}

func (r Rows) set() map[uint64]bool {
	has := make(map[uint64]bool, len(r))
	for _, id := range r {
		has[id] = true
	}
	return has
}

// replaced notes that what a page had may no longer stand beside what is fetched now.
func (p *page) replaced(at int64) {
	if n := len(p.older); n > 0 && slices.Equal(p.older[n-1].rows, p.rows) {
		p.older[n-1].until = at + int64(window)
		return
	}
	p.older = append(p.older, older{p.rows, at + int64(window)})
	p.older = p.older[max(0, len(p.older)-mostOlder):]
}

// Together reports whether a page held since upstream gave it then may be given: the list
// has not moved since, and nobody may go on here from a page before it that has.
func (l *Lists) Together(name string, key understudy.Key, at, now time.Time) bool {
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
	if at.UnixNano() == p.last.at {
		of = p.last
	}
	if at.UnixNano() < of.at || of.began < li.moved && of.at != li.moved {
		return false
	}
	if p.apart && now.UnixNano() > p.fetch.at+int64(Soon) {
		return false
	}
	b := li.pages[li.from[key]]
	return b == nil || !b.since(now)
}

// since reports whether a reader may still go on from the page as it was.
func (p *page) since(now time.Time) bool {
	p.older = slices.DeleteFunc(p.older, func(o older) bool { return o.until < now.UnixNano() })
	return len(p.older) > 0
}

// Before is the page from which readers go on to one: what they may have of it, and when
// it was fetched last for one of them: the zero time when it was held for them. The zero
// key: nobody was given it.
func (l *Lists) Before(name string, key understudy.Key, now time.Time) (before understudy.Key, given []Rows, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	li, ok := l.lists.Get(name)
	if !ok || li.pages[li.from[key]] == nil {
		return before, nil, at
	}
	before = li.from[key]
	p := li.pages[before]
	p.since(now)
	for _, o := range p.older {
		given = append(given, o.rows)
	}
	if p.read {
		at = time.Unix(0, p.fetch.at)
	}
	return before, append(given, p.rows), at
}

// Gave notes that a reader was given a page as upstream gave it then, and so has gone on
// from the page before it.
func (l *Lists) Gave(name string, key understudy.Key, reader uint64, at, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	li, ok := l.lists.Get(name)
	if !ok {
		return
	}
	if before, ok := li.given[reading{li.from[key], reader}]; ok && before.open > 0 {
		before.open--
		li.given[reading{li.from[key], reader}] = before
	}
	this := reading{key, reader}
	g, ok := li.given[this]
	if !ok && len(li.given) == mostGiven {
		clear(li.given) // of these readers it is not known any more
		li.rows -= mostGiven * givenRows
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
		g = given{first: at.UnixNano(), rows: rows}
	} else if !slices.Equal(g.rows, rows) {
		g.rows = nil
	}
	g.first, g.until, g.open = min(g.first, at.UnixNano()), now.Add(window).UnixNano(), g.open+1
	li.given[this] = g
}

// Has returns the rows that a reader who asks for a page has of the page before it, in whichever of the walks that
// the reader may have begun: now reports that it is the page as it is now. nil and false where that is not known.
func (l *Lists) Has(name string, key understudy.Key, reader uint64, at time.Time) (rows Rows, now bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	li, ok := l.lists.Get(name)
	if !ok {
		return nil, false
	}
	before, ok := li.from[key]
	p, g := li.pages[before], li.given[reading{before, reader}]
	if !ok || p == nil || g.until < at.UnixNano() {
		return nil, false
	}
	return g.rows, g.first >= p.changed
}

// Without returns those of some rows of a page whose ids are not among others.
func (l *Lists) Without(rows []Row, others Rows) []Row {
	has := others.set()
	return slices.DeleteFunc(slices.Clone(rows), func(r Row) bool { return has[maphash.String(l.seed, r.Row.ID)] })
}

// Missing are the rows that a reader would miss who has a page as it was given and goes
// on with next: those of the pages before next, as they are now, behind the last one that
// the reader has. They are counted from the first row of now. It is not known (false)
// where none of what was given is left in now or next.
func Missing(given, now, next Rows) (from int, known bool) {
	if given.Meet(next) || len(given) == 0 {
		return len(now), true
	}
	has := given.set()
	for i := len(now) - 1; i >= 0; i-- {
		if has[now[i]] {
			return i + 1, true
		}
	}
	return 0, false
}
