// Find: one answer to a search.

package search

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"understudy"
)

// busyError: too many search at once. It is ErrUnavailable, without its words:
// no upstream is to blame.
type busyError string

// Why there is no place for a search or an export.
const (
	errBusy       busyError = "search: too many searches at once; try again in a moment"
	errExports    busyError = "search: too many exports at once; try again when one of them has ended"
	errOwnExports busyError = "search: as many exports of yours are under way as you may have; try again when one of them has ended"
)

// Error says what to do.
func (e busyError) Error() string { return string(e) }

// Unwrap is the error kind.
func (busyError) Unwrap() error { return understudy.ErrUnavailable }

// Find answers a search as the caller may see it. Errors: ErrInvalid (a
// *understudy.SyntaxError when it is the text), ErrForbidden, ErrUnavailable when
// too many search at once, what the store says (ErrIndexing, ErrClosed); a search
// that takes too long is no error but Partial.
func (s *Searcher) Find(ctx context.Context, c understudy.Caller, a understudy.SearchAsk) (*understudy.SearchResult, error) {
	select {
	case s.running <- struct{}{}:
		defer func() { <-s.running }()
	default:
		return nil, errBusy
	}
	v := &visit{s: s, c: c, ask: &a, began: s.o.Now()}
	v.mark.Now = v.began.Unix()
	if a.Cursor != "" {
		var err error
		if v.mark, err = s.open(c, &a); err != nil {
			return nil, err
		}
	}
	var err error
	if v.q, err = s.read(c, &a, time.Unix(v.mark.Now, 0)); err != nil {
		return nil, err
	}
	if v.order, err = v.q.order(a.Sort); err != nil {
		return nil, err
	}
	if v.limit = a.Limit; v.limit == 0 {
		v.limit = understudy.DefaultHits
	}
	return v.find(ctx)
}

// visit is one search on its way.
type visit struct {
	s     *Searcher
	c     understudy.Caller
	ask   *understudy.SearchAsk
	q     *query
	order order
	limit int
	began time.Time
	mark  mark // where it goes on, then where it ended
	meant *candidate
	out   understudy.SearchResult
}

func (v *visit) find(ctx context.Context) (*understudy.SearchResult, error) {
	limited, cancel := context.WithTimeout(ctx, v.s.o.Limits.Time)
	defer cancel()
	v.out = understudy.SearchResult{Query: v.q.tree.String(), Hits: []understudy.SearchHit{}, Notes: []string{}}
	if err := v.exact(limited); err != nil {
		return nil, v.failed(ctx, err)
	}
	look := v.run
	if v.order.window {
		look = v.window
	}
	if err := look(limited); err != nil {
		if err = v.failed(ctx, err); err != nil {
			return nil, err
		}
	}
	if v.ask.Facets {
		if err := v.count(ctx); err != nil {
			return nil, err
		}
	}
	return &v.out, nil
}

// failed is nil for the end of the search's own time, which makes the answer a
// part.
func (v *visit) failed(ctx context.Context, err error) error {
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return v.part(0, "the time for one answer ran out")
	}
	return fmt.Errorf("search: %w", err)
}

// part says that not everything was looked through. How much it was counts what
// may be hidden, and is told to those alone who see everything.
func (v *visit) part(looked int, why string) error {
	v.out.Partial = true
	note := "Only a part was looked through: " + why + ". Go on, or say more closely what you look for."
	if looked > 0 && v.whole() {
		note = fmt.Sprintf("Looked at the newest %d: %s. Go on, or say more closely what you look for.", looked, why)
		if v.order.up || v.ask.Cursor != "" {
			note = fmt.Sprintf("Looked at %d: %s. Go on, or say more closely what you look for.", looked, why)
		}
	}
	v.out.Notes = append(v.out.Notes, note)
	return nil
}

// whole says whether nothing is hidden from the caller where it looks.
func (v *visit) whole() bool {
	return !slices.ContainsFunc(v.q.sights, func(s *sight) bool { return !s.whole && !s.all || s.only != nil })
}

// run finds by place: newest or oldest first.
func (v *visit) run(ctx context.Context) error {
	looked, more := 0, false
	last := v.mark.Place
	err := v.each(ctx, v.mark.Place, func(f found, c *candidate) bool {
		looked++
		if c != nil {
			if len(v.out.Hits) == v.limit {
				more = true
				return false
			}
			v.add(c)
		}
		last = f.Place
		if looked >= v.s.o.Limits.Look {
			more = true
			if len(v.out.Hits) < v.limit {
				_ = v.part(looked, "that is the most for one answer")
			}
			return false
		}
		return true
	})
	v.mark.Place = last
	late := errors.Is(err, context.DeadlineExceeded)
	if err != nil && !late {
		return err
	}
	if more || late {
		return errors.Join(v.next(), err)
	}
	return nil
}

func (v *visit) next() (err error) {
	v.out.Next, err = v.s.cursor(v.c, v.ask, v.mark)
	return err
}

// each looks at every record of the plan; c is nil for one that is none of
// those looked for. Both are valid until yield returns.
func (v *visit) each(ctx context.Context, below understudy.Place, yield func(f found, c *candidate) bool) error {
	var c candidate
	return v.s.stream(ctx, v.q.plan(), below, v.order.up, func(f found) bool {
		if ctx.Err() != nil {
			return false
		}
		if !f.sight.see(&c, f.Record) || !v.q.cond.holds(&c) || v.isMeant(f.Record) {
			return yield(f, nil)
		}
		c.place = f.Place
		return yield(f, &c)
	})
}

