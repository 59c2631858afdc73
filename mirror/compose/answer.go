// Answers: a list composed from records is written in upstream's own format, which the spec describes.

package compose

import (
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"
	"time"

	"understudy"
	"understudy/kit/jsonspan"
	"understudy/spec/paging"
)

// BuildPage returns the composed page. at becomes its time. It returns ErrInvalid if there is a next page and the
// spec does not say how upstream's link to it looks. It returns ErrNotMirrored if the page needs a row in the list's
// own form and this list has not shown that row yet.
func (l *List) BuildPage(at time.Time) (*understudy.Page, error) {
	paging := l.req.paging
	if l.hasNextPage() && len(l.rows) > 0 && (paging.IsOnePage() || paging.TokenParam() == "" && !paging.HasFixedRows(l.req.target.Query)) {
		return nil, fmt.Errorf("%w: there is more than one page, and the spec does not say how to link to the next", understudy.ErrInvalid)
	}
	if l.HasNumberedPages() && l.hasMore && int64(len(l.rows)) < l.place.size {
		return nil, fmt.Errorf("%w: the page is too large, and a shorter one would shift all later pages", understudy.ErrInvalid)
	}
	if err := l.rewriteRows(); err != nil {
		return nil, err
	}
	if _, known := l.totalRows(); !known && l.HasTotalInBody() {
		return nil, fmt.Errorf("%w: the total number of rows is not known", understudy.ErrInvalid)
	}
	links := l.links()
	if l.place.form.OwnForm && !l.req.options.OwnTokens && !paging.IsSliding() && links.next+links.previous != "" {
		return nil, fmt.Errorf("%w: the spec does not describe the page tokens of this list", understudy.ErrInvalid)
	}
	p := &understudy.Page{
		Key: l.req.target.Key, Kind: l.req.target.Kind.Name, Shape: l.req.target.List.Shape, List: true,
		Status: 200, ContentType: l.req.target.Spec.ContentType, At: at, Rows: make([]understudy.Row, len(l.rows)),
	}
	for i, f := range l.rows {
		r := f.Record
		p.Rows[i] = understudy.Row{ID: r.ID, Clock: f.Clock, Parent: l.seek.Parent, Final: r.Final, Record: r.Number, Version: r.Version}
	}
	if told := l.header(); len(told) > 0 {
		p.Header = told.String()
	}
	l.write(p, links)
	if links.next != "" {
		t, err := l.req.target.Spec.ResolveLink(l.req.src.Name, links.next)
		if err != nil {
			return nil, err
		}
		p.Next = t.Key
	}
	p.Sum = checksum(p.Body)
	return p, nil
}

func checksum(body []byte) [16]byte {
	whole := sha256.Sum256(body)
	return [16]byte(whole[:16])
}

// write writes the page's body and records where its rows are.
func (l *List) write(p *understudy.Page, links links) {
	body := make([]byte, 0, int64(512+len(l.req.paging.Template)+4*len(links.own)+len(links.next)+len(links.previous)+len(l.rows))+l.bytes)
	for rest := l.req.paging.Template; ; {
		before, word, after, found := paging.CutWord(rest)
		body = append(body, before...)
		switch {
		case !found:
			p.Body = body
			return
		case word == "rows":
			body = l.appendRows(body, p)
		default:
			body = l.appendWord(body, word, links)
		}
		rest = after
	}
}

func (l *List) appendRows(body []byte, p *understudy.Page) []byte {
	body = append(body, '[')
	for i := range l.rows {
		if i > 0 {
			body = append(body, ',')
		}
		p.Rows[i].Start = len(body)
		body = append(body, l.rows[i].Record.Body...)
		p.Rows[i].End = len(body)
	}
	return append(body, ']')
}

