// Places: where in a list a page stands.
package world

import "understudy/internal/slowapi/format"

// Place is where in a list a page stands.
type Place struct {
	Size, Page int64
	Token      string
	back       bool  // the token asks for what is newer
	index      int64 // the token's record
}

const (
	defaultSize = 50
	maxSize     = 1000
)

// ReadSize reads PageSize and Page, and takes PageToken as it is.
func ReadSize(q format.Query, on Quirks) (Place, *format.Refusal) {
	p := Place{Size: defaultSize, Token: q.Given["PageToken"].Value}
	if g, there := q.Given["PageSize"]; there {
		size, ok := format.Whole(g.Value)
		switch {
		case (!ok || size == 0) && on.On(SizeForgiven):
			size = defaultSize
		case !ok || size == 0:
			return p, format.Invalid("Page size must be a number greater than 0.")
		case size > maxSize && on.On(SizeRefused):
			return p, format.Invalid("Page size must be at most 1000.")
		}
		p.Size = min(size, maxSize)
	}
	if g, there := q.Given["Page"]; there {
		page, ok := format.Whole(g.Value)
		if !ok {
			return p, format.Invalid("Page must be a number, 0 or greater.")
		}
		p.Page = page
	}
	return p, nil
}

// ReadPlace reads where in the list a query's page stands. The caller holds the
// world for reading.
func (x *Search) ReadPlace(q format.Query) (Place, *format.Refusal) {
	p, r := ReadSize(q, x.Quirks)
	if r != nil || p.Token == "" {
		return p, r
	}
	if len(p.Token) < 2 || p.Token[0] != 'P' || p.Token[1] != 'A' && p.Token[1] != 'B' {
		return p, format.Invalid("Page token is invalid.")
	}
	index, ok := x.W.Find(x.S, p.Token[2:])
	if !ok {
		return p, format.Invalid("Page token is invalid.")
	}
	p.back, p.index = p.Token[1] == 'B', index
	return p, nil
}
