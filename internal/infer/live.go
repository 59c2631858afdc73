// This file builds an OpenAPI document from the responses of a live API.

package infer

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"understudy/internal/openapi"
)

// Answer is one response of the API.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// LiveAPI sends requests to an API and describes the credential that they carry.
type LiveAPI struct {
	// Ask sends one GET and returns the response, whatever its status. It returns an error only if no further request can
	// succeed. DrawFromAnswers then sends no more requests.
	Ask     func(ctx context.Context, address string) (*Answer, error)
	Auth    string            // the credential style that Ask uses, as a spec writes it
	User    string            // the user of the credential, or "" if it has none
	Headers map[string]string // the header fields that Ask adds to each request
}

// maxProbes is the maximum number of requests that find out how a list leads to its next page.
const maxProbes = 24

// DrawFromAnswers drafts a spec from the responses of the lists at the given addresses. All addresses must belong
// to one API. A path segment that equals the user becomes a variable.
func DrawFromAnswers(ctx context.Context, addresses []string, live LiveAPI) (*Draft, error) {
	doc := newObject().Set("openapi", openapi.Text("3.1.0"))
	paths := newObject()
	host := ""
	var notes []caveat
	records := map[string]bool{}
	for _, address := range addresses {
		at, err := url.Parse(address)
		if err != nil || at.Host == "" {
			return nil, fmt.Errorf("%q is not the URL of a list", address)
		}
		host = cmp.Or(host, at.Scheme+"://"+at.Host)
		if at.Scheme+"://"+at.Host != host {
			return nil, fmt.Errorf("%s is not the same API as %s; give the lists of one API at a time", address, host)
		}
		l := &liveList{api: live, listURL: at, memberNotes: map[string]string{}, knownRecords: records}
		if err := l.probe(ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", address, err)
		}
		if path := l.path(at); strings.Contains(path, "_id}") {
			notes = append(notes, caveat{path, "a segment of " + at.Path + " is treated as the id of the record above the list"})
		}
		for name, text := range sortedEntries(l.memberNotes) {
			if text == contradictedText {
				notes = append(notes, caveat{l.path(at), name + " " + contradictedText + "; it is left out"})
			}
		}
		paths.Set(l.path(at), l.describePath(l.answer, append(pathParams(l.path(at)), l.params...)))
		if l.linkPath != "" && paths.Get(l.linkPath) == nil {
			paths.Set(l.linkPath, l.describePath(l.answer, append(pathParams(l.linkPath), l.params...)))
		}
		if l.record != nil {
			path := strings.TrimSuffix(l.path(l.listURL), "/") + "/{" + l.recordVar + "}"
			paths.Set(path, l.describePath(l.record, pathParams(path)))
		}
	}
	doc.Set("info", newObject().Set("title", openapi.Text(host[strings.Index(host, "://")+3:])))
	doc.Set("servers", newArray(newObject().Set("url", openapi.Text(host))))
	read, err := openapi.New(doc.Set("paths", paths))
	if err != nil {
		return nil, err
	}
	for name, value := range live.Headers {
		read.Headers.Requests[http.CanonicalHeaderKey(name)] = &openapi.RequestHeader{Reads: read.OperationCount, Required: read.OperationCount,
			Values: []string{value}, RequiredValues: map[string]int{value: read.OperationCount}}
	}
	for style := range strings.SplitSeq(live.Auth, " + ") {
		scheme := openapi.Scheme{Type: style}
		if in, name, ok := strings.Cut(style, " "); ok {
			scheme = openapi.Scheme{Type: "key", In: in, Name: name}
		}
		if style != "none" && style != "" {
			read.Schemes, read.Combined = append(read.Schemes, scheme), append(read.Combined, scheme)
		}
	}
	return (&api{doc: read, observed: true, fieldLevels: maxLevels, caveats: notes}).draw(strings.Join(addresses, ", "))
}

func newObject() *openapi.Value { return &openapi.Value{Kind: openapi.Object} }

func newArray(items ...*openapi.Value) *openapi.Value {
	return &openapi.Value{Kind: openapi.Array, Items: items}
}

// liveParam is a parameter of a request that was observed or found by a probe.
type liveParam struct {
	name      string
	value     *openapi.Value
	in        string
	firstPage string // for a parameter with a page number: the number of the first page, or "" if unknown
}

// liveList is what is known about a list of a live API while the list is examined.
type liveList struct {
	api           LiveAPI
	listURL       *url.URL
	answer        *parsedAnswer
	record        *parsedAnswer // the response with one record, or nil if no such response was found
	recordVar     string        // the path variable that names a single record
	missingAnswer *parsedAnswer // the error response for a record that does not exist
	params        []liveParam
	// linkPath is the spec's path for the links in the list's responses, if it differs from the path of the list.
	linkPath     string
	memberNotes  map[string]string // what other pages prove about a member, by the member's dotted name
	knownRecords map[string]bool   // the paths of records found in this list and in lists examined before
	probes       int
	askErr       error // the error of Ask after which no more requests are sent
}

