// Answers: the answer to one try, and what it means.

package upstream

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"understudy"
	"understudy/kit/jsonspan"
	"understudy/spec"
	"understudy/upstream/throttle"
)

// answer is what upstream answered to one try.
type answer struct {
	status int
	header http.Header
	body   []byte        // decompressed
	broken error         // why body is not whole; nil when it is
	at     time.Time     // when it was complete
	took   time.Duration // from the sending to the last byte

	left throttle.Allowance // what it says of upstream's limit
	told bool               // left is there

	first   time.Duration // from the sending to the head
	by      signature     // of its request
	silence time.Duration // the longest wait on its connection, for the head or between two reads
}

func (a *answer) contentType() string { return a.header.Get("Content-Type") }

// pageBuilder makes pages of answers.
type pageBuilder struct {
	source     *spec.Source
	credential *credential
	plans      map[*spec.Kind]*plan
	secrets    []secret // every secret field of the spec
	// origins is made at the first use: only then are the server's ports, and so the
	// source's public URL, known.
	origins func() *origins
}

func newPageBuilder(o *Options, c *credential) *pageBuilder {
	b := &pageBuilder{
		source: o.Source, credential: c, plans: map[*spec.Kind]*plan{}, secrets: allSecrets(o.Source.Spec),
		origins: sync.OnceValue(func() *origins { return newOrigins(o.Source, o.Base) }),
	}
	for _, k := range o.Source.Spec.Kinds {
		b.plans[k] = newPlan(o.Source.Spec, k)
	}
	return b
}

// judge turns the answer to a GET into a page or the failure it is.
func (b *pageBuilder) judge(t *spec.Target, a *answer) (*understudy.Page, *understudy.UpstreamError) {
	decided := decision(b.source.Spec, a)
	fail := func(why understudy.Failure, err error) *understudy.UpstreamError {
		e := decided
		e.Why, e.Err = why, err
		return &e
	}
	switch {
	case decided.Why == understudy.FailCredential:
		return nil, &decided
	case decided.Why != understudy.FailNone:
		decided.Page = b.passing(t, a)
		return nil, &decided
	case a.status < 200 || a.status >= 300 && a.status < 400:
		if a.broken == nil {
			a.broken = redirect(a.header)
		}
		return nil, fail(understudy.FailUnusable, a.broken)
	case a.broken != nil:
		return nil, fail(brokenFailure(a.broken), a.broken)
	}
	page, err := b.page(t, a)
	if err != nil {
		return nil, fail(understudy.FailUnusable, err)
	}
	return page, nil
}

// brokenFailure distinguishes time-outs and resets from bodies that were cut.
func brokenFailure(err error) understudy.Failure {
	var late *throttle.LateError
	var lost lostError
	if errors.As(err, &late) || errors.As(err, &lost) || isReset(err) {
		return understudy.FailUnreachable
	}
	return understudy.FailUnusable
}

// passing is the page of a 429 or 5xx, to be shown when nothing is held; nil
// when its body is no whole JSON document.
func (b *pageBuilder) passing(t *spec.Target, a *answer) *understudy.Page {
	if a.broken != nil {
		return nil
	}
	d, err := readDocument(a.contentType(), a.body, redaction{secrets: b.secrets}, b.credential.needles())
	if err != nil {
		return nil
	}
	page := b.newPage(t, a, d)
	page.NotStored = "status " + strconv.Itoa(a.status)
	return page
}

// page builds the page of a whole answer that is neither a failure nor a
// redirect.
func (b *pageBuilder) page(t *spec.Target, a *answer) (*understudy.Page, error) {
	if a.status < 300 && t.Kind != nil && !empty(a.status) {
		return b.recordPage(t, a)
	}
	d, err := b.verbatim(a, b.everywhere())
	if err != nil {
		return nil, err
	}
	page := b.newPage(t, a, d)
	if t.Instance != nil && t.Instance != t.Kind.Instances[0] {
		page.ID = "" // not there under this parent; the record may still exist
	}
	switch page.NotStored = d.why; {
	case d.why != "":
	case t.Kind == nil && !empty(a.status):
		page.NotStored = "the spec names no kind for this path"
	case a.status != http.StatusNotFound && a.status != http.StatusGone || t.HasKeyHeader():
		page.NotStored = "status " + strconv.Itoa(a.status)
	}
	return page, nil
}

