// Page: one upstream answer, of a list or of an instance.

package understudy

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Page is one answer of upstream as the mirror holds it. Body and Rows are
// shared by every reader and never changed after the page is made.
type Page struct {
	Key         Key
	Of          Key    // what was asked, of a page that is kept for its records alone: its Key has no URI
	Kind        string // "" when the spec names no kind for the path
	Shape       string
	List        bool   // a list; else an instance (or an answer without a kind)
	ID          string // the record an instance shows; when it shows none, the one its path names
	Status      int    // upstream's status: 200, or 400, 404, 410 … that passes verbatim
	ContentType string
	Body        []byte // as received, byte for byte (secrets emptied, URLs rewritten), but in UTF-8 where Charset is set
	Charset     string // how upstream encoded the body, by the names of kit/charset; "" = Body is what it sent
	Header      string // of upstream's answer, as a query: its ETag, and what the spec passes back
	Rows        []Row  // the records in Body, in order; one for an instance
	Next        Key    // the list's next page; zero when this is the last

	At time.Time // when the answer was complete; in this process with a monotonic reading
	// InitialAge is how old upstream's caches called the answer then: whole seconds, at
	// most 24 h (RFC 9111, 5.1). It makes no page less fresh.
	InitialAge time.Duration
	Generation int64    // the kind's generation when the fetch began (see Saved)
	Version    int64    // number of this page's body: same key and number, same bytes; 0 = not saved
	Sum        [16]byte // the first half of Body's SHA-256
	Superseded bool     // a newer version of a record in it is held, or one went, or a write touched its kind
	// Changed are the fields by which a list is superseded, those of the id where a
	// record went. It is empty when they are not known.
	Changed   Names
	NotStored string        // why it must not be saved ("invalid UTF-8 …"), "" when it may
	Took      time.Duration // upstream's own time for the answer; 0 when it came from the store
}

// NotStoredError is why an answer is not kept that upstream calls an error though its status
// is 200.
const NotStoredError = "upstream says that it is an error"

// NotStoredNoRows begins why an answer to a list is not kept that has no rows where the spec has
// them; the place follows.
const NotStoredNoRows = "no records under "

// NotStoredSaid is why an answer is not kept that upstream lets nobody store.
const NotStoredSaid = "upstream says no-store"

// NotStoredDeleted is why an answer is not kept that shows what is left of a deleted record.
const NotStoredDeleted = "upstream says that the record is deleted"

// Field is a field of upstream's header that is kept; "": none.
func (p *Page) Field(name string) string {
	if p.Header == "" {
		return ""
	}
	q, _ := ParseQuery(p.Header) // made by Query.String
	value, _ := q.Get(name)
	return value
}

// OpenEnd is why a list may go on behind a page that leads to no other. The zero OpenEnd is none:
// the end of the list is proven. Partial is what says that the page lacks rows, whether it is the last or not.
type OpenEnd struct{ Kind, Why, Partial string }

// The kinds of open ends.
const (
	OpenRefuted = "refuted" // the answer says that there is more
	OpenUnseen  = "unseen"  // what leads on was in no answer: one that has it closes the end
	OpenShort   = "short"   // the page is not full, and says nothing: only the page after it tells
	OpenSilent  = "silent"  // the same of one that may be full
	OpenAlone   = "alone"   // nothing leads on: the spec has to say that lists are whole
)

// The names under which a page has what it says of the end of its list. No field of a header
// has such a name.
const (
	openField    = "End;open"
	partialField = "End;partial"
	totalField   = "End;total"
	pagesField   = "End;pages"
	lacksField   = "End;lacks"
)

// EndFields returns what a page keeps of its list's end. total is how many rows all pages have, as
// Page.Total returns it, pages how many pages there are. The answer lacks some of the places where the spec has it say so.
func EndFields(d OpenEnd, total, pages int64, lacks string) (q Query) {
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
	if lacks != "" {
		q = append(q, Param{Name: lacksField, Value: lacks})
	}
	return q
}

// Lacks returns the places that the spec names and the answer does not have, where a list by number
// or offset says whether it goes on.
func (p *Page) Lacks() []string { return strings.Fields(p.Field(lacksField)) }