// parsedAnswer is a response with its body decoded from JSON.
type parsedAnswer struct {
	status int
	header http.Header
	body   *openapi.Value
}

// fetchOK sends a request and returns the response. A status other than 200 is an error.
func (l *liveList) fetchOK(ctx context.Context, at *url.URL) (*parsedAnswer, error) {
	s, err := l.fetchAny(ctx, at)
	if err == nil && s.status != http.StatusOK {
		err = fmt.Errorf("status %d", s.status)
	}
	return s, err
}

// fetchAny sends a request and returns the response, whatever its status. It sends nothing after Ask has failed once.
func (l *liveList) fetchAny(ctx context.Context, at *url.URL) (*parsedAnswer, error) {
	if l.askErr != nil {
		return nil, l.askErr
	}
	a, err := l.api.Ask(ctx, at.String())
	if err != nil {
		l.askErr = err
		return nil, err
	}
	body, err := openapi.Parse(a.Body)
	if err != nil && a.Status == http.StatusOK {
		return nil, fmt.Errorf("the answer: %w", err)
	}
	return &parsedAnswer{a.Status, a.Header, body}, nil
}

// probe fetches the list. It then finds out how the list leads to its next page, which filters it has, and how one
// record is fetched.
func (l *liveList) probe(ctx context.Context) (err error) {
	l.noteParams(l.listURL)
	if err := l.fetchFirst(ctx); err != nil {
		return err
	}
	for _, link := range l.pageURLs(l.answer) {
		l.noteParams(link)
	}
	l.findFirstPage()
	op, err := l.readOperation(l.answer)
	if err != nil {
		return err
	}
	env, ok := findRows(op)
	switch {
	case ok && len(memberAt(l.answer.body, env.key).Items) > 0:
	case !ok && isRecord(op.Answer) && !hasEmptyArray(l.answer.body, 0):
		return nil // the response is a single object, so the address is no list
	case hasEmptyArray(l.answer.body, 0):
		return fmt.Errorf("the list is empty, so nothing can be learned from it; give a list that has records")
	default:
		return fmt.Errorf("the answer has no array of objects")
	}
	rows := memberAt(l.answer.body, env.key)
	for _, row := range rows.Items {
		l.knownRecords[l.recordURL(l.recordID(row)).EscapedPath()] = true
	}
	l.probePaging(ctx, op, &env, rows)
	l.findFilters(ctx, &env, rows)
	l.findRecord(ctx, rows)
	return l.askErr
}

// hasEmptyArray reports whether a value is or contains an empty array, at most three levels deep.
func hasEmptyArray(v *openapi.Value, depth int) bool {
	if v == nil || v.Kind == openapi.Array {
		return v != nil && len(v.Items) == 0
	}
	isInside := func(item *openapi.Value) bool { return hasEmptyArray(item, depth+1) }
	return v.Kind == openapi.Object && depth < 3 && slices.ContainsFunc(v.Items, isInside)
}

// fetchFirst fetches the list without a page size, so that the number of rows shows the default size. If the API
// refuses such a request, fetchFirst repeats it with the size.
func (l *liveList) fetchFirst(ctx context.Context) (err error) {
	given, query := *l.listURL, l.listURL.Query()
	for i, p := range l.params {
		if isOneOf(p.name, sizeNames...) {
			l.params[i].value = &openapi.Value{} // the size is set later, when a full page is known
			query.Del(p.name)
			l.listURL.RawQuery = query.Encode()
		}
	}
	if l.answer, err = l.fetchOK(ctx, l.listURL); err != nil && l.listURL.RawQuery != given.RawQuery {
		l.listURL = &given
		l.answer, err = l.fetchOK(ctx, l.listURL)
	}
	return err
}

// findFirstPage finds out whether page numbers begin at 0 or 1, from the number in the address or from the number in
// the link to the second page.
func (l *liveList) findFirstPage() {
	for i, p := range l.params {
		if !isOneOf(p.name, pageNumberNames...) || p.value.Kind != openapi.Number {
			continue
		}
		n, _ := strconv.Atoi(p.value.Text)
		if !l.listURL.Query().Has(p.name) {
			n--
		}
		if l.params[i].firstPage = ""; n == 0 || n == 1 {
			l.params[i].firstPage = strconv.Itoa(n)
		}
	}
}

// memberAt returns the value at a dotted name inside v, or nil if there is no such value.
func memberAt(v *openapi.Value, dotted string) *openapi.Value {
	for dotted != "" {
		if member := v.Get(dotted); member != nil { // a member may have a name that contains dots
			return member
		}
		part, rest, _ := strings.Cut(dotted, ".")
		v, dotted = v.Get(part), rest
	}
	return v
}