// everywhere is what is changed in every answer, whatever its path.
func (b *pageBuilder) everywhere() redaction {
	return redaction{secrets: b.secrets, named: b.source.Spec.AbsoluteURLs, origins: b.origins()}
}

// empty reports good answers without a record: 202, where it is not there yet (RFC
// 9110, 15.3.3), and 204, which has no content. They pass unchanged.
func empty(status int) bool {
	return status == http.StatusAccepted || status == http.StatusNoContent
}

// recordPage builds the page of a good answer about a kind.
func (b *pageBuilder) recordPage(t *spec.Target, a *answer) (*understudy.Page, error) {
	p := b.plans[t.Kind]
	urls, key, paging := p.absolute[t.List], keyOf(t.Instance), &t.Spec.Paging
	if t.List == nil {
		urls = p.one[key]
	} else {
		key, paging = t.List.Key, t.Spec.PagingOf(t.List)
	}
	clean := redaction{p.secrets, besideIn(key, paging.Envelope), urls, b.source.Spec.AbsoluteURLs, p.next[t.List], b.origins()}
	d, err := readDocument(a.contentType(), a.body, clean, b.credential.needles())
	if err != nil {
		return nil, err
	}
	page := b.newPage(t, a, d)
	if page.NotStored = d.why; d.why != "" {
		return page, nil
	}
	if b.source.Spec.Errors.MatchBody(d.body, d.doc) {
		page.NotStored = understudy.NotStoredError
		return page, nil
	}
	var f found
	if t.List != nil {
		f = readList(p, t.List, t.Spec.PagingOf(t.List), d.body, d.doc, t.PageSize)
		var nextErr error
		list := spec.ListAnswer{Target: t.StripHeader(), Header: a.header, Body: d.body, Doc: d.doc, Array: f.array, Next: f.next, Rows: f.rows,
			Count: f.count, Local: b.origins().local}
		var said understudy.Query
		if page.Next, said, nextErr = list.FindNextPage(); nextErr != nil && f.why == "" {
			f.why = nextErr.Error()
		}
		page.Next = page.Next.WithHeader(t.Key.Header())
		if said = append(said, list.RelatedPages()...); len(said) > 0 {
			kept, _ := understudy.ParseQuery(page.Header) // made by Query.String
			page.Header = append(kept, said...).String()
		}
	} else {
		f = readOne(p, keyOf(t.Instance), d.body, d.doc)
	}
	if page.NotStored = f.why; f.why == "" {
		showing(page, f.rows)
		if deleted(page, t.Kind) && !t.HasKeyHeader() {
			page.NotStored = understudy.NotStoredDeleted
		} else {
			page.NotStored = t.DiscardReason()
		}
	}
	return page, nil
}

// showing puts the rows into a page. A page of one record is about the record that its
// body names, even when the path asked for it by another name (a label).
func showing(page *understudy.Page, rows []understudy.Row) {
	if page.Rows = rows; !page.List && len(rows) == 1 {
		page.ID = rows[0].ID
	}
}

// verbatim is a body that passes without changes, except for secrets and our addresses,
// and the reason why it cannot be stored.
func (b *pageBuilder) verbatim(a *answer, s redaction) (document, error) {
	if len(a.body) == 0 {
		return document{}, nil
	}
	d, err := readDocument(a.contentType(), a.body, s, b.credential.needles())
	switch {
	case err == nil:
		return d, nil
	case isJSON(a.contentType()) || looksJSON(a.body):
		return document{}, err
	case textual(a.contentType(), a.body) && namesSecret(a.body, b.secrets):
		return document{}, errWithheld
	}
	return document{body: takeOut(a.body, b.credential.needles()), why: "the answer is no JSON document"}, nil
}

