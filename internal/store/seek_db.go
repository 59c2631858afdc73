// Seek in the database: parts of the stream in short read transactions.

package store

import (
	"context"
	"database/sql/driver"
	"slices"
	"time"

	"understudy"
)

const (
	// seekFirst is how many records the first part of a Seek gives when nobody says
	// how many are wanted, seekMost how many any part; seekLook how many places one
	// part looks at, seekFew how many of them one statement looks up.
	seekFirst = 64
	seekMost  = 512
	seekLook  = 2048
	seekFew   = 16
)

// Seek hands out records as the question has it, until yield returns false.
// It reads a few at a time and holds nothing while yield runs: what is saved
// meanwhile may show. A record that changes meanwhile is neither missed nor
// told twice; one that a page moves may be. Terms are compared with the bodies,
// so what comes fulfils them. Errors: ErrInvalid.
func (db *DB) Seek(ctx context.Context, q understudy.Seek, yield func(understudy.Found) bool) error {
	leave, err := db.enter()
	if err != nil {
		return err
	}
	defer leave()
	s, err := db.seek(&q)
	if err != nil {
		return failed(false, err, "seek in %s", q.Source)
	}
	given, doubled := 0, seekFirst
	for !s.ended {
		size := min(q.Want-given, seekMost)
		if size <= 0 {
			size, doubled = doubled, min(2*doubled, seekMost)
		}
		if q.Limit > 0 {
			size = min(size, q.Limit-given)
		}
		var found []understudy.Found
		err := db.read(ctx, func(c *conn) (err error) {
			found, err = s.part(ctx, c, size)
			return err
		})
		if err != nil {
			return failed(false, err, "seek in %s", q.Source)
		}
		for i := range found {
			if !yield(found[i]) {
				return nil
			}
		}
		if given += len(found); q.Limit > 0 && given >= q.Limit {
			return nil
		}
	}
	return nil
}

// seek makes a question ready, or refuses what means nothing.
func (db *DB) seek(q *understudy.Seek) (*seeking, error) {
	if err := checkSeek(q); err != nil {
		return nil, err
	}
	s := &seeking{db: db, p: db.plan(q), below: q.Below, widened: db.widened.Load()}
	var err error
	s.p.text, s.p.said, err = db.o.askedText(q)
	return s, err
}

// seeking is one question under way.
type seeking struct {
	db      *DB
	p       *seekPlan
	below   understudy.Place // of the record looked at last
	last    heldAt
	widened int64 // of the DB, when below was right
	ended   bool
}

// heldAt is a record where it stands.
type heldAt struct {
	kind        *kindPlan
	record      int64
	place       understudy.Place
	shape       *shapeRow
	version     int64
	seen, state int64
	since       int64
}

// part is the next records, at most size.
func (s *seeking) part(ctx context.Context, c *conn, size int) (found []understudy.Found, err error) {
	if err := s.prepare(ctx, c); err != nil {
		return nil, err
	}
	b := s.db.blocks(c).bodies()
	defer b.end()
	look := func() error {
		h, e, err := b.next()
		if err != nil {
			return err
		}
		f, ok, err := s.record(c, h, e)
		if ok {
			found = append(found, f)
		}
		return err
	}
	want := func() int { return size - len(found) - len(b.waiting) }
	err = s.each(ctx, c, want, func(some []*heldAt) (bool, error) {
		err := b.ask(some)
		for err == nil && len(b.waiting) > 0 && (len(b.waiting) > ahead || len(found)+len(b.waiting) >= size) {
			err = look()
		}
		return len(found) < size, err
	})
	for err == nil && len(b.waiting) > 0 {
		err = look()
	}
	return found, err
}

// prepare looks whether the record looked at last has moved to make room for
// others, and which records have changed since.
func (s *seeking) prepare(ctx context.Context, c *conn) error {
	before := s.db.widened.Load()
	if err := s.db.searchable(c, s.p.q); err != nil {
		return err
	}
	if err := s.follow(c, before); err != nil {
		return err
	}
	if s.p.q.Since == 0 || s.p.since != nil {
		return nil
	}
	s.p.since = make(recordSet, 1)
	source, _ := s.db.source(s.p.q.Source)
	return c.query(selectSince, 0, []driver.Value{source, s.p.q.Since}, func(r []driver.Value) error {
		n, count := r[0].(int64), r[1].(int64)
		for i := max(s.p.q.Since+1-n, 0); i < count; i++ {
			s.p.since.set(r[2].(int64)+i, understudy.What(r[3].(int64)) != understudy.Went)
		}
		return checkContext(ctx)
	})
}

