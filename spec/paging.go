// Paging: how lists are cut into pages, and what request leads to the next one.

package spec

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"understudy"
	"understudy/kit/jsonspan"
	"understudy/spec/paging"
)

// Paging says how lists are cut into pages, and what a list answer has beside its records.
type Paging struct {
	paging.Rules `yaml:",inline"`
	Envelope     []*Field `yaml:"envelope"` // fields of a list answer beside the records
}

// check completes and checks one way of paging; name is its place in the spec.
func (p *Paging) check(name string) error {
	if err := p.Check(); err != nil {
		return fmt.Errorf("%s.%w", name, err)
	}
	return checkFields(p.Envelope)
}

// TokenForm is the form of the page tokens of a kind's lists; a nil kind has ids
// of one part.
func (p *Paging) TokenForm(k *Kind) paging.TokenForm {
	return p.Rules.TokenForm(k == nil || len(k.ID) == 1)
}

// ListAnswer is an answer to a list request, as its paging style reads it.
type ListAnswer struct {
	Target *Target
	Header http.Header
	Body   []byte
	Doc    jsonspan.Value   // all of Body
	Array  jsonspan.Value   // that holds the rows; None: it is Body, or it is not known where they are
	Next   jsonspan.Value   // the value of Body at Paging.Next, where it was found already
	Rows   []understudy.Row // the records of Body
	Count  int              // how many rows it has, records or not
	// Local makes a link to a host of the API a path.
	Local func(link string) string
}

// CountRows returns how many rows a page has, records or not; false where its body shows no list.
func (l *List) CountRows(p *understudy.Page) (n int, ok bool) {
	if len(p.Rows) > 0 {
		return len(p.Rows), true
	}
	doc, err := jsonspan.Parse(p.Body)
	if err == nil && l.Key != "" {
		doc, _ = jsonspan.Find(p.Body, doc, l.Key)
	}
	if err != nil || doc.Kind != jsonspan.Array {
		return 0, false
	}
	jsonspan.VisitElements(p.Body, doc, func(jsonspan.Value) bool { n++; return true })
	return n, true
}

// ShowsNoRows reports whether a body without an array at a list's key is an answer of the list that
// has no rows: null stands there, or there are only members that the spec names. One that may be
// an error is not.
func (p *Paging) ShowsNoRows(key string, body []byte, doc jsonspan.Value) bool {
	if key == "" || doc.Kind != jsonspan.Object {
		return key == "" && doc.Kind == jsonspan.Null
	}
	if rows, there := jsonspan.Find(body, doc, key); there {
		return rows.Kind == jsonspan.Null && !paging.SaysError(body, doc)
	}
	places := []string{p.Next, p.More, p.Total}
	for _, f := range p.Envelope {
		places = append(places, f.Name)
	}
	members, known := 0, 0
	jsonspan.VisitMembers(body, doc, func(raw []byte, _ jsonspan.Value) bool {
		name := jsonspan.Name(raw)
		members++
		if slices.ContainsFunc(places, func(place string) bool { return place == name || strings.HasPrefix(place, name+".") }) {
			known++
		}
		return true
	})
	return members > 0 && members == known && !paging.SaysError(body, doc)
}

// NextPage returns the page after the answer, zero when the answer is the last page, and what
// the answer says of the list's end (understudy.EndFields). The error says why a page that
// has a successor has none that can be asked for.
func (a *ListAnswer) NextPage() (next understudy.Key, end understudy.Query, err error) {
	if a.Count == 0 {
		if what := paging.Refuses(a.Body, a.Doc); what != "" {
			return next, nil, fmt.Errorf("%s%q: the answer says an error (%s)", understudy.NotStoredNoRows, a.Target.List.Key, what)
		}
	}
	p := a.Target.Spec.PagingOf(a.Target.List)
	body, doc, at := a.withoutRows()
	to, err := p.After(&paging.Answer{Query: a.Target.Query, Header: a.Header, Body: body, Doc: doc, Next: at, Rows: a.Rows, Count: a.Count})
	switch {
	case err != nil:
	case to.Link != "":
		next, err = a.follow(to.Link)
	case to.Param.Name != "":
		next, err = a.nextQuery(p, to.Param)
	case to.Open.Kind == understudy.OpenAlone && a.Target.List.Shows():
		to.Open = understudy.OpenEnd{}
	}
	return next, understudy.EndFields(to.Open, to.Total, to.Pages, to.Lacks), err
}

