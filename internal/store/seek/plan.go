// The plan of a question: which kinds it is about, and the stream of postings among which all that is meant is found.

package seek

import (
	"database/sql/driver"
	"math"
	"slices"

	"understudy/internal/query"
	"understudy/internal/store/catalog"
	"understudy/internal/store/index"
	"understudy/internal/store/names"
	"understudy/internal/store/order"
	"understudy/internal/store/postings"
	"understudy/internal/store/records"
	"understudy/internal/store/sqlite"
	"understudy/internal/store/terms"
	"understudy/internal/store/words"
	"understudy/spec"
)

// seekPlan is a question with its numbers.
type seekPlan struct {
	ranges   *terms.Ranges
	q        *query.RecordQuery
	kinds    []*kindPlan
	byShape  map[int64]*kindPlan
	from, to int64         // positions
	since    recordSet     // came or changed since; nil: all
	text     *words.Plan   // of q.Text
	pending  index.Pending // in the moment of the transaction under way
	exact    bool          // what the streams give is what is meant
}

// kindPlan is what is asked of one kind.
type kindPlan struct {
	kind   *catalog.Kind
	shapes []*catalog.Shape // those it is looked for in; the first is the one it is told in, if it can be
	asked  []terms.Plan     // what predicates say, shape by shape; none: any record may be meant
	sieve  [][]terms.Plan   // what each of those beside a row rule says of what asked finds, shape by shape
	match  *query.Matcher   // what they ask of a body
}

