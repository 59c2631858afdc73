// This file plans a query: which kinds it searches, and the iterator of postings that contains all results.

package seek

import (
	"database/sql/driver"
	"math"
	"slices"

	"understudy/internal/query"
	"understudy/internal/store/catalog"
	"understudy/internal/store/db"
	"understudy/internal/store/index"
	"understudy/internal/store/names"
	"understudy/internal/store/order"
	"understudy/internal/store/postings"
	"understudy/internal/store/records"
	"understudy/internal/store/terms"
	"understudy/internal/store/wordrows"
	"understudy/internal/store/words"
)

// seekPlan is a query in which names are replaced by the numbers of the database.
type seekPlan struct {
	index    *index.Index
	q        *query.RecordQuery
	kinds    []*kindPlan
	byShape  map[int64]*kindPlan
	from, to int64         // the range of positions in which results can be
	since    recordSet     // records that are new or changed since q.Since, or nil for all records
	text     *words.Plan   // the prepared form of the text condition of the query
	pending  index.Pending // the index changes that are not written yet when the read transaction begins
	exact    bool          // the iterators return results only, so no body must be compared
}

// kindPlan is the part of a plan for one kind.
type kindPlan struct {
	kind       *catalog.Kind
	shapes     []*catalog.Shape // shapes to search; the first is the preferred shape of results
	candidates []terms.Plan     // for each shape, how to find candidates by predicates; if empty, all records are candidates
	filters    [][]terms.Plan   // for each shape, the predicates of a query with a row rule that only filter the candidates
	matcher    *query.Matcher   // compares bodies of the kind with the predicates
}

// plan plans a query that was already checked.
func (s *Seeker) plan(q *query.RecordQuery) *seekPlan {
	p := &seekPlan{index: s.index, q: q, byShape: map[int64]*kindPlan{}, exact: len(q.IDs) == 0}
	p.from, p.to = positionRange(*q)
	for _, k := range s.catalog.Kinds() {
		if !hasKind(q, k.Source, k.Name) {
			continue
		}
		one := &kindPlan{kind: k, matcher: q.Matcher(k.Spec)}
		for _, h := range s.catalog.Shapes() {
			if h.Kind == k && (q.Shape == "" || h.Name == q.Shape) {
				one.shapes = append(one.shapes, h)
			}
		}
		first := "" // the shape in which records of the kind are returned by default
		if k.Spec != nil && len(k.Spec.Lists) > 0 {
			first = k.Spec.Lists[0].Shape
		}
		slices.SortFunc(one.shapes, func(a, b *catalog.Shape) int {
			switch {
			case a.Name == first:
				return -1
			case b.Name == first:
				return 1
			}
			return int(a.Slot - b.Slot)
		})
		if len(one.shapes) == 0 || p.planKind(one) {
			continue
		}
		p.kinds = append(p.kinds, one)
		for _, s := range one.shapes {
			p.byShape[s.Number] = one
		}
	}
	slices.SortFunc(p.kinds, func(a, b *kindPlan) int { return int(a.kind.Number - b.kind.Number) })
	return p
}

// openStream returns an iterator over every posting at which a result may be.
func (p *seekPlan) openStream(c db.Conn) (postings.Iterator, error) {
	if len(p.q.IDs)+len(p.q.Numbers) == 0 {
		return p.findCandidates(c)
	}
	named, err := p.findNamed(c)
	if err != nil || len(named.Spots) == 0 || p.q.Text == nil && !p.q.HasTerms() {
		return named, err
	}
	asked, err := p.findCandidates(c)
	return postings.Intersect(named, &everyShape{up: p.q.OldestFirst, s: asked, byShape: p.byShape}), err
}

