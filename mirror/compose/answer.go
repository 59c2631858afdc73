// Answer: the envelope, as the spec says upstream writes it.

package compose

import (
	"fmt"
	"strconv"
	"strings"

	"understudy"
	"understudy/kit/jsonspan"
)

// write makes the page's body and notes where its rows lie.
func (l *List) write(p *understudy.Page) error {
	body := make([]byte, 0, 1024+l.bytes+int64(len(l.rows)))
	for rest := l.paging.Answer; ; {
		before, word, after, found := understudy.CutWord(rest)
		body = append(body, before...)
		if !found {
			break
		}
		if word == "rows" {
			body = l.appendRows(body, p)
		} else {
			body = l.appendWord(body, word)
		}
		rest = after
	}
	if _, err := jsonspan.Document(body); err != nil {
		return fmt.Errorf("the spec's answer makes no JSON: %w", err)
	}
	p.Body = body
	if l.more && len(l.ids) > 0 {
		t, err := l.target.Spec.Follow(l.src.Name, l.next())
		if err != nil {
			return err
		}
		p.Next = t.Key
	}
	return nil
}

func (l *List) appendRows(body []byte, p *understudy.Page) []byte {
	body = append(body, '[')
	for i, row := range l.rows {
		if i > 0 {
			body = append(body, ',')
		}
		p.Rows[i].Start = len(body)
		body = append(body, row...)
		p.Rows[i].End = len(body)
	}
	return append(body, ']')
}

func (l *List) appendWord(body []byte, word string) []byte {
	start, end := int64(0), int64(0)
	if n := int64(len(l.rows)); n > 0 {
		start = l.page * l.size
		end = start + n - 1
	}
	name, absolute := strings.CutSuffix(word, "_url")
	if word == "url" {
		name, absolute = "uri", true
	}
	switch name {
	case "start":
		return strconv.AppendInt(body, start, 10)
	case "end":
		return strconv.AppendInt(body, end, 10)
	case "page":
		return strconv.AppendInt(body, l.page+int64(l.paging.First), 10)
	case "size":
		return strconv.AppendInt(body, l.size, 10)
	case "key":
		key := l.target.List.Key
		return jsonspan.Quote(body, key[strings.LastIndexByte(key, '.')+1:])
	}
	link := ""
	switch name {
	case "uri":
		link = l.own()
	case "first":
		link = l.link(0, "")
	case "next":
		link = l.next()
	case "previous":
		link = l.previous()
	}
	if link == "" {
		return append(body, "null"...)
	}
	if absolute {
		link = l.src.PublicURL + link
	}
	return jsonspan.Quote(body, link)
}

func (l *List) own() string {
	if l.page == 0 {
		return l.link(0, "")
	}
	return l.link(l.page, l.token)
}

// next is where the page after this one stands, "" when this is the last.
func (l *List) next() string {
	if !l.more || len(l.ids) == 0 {
		return ""
	}
	return l.link(l.page+1, strings.Replace(l.paging.Token, "{id}", l.ids[len(l.ids)-1], 1))
}

func (l *List) previous() string {
	if !l.since || len(l.ids) == 0 || l.page == 0 {
		return ""
	}
	head, tail, _ := strings.Cut(l.paging.Token, "{id}")
	return l.link(l.page-1, backward(head)+l.ids[0]+tail)
}

// link is a page of this list: path, filters, size, number, token, and what is
// asked of us alone.
func (l *List) link(page int64, token string) string {
	path, _, _ := strings.Cut(l.target.Key.URI, "?")
	q := make(understudy.Query, 0, len(l.target.Query)+len(l.target.Own)+3)
	for _, p := range l.target.Query {
		if l.target.List.Filter(p.Name) != nil {
			q = append(q, p)
		}
	}
	if l.paging.Size != "" && l.paging.Style != "none" {
		q = append(q, understudy.Param{Name: l.paging.Size, Value: strconv.FormatInt(l.size, 10)})
	}
	if l.paging.Page != "" && l.paging.Style != "none" {
		q = append(q, understudy.Param{Name: l.paging.Page, Value: strconv.FormatInt(page+int64(l.paging.First), 10)})
	}
	if token != "" && len(l.paging.Tokens) > 0 {
		q = append(q, understudy.Param{Name: l.paging.Tokens[0], Value: token})
	}
	q = append(q, l.target.Own...)
	if len(q) == 0 {
		return path
	}
	return path + "?" + strings.ReplaceAll(q.String(), "+", "%20")
}