// plan makes the plan of a question that was checked.
func (s *Seeker) plan(q *query.RecordQuery) *seekPlan {
	p := &seekPlan{ranges: &s.index.Ranges, q: q, byShape: map[int64]*kindPlan{}, exact: len(q.IDs) == 0}
	p.from, p.to = positions(*q)
	for _, k := range s.catalog.Kinds() {
		if !wants(q, k.Source, k.Name) {
			continue
		}
		one := &kindPlan{kind: k, match: q.Matcher(k.Spec)}
		for _, h := range s.catalog.Shapes() {
			if h.Kind == k && (q.Shape == "" || h.Name == q.Shape) {
				one.shapes = append(one.shapes, h)
			}
		}
		first := firstShape(k.Spec)
		slices.SortFunc(one.shapes, func(a, b *catalog.Shape) int {
			switch {
			case a.Name == first:
				return -1
			case b.Name == first:
				return 1
			}
			return int(a.Slot - b.Slot)
		})
		if len(one.shapes) == 0 || p.ask(one) {
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

// stream is every posting at which something that is meant may stand.
func (p *seekPlan) stream(c *sqlite.Conn) (postings.Iterator, error) {
	if len(p.q.IDs) == 0 {
		return p.asked(c)
	}
	named, err := p.namedSpots(c)
	if err != nil || len(named.Spots) == 0 || p.q.Text == nil && !p.q.Termed() {
		return named, err
	}
	asked, err := p.asked(c)
	return postings.And(p.q.Up, named, &everyShape{up: p.q.Up, s: asked, byShape: p.byShape}), err
}

// namedSpots are the postings of the records whose ids are asked for. For an id that is not held it has those of
// another record, which fulfils leaves out: how much is read does not tell whether an id is held.
func (p *seekPlan) namedSpots(c *sqlite.Conn) (*postings.Slice, error) {
	named := &postings.Slice{Up: p.q.Up}
	for _, k := range p.kinds {
		for _, id := range p.q.IDs {
			record, err := names.RecordOrNext(c, k.kind.Number, sqlite.AppendID(nil, k.kind.Prefix, id), records.Gone|records.Forgotten)
			if err != nil {
				return nil, err
			}
			at := order.Position{At: order.Nowhere}
			args := []driver.Value{record * records.Slots, record*records.Slots + records.Slots - 1}
			if _, err = c.One(selectPlaceOf, args, func(r []driver.Value) { at = order.ReadPosition(r[0]) }); err != nil {
				return nil, err
			}
			for _, s := range k.shapes {
				if at.At != order.Nowhere {
					named.Spots = append(named.Spots, postings.At(at.At, s.Number))
				}
			}
		}
	}
	slices.SortFunc(named.Spots, postings.Compare(p.q.Up))
	named.Spots = slices.Compact(named.Spots)
	return named, nil
}

// asked is every posting at which something may stand that is asked for by parent, terms and text.
func (p *seekPlan) asked(c *sqlite.Conn) (s postings.Iterator, err error) {
	up := p.q.Up
	if p.q.Text != nil || p.q.Termed() {
		if p.pending, err = index.PendingOf(c); err != nil {
			return nil, err
		}
		p.pending.Terms.Even = p.q.Even || len(p.q.Rule) > 0
	}
	if p.q.Text == nil {
		return p.termSpots(c, false), nil
	}
	kinds := make([]*words.Kind, len(p.kinds))
	for i, k := range p.kinds {
		kinds[i] = k.kind.Words
	}
	text, err := words.Find(c, p.pending.Words, p.text, kinds, up)
	if err != nil || !p.q.Termed() {
		return text, err
	}
	return postings.And(up, p.termSpots(c, len(p.kinds) == 1), &everyShape{up: up, s: text, byShape: p.byShape}), nil
}

// termSpots are the postings of what may fulfil the terms; joined says that they are
// joined with a stream of records of the one kind that is asked for.
func (p *seekPlan) termSpots(c *sqlite.Conn, joined bool) postings.Iterator {
	var streams []postings.Iterator
	for _, k := range p.kinds {
		if len(k.asked) == 0 {
			streams = append(streams, placeSpots(c, k.kind.Number, k.shapes[0].Number, p.q))
		}
		for i := range k.asked {
			var all postings.Iterator
			if !joined { // the other stream names records of the kind
				all = placeSpots(c, k.kind.Number, k.asked[i].Shape, p.q)
			}
			found := k.asked[i].Find(c, &p.pending.Terms, p.ranges, p.q.Up, all)
			streams = append(streams, postings.Sieve(p.q.Up, found, p.sieves(c, k.sieve[i])...))
		}
	}
	if len(streams) == 0 {
		return &postings.Slice{Up: p.q.Up}
	}
	return postings.Or(p.q.Up, streams...)
}

// sieves are the postings of what fulfils each plan.
func (p *seekPlan) sieves(c *sqlite.Conn, plans []terms.Plan) (all []postings.Iterator) {
	for i := range plans {
		all = append(all, plans[i].Find(c, &p.pending.Terms, p.ranges, p.q.Up, nil))
	}
	return all
}

// first is where the plan's stream is to begin: at the first position after
// the place below, its own included, since other kinds may stand there.
func (p *seekPlan) first(below query.OrderKey) int64 {
	at := int64(below) >> postings.ShapeBits
	if p.q.Up {
		if from := p.from; below == 0 || at < from {
			if from == math.MinInt64 {
				return from
			}
			return postings.At(from, 0)
		}
		return postings.At(at, 0)
	}
	if below == 0 || at > p.to {
		if p.to == math.MaxInt64 {
			return p.to
		}
		return postings.At(p.to, 1<<postings.ShapeBits-1)
	}
	return postings.At(at, 1<<postings.ShapeBits-1)
}

// recordSet is a set of records by their numbers, a bit for each there is.
type recordSet []uint64

// set puts a record in, or takes it out.
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

// positions are those of a question's time.
func positions(q query.RecordQuery) (from, to int64) {
	from, to = math.MinInt64, math.MaxInt64
	if q.From != 0 {
		from, _ = postings.SecondBounds(min(max(q.From, postings.LeastSecond), postings.MostSecond))
	}
	if q.To != 0 {
		to, _ = postings.SecondBounds(min(max(q.To, postings.LeastSecond), postings.MostSecond))
		to--
	}
	return from, to
}

// ask says what predicates say of a kind; none: no record of the kind can fulfil them.
func (p *seekPlan) ask(k *kindPlan) (none bool) {
	if !p.q.Termed() {
		return false
	}
	by, also, parent := p.q.Predicates, []query.Predicate(nil), p.q.Parent
	if len(p.q.Rule) > 0 {
		if by, also, none = ruled(p.q); none {
			return true
		}
		parent = ""
	}
	by, none = terms.Join(by)
	if none {
		return true
	}
	if len(k.shapes) > 1 {
		p.exact = false // it is told in another shape than it may be found in
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
			if none, exact = none || noneToo, exact && exactToo; !of.Empty() {
				sieve = append(sieve, of)
			}
		}
		if none {
			return true
		}
		if p.exact = p.exact && exact; one.Empty() {
			k.asked, k.sieve, p.exact = nil, nil, p.exact && len(sieve) == 0
			return false
		}
		k.asked, k.sieve = append(k.asked, one), append(k.sieve, sieve)
	}
	return false
}

// ruled divides the predicates of a question that has a row rule: by finds records, also is
// compared with what is found. What is read for by depends on records that fulfil the rule, and
// on times. A predicate on a field of the rule leaves some of its values, or none.
func ruled(q *query.RecordQuery) (by, also []query.Predicate, none bool) {
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
	placeDown = &sqlite.Statement{Head: "SELECT at << 10 | ?2 FROM place WHERE kind = ?1 AND at <= ?3 >> 10 ORDER BY at DESC LIMIT ?4",
		Reads: sqlite.Index}
	placeUp = &sqlite.Statement{Head: "SELECT at << 10 | ?2 FROM place WHERE kind = ?1 AND at >= ?3 >> 10 ORDER BY at ASC LIMIT ?4",
		Reads: sqlite.Index}
)

// placeSpots are the postings of all records of a kind, as if all were in a shape.
func placeSpots(c *sqlite.Conn, kind, shape int64, q *query.RecordQuery) postings.Iterator {
	st := placeDown
	if q.Up {
		st = placeUp
	}
	return &postings.Scan{C: c, St: st, Args: []driver.Value{kind, shape}, Up: q.Up, Size: (q.Want + 1) / 2}
}

// fulfils reports whether a record, whose id, parent and body are given, is what
// is asked for by ids, parent and terms.
func (k *kindPlan) fulfils(q *query.RecordQuery, id, parent string, body []byte) bool {
	if q.Parent != "" && parent != q.Parent || len(q.IDs) > 0 && !slices.Contains(q.IDs, id) {
		return false
	}
	return k.match.Match(body)
}

// wants reports whether a question is about a kind.
func wants(q *query.RecordQuery, source, kind string) bool {
	return (q.Source == "" || q.Source == source) && (len(q.Kinds) == 0 || slices.Contains(q.Kinds, kind))
}

// firstShape is the shape records of a kind are told in: that of its first list.
func firstShape(kind *spec.Kind) string {
	if kind == nil || len(kind.Lists) == 0 {
		return ""
	}
	return kind.Lists[0].Shape
}
