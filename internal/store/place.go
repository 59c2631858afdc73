// Places: where a record stands among those of its kind. These rules know
// no SQL.
//
// A place is a position with the number of the record's kind in its low bits,
// so that no two records of a store have the same. The second of a position is that of
// the record's time when it was first seen. Records without any time stand far below all that have one.

package store

import (
	"math"

	"understudy"
	"understudy/internal/query"
	"understudy/internal/store/postings"
	"understudy/kit/jsonspan"
	"understudy/spec"
)

const (
	// apartFrom is how far apart records are placed that have the same second,
	// or none: others can be placed between them.
	apartFrom = 1 << 12

	// timeless is the position of the first record without a time: 10^7 more
	// have room above it and below it.
	timeless = -1 << 52

	noPosition = math.MinInt64
	noSecond   = math.MinInt64
)

// placeOf is the place of a record of a kind that stands at a position.
func placeOf(position, kind int64) query.OrderKey {
	return query.OrderKey(position<<postings.ShapeBits | kind)
}

// naturalSecond is the second of a record's place while no page has shown one:
// that of its clock or, while it has none, of its kind's order.
func naturalSecond(kind *spec.Kind, clock int64, body []byte) int64 {
	if clock == 0 && kind != nil && kind.Order != "" {
		clock = timeIn(kind, kind.Order, body)
	}
	if clock == 0 || clock < postings.LeastSecond || clock > postings.MostSecond {
		return noSecond
	}
	return clock
}

// timeIn is the time a field of a body tells, in Unix seconds; 0: none.
func timeIn(kind *spec.Kind, field string, body []byte) int64 {
	f := kind.Field(field)
	doc, err := jsonspan.Document(body)
	if f == nil || err != nil || doc.Kind != jsonspan.Object {
		return 0
	}
	v, ok := jsonspan.Find(body, doc, field)
	if !ok {
		return 0
	}
	return query.Of(body, v, f.Type).Unix()
}

// follows says where in its list a page begins: after a record (above it, when
// up), or at the top. after without id: after one that is not known.
type follows struct {
	id    string
	up    bool
	after bool
}

// followed reads the token of a page's key.
func followed(sp *spec.Spec, key understudy.Key) (f follows) {
	raw := key.Query()
	if sp == nil || raw == "" {
		return f
	}
	params, err := understudy.ParseQuery(raw)
	if err != nil {
		return f
	}
	if f = followedBy(&sp.Paging, params); f.id != "" {
		return f
	}
	for _, p := range sp.Pagings {
		if other := followedBy(p, params); other.id != "" {
			return other
		} else if other.after {
			f = other
		}
	}
	return f
}

func followedBy(p *spec.Paging, params understudy.Query) (f follows) {
	form := p.TokenForm(nil)
	for _, name := range p.Tokens {
		token, ok := params.Get(name)
		if !ok || token == "" {
			continue
		}
		f.after = true
		if name != p.TokenParam() || form.Own {
			continue // it is not known where it leads
		}
		if id, back, ok := form.ID(token); ok {
			f.id, f.up = id, back
			return f
		}
	}
	return f
}
