// Envelopes: what a page of a list says about itself.
package slowapi

import "strconv"

// envelope is what a page says about itself.
type envelope struct {
	base     string // path and filters, up to and with the ? or the last &
	key      string
	size     int64
	page     int64
	rows     int
	token    string // the request's
	next     string // token of the next page, empty when this is the last
	previous string // token of the previous page, empty when this is the first
}

// uri is where a page of this list stands.
func (e *envelope) uri(page int64, token string) string {
	if token != "" {
		token = "&PageToken=" + encode(token)
	}
	return e.base + "PageSize=" + strconv.FormatInt(e.size, 10) + "&Page=" + strconv.FormatInt(page, 10) + token
}

// own is where this page stands: with the request's token from page 1 on.
func (e *envelope) own() string {
	if e.page == 0 {
		return e.uri(0, "")
	}
	return e.uri(e.page, e.token)
}

// neighbour writes where the page before or after this one stands, or null.
func (e *envelope) neighbour(o *object, name string, page int64, token string) {
	if token == "" {
		o.null(name)
		return
	}
	o.text(name, e.uri(page, token))
}

// list puts rows into the envelope of the 2010 API.
func (e *envelope) list(rows []byte) []byte {
	start, end := int64(0), int64(0)
	if e.rows > 0 {
		start = e.page * e.size
		end = start + int64(e.rows) - 1
	}
	o := object{b: make([]byte, 0, 1024+len(rows))}
	o.open()
	o.number("end", end)
	o.text("first_page_uri", e.uri(0, ""))
	e.neighbour(&o, "next_page_uri", e.page+1, e.next)
	o.number("page", e.page)
	o.number("page_size", e.size)
	e.neighbour(&o, "previous_page_uri", e.page-1, e.previous)
	o.number("start", start)
	o.text("uri", e.own())
	o.array(e.key, rows)
	o.close()
	return o.b
}

// monitor puts rows into the envelope of the Monitor API, whose base is absolute.
func (e *envelope) monitor(rows []byte) []byte {
	o := object{b: make([]byte, 0, 1024+len(rows))}
	o.open()
	o.array(e.key, rows)
	o.name("meta")
	o.open()
	o.text("first_page_url", e.uri(0, ""))
	o.text("key", e.key)
	e.neighbour(&o, "next_page_url", e.page+1, e.next)
	o.number("page", e.page)
	o.number("page_size", e.size)
	e.neighbour(&o, "previous_page_url", e.page-1, e.previous)
	o.text("url", e.own())
	o.close()
	o.close()
	return o.b
}
