// Places: where in a list a page stands.
package slowapi

import "understudy/internal/slowapi/format"

// place is where in a list a page stands.
type place struct {
	size, page int64
	token      string
	back       bool  // the token asks for what is newer
	index      int64 // the token's record
}

const (
	defaultSize = 50
	maxSize     = 1000
)

// readSize reads PageSize and Page, and takes PageToken as it is.
func readSize(q format.Query, on quirks) (place, *format.Refusal) {
	p := place{size: defaultSize, token: q.Given["PageToken"].Value}
	if g, there := q.Given["PageSize"]; there {
		size, ok := format.Whole(g.Value)
		switch {
		case (!ok || size == 0) && on.on(sizeForgiven):
			size = defaultSize
		case !ok || size == 0:
			return p, format.Invalid("Page size must be a number greater than 0.")
		case size > maxSize && on.on(sizeRefused):
			return p, format.Invalid("Page size must be at most 1000.")
		}
		p.size = min(size, maxSize)
	}
	if g, there := q.Given["Page"]; there {
		page, ok := format.Whole(g.Value)
		if !ok {
			return p, format.Invalid("Page must be a number, 0 or greater.")
		}
		p.page = page
	}
	return p, nil
}

// readPlace reads where in the list a query's page stands. The caller holds the
// world for reading.
func (x *search) readPlace(q format.Query) (place, *format.Refusal) {
	p, r := readSize(q, x.quirks)
	if r != nil || p.token == "" {
		return p, r
	}
	if len(p.token) < 2 || p.token[0] != 'P' || p.token[1] != 'A' && p.token[1] != 'B' {
		return p, format.Invalid("Page token is invalid.")
	}
	index, ok := x.w.find(x.s, p.token[2:])
	if !ok {
		return p, format.Invalid("Page token is invalid.")
	}
	p.back, p.index = p.token[1] == 'B', index
	return p, nil
}