// OpenEnd returns why the list may go on behind the page.
func (p *Page) OpenEnd() (d OpenEnd) {
	d.Kind, d.Why, _ = strings.Cut(p.Field(openField), " ")
	d.Partial = p.Field(partialField)
	return d
}

// Total returns how many rows all pages of the list have, 0 when the answer does not say it. A
// negative number is of a list that has at least so many, without the sign.
func (p *Page) Total() int64 {
	n, _ := strconv.ParseInt(p.Field(totalField), 10, 64) // made by EndFields
	return n
}

// Pages returns how many pages the list has, 0 when the answer does not say it.
func (p *Page) Pages() int64 {
	n, _ := strconv.ParseInt(p.Field(pagesField), 10, 64) // made by EndFields
	return n
}

// Repeated returns an id that several rows have whose contents differ, "" where there is none.
func (p *Page) Repeated() string {
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

// wholeField is the name under which a page has why it is stored whole, and which records it shows. No
// field of a header has such a name.
const wholeField = "Whole;rows"

// Whole returns the page as it may be stored for an outage, though its records may not: its bytes, and
// which records stand in them. KeptWhole reads it again.
func (p *Page) Whole() *Page {
	text := strings.Builder{}
	text.WriteString(url.QueryEscape(p.NotStored)) // neither it nor an id may end a line
	for _, r := range p.Rows {
		fmt.Fprintf(&text, "\n%d %d %s", r.Start, r.End, url.QueryEscape(r.ID))
	}
	kept, _ := ParseQuery(p.Header) // made by Query.String
	whole := *p
	whole.NotStored = ""
	whole.Header = append(kept, Param{Name: wholeField, Value: text.String()}).String()
	return &whole
}

// KeptWhole returns the records that a page with that Header shows, and why they are not stored. why is
// empty of a page that was not stored whole.
func KeptWhole(header string) (rows []Row, why string) {
	if !strings.Contains(header, "Whole%3Brows") {
		return nil, ""
	}
	why, text, _ := strings.Cut((&Page{Header: header}).Field(wholeField), "\n")
	why, _ = url.QueryUnescape(why) // made by Whole
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

// AgeFields are the fields of an answer that say how long it holds (RFC 9111, 5; 9213). A
// page has them under AgeField, where its source goes by them.
var AgeFields = []string{"Cache-Control", "Cdn-Cache-Control", "Expires", "Date", "Age"}

// ageField begins the names of these fields in Page.Header. No field of a header has such a
// name.
const ageField = "Age;"

// AgeField is the name under which a page has one of them.
func AgeField(name string) string { return ageField + name }

// AgeHeader are these fields as upstream sent them; nil: there are none.
func (p *Page) AgeHeader() http.Header {
	if p.Header == "" {
		return nil
	}
	var h http.Header
	q, _ := ParseQuery(p.Header) // made by Query.String
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

// Confirmed is the page as upstream has just said that it still is (RFC 9110, 15.4.5).
func (p *Page) Confirmed(at time.Time, took time.Duration) *Page {
	again := *p
	again.At, again.Took, again.InitialAge, again.Version = at, took, 0, 0
	again.Superseded, again.Changed = false, ""
	return &again
}

// OfWrite reports whether the page is the answer to a write. It is kept for its records
// alone and answers no request for a page.
func (p *Page) OfWrite() bool { return p.Key.URI == "" && p.Of.URI == "" }

// Asked is the key of the request the page answers.
func (p *Page) Asked() Key {
	if p.Key.Zero() {
		return p.Of
	}
	return p.Key
}

// Made is the id of the record that a write to a list has made; "" when it made none, or does
// not say which.
func (p *Page) Made() string {
	switch {
	case p.Status >= 300:
		return ""
	case p.ID == "" && len(p.Rows) > 0:
		return p.Rows[0].ID
	}
	return p.ID
}

// Row is one record in a page: Body[Start:End] is its JSON object.
type Row struct {
	ID         string
	Start, End int
	Clock      int64  // the spec's clock field in Unix seconds; 0 = null or none
	Parent     string // the value of the kind's Parent field; "" when it has none
	Final      bool
	Record     int64 // the store's number of the record; 0 = not saved
	Version    int64 // the store's number of this body; 0 = not saved
}