var errWithheld = errors.New("the answer is no JSON document and names a secret field")

// looksJSON reports whether a body begins like a JSON object or array, whatever its
// content type.
func looksJSON(body []byte) bool {
	body = bytes.TrimLeft(bytes.TrimPrefix(body, []byte("\ufeff")), " \t\r\n")
	return len(body) > 0 && (body[0] == '{' || body[0] == '[')
}

// textual reports whether a body may hold fields that a person could read.
func textual(contentType string, body []byte) bool {
	ct := strings.ToLower(contentType)
	for _, part := range []string{"text/", "xml", "urlencoded", "yaml"} {
		if strings.Contains(ct, part) {
			return true
		}
	}
	return ct == "" || body[0] == '<'
}

// newPage is a page without the parts that depend on its records.
func (b *pageBuilder) newPage(t *spec.Target, a *answer, d document) *understudy.Page {
	p := &understudy.Page{
		Key: t.Key, Shape: t.StorageShape(b.source.User), List: t.List != nil, ID: t.ID,
		Status: a.status, ContentType: a.contentType(), Body: d.body, Charset: d.charset, At: a.at, InitialAge: initialAge(a.header),
		Took: a.took, Header: b.kept(a.header),
	}
	if t.Kind != nil {
		p.Kind = t.Kind.Name
	}
	sum := sha256.Sum256(d.body)
	copy(p.Sum[:], sum[:])
	return p
}

// maxKept bounds a field of upstream's header that is kept, in bytes.
const maxKept = 1000

// kept is what is kept of a header, as a query. A field that is an address of upstream leads to us.
func (b *pageBuilder) kept(h http.Header) string {
	var q understudy.Query
	for _, name := range append([]string{"Etag"}, b.source.Spec.Headers.Back...) {
		value, ok := b.field(h, name)
		if at := b.origins(); ok && at.ours != "" {
			if n := at.away([]byte(value)); n > 0 {
				value = at.ours + value[n:]
			}
		}
		if ok && value != "" {
			q = append(q, understudy.Param{Name: name, Value: value})
		}
	}
	return append(q, b.keptAges(h)...).String()
}

// field is a field of a header in one line. ok is false for one that holds our credential, or
// what no header may hold, and for one that is too long.
func (b *pageBuilder) field(h http.Header, name string) (value string, ok bool) {
	value = strings.Join(h[name], ", ")
	odd := strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' })
	return value, len(value) <= maxKept && !odd && len(takeOut([]byte(value), b.credential.needles())) == len(value)
}

// keptAges are the fields that say how long an answer holds, where the source goes by them.
// What cannot be kept of Cache-Control may be the word that forbids storing.
func (b *pageBuilder) keptAges(h http.Header) (q understudy.Query) {
	if !b.source.UpstreamAges {
		return nil
	}
	for _, name := range understudy.AgeFields {
		value, ok := b.field(h, name)
		if !ok && name == "Cache-Control" {
			value, ok = "no-store", true
		}
		if ok && value != "" {
			q = append(q, understudy.Param{Name: understudy.AgeField(name), Value: value})
		}
	}
	return q
}

// confirmed is a page of which upstream has just said that it is still right. What its answer
// says of the age takes the place of what was said before (RFC 9111, 3.2).
func (b *pageBuilder) confirmed(held *understudy.Page, a *answer) *understudy.Page {
	page := held.ConfirmedCopy(a.at, a.took)
	page.InitialAge = initialAge(a.header)
	if said := b.keptAges(a.header); b.source.UpstreamAges {
		kept, _ := understudy.ParseQuery(page.Header) // made by Query.String
		kept = slices.DeleteFunc(kept, func(p understudy.Param) bool {
			_, again := said.Get(p.Name)
			return again || p.Name == understudy.AgeField("Age") || p.Name == understudy.AgeField("Date")
		})
		page.Header = append(kept, said...).String()
	}
	return page
}