// noteParams adds the query parameters of an address to the list's parameters.
func (l *liveList) noteParams(at *url.URL) {
	for name, values := range sortedEntries(at.Query()) {
		l.addParam(name, values[0])
	}
}

func (l *liveList) addParam(name, value string) {
	if slices.ContainsFunc(l.params, func(p liveParam) bool { return p.name == name }) {
		return
	}
	v := parseScalar(value)
	if isOneOf(name, tokenNames...) && !isOneOf(name, slices.Concat(pageNumberNames, offsetNames)...) {
		v.Kind = openapi.String // a cursor token may consist of digits, but it is no number
	}
	l.params = append(l.params, liveParam{name: name, value: v, in: "query"})
}

var linkTarget = regexp.MustCompile(`<([^>]*)>`)

// pageURLs returns the links in a response that lead to other pages of this list. Their host may differ from the
// list's host, because an API behind a mirror writes its own host.
func (l *liveList) pageURLs(s *parsedAnswer) (all []*url.URL) {
	var texts []string
	for _, field := range s.header.Values("Link") {
		for _, m := range linkTarget.FindAllStringSubmatch(field, 20) {
			texts = append(texts, m[1])
		}
	}
	var walk func(v *openapi.Value, inside string, depth int)
	walk = func(v *openapi.Value, inside string, depth int) {
		v.WalkPairs(func(name string, m *openapi.Value) {
			name = inside + "_" + name
			if m.Kind == openapi.String && strings.Contains(m.Text, "?") && hasWord(name, "next", "first", "last", "prev", "previous", "self") {
				texts = append(texts, m.Text)
			} else if depth < 2 {
				walk(m, name, depth+1)
			}
		})
	}
	walk(s.body, "", 0)
	for _, text := range texts {
		to, err := l.listURL.Parse(text)
		switch {
		case err != nil:
		case to.Path == l.listURL.Path, to.Host != l.listURL.Host && lastWord(to.Path) == lastWord(l.listURL.Path):
			all = append(all, to)
		case lastWord(to.Path) == lastWord(l.listURL.Path) && len(to.Query()) > 0:
			all, l.linkPath = append(all, to), withVariables(to.EscapedPath())
		}
	}
	return all
}

// missingID is an id that no record has.
const missingID = "no-such-record"

// recordNameFields are the fields that an API may use in the path of a record in place of the id.
var recordNameFields = []string{"iid", "number", "name", "slug"}

// findRecord fetches the first record by its id, or else by another name. If that works, it also fetches a record that
// does not exist, to see the error response.
func (l *liveList) findRecord(ctx context.Context, rows *openapi.Value) {
	first := rows.Items[0]
	field, id := l.findID(first)
	for _, name := range append([]string{field}, recordNameFields...) {
		value := first.TextOf(name)
		if value == "" || l.record != nil {
			continue
		}
		isFirst := func(v *openapi.Value) bool { return l.recordID(v) == id && v.TextOf(name) == value }
		got, err := l.fetchOK(ctx, l.recordURL(value))
		if err == nil && got.body.Kind == openapi.Object && (isFirst(got.body) || slices.ContainsFunc(got.body.Items, isFirst)) {
			if l.record, l.recordVar = got, name; name == field && foldName(field) != "key" {
				l.recordVar = "id"
			}
		}
	}
	if l.record == nil {
		return
	}
	if none, err := l.fetchAny(ctx, l.recordURL(missingID)); err == nil && none.status >= 400 && none.body != nil {
		l.missingAnswer = none
	}
}

// recordURL returns the address of the record with a given id or name below the list.
func (l *liveList) recordURL(name string) *url.URL {
	to := *l.listURL
	to.RawPath = strings.TrimSuffix(l.listURL.EscapedPath(), "/") + "/" + url.PathEscape(name)
	to.Path, to.RawQuery = strings.TrimSuffix(l.listURL.Path, "/")+"/"+name, ""
	return &to
}

// recordID returns the id of a record from the usual fields, or "" if the record has none of them.
func (l *liveList) recordID(record *openapi.Value) string {
	_, id := l.findID(record)
	return id
}

// findID returns the field that holds the id of a record, and the id. It uses the field "key" only if no other field fits.
func (l *liveList) findID(record *openapi.Value) (field, id string) {
	for _, name := range append(slices.Clone(idFields), foldName(singular(lastWord(l.listURL.Path)))+"id", "key") {
		record.WalkPairs(func(key string, v *openapi.Value) {
			if id == "" && foldName(key) == foldName(name) && (v.Kind == openapi.String || v.Kind == openapi.Number) {
				field, id = key, v.Text
			}
		})
	}
	return field, id
}
