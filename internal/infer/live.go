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

// Live asks an API.
type Live struct {
	// Ask sends one GET. An answer with any status is none of its errors, but one that
	// refuses the next requests, too: then nothing more is asked.
	Ask  func(ctx context.Context, address string) (*Answer, error)
	Auth string            // the style in which Ask names its caller
	User string            // its user, if there is one
	Send map[string]string // header fields that Ask sends
}

// mostTries bounds the requests that find out how one list goes on.
const mostTries = 24

// FromAnswers draws a spec from what the lists at the addresses answer, which are of one API.
// A path segment that is the user becomes a variable.
func FromAnswers(ctx context.Context, addresses []string, live Live) (*Draft, error) {
	doc := object().Set("openapi", openapi.Text("3.1.0"))
	paths := object()
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
		l := &liveList{live: live, at: at, told: map[string]string{}, records: records}
		if err := l.look(ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", address, err)
		}
		if path := l.path(at); strings.Contains(path, "_id}") {
			notes = append(notes, unsure{path, "a segment of " + at.Path + " is taken for the id of the record that the list lies under"})
		}
		for name, text := range sorted(l.told) {
			if text == contradicted {
				notes = append(notes, unsure{l.path(at), name + " " + contradicted + ": it is left out"})
			}
		}
		paths.Set(l.path(at), l.operation(l.answer, append(pathParams(l.path(at)), l.params...)))
		if l.elsewhere != "" && paths.Get(l.elsewhere) == nil {
			paths.Set(l.elsewhere, l.operation(l.answer, append(pathParams(l.elsewhere), l.params...)))
		}
		if l.one != nil {
			path := l.below("{" + l.oneBy + "}")
			paths.Set(path, l.operation(l.one, pathParams(path)))
		}
	}
	doc.Set("info", object().Set("title", openapi.Text(host[strings.Index(host, "://")+3:])))
	doc.Set("servers", array(object().Set("url", openapi.Text(host))))
	read, err := openapi.New(doc.Set("paths", paths))
	if err != nil {
		return nil, err
	}
	for name, value := range live.Send {
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

func object() *openapi.Value { return &openapi.Value{Kind: openapi.Object} }

func array(items ...*openapi.Value) *openapi.Value {
	return &openapi.Value{Kind: openapi.Array, Items: items}
}

// liveParam is a parameter that was seen: its name, a value, and where it stands.
type liveParam struct {
	name  string
	value *openapi.Value
	in    string
	first string // of a page's number: where it begins; "" = not known
}

// liveList is one list while it is looked at.
type liveList struct {
	live   Live
	at     *url.URL
	answer *seen
	one    *seen  // one record, by its id
	oneBy  string // the variable of its path
	none   *seen  // what it answers where there is no record
	params []liveParam
	// elsewhere is the path, as a spec has it, to which the list's own links lead; "" = they
	// lead to the list's path.
	elsewhere string
	told      map[string]string // what other pages show of a member of the answer, by its dotted name
	records   map[string]bool   // the paths of the records that lists before this one have, by their ids
	tries     int
	failed    error // why nothing more can be asked
}

// seen is an answer that was read.
type seen struct {
	status int
	header http.Header
	body   *openapi.Value
}

// get asks, and reads what has status 200.
func (l *liveList) get(ctx context.Context, at *url.URL) (*seen, error) {
	s, err := l.any(ctx, at)
	if err == nil && s.status != http.StatusOK {
		err = fmt.Errorf("status %d", s.status)
	}
	return s, err
}

// any asks, and reads an answer with any status.
func (l *liveList) any(ctx context.Context, at *url.URL) (*seen, error) {
	if l.failed != nil {
		return nil, l.failed
	}
	a, err := l.live.Ask(ctx, at.String())
	if err != nil {
		l.failed = err
		return nil, err
	}
	body, err := openapi.Parse(a.Body)
	if err != nil && a.Status == http.StatusOK {
		return nil, fmt.Errorf("the answer: %w", err)
	}
	return &seen{a.Status, a.Header, body}, nil
}

// below is the path of something below the list.
func (l *liveList) below(name string) string {
	return strings.TrimSuffix(l.path(l.at), "/") + "/" + name
}

// look asks for the list, then finds out how it goes on, and for one record.
func (l *liveList) look(ctx context.Context) (err error) {
	l.note(l.at)
	if err := l.first(ctx); err != nil {
		return err
	}
	for _, link := range l.links(l.answer) {
		l.note(link)
	}
	l.count()
	op, err := l.read(l.answer)
	if err != nil {
		return err
	}
	env, ok := rowsOf(op)
	switch {
	case ok && len(at(l.answer.body, env.key).Items) > 0:
	case !ok && isRow(op.Answer) && !hasEmpty(l.answer.body, 0):
		return nil // one object
	case hasEmpty(l.answer.body, 0):
		return fmt.Errorf("the list is empty, so that nothing can be told from it: give one that has records")
	default:
		return fmt.Errorf("the answer has no array of objects")
	}
	rows := at(l.answer.body, env.key)
	for _, row := range rows.Items {
		l.records[l.recordURL(l.idOf(row)).EscapedPath()] = true
	}
	l.goOn(ctx, op, &env, rows)
	l.findFilters(ctx, &env, rows)
	l.findOne(ctx, rows)
	return l.failed
}

// hasEmpty reports whether a value is an empty array, or an object with one.
func hasEmpty(v *openapi.Value, depth int) bool {
	if v == nil || v.Kind == openapi.Array {
		return v != nil && len(v.Items) == 0
	}
	inside := func(one *openapi.Value) bool { return hasEmpty(one, depth+1) }
	return v.Kind == openapi.Object && depth < 3 && slices.ContainsFunc(v.Items, inside)
}

// first asks for the list without a size, to see how many rows a page has then, and with it
// where that is refused.
func (l *liveList) first(ctx context.Context) (err error) {
	given, query := *l.at, l.at.Query()
	for i, p := range l.params {
		if is(p.name, sizeNames...) {
			l.params[i].value = &openapi.Value{} // known when the page is a full one
			query.Del(p.name)
			l.at.RawQuery = query.Encode()
		}
	}
	if l.answer, err = l.get(ctx, l.at); err != nil && l.at.RawQuery != given.RawQuery {
		l.at = &given
		l.answer, err = l.get(ctx, l.at)
	}
	return err
}

// count finds out from which number pages count: the address names one, or a link names the
// second.
func (l *liveList) count() {
	for i, p := range l.params {
		if !is(p.name, numberNames...) || p.value.Kind != openapi.Number {
			continue
		}
		n, _ := strconv.Atoi(p.value.Text)
		if !l.at.Query().Has(p.name) {
			n--
		}
		if l.params[i].first = ""; n == 0 || n == 1 {
			l.params[i].first = strconv.Itoa(n)
		}
	}
}

// at is what a value has at a dotted name.
func at(v *openapi.Value, dotted string) *openapi.Value {
	for dotted != "" {
		if whole := v.Get(dotted); whole != nil {
			return whole
		}
		part, rest, _ := strings.Cut(dotted, ".")
		v, dotted = v.Get(part), rest
	}
	return v
}

// note remembers the parameters of an address.
func (l *liveList) note(at *url.URL) {
	query := at.Query()
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for name := range query {
			if !yield(name) {
				return
			}
		}
	}) {
		l.add(name, query.Get(name))
	}
}

