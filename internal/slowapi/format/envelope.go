// Envelopes: what a page of a list says about itself.
package format

import (
	"fmt"
	"strconv"
)

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

// neighbour returns as JSON where the page before or after this one stands, or null.
func (e *Envelope) neighbour(page int64, token string) string {
	if token == "" {
		return "null"
	}
	return quote(e.uri(page, token))
}

// List puts rows into the envelope of the 2010 API.
func (e *Envelope) List(rows []byte) []byte {
	start, end := int64(0), int64(0)
	if e.Rows > 0 {
		start = e.Page * e.Size
		end = start + int64(e.Rows) - 1
	}
	out := fmt.Appendf(make([]byte, 0, 1024+len(rows)), `{"end":%d,"first_page_uri":%s,"next_page_uri":%s,"page":%d,"page_size":%d,`+
		`"previous_page_uri":%s,"start":%d,"uri":%s,%q:[`, end, quote(e.uri(0, "")), e.neighbour(e.Page+1, e.Next), e.Page, e.Size,
		e.neighbour(e.Page-1, e.Previous), start, quote(e.own()), e.Key)
	return append(append(out, rows...), "]}"...)
}

// Monitor puts rows into the envelope of the Monitor API, whose base is absolute.
func (e *Envelope) Monitor(rows []byte) []byte {
	out := append(fmt.Appendf(make([]byte, 0, 1024+len(rows)), `{%q:[`, e.Key), rows...)
	return fmt.Appendf(out, `],"meta":{"first_page_url":%s,"key":%q,"next_page_url":%s,"page":%d,"page_size":%d,"previous_page_url":%s,`+
		`"url":%s}}`, quote(e.uri(0, "")), e.Key, e.neighbour(e.Page+1, e.Next), e.Page, e.Size, e.neighbour(e.Page-1, e.Previous),
		quote(e.own()))
}