// written builds the page of a write's answer: no key, no list, at most the one record
// it shows. Its body is the answer's, with secrets emptied. A body whose secret cannot
// be located is left out.
func (b *pageBuilder) written(t *spec.Target, a *answer) (*understudy.Page, error) {
	s, shown := b.everywhere(), t.Instance
	if t.List != nil {
		shown = shownAs(t.Kind, t.List)
	}
	if t.Kind != nil && a.status < 300 {
		s.absolute = b.plans[t.Kind].one[keyOf(shown)]
	}
	d, err := b.verbatim(a, s)
	if errors.Is(err, errWithheld) {
		d.why, err = err.Error(), nil
	}
	if err != nil {
		return nil, err
	}
	page := b.newPage(t, a, d)
	page.Key, page.List, page.NotStored = understudy.Key{}, false, d.why
	if t.List == nil && t.Instance == nil || a.status >= 300 || len(d.body) == 0 || d.why != "" {
		return page, nil
	}
	if t.List != nil && shown != nil {
		elsewhere := strings.HasSuffix(page.Shape, spec.ForeignShapeSuffix)
		if page.Shape = shown.Shape; elsewhere {
			page.Shape += spec.ForeignShapeSuffix
		}
	}
	f := readOne(b.plans[t.Kind], keyOf(shown), d.body, d.doc)
	if page.NotStored = f.why; f.why == "" {
		showing(page, f.rows)
		if deleted(page, t.Kind) {
			page.NotStored = understudy.NotStoredDeleted
		}
	}
	return page, nil
}

// deleted reports whether a page of one record shows what is left of it.
func deleted(page *understudy.Page, k *spec.Kind) bool {
	if page.List || k.Deleted == "" || len(page.Rows) != 1 {
		return false
	}
	r := page.Rows[0]
	v, ok := jsonspan.Find(page.Body, jsonspan.Value{Kind: jsonspan.Object, Start: r.Start, End: r.End}, k.Deleted)
	return ok && string(v.Bytes(page.Body)) == "true"
}

// shownAs returns the instance in whose form a record is answered under a list's path: the first of
// the list's shape, else the kind's first. It is nil for a kind without instances: its records have
// the list's shape.
func shownAs(k *spec.Kind, l *spec.List) *spec.Instance {
	for _, in := range k.Instances {
		if in.Shape == l.Shape {
			return in
		}
	}
	if len(k.Instances) > 0 {
		return k.Instances[0]
	}
	return nil
}

// keyOf returns the key under which an instance's answers have the record.
func keyOf(in *spec.Instance) string {
	if in == nil {
		return ""
	}
	return in.Key
}

// maxRetryAfter bounds how long upstream can pause a source.
const maxRetryAfter = time.Hour

// retryAfter reads Retry-After (RFC 9110, section 10.2.3): seconds or a date, also a fraction and a date with an offset
// such as +0000, which APIs send. It is 0 without one, for one that is malformed or in the past, and at most an hour.
func retryAfter(h http.Header, now time.Time) time.Duration {
	text := strings.TrimSpace(h.Get("Retry-After"))
	if text == "" {
		return 0
	}
	if strings.Trim(text, "0123456789.") == "" {
		seconds, err := strconv.ParseFloat(text, 64)
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			return 0
		}
		return time.Duration(min(seconds, maxRetryAfter.Seconds()) * float64(time.Second))
	}
	at, err := http.ParseTime(text)
	if err != nil {
		at, err = understudy.ParseTime(text, time.UTC, time.RFC1123Z)
	}
	if err != nil {
		return 0
	}
	return max(0, min(at.Sub(now), maxRetryAfter))
}

// maxInitialAge bounds how old upstream can call an answer.
const maxInitialAge = 24 * time.Hour

// initialAge reads Age (RFC 9111, section 5.1): the seconds an answer waited in caches.
// It is 0 without one or for a malformed one, and at most a day.
func initialAge(h http.Header) time.Duration {
	seconds, err := strconv.ParseUint(strings.TrimSpace(h.Get("Age")), 10, 32)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0
	}
	return min(time.Duration(seconds)*time.Second, maxInitialAge)
}