// withoutRows returns the body without its rows, where they are nearly all of it, and where the value at Paging.Next
// stands there. What leads to other pages is read several times.
func (a *ListAnswer) withoutRows() (body []byte, doc, next jsonspan.Value) {
	doc, next = a.Doc, a.Next
	if a.Array.Kind != jsonspan.Array || (a.Array.End-a.Array.Start)*8 < len(a.Body)*7 || paging.ReadsArray(a.Target.List.Key) {
		return a.Body, doc, next
	}
	rows := "[]"
	if a.Count > 0 {
		rows = "[0]"
	}
	less := a.Array.End - a.Array.Start - len(rows)
	doc.End -= less
	if next.Start > a.Array.Start {
		next.Start, next.End = next.Start-less, next.End-less
	}
	return slices.Concat(a.Body[:a.Array.Start], []byte(rows), a.Body[a.Array.End:]), doc, next
}

// Related says where the links of the answer's header lead, beside the next page: the
// paths and queries of other pages of the list, by paging.RelationField. The queries are as
// upstream wrote them: a client reads the number of the page there, of the first one too. A
// link that leads to no list of the kind is left out.
func (a *ListAnswer) Related() (q understudy.Query) {
	if a.Target.Spec.PagingOf(a.Target.List).Style != "header" {
		return nil
	}
	for _, relation := range append([]string{"next"}, paging.Relations...) {
		link, params := paging.Linked(a.Header["Link"], relation)
		if params != "" {
			q = append(q, understudy.Param{Name: paging.ParamsField(relation), Value: params})
		}
		if link == "" || relation == "next" {
			continue
		}
		to, err := a.leads(link)
		if err != nil {
			continue
		}
		link, _, _ = strings.Cut(link, "#")
		_, raw, _ := strings.Cut(link, "?")
		asked, _ := understudy.ParseQuery(raw) // read by leads
		uri := to.Path()
		if asked = a.Target.Spec.withoutKeys(asked); len(asked) > 0 {
			uri += "?" + asked.String()
		}
		q = append(q, understudy.Param{Name: paging.RelationField(relation), Value: uri})
	}
	return q
}

var errItself = errors.New("the next page is this page again")

// follow returns the key of the next page.
func (a *ListAnswer) follow(link string) (understudy.Key, error) {
	next, err := a.leads(link)
	if err != nil {
		return understudy.Key{}, err
	}
	return a.other(next)
}

// leads is the key a link leads to. Its host is never looked at, so a link
// cannot lead requests, or the credential, elsewhere.
func (a *ListAnswer) leads(link string) (understudy.Key, error) {
	t := a.Target
	link, err := t.absolutePath(a.Local(link))
	if err != nil {
		return understudy.Key{}, err
	}
	next, err := t.Spec.Follow(t.Key.Source, link)
	if err != nil {
		return understudy.Key{}, fmt.Errorf("link %q: %w", understudy.Clip(link), err)
	}
	if next.List == nil || next.Kind != t.Kind {
		return understudy.Key{}, fmt.Errorf("link %q leads to no list of %s", understudy.Clip(link), t.Kind.Name)
	}
	// Where the number of a page says which it is, our own link stays on the path that was
	// asked: pages of one list by two names would not be known to stand together.
	paged := t.Spec.PagingOf(t.List)
	if next.Key.Path() != t.Key.Path() && next.List.Shape == t.List.Shape && paged.InHeader() && paged.Slides() {
		if next, err = t.Spec.Target(t.Key.Source, t.Key.Path(), next.Query.String()); err != nil {
			return understudy.Key{}, fmt.Errorf("link %q: %w", understudy.Clip(link), err)
		}
	}
	return next.Key, nil
}

// absolutePath is a link with a path of its own: a relative one is read as RFC
// 3986 says, from the request's path.
func (t *Target) absolutePath(link string) (string, error) {
	switch {
	case strings.HasPrefix(link, "//"):
		return "x:" + link, nil
	case strings.HasPrefix(link, "?"):
		return t.Key.Path() + link, nil
	case strings.HasPrefix(link, "/"), strings.Contains(link, "://"):
		return link, nil
	}
	base, err := url.Parse(t.Key.URI)
	if err != nil {
		return "", fmt.Errorf("link %q: %w", understudy.Clip(link), err)
	}
	to, err := base.Parse(link)
	if err != nil {
		return "", fmt.Errorf("link %q cannot be read", understudy.Clip(link))
	}
	return to.RequestURI(), nil
}