// follow goes on from where the record looked at last stands now, if any made
// room for others since then. before is what DB.widened was before this read
// transaction began.
func (s *seeking) follow(c *conn, before int64) error {
	now := before
	if s.last.record != 0 || s.below != s.p.q.Below {
		var at stand
		// The first look into the file: what is committed from here on is not seen.
		_, err := c.one(selectPlaceOf, []driver.Value{s.last.record * slots, s.last.record*slots + slots - 1}, func(r []driver.Value) { at = standOf(r[0]) })
		if now = s.db.widened.Load(); err != nil || now == s.widened {
			return err
		}
		switch {
		case s.last.record == 0: // nothing was looked at yet but places to pass
			s.below = s.p.q.Below
		case at.at != noPosition:
			s.below = placeOf(at.at, s.last.kind.number)
		}
	}
	if s.widened = before; now != before || now%2 != 0 {
		s.widened = unsettled // that may be committed, and not seen yet
	}
	return nil
}

// unsettled is no number of DB.widened.
const unsettled = -1

var (
	selectPlaceOf = &statement{head: "SELECT place FROM held WHERE number BETWEEN ? AND ? AND place IS NOT NULL LIMIT 1"}
	selectSince   = &statement{head: "SELECT n, count, record, what FROM change WHERE source = ?1 AND n >= coalesce((SELECT max(n) FROM change WHERE source = ?1 AND n <= ?2), 0) AND n + count > ?2 + 1 ORDER BY n"}
	selectShown   = &statement{head: "SELECT at, number, version, seen, state, coalesce(since, 0) FROM place CROSS JOIN held ON number BETWEEN record * ?2 AND record * ?2 + ?2 - 1 WHERE kind = ?1 AND state & 12 = 0 AND at IN (", tuple: "?", tail: ")"}
)

// each hands out the records of the stream that are held, in order and some at a
// time, until do returns false or so many were looked at. want is how many may be
// handed out at once.
func (s *seeking) each(ctx context.Context, c *conn, want func() int, do func(some []*heldAt) (more bool, err error)) error {
	stream, err := s.p.stream(c)
	if err != nil {
		return err
	}
	w := &walking{seeking: s, stream: stream, from: s.p.first(s.below)}
	for looked := 0; looked < seekLook; {
		places, err := w.next(ctx, min(want(), seekFew))
		if err != nil {
			return err
		}
		if len(places) == 0 {
			s.ended = w.ended
			return nil
		}
		looked += len(places)
		some, err := s.held(c, places)
		if err != nil {
			return err
		}
		if s.below = places[len(places)-1].place; len(some) == 0 {
			continue
		}
		s.last = *some[len(some)-1]
		if more, err := do(some); err != nil || !more {
			return err
		}
	}
	return nil
}

// walking goes over the places at which a stream has spots.
type walking struct {
	*seeking
	stream stream
	from   int64     // the spot to go on at
	over   []*heldAt // found, and not handed out yet
	ended  bool      // the stream has nothing more
}

// next are the next places, n at most; none: that was all, or so many spots of
// kinds nobody asked for came first that the next part goes on after them.
func (w *walking) next(ctx context.Context, n int) ([]*heldAt, error) {
	for passed := 0; len(w.over) < n && !w.ended; passed++ {
		if err := checkContext(ctx); err != nil {
			return nil, err
		}
		at, err := w.position()
		if err != nil {
			return nil, err
		}
		if passed < seekLook || w.ended {
			continue
		}
		if len(w.over) == 0 {
			w.below = placeOf(at, 1)
			if w.p.q.Up {
				w.below = placeOf(at, 1<<shapeBits-1)
			}
		}
		break
	}
	n = min(n, len(w.over))
	places := w.over[:n:n]
	w.over = w.over[n:]
	return places, nil
}

// position adds the places of all kinds asked for that have a spot at the next
// position.
func (w *walking) position() (at int64, err error) {
	up, p := w.p.q.Up, w.p
	spot, ok, err := w.stream.seek(w.from)
	at = positionOf(spot)
	if err != nil || !ok || at < p.from || at > p.to {
		w.ended = true
		return at, err
	}
	group, next := []*kindPlan(nil), spot
	for ok && positionOf(next) == at {
		if k := p.byShape[shapeOf(next)]; k != nil && !slices.Contains(group, k) {
			group = append(group, k)
		}
		if w.from, ok = past(next, up); ok {
			next, ok, err = w.stream.seek(w.from)
		}
		if err != nil {
			return at, err
		}
	}
	w.ended = !ok
	slices.SortFunc(group, func(a, b *kindPlan) int { return inOrder(up)(a.number, b.number) })
	for _, k := range group {
		place := placeOf(at, k.number)
		if w.below != 0 && (place < w.below) == up || place == w.below {
			continue
		}
		w.over = append(w.over, &heldAt{kind: k, place: place})
	}
	return at, nil
}

