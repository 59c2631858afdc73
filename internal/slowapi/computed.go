// Computed lists: their rows are computed by their place and have no name.
package slowapi

import (
	"encoding/base64"
	"net/url"
	"strconv"
	"strings"
)

// computedRequest is a request to what is neither a list nor a record of a kind.
type computedRequest struct {
	w       *world
	quirks  quirks
	path    string
	sids    []string // those in the path
	account int
	parent  int64 // the record of the path's parent kind
	key     string
	filters []filter
	q       query
	form    url.Values
}

// computedList is a list without names. A page of it is found by its number, which its token
// hides as that of Twilio's usage records does: APMQ== is page 1.
type computedList struct {
	count int64
	row   func(dst []byte, place int64) []byte
}

const computedToken = "AP"

// page builds the list's answer. The caller holds the world for reading.
func (l *computedList) page(r *computedRequest) answer {
	p, refused := readSize(r.q, r.quirks)
	if refused != nil {
		return refused.answer()
	}
	at := p.page
	if p.token != "" {
		plain, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(p.token, computedToken))
		page, ok := whole(string(plain))
		if err != nil || !ok || !strings.HasPrefix(p.token, computedToken) {
			return invalid("Page token is invalid.").answer()
		}
		at = page
	}
	first := min(at*p.size, l.count)
	last := min(first+p.size, l.count)
	var rows []byte
	for place := first; place < last; place++ {
		if place > first {
			rows = append(rows, ',')
		}
		rows = l.row(rows, place)
	}
	base := r.q.echo([]byte(r.path+"?"), keysOf(r.filters))
	e := envelope{base: string(base), key: r.key, size: p.size, page: p.page, token: p.token, rows: int(last - first)}
	if last < l.count {
		e.next = computedPage(at + 1)
	}
	if p.page > 0 && last > first {
		e.previous = computedPage(at - 1)
	}
	return answer{status: 200, body: e.list(rows)}
}

// computedPage is the token of a page.
func computedPage(number int64) string {
	return computedToken + base64.StdEncoding.EncodeToString([]byte(strconv.FormatInt(max(number, 0), 10)))
}