func (l *liveList) add(name, value string) {
	if slices.ContainsFunc(l.params, func(p liveParam) bool { return p.name == name }) {
		return
	}
	v := kindOf(value)
	if is(name, tokenNames...) && !is(name, slices.Concat(numberNames, offsetNames)...) {
		v.Kind = openapi.String // a token, though it has digits alone
	}
	l.params = append(l.params, liveParam{name: name, value: v, in: "query"})
}

var linkTarget = regexp.MustCompile(`<([^>]*)>`)

// links are the addresses that an answer has beside its rows, of this list. Their host may be another: an API
// behind a mirror writes its own.
func (l *liveList) links(s *seen) (all []*url.URL) {
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
			if one.Kind == openapi.String && strings.Contains(one.Text, "?") && has(name, "next", "first", "last", "prev", "previous", "self") {
				texts = append(texts, one.Text)
			} else if depth < 2 {
				walk(one, name, depth+1)
			}
		})
	}
	walk(s.body, "", 0)
	for _, text := range texts {
		to, err := l.at.Parse(text)
		switch {
		case err != nil:
		case to.Path == l.at.Path, to.Host != l.at.Host && lastName(to.Path) == lastName(l.at.Path):
			all = append(all, to)
		case lastName(to.Path) == lastName(l.at.Path) && len(to.Query()) > 0:
			all, l.elsewhere = append(all, to), withVariables(to.EscapedPath())
		}
	}
	return all
}

// nowhere is no record's id.
const nowhere = "no-such-record"

// otherNames name a record in its path where its id does not.
var otherNames = []string{"iid", "number", "name", "slug"}

// findOne asks for the first record by its id, else by another name, and for one that does not exist.
func (l *liveList) findOne(ctx context.Context, rows *openapi.Value) {
	first := rows.Items[0]
	field, id := l.idIn(first)
	for _, name := range append([]string{field}, otherNames...) {
		value := first.Of(name)
		if value == "" || l.one != nil {
			continue
		}
		isOne := func(v *openapi.Value) bool { return l.idOf(v) == id && v.Of(name) == value }
		one, err := l.get(ctx, l.recordURL(value))
		if err == nil && one.body.Kind == openapi.Object && (isOne(one.body) || slices.ContainsFunc(one.body.Items, isOne)) {
			if l.one, l.oneBy = one, name; name == field && plain(field) != "key" {
				l.oneBy = "id"
			}
		}
	}
	if l.one == nil {
		return
	}
	if none, err := l.any(ctx, l.recordURL(nowhere)); err == nil && none.status >= 400 && none.body != nil {
		l.none = none
	}
}

// recordURL returns the address of what lies below the list by a name.
func (l *liveList) recordURL(name string) *url.URL {
	to := *l.at
	to.RawPath = strings.TrimSuffix(l.at.EscapedPath(), "/") + "/" + url.PathEscape(name)
	to.Path, to.RawQuery = strings.TrimSuffix(l.at.Path, "/")+"/"+name, ""
	return &to
}

// idOf is the id of a record, by the usual names; "" = none.
func (l *liveList) idOf(record *openapi.Value) string {
	_, id := l.idIn(record)
	return id
}

// idIn returns the field of a record's id, and the id. A key counts where nothing else does: some
// APIs name records so.
func (l *liveList) idIn(record *openapi.Value) (field, id string) {
	for _, name := range append(slices.Clone(idFields), plain(singular(lastName(l.at.Path)))+"id", "key") {
		record.Each(func(key string, v *openapi.Value) {
			if id == "" && plain(key) == plain(name) && (v.Kind == openapi.String || v.Kind == openapi.Number) {
				field, id = key, v.Text
			}
		})
	}
	return field, id
}