// held are the records at some places, each in the shape it is told in; where
// none is there is none.
func (s *seeking) held(c *conn, places []*heldAt) (some []*heldAt, err error) {
	for _, k := range s.p.kinds {
		args := []driver.Value{k.number, int64(slots)}
		for _, h := range places {
			if h.kind == k {
				args = append(args, int64(h.place)>>shapeBits)
			}
		}
		if len(args) == 2 {
			continue
		}
		err := c.query(selectShown, len(args)-2, args, func(r []driver.Value) error {
			place := placeOf(r[0].(int64), k.number)
			h := places[slices.IndexFunc(places, func(h *heldAt) bool { return h.place == place })]
			slot := r[1].(int64) % slots
			if h.record = r[1].(int64) / slots; s.p.since != nil && !s.p.since.has(h.record) {
				return nil
			}
			i := slices.IndexFunc(k.shapes, func(s *shapeRow) bool { return s.slot == slot })
			if i >= 0 && (h.shape == nil || i < slices.Index(k.shapes, h.shape)) {
				h.shape, h.version, h.seen, h.state, h.since = k.shapes[i], r[2].(int64), r[3].(int64), r[4].(int64), r[5].(int64)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	for _, h := range places {
		if h.shape != nil {
			some = append(some, h)
		}
	}
	return some, nil
}

// record is what is told of a record; ok is false when it is not meant.
func (s *seeking) record(c *conn, h *heldAt, e *entry) (f understudy.Found, ok bool, err error) {
	if !fulfils(s.p.q, h.kind.spec, e.parent, e.body) {
		return f, false, nil
	}
	if h.since == 0 {
		if h.since, err = c.madeAt(h.version); err != nil {
			return f, false, err
		}
	}
	rec := &understudy.Record{Source: h.kind.source, Kind: h.kind.name, Shape: h.shape.name, ID: e.id, Number: h.record, Version: h.version,
		Since: time.Unix(0, h.since).UTC(), Seen: time.Unix(0, h.seen).UTC(), Final: h.state&stateFinal != 0, Invalid: h.state&stateInvalid != 0}
	rec.Body = slices.Clone(e.body)
	return understudy.Found{Record: rec, Clock: e.clock, Place: h.place}, true, nil
}

// Count says how many records Seek finds: at most most of them (0: all), as far
// as it comes by a time (zero: none) or until ctx is over. It reads no body
// unless the question needs one.
func (db *DB) Count(ctx context.Context, q understudy.Seek, most int64, by time.Time) (n understudy.Count, err error) {
	leave, err := db.enter()
	if err != nil {
		return n, err
	}
	defer leave()
	s, err := db.seek(&q)
	if err != nil {
		return n, failed(false, err, "count in %s", q.Source)
	}
	end := most
	if limit := int64(q.Limit); limit > 0 && (end <= 0 || limit <= end) {
		end = limit
	}
	for !s.ended {
		if !by.IsZero() && !db.o.Now().Before(by) {
			n.AtLeast = true
			return n, nil
		}
		err := db.read(ctx, func(c *conn) error {
			if err := s.prepare(ctx, c); err != nil {
				return err
			}
			blocks := db.blocks(c)
			return s.each(ctx, c, func() int { return seekFew }, func(some []*heldAt) (bool, error) {
				for _, h := range some {
					ok := true
					if !s.p.exact {
						var err error
						if ok, err = s.meant(blocks, h); err != nil {
							return false, err
						}
					}
					if ok {
						n.N++
					}
				}
				return end <= 0 || n.N <= end, nil
			})
		})
		if err != nil {
			return n, failed(false, err, "count in %s", q.Source)
		}
		if end > 0 && n.N > end {
			n.N, n.AtLeast = end, int64(q.Limit) != end
			return n, nil
		}
	}
	return n, nil
}

// meant reports whether a record's body fulfils the terms.
func (s *seeking) meant(blocks *opened, h *heldAt) (bool, error) {
	e, err := blocks.entry(h.version)
	if err != nil {
		return false, err
	}
	return fulfils(s.p.q, h.kind.spec, e.parent, e.body), nil
}
