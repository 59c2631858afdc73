// Live: a document made of a few answers of an API, and of what it answers when its lists
// are asked to go on.

package infer

import (
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

// Answer is an answer of the API with status 200.
type Answer struct {
	Header http.Header
	Body   []byte
}

// Ask sends one GET. An answer with another status than 200 is an error.
type Ask func(ctx context.Context, address string) (*Answer, error)

// mostTries bounds the requests that find out how one list goes on.
const mostTries = 12

// FromAnswers draws a spec from what the lists at the addresses answer. A path segment that
// is the user becomes a variable. The addresses are of one API; auth is the style in which
// ask names its caller, and user its user, if there is one.
func FromAnswers(ctx context.Context, addresses []string, auth, user string, ask Ask) (*Draft, error) {
	doc := object().Set("openapi", openapi.Text("3.1.0"))
	paths := object()
	host := ""
	for _, address := range addresses {
		at, err := url.Parse(address)
		if err != nil || at.Host == "" {
			return nil, fmt.Errorf("%q: want the URL of a list", address)
		}
		if host == "" {
			host = at.Scheme + "://" + at.Host
		}
		if at.Scheme+"://"+at.Host != host {
			return nil, fmt.Errorf("%s is another API than %s: ask for one at a time", address, host)
		}
		l := &liveList{at: at, ask: ask, user: user}
		if err := l.look(ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", address, err)
		}
		paths.Set(l.path(at), l.operation(l.answer, l.params))
		if l.one != nil {
			paths.Set(l.path(at)+"/{id}", l.operation(l.one, []liveParam{{name: "id", value: openapi.Text("x"), in: "path"}}))
		}
	}
	doc.Set("info", object().Set("title", openapi.Text(host[strings.Index(host, "://")+3:])))
	doc.Set("servers", array(object().Set("url", openapi.Text(host))))
	read, err := openapi.New(doc.Set("paths", paths))
	if err != nil {
		return nil, err
	}
	for one := range strings.SplitSeq(auth, " + ") {
		scheme := openapi.Scheme{Type: one}
		if in, name, ok := strings.Cut(one, " "); ok {
			scheme = openapi.Scheme{Type: "key", In: in, Name: name}
		}
		if one != "none" && one != "" {
			read.Schemes, read.Together = append(read.Schemes, scheme), append(read.Together, scheme)
		}
	}
	return FromDocument(read, strings.Join(addresses, ", "))
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
	at     *url.URL
	ask    Ask
	user   string
	answer *seen
	one    *seen // one record, by its id
	params []liveParam
	tries  int
}

// seen is an answer that was read.
type seen struct {
	header http.Header
	body   *openapi.Value
}

func (l *liveList) get(ctx context.Context, at *url.URL) (*seen, error) {
	a, err := l.ask(ctx, at.String())
	if err != nil {
		return nil, err
	}
	body, err := openapi.Parse(a.Body)
	if err != nil {
		return nil, fmt.Errorf("the answer: %w", err)
	}
	return &seen{a.Header, body}, nil
}

// path is an address's path as a spec has it.
func (l *liveList) path(at *url.URL) string {
	all := strings.Split(at.EscapedPath(), "/")
	for i, s := range all {
		if s == l.user && s != "" {
			all[i] = "{user}"
		}
	}
	return strings.Join(all, "/")
}

// look asks for the list, then finds out how it goes on, and for one record.
func (l *liveList) look(ctx context.Context) (err error) {
	if l.answer, err = l.get(ctx, l.at); err != nil {
		return err
	}
	l.note(l.at)
	for _, link := range l.links(l.answer) {
		l.note(link)
	}
	l.count()
	op, err := l.read(l.answer)
	if err != nil {
		return err
	}
	env, ok := rowsOf(op)
	if !ok {
		return fmt.Errorf("the answer has no array of objects")
	}
	rows := at(l.answer.body, env.key)
	if len(rows.Items) == 0 {
		return fmt.Errorf("the list is empty: nothing can be told from it")
	}
	l.goOn(ctx, op, &env, rows)
	l.findOne(ctx, &env, rows)
	return nil
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
	for part := range strings.SplitSeq(dotted, ".") {
		if part != "" {
			v = v.Get(part)
		}
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
	v := openapi.Text(value)
	if _, err := strconv.Atoi(value); err == nil {
		v.Kind = openapi.Number
	}
	l.params = append(l.params, liveParam{name: name, value: v, in: "query"})
}

var linkTarget = regexp.MustCompile(`<([^>]*)>`)

// links are the addresses that an answer has beside its rows, of this list.
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
		if to, err := l.at.Parse(text); err == nil && to.Path == l.at.Path {
			all = append(all, to)
		}
	}
	return all
}

