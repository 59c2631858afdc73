// Compose: a list answer made from records.

// Package compose makes list answers from records, in upstream's own envelope.
//
// The question says which records belong to the list and where its page
// begins; whoever has the records hands them in, newest first; the page is
// what upstream would have answered. Nothing here asks anybody anything.
package compose

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"understudy"
)

// List is one page of a list on its way. It is used by one goroutine.
type List struct {
	src    *understudy.Source
	target *understudy.Target
	paging *understudy.Paging
	tests  []test
	window understudy.Window

	size, page int64
	skip       int64  // rows of earlier pages, when they are named by a number alone
	token      string // as the request gave it
	start      string // the record the token names
	back       bool   // the page ends before it

	loose []stray // records without a clock, in the order they stand in
	rows  [][]byte
	ids   []string
	found []understudy.Row
	bytes int64
	more  bool // rows come after the last one
	since bool // rows stand before the first one
	done  bool
}

// MaxBytes bounds the rows of one page.
const MaxBytes = 64 << 20

// New reads what a list's path and query ask for. ErrInvalid, in words for who
// asked: a kind without records, a parameter the spec does not name, a value
// that means nothing.
func New(src *understudy.Source, t *understudy.Target) (*List, error) {
	if t.List == nil || t.Kind == nil || len(t.Kind.ID) == 0 {
		return nil, fmt.Errorf("%w: this list is kept as whole pages, not as records", understudy.ErrInvalid)
	}
	l := &List{src: src, target: t, paging: t.Spec.PagingOf(t.List), size: int64(t.PageSize)}
	l.window = understudy.Window{Source: src.Name, Kind: t.Kind.Name, Shape: t.List.Shape}
	if l.paging.Answer == "" {
		return nil, fmt.Errorf("%w: the spec does not say how this list is written", understudy.ErrInvalid)
	}
	for _, v := range t.Vars {
		l.within(v)
	}
	for name, value := range t.List.Only {
		l.tests = append(l.tests, only(t.Kind.Field(name), name, value))
	}
	for _, p := range t.Query {
		if err := l.read(p); err != nil {
			return nil, err
		}
	}
	return l, l.checkPage()
}

// within narrows the list to what a path variable names.
func (l *List) within(v understudy.Param) {
	k := l.target.Kind
	if _, own := l.target.Spec.Vars[v.Name]; !own && k.Parent != "" {
		l.window.Parent = v.Value
		return
	}
	l.tests = append(l.tests, mentions(v.Value))
}

// read takes one parameter in.
func (l *List) read(p understudy.Param) error {
	paging := l.paging
	switch {
	case p.Name == paging.Size && paging.Size != "":
		n, err := strconv.ParseInt(p.Value, 10, 32)
		if err != nil || n < 1 || paging.Max > 0 && n > int64(paging.Max) {
			return fmt.Errorf("%w: %s must be a number from 1 to %d", understudy.ErrInvalid, p.Name, paging.Max)
		}
		l.size = n
		return nil
	case p.Name == paging.Page && paging.Page != "":
		n, err := strconv.ParseInt(p.Value, 10, 32)
		if err != nil || n < int64(paging.First) {
			return fmt.Errorf("%w: %s must be a number from %d on", understudy.ErrInvalid, p.Name, paging.First)
		}
		l.page = n - int64(paging.First)
		return nil
	case slices.Contains(paging.Tokens, p.Name):
		return l.readToken(p.Value)
	}
	f := l.target.List.Filter(p.Name)
	if f == nil {
		return fmt.Errorf("%w: %q is not a filter of this list", understudy.ErrInvalid, p.Name)
	}
	if p.Bare || p.Value == "" {
		return nil
	}
	return l.filter(f, p.Value)
}

// readToken finds the record a token names. The page after a record is named
// by the spec's form; with its first A as a B it is the page before one, as
// upstreams of that form write it.
func (l *List) readToken(value string) error {
	if value == "" {
		return nil
	}
	head, tail, _ := strings.Cut(l.paging.Token, "{id}")
	id, ok := strings.CutPrefix(value, head)
	if !ok {
		id, ok = strings.CutPrefix(value, backward(head))
		l.back = ok
	}
	if ok {
		id, ok = strings.CutSuffix(id, tail)
	}
	if !ok || id == "" || l.paging.Token == "" {
		return fmt.Errorf("%w: the page token is not one of this list", understudy.ErrInvalid)
	}
	l.start, l.token = id, value
	return nil
}

// backward is the head of tokens of pages before a record.
func backward(head string) string { return strings.Replace(head, "A", "B", 1) }

