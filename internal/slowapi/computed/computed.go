// Computed lists: their rows are computed by their place and have no name.

// Package computed answers the paths whose rows are no records of a kind.
package computed

import (
	"embed"
	"encoding/base64"
	"strconv"
	"strings"
	"sync"

	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/table"
	"understudy/internal/slowapi/world"
)

//go:embed shapes
var files embed.FS

// shapes are the templates of the rows, by the names of their files.
var shapes = sync.OnceValue(func() map[string]*table.Template { return table.ParseAll(files, "shapes") })

// numberedList is a list without names. A page of it is found by its number, which its token
// hides as that of Twilio's usage records does: APMQ== is page 1.
type numberedList struct {
	count int64
	row   func(place int64) table.Part
}

const listToken = "AP"

// page builds the list's answer. The caller holds the world for reading.
func (l *numberedList) page(r *world.Request) format.Answer {
	p, refused := world.ReadSize(r.Q, r.Quirks)
	if refused != nil {
		return refused.Answer()
	}
	at := p.Page
	if p.Token != "" {
		plain, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(p.Token, listToken))
		page, ok := format.Whole(string(plain))
		if err != nil || !ok || !strings.HasPrefix(p.Token, listToken) {
			return format.Invalid("Page token is invalid.").Answer()
		}
		at = page
	}
	first := min(at*p.Size, l.count)
	last := min(first+p.Size, l.count)
	var rows []table.Part
	for place := first; place < last; place++ {
		rows = append(rows, l.row(place))
	}
	base := r.Q.Echo([]byte(r.In.Path+"?"), world.KeysOf(r.Filters))
	e := format.Envelope{Base: string(base), Key: r.Key, Size: p.Size, Page: p.Page, Token: p.Token, Rows: int(last - first)}
	if last < l.count {
		e.Next = pageToken(at + 1)
	}
	if p.Page > 0 && last > first {
		e.Previous = pageToken(at - 1)
	}
	return format.Answer{Status: 200, Body: e.List(table.AppendParts(nil, rows, ""))}
}

// pageToken is the token of a page.
func pageToken(number int64) string {
	return listToken + base64.StdEncoding.EncodeToString([]byte(strconv.FormatInt(max(number, 0), 10)))
}
