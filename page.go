// This file declares Page, one answer of the upstream for a list or for a single record.

package understudy

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Page is one upstream answer as the mirror stores it. All readers share Body and Rows. They are never changed
// after the page is made.
type Page struct {
	Key         Key
	RecordsKey  Key    // the key of the request, if the page is stored only for its records; Key has no URI then
	Kind        string // the name of the kind of its records, or "" if the spec names no kind for the path
	Shape       string
	List        bool   // true for a list; false for a single record or an answer without a kind
	ID          string // the id of the record in an answer for a single record; if the answer shows none, the id in the path
	Status      int    // the HTTP status of the upstream: 200, or a status such as 400, 404 or 410 that is forwarded
	ContentType string
	Body        []byte // the body as received, but with secrets emptied, URLs rewritten, and converted to UTF-8 if Charset is set
	Charset     string // the original encoding of the body, by a name of kit/charset, or "" if the body was not converted
	Header      string // stored header fields of the upstream, as a query: the ETag, and the fields that the spec forwards
	Rows        []Row  // the records in Body, in order; a single row if the page is not a list
	Next        Key    // the key of the list's next page, or the zero Key for the last page

	At time.Time // when the answer was complete; has a monotonic reading if this process received it
	// InitialAge is the age that the upstream's caches reported for the answer: whole seconds, at most 24 h
	// (RFC 9111, 5.1). It does not make a page less fresh.
	InitialAge time.Duration
	Generation int64    // the generation of the kind when the fetch began (see Saved)
	Version    int64    // the number of this body in the store, or 0 if not saved; pages with the same key and number have the same bytes
	Sum        [16]byte // the first half of the SHA-256 of Body
	Superseded bool     // a record in the page has a newer version in the store or was deleted, or a write changed the page's kind
	// Changed are the fields whose changes superseded a list. A deleted record contributes its id fields. It is
	// empty if the fields are not known.
	Changed   Names
	NotStored string        // why the page must not be saved ("invalid UTF-8 …"), or "" if it may be saved
	Took      time.Duration // the time that the upstream took to answer, or 0 if the page was read from the store
}

// NotStoredError is the reason for an answer with status 200 that the upstream itself calls an error.
const NotStoredError = "upstream marks it as an error"

// NotStoredNoRows begins the reason for a list answer without rows where the spec expects rows. The place in the body
// follows.
const NotStoredNoRows = "no records under "

// NotStoredNoStore is the reason for an answer that the upstream forbids to store.
const NotStoredNoStore = "upstream forbids storing it (no-store)"

// NotStoredDeleted is the reason for an answer that shows the remains of a deleted record.
const NotStoredDeleted = "upstream marks the record as deleted"

// HeaderField returns a stored field of the upstream's header, or "".
func (p *Page) HeaderField(name string) string {
	if p.Header == "" {
		return ""
	}
	q, _ := ParseQuery(p.Header) // no error, because Query.String made this text
	value, _ := q.Get(name)
	return value
}

// OpenEnd says why a list may continue although a page links to no next page. The zero OpenEnd means that the
// end of the list is proven. Partial quotes the statement of an answer that rows are missing from this page,
// whether it is the last page or not.
type OpenEnd struct{ Kind, Why, Partial string }

// The kinds of open ends.
const (
	OpenRefuted  = "refuted" // the page links to no next page, but its answer says that more rows exist
	OpenUnseen   = "unseen"  // no answer so far had a link to a next page; once an answer has one, the end of the list is proven
	OpenShort    = "short"   // the page is not full and does not say whether more rows follow; only the next page can tell
	OpenSilent   = "silent"  // the page may be full and does not say whether more rows follow; only the next page can tell
	OpenUnlinked = "alone"   // the API never links to a next page; the spec has to say that lists are complete
)

// Names under which Page.Header stores what the page says about the end of its list. No HTTP header field can have such
// a name.
const (
	openField    = "End;open"
	partialField = "End;partial"
	totalField   = "End;total"
	pagesField   = "End;pages"
	missingField = "End;lacks"
)

// EndFields returns what a page stores about the end of its list. total is the number of rows of all pages, as
// Page.TotalRows returns it. pages is the number of pages. missing lists the places that the spec names for a statement
// about the end and that the answer lacks.
func EndFields(d OpenEnd, total, pages int64, missing string) (q Query) {
	if d.Kind != "" {
		q = append(q, Param{Name: openField, Value: d.Kind + " " + d.Why})
	}
	if d.Partial != "" {
		q = append(q, Param{Name: partialField, Value: d.Partial})
	}
	if total != 0 {
		q = append(q, Param{Name: totalField, Value: strconv.FormatInt(total, 10)})
	}
	if pages != 0 {
		q = append(q, Param{Name: pagesField, Value: strconv.FormatInt(pages, 10)})
	}
	if missing != "" {
		q = append(q, Param{Name: missingField, Value: missing})
	}
	return q
}

// MissingPlaces returns the places that the spec names and the answer of a list by number or offset lacks. These places
// would say whether the list goes on.
func (p *Page) MissingPlaces() []string { return strings.Fields(p.HeaderField(missingField)) }

// OpenEnd returns why the list may continue after the page.
func (p *Page) OpenEnd() (d OpenEnd) {
	d.Kind, d.Why, _ = strings.Cut(p.HeaderField(openField), " ")
	d.Partial = p.HeaderField(partialField)
	return d
}