// goOn finds the parameter that leads to the next page, where no link shows it: it asks for
// the list with the usual ones, until the answer has other rows.
func (l *liveList) goOn(ctx context.Context, op *openapi.Operation, e *envelope, rows *openapi.Value) {
	c := pagingOf(op, e)
	if c.Style != "none" && !c.hinted {
		return
	}
	var names []string
	value := ""
	token := e.find("string", nextTokenNames...)
	last := rows.Items[len(rows.Items)-1]
	switch {
	case l.answer.header.Get(tokenHeader(op.Headers)) != "":
		names, value = spellings(tokenNames, l.params), l.answer.header.Get(tokenHeader(op.Headers))
	case token != nil && at(l.answer.body, token.path).Text != "":
		names, value = spellings(tokenNames, l.params), at(l.answer.body, token.path).Text
	case e.find("boolean", moreNames...) != nil && l.idOf(last) != "":
		names, value = []string{"starting_after", "after", "after_id", "startingAfter", "since_id"}, l.idOf(last)
	default:
		if len(rows.Items) < 2 {
			return
		}
		if l.leads(ctx, rows, "page", "2") || l.leads(ctx, rows, "offset", strconv.Itoa(len(rows.Items))) ||
			l.leads(ctx, rows, "skip", strconv.Itoa(len(rows.Items))) {
			l.findSize(ctx, e, rows)
		}
		return
	}
	for _, name := range names {
		if l.leads(ctx, rows, name, value) {
			return
		}
	}
}

// spellings are the usual names of a token's parameter, those that were seen first.
func spellings(plainNames []string, params []liveParam) (all []string) {
	for _, p := range params {
		if slices.Contains(plainNames, plain(p.name)) {
			all = append(all, p.name)
		}
	}
	return append(all, "cursor", "page_token", "pageToken", "next_token", "nextToken", "token", "after", "continuation_token",
		"starting_after", "page")
}

// leads asks for the list with one more parameter, and notes it when the rows are others.
func (l *liveList) leads(ctx context.Context, rows *openapi.Value, name, value string) bool {
	if l.tries++; l.tries > mostTries {
		return false
	}
	query := l.at.Query()
	query.Set(name, value)
	to := *l.at
	to.RawQuery = query.Encode()
	next, err := l.get(ctx, &to)
	if err != nil {
		return false
	}
	op, err := l.read(next)
	if err != nil {
		return false
	}
	e, ok := rowsOf(op)
	if !ok {
		return false
	}
	others := at(next.body, e.key)
	if len(others.Items) == 0 || l.idOf(others.Items[0]) == "" || l.idOf(others.Items[0]) == l.idOf(rows.Items[0]) {
		return false
	}
	first := ""
	if is(name, numberNames...) && value == "2" {
		first = "1"
	}
	l.params = append(l.params, liveParam{name: name, value: kindOf(value), in: "query", first: first})
	return true
}

func kindOf(value string) *openapi.Value {
	v := openapi.Text(value)
	if _, err := strconv.Atoi(value); err == nil {
		v.Kind = openapi.Number
	}
	return v
}

// findSize finds the parameter of a page's size.
func (l *liveList) findSize(ctx context.Context, e *envelope, rows *openapi.Value) {
	for _, name := range []string{"per_page", "limit", "page_size", "pageSize"} {
		if l.tries++; l.tries > mostTries {
			return
		}
		query := l.at.Query()
		query.Set(name, "1")
		to := *l.at
		to.RawQuery = query.Encode()
		if got, err := l.get(ctx, &to); err == nil {
			if less := at(got.body, e.key); less != nil && len(less.Items) == 1 && len(rows.Items) > 1 {
				l.params = append(l.params, liveParam{name: name, value: kindOf(strconv.Itoa(len(rows.Items))), in: "query"})
				return
			}
		}
	}
}

// findOne asks for the first record by its id.
func (l *liveList) findOne(ctx context.Context, _ *envelope, rows *openapi.Value) {
	id := l.idOf(rows.Items[0])
	if id == "" {
		return
	}
	to := *l.at
	to.Path, to.RawPath, to.RawQuery = strings.TrimSuffix(l.at.Path, "/")+"/"+id, "", ""
	if one, err := l.get(ctx, &to); err == nil && l.idOf(one.body) == id {
		l.one = one
	}
}

