// Answers: the response to one try, and its meaning.

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

// answer is the upstream's response to one attempt.
type answer struct {
	status  int
	header  http.Header
	body    []byte        // the body of the answer, decompressed
	bodyErr error         // the error that made body incomplete, or nil
	at      time.Time     // when the body was complete
	took    time.Duration // the time from sending the request to the last byte of the body

	allowance    throttle.Allowance // the rate limit that the response header reports
	hasAllowance bool               // whether the response header reports a rate limit

	firstByte   time.Duration // the time from sending the request to the response header
	signature   signature     // the credential with which the request was sent
	longestWait time.Duration // the longest wait without data: for the header, or between two reads of the body
}

func (a *answer) contentType() string { return a.header.Get("Content-Type") }

// pageBuilder turns answers into pages.
type pageBuilder struct {
	source     *spec.Source
	credential *credential
	plans      map[*spec.Kind]*plan
	secrets    []secret // all secret fields of the spec
	// origins returns the URLs to replace. They are computed at the first use, because only then the server's ports, and
	// so the source's public URL, are known.
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

// judge turns the answer to a GET request into a page or a failure.
func (b *pageBuilder) judge(t *spec.Target, a *answer) (*understudy.Page, *understudy.UpstreamError) {
	decided := answerFailure(b.source.Spec, a)
	fail := func(why understudy.Failure, err error) *understudy.UpstreamError {
		e := decided
		e.Why, e.Err = why, err
		return &e
	}
	switch {
	case decided.Why == understudy.FailCredential:
		return nil, &decided
	case decided.Why != understudy.FailNone:
		decided.Page = b.errorPage(t, a)
		return nil, &decided
	case a.status < 200 || a.status >= 300 && a.status < 400:
		if a.bodyErr == nil {
			a.bodyErr = describeRedirect(a.header)
		}
		return nil, fail(understudy.FailUnusable, a.bodyErr)
	case a.bodyErr != nil:
		return nil, fail(bodyFailure(a.bodyErr), a.bodyErr)
	}
	page, err := b.makePage(t, a)
	if err != nil {
		return nil, fail(understudy.FailUnusable, err)
	}
	return page, nil
}

// bodyFailure returns whether an incomplete body is the failure of a connection (a time-out, a lost connection) or of
// the answer itself.
func bodyFailure(err error) understudy.Failure {
	if errors.As(err, new(*throttle.LateError)) || errors.As(err, new(lostError)) || isReset(err) {
		return understudy.FailUnreachable
	}
	return understudy.FailUnusable
}

// errorPage returns the page of an answer with status 429 or 5xx, which is shown if nothing is stored. It returns nil
// if the body is not a complete JSON document.
func (b *pageBuilder) errorPage(t *spec.Target, a *answer) *understudy.Page {
	if a.bodyErr != nil {
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

// makePage makes the page of a complete answer that is neither a failure nor a redirect.
func (b *pageBuilder) makePage(t *spec.Target, a *answer) (*understudy.Page, error) {
	if a.status < 300 && t.Kind != nil && !isEmptyStatus(a.status) {
		return b.makeRecordPage(t, a)
	}
	d, err := b.readVerbatim(a, b.commonRedaction())
	if err != nil {
		return nil, err
	}
	page := b.newPage(t, a, d)
	if t.Instance != nil && t.Instance != t.Kind.Instances[0] {
		page.ID = "" // the record does not belong to this parent, but may still exist
	}
	switch page.NotStored = d.why; {
	case d.why != "":
	case t.Kind == nil && !isEmptyStatus(a.status):
		page.NotStored = "the spec names no kind for this path"
	case a.status != http.StatusNotFound && a.status != http.StatusGone || t.HasKeyHeader():
		page.NotStored = "status " + strconv.Itoa(a.status)
	}
	return page, nil
}

// commonRedaction returns the redaction that applies to every answer, whatever its path.
func (b *pageBuilder) commonRedaction() redaction {
	return redaction{secrets: b.secrets, named: b.source.Spec.AbsoluteURLs, origins: b.origins()}
}

// isEmptyStatus reports whether a status means success without a record: 202, for which the record does not exist yet
// (RFC 9110, 15.3.3), and 204, which has no content. Answers with such a status are forwarded unchanged.
func isEmptyStatus(status int) bool {
	return status == http.StatusAccepted || status == http.StatusNoContent
}

// makeRecordPage makes the page of a successful answer about a kind.
func (b *pageBuilder) makeRecordPage(t *spec.Target, a *answer) (*understudy.Page, error) {
	p := b.plans[t.Kind]
	urls, key, paging := p.absolute[t.List], keyOf(t.Instance), &t.Spec.Paging
	if t.List == nil {
		urls = p.one[key]
	} else {
		key, paging = t.List.Key, t.Spec.PagingOf(t.List)
	}
	clean := redaction{p.secrets, envelopePaths(key, paging.Envelope), urls, b.source.Spec.AbsoluteURLs, p.next[t.List], b.origins()}
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
			Count: f.count, Local: b.origins().localPath}
		var said understudy.Query
		if page.Next, said, nextErr = list.FindNextPage(); nextErr != nil && f.why == "" {
			f.why = nextErr.Error()
		}
		page.Next = page.Next.WithHeader(t.Key.Header())
		if said = append(said, list.RelatedPages()...); len(said) > 0 {
			kept, _ := understudy.ParseQuery(page.Header) // no error is possible, because Query.String made this text
			page.Header = append(kept, said...).String()
		}
	} else {
		f = readRecord(p, keyOf(t.Instance), d.body, d.doc)
	}
	if page.NotStored = f.why; f.why == "" {
		setRows(page, f.rows)
		if isDeletedRecord(page, t.Kind) && !t.HasKeyHeader() {
			page.NotStored = understudy.NotStoredDeleted
		} else {
			page.NotStored = t.DropReason()
		}
	}
	return page, nil
}

// setRows sets the rows of a page. The id of a page with one record is the id in its body, even if the path
// names the record in another way (a label).
func setRows(page *understudy.Page, rows []understudy.Row) {
	if page.Rows = rows; !page.List && len(rows) == 1 {
		page.ID = rows[0].ID
	}
}

// readVerbatim returns a body in which only secrets and addresses are replaced. It also returns why the body cannot be
// stored, if it cannot.
func (b *pageBuilder) readVerbatim(a *answer, s redaction) (document, error) {
	if len(a.body) == 0 {
		return document{}, nil
	}
	d, err := readDocument(a.contentType(), a.body, s, b.credential.needles())
	switch {
	case err == nil:
		return d, nil
	case isJSON(a.contentType()) || isLikelyJSON(a.body):
		return document{}, err
	case isTextual(a.contentType(), a.body) && hasSecretName(a.body, b.secrets):
		return document{}, errWithheld
	}
	return document{body: removeNeedles(a.body, b.credential.needles()), why: "the answer is not a JSON document"}, nil
}

var errWithheld = errors.New("the answer is not a JSON document and contains a secret field")

// isLikelyJSON reports whether a body begins like a JSON object or array, whatever its content type.
func isLikelyJSON(body []byte) bool {
	body = bytes.TrimLeft(bytes.TrimPrefix(body, []byte("\ufeff")), " \t\r\n")
	return len(body) > 0 && (body[0] == '{' || body[0] == '[')
}

// isTextual reports whether a body may contain fields that a person could read.
func isTextual(contentType string, body []byte) bool {
	ct := strings.ToLower(contentType)
	for _, part := range []string{"text/", "xml", "urlencoded", "yaml"} {
		if strings.Contains(ct, part) {
			return true
		}
	}
	return ct == "" || body[0] == '<'
}

// newPage returns a page without the parts that depend on its records.
func (b *pageBuilder) newPage(t *spec.Target, a *answer, d document) *understudy.Page {
	p := &understudy.Page{
		Key: t.Key, Shape: t.StorageShape(b.source.User), List: t.List != nil, ID: t.ID,
		Status: a.status, ContentType: a.contentType(), Body: d.body, Charset: d.charset, At: a.at, InitialAge: initialAge(a.header),
		Took: a.took, Header: b.storedHeader(a.header),
	}
	if t.Kind != nil {
		p.Kind = t.Kind.Name
	}
	sum := sha256.Sum256(d.body)
	copy(p.Sum[:], sum[:])
	return p
}

// maxKept is the maximum length in bytes of a header field that is stored.
const maxKept = 1000

// storedHeader returns the header fields that are stored, as a query. In a field with an address of the upstream, this
// server's address replaces it.
func (b *pageBuilder) storedHeader(h http.Header) string {
	var q understudy.Query
	for _, name := range append([]string{"Etag"}, b.source.Spec.Headers.Back...) {
		value, ok := b.headerField(h, name)
		if at := b.origins(); ok && at.publicURL != "" {
			if n := at.matchLength([]byte(value)); n > 0 {
				value = at.publicURL + value[n:]
			}
		}
		if ok && value != "" {
			q = append(q, understudy.Param{Name: name, Value: value})
		}
	}
	return append(q, b.ageFields(h)...).String()
}

// headerField returns a header field as one line. ok is false if the field contains the source's credential, is too
// long, or has characters that a header must not have.
func (b *pageBuilder) headerField(h http.Header, name string) (value string, ok bool) {
	value = strings.Join(h[name], ", ")
	odd := strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' })
	return value, len(value) <= maxKept && !odd && len(removeNeedles([]byte(value), b.credential.needles())) == len(value)
}

// ageFields returns the fields that say how long an answer is fresh, if the source uses them. A Cache-Control
// that cannot be stored is stored as no-store, because it may forbid storing.
func (b *pageBuilder) ageFields(h http.Header) (q understudy.Query) {
	if !b.source.UpstreamAges {
		return nil
	}
	for _, name := range understudy.AgeFields {
		value, ok := b.headerField(h, name)
		if !ok && name == "Cache-Control" {
			value, ok = "no-store", true
		}
		if ok && value != "" {
			q = append(q, understudy.Param{Name: understudy.AgeField(name), Value: value})
		}
	}
	return q
}

// confirmPage returns a page that the upstream has confirmed with a 304. The fields about freshness in the answer
// replace the stored ones (RFC 9111, 3.2).
func (b *pageBuilder) confirmPage(held *understudy.Page, a *answer) *understudy.Page {
	page := held.ConfirmedCopy(a.at, a.took)
	page.InitialAge = initialAge(a.header)
	if said := b.ageFields(a.header); b.source.UpstreamAges {
		kept, _ := understudy.ParseQuery(page.Header) // no error is possible, because Query.String made this text
		kept = slices.DeleteFunc(kept, func(p understudy.Param) bool {
			_, again := said.Get(p.Name)
			return again || p.Name == understudy.AgeField("Age") || p.Name == understudy.AgeField("Date")
		})
		page.Header = append(kept, said...).String()
	}
	return page
}

// makeWritePage makes the page of the answer to a write. The page has no key and no list, and at most one record. Its
// body is the answer's body with secrets emptied. A body with a secret that cannot be found is left out.
func (b *pageBuilder) makeWritePage(t *spec.Target, a *answer) (*understudy.Page, error) {
	s, shown := b.commonRedaction(), t.Instance
	if t.List != nil {
		shown = instanceFor(t.Kind, t.List)
	}
	if t.Kind != nil && a.status < 300 {
		s.absolute = b.plans[t.Kind].one[keyOf(shown)]
	}
	d, err := b.readVerbatim(a, s)
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
	f := readRecord(b.plans[t.Kind], keyOf(shown), d.body, d.doc)
	if page.NotStored = f.why; f.why == "" {
		setRows(page, f.rows)
		if isDeletedRecord(page, t.Kind) {
			page.NotStored = understudy.NotStoredDeleted
		}
	}
	return page, nil
}

// isDeletedRecord reports whether a page of one record shows a deleted record.
func isDeletedRecord(page *understudy.Page, k *spec.Kind) bool {
	if page.List || k.Deleted == "" || len(page.Rows) != 1 {
		return false
	}
	r := page.Rows[0]
	v, ok := jsonspan.Find(page.Body, jsonspan.Value{Kind: jsonspan.Object, Start: r.Start, End: r.End}, k.Deleted)
	return ok && string(v.Bytes(page.Body)) == "true"
}

// instanceFor returns the instance whose form a record has in the answer to a write to a list's path. It is the
// first instance with the list's shape, else the kind's first. It returns nil for a kind without instances,
// whose records have the list's shape.
func instanceFor(k *spec.Kind, l *spec.List) *spec.Instance {
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

// keyOf returns the key of the record in an instance's answers.
func keyOf(in *spec.Instance) string {
	if in == nil {
		return ""
	}
	return in.Key
}

// maxRetryAfter is the maximum time for which the upstream can stop the requests to a source.
const maxRetryAfter = time.Hour

// retryAfter parses Retry-After (RFC 9110, section 10.2.3). It also accepts a fraction of seconds, and a date
// with an offset such as +0000, because APIs send them. It returns 0 if the field is missing, malformed or in
// the past, and at most an hour.
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

// maxInitialAge is the maximum age that the upstream can claim for an answer.
const maxInitialAge = 24 * time.Hour

// initialAge parses Age (RFC 9111, section 5.1): how long an answer waited in caches. It returns 0 if the field
// is missing or malformed, and at most a day.
func initialAge(h http.Header) time.Duration {
	seconds, err := strconv.ParseUint(strings.TrimSpace(h.Get("Age")), 10, 32)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0
	}
	return min(time.Duration(seconds)*time.Second, maxInitialAge)
}