// findNamed returns the postings of the records whose ids or numbers the query names. If the effort must be constant, it returns another
// record's postings for an id that is not stored. So the amount of reading does not reveal whether an id is stored.
func (p *seekPlan) findNamed(c db.Conn) (*postings.Slice, error) {
	named := &postings.Slice{Up: p.q.OldestFirst}
	for _, k := range p.kinds {
		var ids []driver.Value
		add := func(at order.Position) {
			for _, s := range k.shapes {
				if at.At != order.Nowhere {
					named.Spots = append(named.Spots, postings.New(at.At, s.Number))
				}
			}
		}
		for _, id := range p.q.IDs {
			ids = append(ids, db.AppendID(nil, k.kind.Prefix(), id))
		}
		visit := order.VisitPositions
		if p.hasConstantEffort() {
			visit = visitPositionsOrNext
		}
		if err := visit(c, k.kind.Number, ids, add); err != nil {
			return nil, err
		}
		if err := k.visitNumbered(c, p.q.Numbers, add); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(named.Spots, postings.Compare(p.q.OldestFirst))
	named.Spots = slices.Compact(named.Spots)
	return named, nil
}

// visitPositionsOrNext is order.VisitPositions, but visits another record for an id that is not stored. match later excludes it.
func visitPositionsOrNext(c db.Conn, kind int64, ids []driver.Value, each func(order.Position)) error {
	for _, id := range ids {
		record, err := names.FindRecordOrNext(c, kind, id.([]byte), records.Gone|records.Forgotten)
		if err != nil {
			return err
		}
		args := []driver.Value{record * records.Slots, record*records.Slots + records.Slots - 1}
		if _, err = db.QueryRow(c, selectPlace, args, func(r []driver.Value) { each(order.ReadPosition(r[0])) }); err != nil {
			return err
		}
	}
	return nil
}

var selectNumbered = &db.Statement{Head: "SELECT place FROM held WHERE place IS NOT NULL AND number IN (", Tuple: "?", Tail: ")"}

// visitNumbered calls each with the positions of the records of the kind that have these numbers.
func (k *kindPlan) visitNumbered(c db.Conn, numbers []int64, each func(order.Position)) error {
	held := make([]driver.Value, 0, len(numbers)*len(k.shapes))
	for _, record := range numbers {
		for _, s := range k.shapes {
			held = append(held, record*records.Slots+s.Slot)
		}
	}
	return order.VisitPlaces(c, selectNumbered, nil, held, each)
}

// hasConstantEffort reports whether the amount of reading must not reveal what is stored.
func (p *seekPlan) hasConstantEffort() bool { return p.q.ConstantEffort || len(p.q.Rule) > 0 }

// findCandidates returns every posting of a record that may have the parent, the terms and the text of the query.
func (p *seekPlan) findCandidates(c db.Conn) (s postings.Iterator, err error) {
	up := p.q.OldestFirst
	if p.q.Text != nil || p.q.HasTerms() {
		if p.pending, err = index.ReadPending(c); err != nil {
			return nil, err
		}
		p.pending.Terms.Even = p.hasConstantEffort()
	}
	if p.q.Text == nil {
		return p.termSpots(c, false), nil
	}
	kinds := make([]*words.Kind, len(p.kinds))
	for i, k := range p.kinds {
		kinds[i] = k.kind.Words
	}
	text, err := words.Find(&wordrows.Snapshot{C: c, Table: p.index.Words, Pending: p.pending.Words}, p.text, kinds, up)
	if err != nil || !p.q.HasTerms() {
		return text, err
	}
	return postings.Intersect(p.termSpots(c, len(p.kinds) == 1), &everyShape{up: up, s: text, byShape: p.byShape}), nil
}

// termSpots returns the postings that may match the terms. joined means that the caller combines them with an iterator
// that contains only records of the query's only kind.
func (p *seekPlan) termSpots(c db.Conn, joined bool) postings.Iterator {
	var streams []postings.Iterator
	for _, k := range p.kinds {
		if len(k.candidates) == 0 {
			streams = append(streams, placeSpots(c, k.kind.Number, k.shapes[0].Number, p.q))
		}
		for i := range k.candidates {
			var all postings.Iterator
			if !joined { // if joined, the other iterator has only records of the kind
				all = placeSpots(c, k.kind.Number, k.candidates[i].Shape, p.q)
			}
			found := k.candidates[i].Find(c, &p.pending.Terms, &p.index.Ranges, p.q.OldestFirst, all)
			streams = append(streams, postings.Sieve(p.q.OldestFirst, found, p.sieves(c, k.filters[i])...))
		}
	}
	if len(streams) == 0 {
		return &postings.Slice{Up: p.q.OldestFirst}
	}
	return postings.Unite(p.q.OldestFirst, streams...)
}

// sieves returns, for each plan, an iterator over the postings that match the plan.
func (p *seekPlan) sieves(c db.Conn, plans []terms.Plan) (all []postings.Iterator) {
	for i := range plans {
		all = append(all, plans[i].Find(c, &p.pending.Terms, &p.index.Ranges, p.q.OldestFirst, nil))
	}
	return all
}

// first returns the posting at which the plan's iterator begins: at the position of below, or at the limit of the
// query. The position of below is included, because records of other kinds may be there.
func (p *seekPlan) first(below query.OrderKey) int64 {
	at := int64(below) >> postings.ShapeBits
	if p.q.OldestFirst {
		if from := p.from; below == 0 || at < from {
			if from == math.MinInt64 {
				return from
			}
			return postings.New(from, 0)
		}
		return postings.New(at, 0)
	}
	if below == 0 || at > p.to {
		if p.to == math.MaxInt64 {
			return p.to
		}
		return postings.New(p.to, 1<<postings.ShapeBits-1)
	}
	return postings.New(at, 1<<postings.ShapeBits-1)
}

// recordSet is a set of record numbers, one bit for each record.
type recordSet []uint64

// set adds a record to the set if in is set, otherwise it removes the record.
func (s *recordSet) set(record int64, in bool) {
	i, bit := int(record/64), uint64(1)<<(record%64)
	if i >= len(*s) {
		*s = append(*s, make([]uint64, i+1-len(*s))...)
	}
	if in {
		(*s)[i] |= bit
	} else {
		(*s)[i] &^= bit
	}
}

func (s recordSet) has(record int64) bool {
	i := int(record / 64)
	return i < len(s) && s[i]>>(record%64)&1 != 0
}

// positionRange returns the range of positions that corresponds to the range of times of a query.
func positionRange(q query.RecordQuery) (from, to int64) {
	from, to = math.MinInt64, math.MaxInt64
	if q.From != 0 {
		from, _ = postings.SecondBounds(min(max(q.From, postings.MinSecond), postings.MaxSecond))
	}
	if q.To != 0 {
		to, _ = postings.SecondBounds(min(max(q.To, postings.MinSecond), postings.MaxSecond))
		to--
	}
	return from, to
}

// planKind plans the predicates for a kind. It returns true if no record of the kind can match.
func (p *seekPlan) planKind(k *kindPlan) (none bool) {
	if !p.q.HasTerms() {
		return false
	}
	by, also, parent := p.q.Predicates, []query.Predicate(nil), p.q.Parent
	if len(p.q.Rule) > 0 {
		if by, also, none = splitRule(p.q); none {
			return true
		}
		parent = ""
	}
	by, none = terms.Join(by)
	if none {
		return true
	}
	if len(k.shapes) > 1 {
		p.exact = false // a result may match in one shape and be returned in another
	}
	for _, s := range k.shapes {
		one, exact, none := k.kind.Terms.Plan(s.Number, parent, by)
		var sieve []terms.Plan
		if parent != p.q.Parent {
			of, _, _ := k.kind.Terms.Plan(s.Number, p.q.Parent, nil)
			sieve = append(sieve, of)
		}
		for i := range also {
			of, exactToo, noneToo := k.kind.Terms.Plan(s.Number, "", also[i:i+1])
			if none, exact = none || noneToo, exact && exactToo; !of.IsEmpty() {
				sieve = append(sieve, of)
			}
		}
		if none {
			return true
		}
		if p.exact = p.exact && exact; one.IsEmpty() {
			k.candidates, k.filters, p.exact = nil, nil, p.exact && len(sieve) == 0
			return false
		}
		k.candidates, k.filters = append(k.candidates, one), append(k.filters, sieve)
	}
	return false
}

// splitRule divides the predicates of a query that has a row rule, which limits the records that a role sees.
// Candidates are found by the predicates in by and then filtered by those in also. What by reads depends only on times
// and on records that match the rule. A predicate on a field of the rule keeps some of the rule's values, or none.
func splitRule(q *query.RecordQuery) (by, also []query.Predicate, none bool) {
	by = slices.Clone(q.Rule)
	for _, t := range q.Predicates {
		i := slices.IndexFunc(by, func(r query.Predicate) bool { return r.Field == t.Field && len(r.Any) > 0 })
		switch {
		case t.From != 0 || t.To != 0:
			by = append(by, t)
		case i >= 0 && len(t.Any) > 0:
			by[i].Any = slices.DeleteFunc(slices.Clone(by[i].Any), func(value string) bool { return !slices.Contains(t.Any, value) })
			if len(by[i].Any) == 0 {
				return nil, nil, true
			}
		default:
			also = append(also, t)
		}
	}
	return by, also, false
}

var (
	placeDown = &db.Statement{Head: "SELECT at << 10 | ?2 FROM place WHERE kind = ?1 " +
		"AND at <= CAST(?3 AS BIGINT) >> 10 ORDER BY at DESC LIMIT ?4",
		Reads: db.Index}
	placeUp = &db.Statement{Head: "SELECT at << 10 | ?2 FROM place WHERE kind = ?1 " +
		"AND at >= CAST(?3 AS BIGINT) >> 10 ORDER BY at ASC LIMIT ?4",
		Reads: db.Index}
)

// placeSpots returns postings in the given shape for all records of a kind, whichever shapes they have.
func placeSpots(c db.Conn, kind, shape int64, q *query.RecordQuery) postings.Iterator {
	st := placeDown
	if q.OldestFirst {
		st = placeUp
	}
	return &postings.Scan{C: c, St: st, Args: []driver.Value{kind, shape}, Up: q.OldestFirst, Size: (q.ExpectedRows + 1) / 2}
}

// match reports whether a record with this id, parent and body matches the ids, the parent and the terms of the query.
func (k *kindPlan) match(q *query.RecordQuery, id, parent string, body []byte) bool {
	if q.Parent != "" && parent != q.Parent || len(q.IDs) > 0 && !slices.Contains(q.IDs, id) {
		return false
	}
	return k.matcher.Match(body)
}

// hasKind reports whether a query searches a kind.
func hasKind(q *query.RecordQuery, source, kind string) bool {
	return (q.Source == "" || q.Source == source) && (len(q.Kinds) == 0 || slices.Contains(q.Kinds, kind))
}