// idOf is the id of a record, by the usual names; "" = none.
func (l *liveList) idOf(record *openapi.Value) (id string) {
	for _, name := range append(slices.Clone(idFields), plain(singular(lastName(l.at.Path)))+"id") {
		record.Each(func(key string, v *openapi.Value) {
			if id == "" && plain(key) == plain(name) && (v.Kind == openapi.String || v.Kind == openapi.Number) {
				id = v.Text
			}
		})
	}
	return id
}

// read is an answer as an operation of a document.
func (l *liveList) read(s *seen) (*openapi.Operation, error) {
	doc, err := openapi.New(object().Set("openapi", openapi.Text("3.1.0")).
		Set("paths", object().Set(l.path(l.at), l.operation(s, l.params))))
	if err != nil {
		return nil, err
	}
	return doc.Reads[0], nil
}

// operation is an answer as a path of a document.
func (l *liveList) operation(s *seen, params []liveParam) *openapi.Value {
	all := array()
	for _, p := range params {
		schema := schemaOf(p.value, 0)
		if is(p.name, sizeNames...) {
			schema.Set("default", p.value)
		} else if p.first != "" {
			schema.Set("default", &openapi.Value{Kind: openapi.Number, Text: p.first})
		}
		all.Items = append(all.Items, object().Set("name", openapi.Text(p.name)).Set("in", openapi.Text(p.in)).Set("schema", schema))
	}
	headers := object()
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for name := range s.header {
			if !yield(name) {
				return
			}
		}
	}) {
		headers.Set(name, object())
	}
	answer := object().Set("headers", headers).Set("content", object().Set("application/json",
		object().Set("schema", schemaOf(s.body, 0)).Set("example", s.body)))
	return object().Set("get", object().Set("parameters", all).Set("responses", object().Set("200", answer)))
}

// Bounds of what a schema is made of.
const (
	maxRows    = 50
	maxLooking = 12
)

// schemaOf is a schema of a value: that of an array has the members of all its first rows.
func schemaOf(v *openapi.Value, depth int) *openapi.Value {
	s := object()
	if v == nil || depth > maxLooking {
		return s
	}
	switch v.Kind {
	case openapi.Object:
		members := object()
		v.Each(func(name string, one *openapi.Value) { members.Set(name, schemaOf(one, depth+1)) })
		return s.Set("type", openapi.Text("object")).Set("properties", members)
	case openapi.Array:
		var items *openapi.Value
		for _, one := range v.Items[:min(maxRows, len(v.Items))] {
			items = merge(items, schemaOf(one, depth+1))
		}
		s.Set("type", openapi.Text("array"))
		if items != nil {
			s.Set("items", items)
		}
		return s
	case openapi.Number:
		typ := "integer"
		if strings.ContainsAny(v.Text, ".eE") {
			typ = "number"
		}
		return s.Set("type", openapi.Text(typ)).Set("example", v)
	case openapi.Bool:
		return s.Set("type", openapi.Text("boolean"))
	case openapi.String:
		return s.Set("type", openapi.Text("string")).Set("example", v)
	}
	return s // null: anything
}

// merge is the schema of values that either schema describes.
func merge(a, b *openapi.Value) *openapi.Value {
	switch {
	case a == nil || a.Of("type") == "":
		return b
	case b == nil || b.Of("type") == "" || a.Of("type") != b.Of("type"):
		if b != nil && a.Of("type") == "integer" && b.Of("type") == "number" {
			return b
		}
		return a
	}
	switch a.Of("type") {
	case "object":
		x, y := a.Get("properties"), b.Get("properties")
		members := object()
		x.Each(func(name string, one *openapi.Value) {
			if other := y.Get(name); other != nil {
				one = merge(one, other)
			}
			members.Set(name, one)
		})
		y.Each(func(name string, one *openapi.Value) {
			if x.Get(name) == nil {
				members.Set(name, one)
			}
		})
		return object().Set("type", openapi.Text("object")).Set("properties", members)
	case "array":
		out := object().Set("type", openapi.Text("array"))
		if items := merge(a.Get("items"), b.Get("items")); items != nil {
			out.Set("items", items)
		}
		return out
	}
	return a
}
