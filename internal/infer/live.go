// Live: a document made of a few answers of an API, and of what it answers when its lists
// are asked to go on.

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

// Answer is an answer of the API.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// LiveAPI asks an API.
type LiveAPI struct {
	// Ask sends one GET. An answer with any status is none of its errors, but one that
	// refuses the next requests, too: then nothing more is asked.
	Ask     func(ctx context.Context, address string) (*Answer, error)
	Auth    string            // the style in which Ask names its caller
	User    string            // its user, if there is one
	Headers map[string]string // header fields that Ask sends
}

// maxProbes bounds the requests that find out how one list goes on.
const maxProbes = 24

// DrawFromAnswers draws a spec from what the lists at the addresses answer, which are of one API.
// A path segment that is the user becomes a variable.
func DrawFromAnswers(ctx context.Context, addresses []string, live LiveAPI) (*Draft, error) {
	doc := newObject().Set("openapi", openapi.Text("3.1.0"))
	paths := newObject()
	host := ""
	var notes []unsure
	records := map[string]bool{}
	for _, address := range addresses {
		at, err := url.Parse(address)
		if err != nil || at.Host == "" {
			return nil, fmt.Errorf("%q: want the URL of a list", address)
		}
		host = cmp.Or(host, at.Scheme+"://"+at.Host)
		if at.Scheme+"://"+at.Host != host {
			return nil, fmt.Errorf("%s is another API than %s: ask for one at a time", address, host)
		}
		l := &liveList{api: live, listURL: at, memberNotes: map[string]string{}, knownRecords: records}
		if err := l.probe(ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", address, err)
		}
		if path := l.path(at); strings.Contains(path, "_id}") {
			notes = append(notes, unsure{path, "a segment of " + at.Path + " is taken for the id of the record that the list lies under"})
		}
		for name, text := range sortedEntries(l.memberNotes) {
			if text == contradictedText {
				notes = append(notes, unsure{l.path(at), name + " " + contradictedText + ": it is left out"})
			}
		}
		paths.Set(l.path(at), l.describePath(l.answer, append(pathParams(l.path(at)), l.params...)))
		if l.linkPath != "" && paths.Get(l.linkPath) == nil {
			paths.Set(l.linkPath, l.describePath(l.answer, append(pathParams(l.linkPath), l.params...)))
		}
		if l.record != nil {
			path := l.childPath("{" + l.recordVar + "}")
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
		read.Headers.Wanted[http.CanonicalHeaderKey(name)] = &openapi.Header{Reads: read.All, Required: read.All, Values: []string{value},
			Demanded: map[string]int{value: read.All}}
	}
	for one := range strings.SplitSeq(live.Auth, " + ") {
		scheme := openapi.Scheme{Type: one}
		if in, name, ok := strings.Cut(one, " "); ok {
			scheme = openapi.Scheme{Type: "key", In: in, Name: name}
		}
		if one != "none" && one != "" {
			read.Schemes, read.Together = append(read.Schemes, scheme), append(read.Together, scheme)
		}
	}
	return (&api{doc: read, seen: true, levels: maxLevels, notes: notes}).draw(strings.Join(addresses, ", "))
}

func newObject() *openapi.Value { return &openapi.Value{Kind: openapi.Object} }

func newArray(items ...*openapi.Value) *openapi.Value {
	return &openapi.Value{Kind: openapi.Array, Items: items}
}

// liveParam is a parameter that was seen: its name, a value, and where it stands.
type liveParam struct {
	name      string
	value     *openapi.Value
	in        string
	firstPage string // of a page's number: where it begins; "" = not known
}

// liveList is one list while it is looked at.
type liveList struct {
	api           LiveAPI
	listURL       *url.URL
	answer        *parsedAnswer
	record        *parsedAnswer // one record, by its id
	recordVar     string        // the variable of its path
	missingAnswer *parsedAnswer // what it answers where there is no record
	params        []liveParam
	// elsewhere is the path, as a spec has it, to which the list's own links lead; "" = they
	// lead to the list's path.
	linkPath     string
	memberNotes  map[string]string // what other pages show of a member of the answer, by its dotted name
	knownRecords map[string]bool   // the paths of the records that lists before this one have, by their ids
	probes       int
	askErr       error // why nothing more can be asked
}

// parsedAnswer is an answer that was read.
type parsedAnswer struct {
	status int
	header http.Header
	body   *openapi.Value
}

// fetchOK asks, and reads what has status 200.
func (l *liveList) fetchOK(ctx context.Context, at *url.URL) (*parsedAnswer, error) {
	s, err := l.fetchAny(ctx, at)
	if err == nil && s.status != http.StatusOK {
		err = fmt.Errorf("status %d", s.status)
	}
	return s, err
}

// fetchAny asks, and reads an answer with any status.
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

// childPath is the path of something below the list.
func (l *liveList) childPath(name string) string {
	return strings.TrimSuffix(l.path(l.listURL), "/") + "/" + name
}

// probe asks for the list, then finds out how it goes on, and for one record.
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
		return nil // one object
	case hasEmptyArray(l.answer.body, 0):
		return fmt.Errorf("the list is empty, so that nothing can be told from it: give one that has records")
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

// hasEmptyArray reports whether a value is an empty array, or an object with one.
func hasEmptyArray(v *openapi.Value, depth int) bool {
	if v == nil || v.Kind == openapi.Array {
		return v != nil && len(v.Items) == 0
	}
	inside := func(one *openapi.Value) bool { return hasEmptyArray(one, depth+1) }
	return v.Kind == openapi.Object && depth < 3 && slices.ContainsFunc(v.Items, inside)
}

// fetchFirst asks for the list without a size, to see how many rows a page has then, and with it
// where that is refused.
func (l *liveList) fetchFirst(ctx context.Context) (err error) {
	given, query := *l.listURL, l.listURL.Query()
	for i, p := range l.params {
		if isOneOf(p.name, sizeNames...) {
			l.params[i].value = &openapi.Value{} // known when the page is a full one
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

// findFirstPage finds out from which number pages count: the address names one, or a link names the
// second.
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

// memberAt is what a value has at a dotted name.
func memberAt(v *openapi.Value, dotted string) *openapi.Value {
	for dotted != "" {
		if whole := v.Get(dotted); whole != nil {
			return whole
		}
		part, rest, _ := strings.Cut(dotted, ".")
		v, dotted = v.Get(part), rest
	}
	return v
}

// noteParams remembers the parameters of an address.
func (l *liveList) noteParams(at *url.URL) {
	query := at.Query()
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for name := range query {
			if !yield(name) {
				return
			}
		}
	}) {
		l.addParam(name, query.Get(name))
	}
}

func (l *liveList) addParam(name, value string) {
	if slices.ContainsFunc(l.params, func(p liveParam) bool { return p.name == name }) {
		return
	}
	v := parseScalar(value)
	if isOneOf(name, tokenNames...) && !isOneOf(name, slices.Concat(pageNumberNames, offsetNames)...) {
		v.Kind = openapi.String // a token, though it has digits alone
	}
	l.params = append(l.params, liveParam{name: name, value: v, in: "query"})
}

var linkTarget = regexp.MustCompile(`<([^>]*)>`)

// pageURLs are the addresses that an answer has beside its rows, of this list. Their host may be another: an API
// behind a mirror writes its own.
func (l *liveList) pageURLs(s *parsedAnswer) (all []*url.URL) {
	var texts []string
	for _, field := range s.header.Values("Link") {
		for _, m := range linkTarget.FindAllStringSubmatch(field, 20) {
			texts = append(texts, m[1])
		}
	}
	var walk func(v *openapi.Value, inside string, depth int)
	walk = func(v *openapi.Value, inside string, depth int) {
		v.Each(func(name string, one *openapi.Value) {
			name = inside + "_" + name
			if one.Kind == openapi.String && strings.Contains(one.Text, "?") && hasWord(name, "next", "first", "last", "prev", "previous", "self") {
				texts = append(texts, one.Text)
			} else if depth < 2 {
				walk(one, name, depth+1)
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

// missingID is no record's id.
const missingID = "no-such-record"

// recordNameFields name a record in its path where its id does not.
var recordNameFields = []string{"iid", "number", "name", "slug"}

// findRecord asks for the first record by its id, else by another name, and for one that does not exist.
func (l *liveList) findRecord(ctx context.Context, rows *openapi.Value) {
	first := rows.Items[0]
	field, id := l.findID(first)
	for _, name := range append([]string{field}, recordNameFields...) {
		value := first.Of(name)
		if value == "" || l.record != nil {
			continue
		}
		isOne := func(v *openapi.Value) bool { return l.recordID(v) == id && v.Of(name) == value }
		one, err := l.fetchOK(ctx, l.recordURL(value))
		if err == nil && one.body.Kind == openapi.Object && (isOne(one.body) || slices.ContainsFunc(one.body.Items, isOne)) {
			if l.record, l.recordVar = one, name; name == field && foldName(field) != "key" {
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

// recordURL returns the address of what lies below the list by a name.
func (l *liveList) recordURL(name string) *url.URL {
	to := *l.listURL
	to.RawPath = strings.TrimSuffix(l.listURL.EscapedPath(), "/") + "/" + url.PathEscape(name)
	to.Path, to.RawQuery = strings.TrimSuffix(l.listURL.Path, "/")+"/"+name, ""
	return &to
}

// recordID is the id of a record, by the usual names; "" = none.
func (l *liveList) recordID(record *openapi.Value) string {
	_, id := l.findID(record)
	return id
}

// findID returns the field of a record's id, and the id. A key counts where nothing else does: some
// APIs name records so.
func (l *liveList) findID(record *openapi.Value) (field, id string) {
	for _, name := range append(slices.Clone(idFields), foldName(singular(lastWord(l.listURL.Path)))+"id", "key") {
		record.Each(func(key string, v *openapi.Value) {
			if id == "" && foldName(key) == foldName(name) && (v.Kind == openapi.String || v.Kind == openapi.Number) {
				field, id = key, v.Text
			}
		})
	}
	return field, id
}
