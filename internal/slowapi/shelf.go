// Shelves: lists whose rows are computed by their place and have no name.
package slowapi

import (
	"encoding/base64"
	"strconv"
	"strings"
)

// computedList is such a list. A page of it is found by its number, which its token
// hides as that of Twilio's usage records does: APMQ== is page 1.
type computedList struct {
	count int64
	row   func(dst []byte, place int64) []byte
}

const computedToken = "AP"

// page builds the list's answer. The caller holds the world for reading.
func (l *computedList) page(t target, q query, on quirks) answer {
	p, r := readSize(q, on)
	if r != nil {
		return r.answer()
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
	base := q.echo([]byte(t.path+"?"), t.route.listFilters())
	e := envelope{base: string(base), key: t.route.listKey(), size: p.size, page: p.page, token: p.token, rows: int(last - first)}
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