func (l *List) checkPage() error {
	if l.size <= 0 {
		l.size = 1000
	}
	if l.paging.Size == "" || l.paging.Style == "none" {
		l.size = int64(max(l.paging.Max, 1000))
	}
	if l.start == "" {
		l.skip = l.page * l.size
		l.since = l.page > 0
	}
	if l.skip > 10_000_000 {
		return fmt.Errorf("%w: there are not so many pages", understudy.ErrInvalid)
	}
	return nil
}

// Window is what records the list is made of, as narrow as it can be said.
func (l *List) Window() understudy.Window { return l.window }

// Start is the record the page begins after (back: ends before), "" for none.
func (l *List) Start() (id string, back bool) { return l.start, l.back }

// Below begins the page after a place: that of the record Start names.
func (l *List) Below(clock, number int64) {
	l.window.Below.Clock, l.window.Below.Record = clock, number
	l.since = true
}

// stray is a record without a clock.
type stray struct {
	rec *understudy.Record
	at  int64
}

// before reports whether a record of that time and number stands before another.
func before(at, number, otherAt, otherNumber int64) bool {
	return at > otherAt || at == otherAt && number > otherNumber
}

// Strays reports whether records without a clock may belong to the list: then
// they are handed to Stray, in any order, before the others are to Take.
func (l *List) Strays() bool { return l.window.From == 0 && l.window.To == 0 }

// Stray is told a record without a clock. Only as many are kept as may stand on
// the page; false: there are more than fit into memory.
func (l *List) Stray(rec *understudy.Record, _ int64) bool {
	at, _ := Place(l.target.Kind, rec.Body)
	below := l.window.Below
	if !l.passes(rec.Body) || below.Record != 0 && !before(below.Clock, below.Record, at, rec.Number) {
		return true
	}
	i, _ := slices.BinarySearchFunc(l.loose, stray{rec, at}, func(a, b stray) int {
		switch {
		case before(a.at, a.rec.Number, b.at, b.rec.Number):
			return -1
		case a.rec.Number == b.rec.Number && a.at == b.at:
			return 0
		}
		return 1
	})
	l.loose = slices.Insert(l.loose, i, stray{rec, at})
	if most := l.skip + l.size + 1; !l.back && int64(len(l.loose)) > most {
		l.loose = l.loose[:most]
	}
	return len(l.loose) <= maxStrays
}

// maxStrays bounds the records without a clock that are kept for a page which
// ends before one of them.
const maxStrays = 100_000

// passes reports whether a record belongs to the list.
func (l *List) passes(body []byte) bool {
	return !slices.ContainsFunc(l.tests, func(t test) bool { return !t(body) })
}

// Take is told one record after the other, in the window's order. It returns
// false when it needs no more. The record's body is not kept longer than the
// page.
func (l *List) Take(rec *understudy.Record, clock int64) bool {
	for len(l.loose) > 0 && before(l.loose[0].at, l.loose[0].rec.Number, clock, rec.Number) {
		one := l.loose[0]
		if l.loose = l.loose[1:]; !l.put(one.rec, 0) {
			return false
		}
	}
	if l.done || !l.passes(rec.Body) {
		return !l.done
	}
	return l.put(rec, clock)
}

// put adds a record of the list to the page, if it stands there.
func (l *List) put(rec *understudy.Record, clock int64) bool {
	switch {
	case l.done:
		return false
	case l.back && rec.ID == l.start:
		l.done, l.more = true, true
		return false
	case l.skip > 0:
		l.skip--
		return true
	case l.back && int64(len(l.rows)) == l.size:
		l.bytes -= int64(len(l.rows[0]))
		l.rows, l.ids, l.found, l.since = l.rows[1:], l.ids[1:], l.found[1:], true
	}
	if int64(len(l.rows)) == l.size || l.bytes+int64(len(rec.Body)) > MaxBytes {
		l.done, l.more = true, true
		return false
	}
	l.rows, l.ids = append(l.rows, rec.Body), append(l.ids, rec.ID)
	l.found = append(l.found, understudy.Row{ID: rec.ID, Clock: clock, Final: rec.Final, Record: rec.Number, Version: rec.Version})
	l.bytes += int64(len(rec.Body))
	return true
}

// Page is the answer. at is how old it says it is.
func (l *List) Page(at time.Time) (*understudy.Page, error) {
	for _, one := range l.loose {
		if !l.put(one.rec, 0) {
			break
		}
	}
	p := &understudy.Page{
		Key: l.target.Key, Kind: l.target.Kind.Name, Shape: l.target.List.Shape, List: true,
		Status: 200, ContentType: "application/json", At: at, Rows: l.found,
	}
	if err := l.write(p); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(p.Body)
	p.Sum = [16]byte(sum[:16])
	return p, nil
}