// TotalRows returns how many rows all pages of the list have, or 0 if the answer does not say. A negative
// number -n means at least n rows.
func (p *Page) TotalRows() int64 {
	n, _ := strconv.ParseInt(p.HeaderField(totalField), 10, 64) // no error, because EndFields made this text
	return n
}

// TotalPages returns how many pages the list has, or 0 if the answer does not say.
func (p *Page) TotalPages() int64 {
	n, _ := strconv.ParseInt(p.HeaderField(pagesField), 10, 64) // no error, because EndFields made this text
	return n
}

// ConflictingID returns an id shared by rows with different contents, or "" if there is none.
func (p *Page) ConflictingID() string {
	seen := map[string]string{}
	for _, row := range p.Rows {
		body := string(p.Body[row.Start:row.End])
		if before, again := seen[row.ID]; again && before != body {
			return row.ID
		}
		seen[row.ID] = body
	}
	return ""
}

// outageField is the name under which Page.Header stores the reason and the rows of an outage copy. No HTTP header
// field can have this name.
const outageField = "Whole;rows"

// OutageCopy returns a copy of the page that may be stored for use in an outage although its records may not be
// stored. Its header lists the rows. OutageRows reads them again.
func (p *Page) OutageCopy() *Page {
	text := strings.Builder{}
	text.WriteString(url.QueryEscape(p.NotStored)) // escaped, because a line break in the reason or an id would end the line
	for _, r := range p.Rows {
		fmt.Fprintf(&text, "\n%d %d %s", r.Start, r.End, url.QueryEscape(r.ID))
	}
	kept, _ := ParseQuery(p.Header) // no error, because Query.String made this text
	outage := *p
	outage.NotStored = ""
	outage.Header = append(kept, Param{Name: outageField, Value: text.String()}).String()
	return &outage
}

// OutageRows returns the rows of an outage copy that has the given Header, and why its records are not stored. For any
// other page why is empty.
func OutageRows(header string) (rows []Row, why string) {
	if !strings.Contains(header, "Whole%3Brows") {
		return nil, ""
	}
	why, text, _ := strings.Cut((&Page{Header: header}).HeaderField(outageField), "\n")
	why, _ = url.QueryUnescape(why) // no error, because OutageCopy made this text
	last := 0
	for line := range strings.SplitSeq(text, "\n") {
		start, rest, _ := strings.Cut(line, " ")
		end, id, _ := strings.Cut(rest, " ")
		r := Row{}
		r.ID, _ = url.QueryUnescape(id)
		r.Start, _ = strconv.Atoi(start)
		if r.End, _ = strconv.Atoi(end); r.Start >= last && r.End > r.Start {
			rows, last = append(rows, r), r.End
		}
	}
	return rows, why
}

// AgeFields are the response header fields that say how long an answer stays fresh (RFC 9111, 5; RFC 9213). A
// page stores them under the names that AgeField returns, if its source uses them.
var AgeFields = []string{"Cache-Control", "Cdn-Cache-Control", "Expires", "Date", "Age"}

// ageField begins the names of the AgeFields in Page.Header. No HTTP header field can begin with it.
const ageField = "Age;"

// AgeField returns the name under which Page.Header stores one of AgeFields.
func AgeField(name string) string { return ageField + name }

// AgeHeader returns the AgeFields as the upstream sent them, or nil if the page stores none of them.
func (p *Page) AgeHeader() http.Header {
	if p.Header == "" {
		return nil
	}
	var h http.Header
	q, _ := ParseQuery(p.Header) // no error, because Query.String made this text
	for _, field := range q {
		if name, ok := strings.CutPrefix(field.Name, ageField); ok {
			if h == nil {
				h = http.Header{}
			}
			h[name] = []string{field.Value}
		}
	}
	return h
}

// ConfirmedCopy returns the page after the upstream confirmed that it is unchanged (RFC 9110, 15.4.5).
func (p *Page) ConfirmedCopy(at time.Time, took time.Duration) *Page {
	again := *p
	again.At, again.Took, again.InitialAge, again.Version = at, took, 0, 0
	again.Superseded, again.Changed = false, ""
	return &again
}

// IsWriteAnswer reports whether the page is the answer to a write. It is stored only for its records and
// answers no request for a page.
func (p *Page) IsWriteAnswer() bool { return p.Key.URI == "" && p.RecordsKey.URI == "" }

// RequestKey returns the key of the request that the page answers.
func (p *Page) RequestKey() Key {
	if p.Key.IsZero() {
		return p.RecordsKey
	}
	return p.Key
}

// CreatedID returns the id of the record that a write to a list created. It returns "" if the write created
// none or the answer does not name it.
func (p *Page) CreatedID() string {
	switch {
	case p.Status >= 300:
		return ""
	case p.ID == "" && len(p.Rows) > 0:
		return p.Rows[0].ID
	}
	return p.ID
}

// Row is one record in a page. Body[Start:End] is its JSON object.
type Row struct {
	ID         string
	Start, End int
	Clock      int64  // the value of the spec's clock field in Unix seconds, or 0 if it is null or absent
	Parent     string // the value of the kind's Parent field, or "" if the record has none
	Final      bool
	Record     int64 // the number of the record in the store, or 0 if not saved
	Version    int64 // the number of this body in the store, or 0 if not saved
}