// nextQuery is the key of the same list with param in place of all parameters
// that say where a page stands.
func (a *ListAnswer) nextQuery(p *Paging, param understudy.Param) (understudy.Key, error) {
	t := a.Target
	query := t.Query.Without(func(q understudy.Param) bool { return p.Position(q.Name) })
	next, err := t.Spec.Target(t.Key.Source, t.Key.Path(), append(query, param).String())
	if err != nil {
		return understudy.Key{}, fmt.Errorf("the next page: %w", err)
	}
	return a.other(next.Key)
}

// other returns a next page that is another one. A page without rows that leads to itself is the
// last one.
func (a *ListAnswer) other(next understudy.Key) (understudy.Key, error) {
	switch {
	case next != a.Target.Key:
		return next, nil
	case a.Count > 0:
		return understudy.Key{}, errItself
	}
	return understudy.Key{}, nil
}

// Sliding is the name of the list that a request's page is cut from by number or offset,
// the same for all its pages; "" for any other request.
func (t *Target) Sliding() string {
	if t.List == nil || !t.Spec.PagingOf(t.List).Slides() {
		return ""
	}
	return t.Key.Source + " " + t.Key.Path() + "?" + t.Spec.PagingOf(t.List).Whole(t.Query).String() + " " + t.Header.String()
}

// After is the parameter with the id of the record that a page of a list goes on after; ""
// when it goes on otherwise, or is the first.
func (t *Target) After() string {
	if t.List == nil {
		return ""
	}
	rules := t.Spec.PagingOf(t.List)
	if rules.Style != "cursor" || rules.Token != "{id}" {
		return ""
	}
	return rules.Cursor
}

// WithParam is the target with another value of a parameter that it has.
func (t *Target) WithParam(name, value string) (*Target, error) {
	query := t.Query.Without(func(p understudy.Param) bool { return p.Name == name })
	out, err := t.Spec.Target(t.Key.Source, t.Key.Path(), append(query, understudy.Param{Name: name, Value: value}).String())
	if err != nil {
		return nil, err
	}
	return out.With(t.Header)
}

// Overlapping is the page that begins with the last row of a page by number or offset
// with so many rows, or a little before it; nil where there is none
// (paging.Rules.Overlapping). first is the page that the walk began with.
func (t *Target) Overlapping(first *Target, rows int) *Target {
	if t.Sliding() == "" {
		return nil
	}
	return t.sliding(t.Spec.PagingOf(t.List).Overlapping(first.Query, t.Query, rows))
}

// Beyond returns the page behind one with so many rows that leads to no other; nil where pages are
// not named by number or offset.
func (t *Target) Beyond(rows int) *Target {
	if t.Sliding() == "" {
		return nil
	}
	return t.sliding(t.Spec.PagingOf(t.List).Beyond(t.Query, rows))
}

// ByLastID reports whether the page goes on after a record, and no answer says whether another one
// follows.
func (t *Target) ByLastID() bool {
	return t.List != nil && t.After() != "" && t.Spec.PagingOf(t.List).Next == ""
}

// ByOffset reports whether the page is named by the number of rows before it.
func (t *Target) ByOffset() bool { return t.List != nil && t.Spec.PagingOf(t.List).Style == "offset" }

// EndUnsaid reports whether an answer to a page by number or offset says nothing of the end of the list:
// only its rows tell.
func (t *Target) EndUnsaid(page *understudy.Page) bool {
	if t.Sliding() == "" {
		return false
	}
	next := t.Spec.PagingOf(t.List).Next
	return next == "" || slices.Contains(page.Lacks(), next)
}

// Guessed reports whether no answer says that the page is there: a page by number or offset is
// asked for where a list may end.
func (t *Target) Guessed() bool { return t.Sliding() != "" && t.Spec.PagingOf(t.List).Guesses() }

// Earlier is the page before one by number or offset; nil where there is none.
func (t *Target) Earlier() *Target {
	if t.Sliding() == "" {
		return nil
	}
	return t.sliding(t.Spec.PagingOf(t.List).Earlier(t.Query))
}

func (t *Target) sliding(query understudy.Query, ok bool) *Target {
	if !ok {
		return nil
	}
	to, err := t.Spec.Target(t.Key.Source, t.Key.Path(), query.String())
	if err == nil {
		to, err = to.With(t.Header)
	}
	if err != nil || to.Key == t.Key {
		return nil
	}
	return to
}
