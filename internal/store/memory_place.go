// The store in memory places records by the same rules.

package store

import (
	"context"
	"math"
	"slices"

	"understudy"
)

// memoryGround is where the records of one kind stand, those that are gone
// included.
type memoryGround struct {
	at []int64 // rising
	of map[int64]*memoryRecord
}

func (g *memoryGround) below(position, least int64) (int64, error) {
	i, _ := slices.BinarySearch(g.at, position)
	if i == 0 || g.at[i-1] < least {
		return noPosition, nil
	}
	return g.at[i-1], nil
}

func (g *memoryGround) above(position, most int64) (int64, error) {
	i, found := slices.BinarySearch(g.at, position)
	if found {
		i++
	}
	if i == len(g.at) || g.at[i] > most {
		return noPosition, nil
	}
	return g.at[i], nil
}

func (g *memoryGround) widen(position int64, n int, moved func(to map[int64]int64)) error {
	end, _ := slices.BinarySearch(g.at, position)
	first, low, step := widened(position, n, func(low int64) int {
		i, _ := slices.BinarySearch(g.at, low)
		return end - i
	})
	i, _ := slices.BinarySearch(g.at, low)
	stand := slices.Clone(g.at[i:end])
	records := make([]*memoryRecord, len(stand))
	for j, from := range stand {
		records[j] = g.of[from]
		delete(g.of, from)
	}
	for j := range stand { // from the lowest on
		to := first - int64(len(stand)-1-j)*step
		g.at[i+j], g.of[to], records[j].stands = to, records[j], to
	}
	told := make(map[int64]int64, len(stand))
	for j, from := range stand {
		told[from] = g.at[i+j]
	}
	moved(told)
	return nil
}

// widened chooses which records move to make room for n more below a position:
// those from low on, of which count says how many there are, get positions that
// are step apart, from first down. Half of the free room is left right below the
// position: where a second ends, what comes next stands there, too.
func widened(position int64, n int, count func(low int64) int) (first, low, step int64) {
	for room := int64(n+1) * 8; ; room *= 2 {
		low = position - room
		if there := int64(count(low)); there*4 <= room-int64(n) {
			gap := int64(n) + 1 + (room-int64(n)-1-there)/2
			step = max((room-gap)/(there+1), 1)
			return position - gap, low, step
		}
	}
}

// put makes a record stand at a position.
func (g *memoryGround) put(rec *memoryRecord, at int64) {
	if rec.stands == at {
		return
	}
	if rec.stands != noPosition {
		i, _ := slices.BinarySearch(g.at, rec.stands)
		g.at = slices.Delete(g.at, i, i+1)
		delete(g.of, rec.stands)
	}
	i, _ := slices.BinarySearch(g.at, at)
	g.at = slices.Insert(g.at, i, at)
	g.of[at], rec.stands = rec, at
}

// placing is what is known of where a record stands.
func (r *memoryRecord) placing() *placing {
	return &placing{at: r.stands, shown: r.shown, second: noSecond}
}

// place places the records of a page, which have their numbers.
func (m *Memory) place(s *memorySource, page *understudy.Page) error {
	k, spec := s.kind(page.Kind), m.o.kindSpec(page.Key.Source, page.Kind)
	var rows []*placing
	var of []*memoryRecord
	known := map[string]bool{}
	for i := range page.Rows { // a record that stands twice counts as it stands last
		r := &page.Rows[len(page.Rows)-1-i]
		if known[r.ID] {
			continue
		}
		known[r.ID] = true
		rec := k.records[r.ID]
		p := rec.placing()
		p.second = naturalSecond(spec, r.Clock, page.Body[r.Start:r.End])
		rows, of = append(rows, p), append(of, rec)
	}
	slices.Reverse(rows)
	slices.Reverse(of)
	g := &k.ground
	if !page.List || page.Asked().Zero() {
		for i, p := range rows {
			if p.at == noPosition {
				at, err := natural(g, p.second)
				if err != nil {
					return err
				}
				g.put(of[i], at)
			}
		}
		return nil
	}
	placed := &placedPage{ground: g, rows: rows}
	f := followed(m.o.Specs[page.Key.Source], page.Asked())
	placed.after = f.after
	if rec := k.records[f.id]; rec != nil && !known[f.id] && rec.stands != noPosition {
		if f.up {
			placed.bottom = rec.placing()
		} else {
			placed.top = rec.placing()
		}
	}
	placed.next = func() (*placing, error) { return m.nextRow(s, page, known), nil }
	if err := placed.place(); err != nil {
		return err
	}
	// Rows that stood elsewhere leave first, so that none stands where another
	// still is.
	for i, p := range rows {
		if of[i].stands != noPosition && of[i].stands != p.at {
			j, _ := slices.BinarySearch(g.at, of[i].stands)
			g.at = slices.Delete(g.at, j, j+1)
			delete(g.of, of[i].stands)
			of[i].stands = noPosition
		}
	}
	for i, p := range rows {
		g.put(of[i], p.at)
		of[i].shown = true
	}
	return nil
}

// nextRow is the first row of the page that follows, if that is held.
func (m *Memory) nextRow(s *memorySource, page *understudy.Page, known map[string]bool) *placing {
	next := s.pages[page.Next.URI]
	if next == nil || len(next.page.Rows) == 0 || next.page.Kind != page.Kind || !next.page.List {
		return nil
	}
	id := next.page.Rows[0].ID
	rec := s.kind(page.Kind).records[id]
	if rec == nil || known[id] {
		return nil
	}
	return rec.placing()
}

// PlaceOf is as DB.PlaceOf.
func (m *Memory) PlaceOf(ctx context.Context, source, kind, id string) (understudy.Place, error) {
	if err := m.enter(ctx); err != nil {
		return 0, failed(false, err, "place of %s %s %s", source, kind, id)
	}
	defer m.mu.Unlock()
	rec := m.recordOf(source, kind, id)
	if rec == nil || rec.stands == noPosition {
		return 0, failed(false, understudy.ErrNotFound, "place of %s %s %s", source, kind, id)
	}
	return placeOf(rec.stands, m.sources[source].kinds[kind].number), nil
}

// positions are those of a question's time.
func positions(q understudy.Seek) (from, to int64) {
	from, to = math.MinInt64, math.MaxInt64
	if q.From != 0 {
		from, _ = secondBounds(min(max(q.From, leastSecond), mostSecond))
	}
	if q.To != 0 {
		to, _ = secondBounds(min(max(q.To, leastSecond), mostSecond))
		to--
	}
	return from, to
}