func (v *visit) isMeant(r *understudy.Record) bool {
	return v.meant != nil && r.ID == v.meant.ID && r.Kind == v.meant.Kind && r.Source == v.meant.Source
}

// window finds among the newest matches, in another order than that of places.
func (v *visit) window(ctx context.Context) error {
	first := best{order: &v.order}
	matched, looked := 0, 0
	var late bool
	top, bottom := v.mark.Top, v.mark.Bottom
	started := v.ask.Cursor != ""
	err := v.each(ctx, 0, func(f found, c *candidate) bool {
		if top != 0 && f.Place > top {
			return true
		}
		if bottom != 0 && f.Place < bottom || matched == v.s.o.Limits.Window {
			v.out.More = true
			return false
		}
		if looked++; looked > v.s.o.Limits.Look && bottom == 0 {
			late = true
			return false
		}
		if c == nil {
			return true
		}
		matched++
		if v.mark.Top == 0 {
			v.mark.Top = f.Place
		}
		if !started {
			v.mark.Bottom = f.Place
		}
		e := &entry{mark: mark{Place: f.Place}}
		v.order.key(v.q, c, &e.mark)
		if started && v.order.compare(&e.mark, &v.mark) <= 0 {
			return true // it was given out before
		}
		e.record = *c
		e.record.held, e.record.read = nil, false
		first.offer(e, v.limit+1)
		return true
	})
	v.out.Window = matched
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if late || err != nil {
		v.out.More = true
		_ = v.part(looked, "that is the most for one answer; what was found was put in order")
	} else if v.out.More {
		v.out.Notes = append(v.out.Notes, fmt.Sprintf("Only the newest %d matches were put in order; there are older ones.", matched))
	}
	return v.give(first.sorted())
}

// give shows the entries that fit, and makes the cursor behind them.
func (v *visit) give(all []*entry) error {
	room := v.limit - len(v.out.Hits)
	if len(all) <= room {
		for _, e := range all {
			v.add(&e.record)
		}
		return nil
	}
	for _, e := range all[:room] {
		v.add(&e.record)
	}
	if room == 0 {
		return nil
	}
	last := all[room-1]
	v.mark.Place, v.mark.Missing, v.mark.Used, v.mark.Key = last.Place, last.Missing, last.Used, last.Key
	return v.next()
}

// add shows a record. One whose view cannot be made is not shown.
func (v *visit) add(c *candidate) {
	if h, err := v.s.hit(v.c, v.q, c); err == nil {
		v.out.Hits = append(v.out.Hits, h)
	}
}

// hit is a record as the caller sees it.
func (s *Searcher) hit(caller understudy.Caller, q *query, c *candidate) (understudy.SearchHit, error) {
	body, err := s.o.Gate.View(caller, c.Record)
	if err != nil {
		s.o.Logger.Debug("search: view", "source", c.Source, "kind", c.Kind, "err", err)
		return understudy.SearchHit{}, err
	}
	h := understudy.SearchHit{Source: c.Source, Kind: c.Kind, Shape: c.Shape, Body: body, Snippets: q.snippets(c)}
	if c.sight.seesID() {
		h.ID = c.Record.ID
		h.URL = "/" + url.PathEscape(c.Source) + "/" + url.PathEscape(c.Kind) + "/" + url.PathEscape(c.Record.ID)
	}
	if _, ok := c.sight.fields[c.sight.kind.Clock]; ok {
		h.Clock = c.clockAlone()
	}
	return h, nil
}

// clockAlone is the time of a record's clock, 0 while it has none.
func (c *candidate) clockAlone() int64 {
	name := c.sight.kind.Clock
	text, ok := c.value(name)
	if name == "" || !ok {
		return 0
	}
	return understudy.Unix(c.sight.kind.Field(name).Type, []byte(text))
}

// exact looks for the one record whose id is the whole text, and puts it before
// all others.
func (v *visit) exact(ctx context.Context) error {
	n := v.q.tree
	if n.op == opField && n.name == numberName || n.op == opOr && n.of[0].op == opField && n.of[0].name == numberName && len(n.of[0].values) == 1 {
		if n.op == opOr {
			n = n.of[0]
		}
		if p := understudy.ReadPhone(n.values[0].text); p.Country {
			v.out.Meant.Number = "+" + p.Digits
		} else {
			v.out.Meant.Number = p.Digits
		}
		return nil
	}
	if v.q.id == "" {
		return nil
	}
	for _, s := range v.q.sights {
		parts := strings.Split(v.q.id, understudy.IDSeparator)
		if !s.seesID() || len(parts) != len(s.kind.ID) || len(parts) == 1 && !s.kind.HasPrefix(v.q.id) {
			continue
		}
		seek := understudy.Seek{Source: s.source, Kinds: []string{s.kind.Name}}
		for i, name := range s.kind.ID {
			if parts[i] == "" {
				return nil
			}
			seek.Terms = append(seek.Terms, understudy.Term{Field: name, Any: parts[i : i+1]})
		}
		err := v.s.o.Store.Seek(ctx, seek, func(f understudy.Found) bool {
			var c candidate
			if f.ID != v.q.id || !s.see(&c, f.Record) {
				return true
			}
			v.meant = &c
			return false
		})
		if err != nil {
			return err
		}
		if v.meant != nil {
			break
		}
	}
	if v.meant == nil {
		return nil
	}
	v.out.Meant = understudy.SearchMeant{Source: v.meant.Source, Kind: v.meant.Kind, ID: v.meant.ID}
	if v.ask.Cursor == "" {
		v.add(v.meant)
		if len(v.out.Hits) > 0 {
			v.out.Hits[0].Exact = true
		}
	}
	return nil
}