// appendWord appends the value of one placeholder in the template of the body.
func (l *List) appendWord(body []byte, word string, links links) []byte {
	start, end := int64(0), int64(0)
	if n := int64(len(l.rows)); n > 0 {
		if start = l.place.page * l.place.size; l.req.paging.Style == "offset" {
			start = l.place.page
		}
		end = start + n - 1
	}
	name, absolute := strings.CutSuffix(word, "_url")
	if word == "url" {
		name, absolute = "uri", true
	}
	link := ""
	switch name {
	case "start":
		return strconv.AppendInt(body, start, 10)
	case "end":
		return strconv.AppendInt(body, end, 10)
	case "page":
		return strconv.AppendInt(body, l.place.page+int64(l.req.paging.First), 10)
	case "size":
		return strconv.AppendInt(body, l.place.size, 10)
	case "total":
		total, _ := l.totalRows()
		return strconv.AppendInt(body, total, 10)
	case "more":
		return strconv.AppendBool(body, links.next != "")
	case "next_token":
		if links.token == "" {
			return append(body, "null"...)
		}
		return jsonspan.Quote(body, links.token)
	case "key":
		key := l.req.target.List.Key
		return jsonspan.Quote(body, key[strings.LastIndexByte(key, '.')+1:])
	case "path":
		link, _, _ = strings.Cut(links.own, "?")
	case "uri":
		link = links.own
	case "first":
		link = links.first
	case "next":
		link = links.next
	case "previous":
		link = links.previous
	}
	if link == "" {
		return append(body, "null"...)
	}
	if absolute {
		link = l.req.src.PublicURL + link
	}
	return jsonspan.Quote(body, link)
}

// links are the URIs of this page and the pages around it, or "" if there is no such page. token is the page token of
// the next page.
type links struct{ own, first, next, previous, token string }

// links returns the links of the page.
func (l *List) links() links {
	base := l.baseURI()
	param := l.req.paging.TokenParam()
	out := links{first: l.req.pageURI(base, 0, "", "")}
	out.own = out.first
	if l.place.page > 0 {
		out.own = l.req.pageURI(base, l.place.page, param, l.place.token)
	}
	if len(l.rows) == 0 {
		return out
	}
	if l.hasNextPage() {
		if out.token = l.place.form.After + l.rows[len(l.rows)-1].Record.ID + l.place.form.Tail; l.place.upward {
			param, out.token = l.req.paging.Back, l.rows[0].Record.ID
		}
		out.next = l.req.pageURI(base, l.place.page+l.step(), param, out.token)
	}
	if l.place.page > 0 {
		out.previous = l.req.pageURI(base, max(0, l.place.page-l.step()), param, l.place.form.Before+l.rows[0].Record.ID+l.place.form.Tail)
	}
	return out
}

// step returns the difference between the page parameters of a page and the next page.
func (l *List) step() int64 {
	if l.req.paging.Style == "offset" {
		return l.place.size
	}
	return 1
}

// baseURI returns the part that the URIs of all pages have in common: the path, the filters with the values of the
// request in the spec's order, and the page size.
func (l *List) baseURI() string {
	q := make(understudy.Query, 0, len(l.req.target.Query)+1)
	for _, f := range l.req.target.List.Filters {
		if p, there := l.req.param(f.Name); there {
			q = append(q, p)
		}
	}
	if l.req.paging.Size != "" && !l.req.paging.IsOnePage() {
		q = append(q, understudy.Param{Name: l.req.paging.Size, Value: strconv.FormatInt(l.place.size, 10)})
	}
	base := append([]byte(l.req.target.Key.Path()), '?')
	if base = q.AppendTo(base); len(q) > 0 {
		base = append(base, '&')
	}
	return string(base)
}

// pageURI returns the URI of a page with its number, its token, and the parameters that belong to Understudy.
func (l *listRequest) pageURI(base string, page int64, param, token string) string {
	q := make(understudy.Query, 0, 2+len(l.target.OwnParams))
	if l.paging.Page != "" && !l.paging.IsOnePage() {
		q = append(q, understudy.Param{Name: l.paging.Page, Value: strconv.FormatInt(page+int64(l.paging.First), 10)})
	}
	if token != "" && param != "" {
		q = append(q, understudy.Param{Name: param, Value: token})
	}
	q = append(q, l.target.OwnParams...)
	out := q.AppendTo(append(make([]byte, 0, len(base)+128), base...))
	if len(q) == 0 {
		out = out[:len(base)-1] // removes the & or ? at the end of the query
	}
	// keys write a space as a plus sign, and a plus sign as %2B
	path, query, found := strings.Cut(string(out), "?")
	if !found {
		return path
	}
	return path + "?" + strings.ReplaceAll(query, "+", "%20")
}
