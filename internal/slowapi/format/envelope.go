// Envelopes: what a page of a list says about itself.
package format

import "strconv"

// Envelope is what a page says about itself.
type Envelope struct {
	Base     string // path and filters, up to and with the ? or the last &
	Key      string
	Size     int64
	Page     int64
	Rows     int
	Token    string // the request's
	Next     string // token of the next page, empty when this is the last
	Previous string // token of the previous page, empty when this is the first
}

// uri is where a page of this list stands.
func (e *Envelope) uri(page int64, token string) string {
	if token != "" {
		token = "&PageToken=" + Encode(token)
	}
	return e.Base + "PageSize=" + strconv.FormatInt(e.Size, 10) + "&Page=" + strconv.FormatInt(page, 10) + token
}

// own is where this page stands: with the request's token from page 1 on.
func (e *Envelope) own() string {
	if e.Page == 0 {
		return e.uri(0, "")
	}
	return e.uri(e.Page, e.Token)
}

// neighbour writes where the page before or after this one stands, or null.
func (e *Envelope) neighbour(o *Object, name string, page int64, token string) {
	if token == "" {
		o.Null(name)
		return
	}
	o.Text(name, e.uri(page, token))
}

// List puts rows into the envelope of the 2010 API.
func (e *Envelope) List(rows []byte) []byte {
	start, end := int64(0), int64(0)
	if e.Rows > 0 {
		start = e.Page * e.Size
		end = start + int64(e.Rows) - 1
	}
	o := Object{B: make([]byte, 0, 1024+len(rows))}
	o.Open()
	o.Number("end", end)
	o.Text("first_page_uri", e.uri(0, ""))
	e.neighbour(&o, "next_page_uri", e.Page+1, e.Next)
	o.Number("page", e.Page)
	o.Number("page_size", e.Size)
	e.neighbour(&o, "previous_page_uri", e.Page-1, e.Previous)
	o.Number("start", start)
	o.Text("uri", e.own())
	o.Array(e.Key, rows)
	o.Close()
	return o.B
}

// Monitor puts rows into the envelope of the Monitor API, whose base is absolute.
func (e *Envelope) Monitor(rows []byte) []byte {
	o := Object{B: make([]byte, 0, 1024+len(rows))}
	o.Open()
	o.Array(e.Key, rows)
	o.Name("meta")
	o.Open()
	o.Text("first_page_url", e.uri(0, ""))
	o.Text("key", e.Key)
	e.neighbour(&o, "next_page_url", e.Page+1, e.Next)
	o.Number("page", e.Page)
	o.Number("page_size", e.Size)
	e.neighbour(&o, "previous_page_url", e.Page-1, e.Previous)
	o.Text("url", e.own())
	o.Close()
	o.Close()
	return o.B
}
