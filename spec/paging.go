// Paging: how lists are split into pages, and which request leads to the next page.

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

// Paging says how lists are split into pages, and what a list answer contains in addition to its records.
type Paging struct {
	paging.Rules `yaml:",inline"`
	Envelope     []*Field `yaml:"envelope"` // the fields of a list answer outside the records
}

// check completes and checks one way of paging. name is its place in the spec.
func (p *Paging) check(name string) error {
	if err := p.Check(); err != nil {
		return fmt.Errorf("%s.%w", name, err)
	}
	return checkFields(p.Envelope)
}

// TokenForm returns the form of the page tokens of a kind's lists. A nil kind has ids of one part.
func (p *Paging) TokenForm(k *Kind) paging.TokenForm {
	return p.Rules.TokenForm(k == nil || len(k.ID) == 1)
}

// ListAnswer is an answer to a list request, as its paging style reads it.
type ListAnswer struct {
	Target *Target
	Header http.Header
	Body   []byte
	Doc    jsonspan.Value   // the outermost value of Body
	Array  jsonspan.Value   // the array with the rows; None if Body is the array or if its place is not known
	Next   jsonspan.Value   // the value in Body at the place Paging.Next, if it was already found
	Rows   []understudy.Row // the records of Body
	Count  int              // the number of rows, whether they are records or not
	// Local converts a link to a host of the API to a path.
	Local func(link string) string
}

// CountRows returns how many rows a page has, whether they are records or not. ok is false if its body contains
// no list.
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

// IsEmptyList reports whether a body without an array at the list's key is a list answer without rows. That is so if
// the key has the value null, or if all members are known from the spec. It is false for a body that may be an error.
func (p *Paging) IsEmptyList(key string, body []byte, doc jsonspan.Value) bool {
	if key == "" || doc.Kind != jsonspan.Object {
		return key == "" && doc.Kind == jsonspan.Null
	}
	if rows, there := jsonspan.Find(body, doc, key); there {
		return rows.Kind == jsonspan.Null && !paging.CanBeError(body, doc)
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
	return members > 0 && members == known && !paging.CanBeError(body, doc)
}

// FindNextPage returns the key of the next page, or zero for the last page, and what the answer says about the
// list's end (understudy.EndFields). The error says why the next page cannot be requested.
func (a *ListAnswer) FindNextPage() (next understudy.Key, end understudy.Query, err error) {
	if a.Count == 0 {
		if what := paging.FindError(a.Body, a.Doc); what != "" {
			return next, nil, fmt.Errorf("%s%q: the answer reports an error (%s)", understudy.NotStoredNoRows, a.Target.List.Key, what)
		}
	}
	p := a.Target.Spec.PagingOf(a.Target.List)
	body, doc, at := a.stripRows()
	to, err := p.FindNext(&paging.Answer{Query: a.Target.Query, Header: a.Header, Body: body, Doc: doc, Next: at,
		Rows: a.Rows, Count: a.Count})
	switch {
	case err != nil:
	case to.Link != "":
		var link understudy.Key
		if link, err = a.resolveLink(to.Link); err == nil {
			next, err = a.checkNext(link)
		}
	case to.Param.Name != "":
		next, err = a.buildNextKey(p, to.Param)
	case to.Open.Kind == understudy.OpenUnlinked && a.Target.List.IsComplete():
		to.Open = understudy.OpenEnd{}
	}
	return next, understudy.EndFields(to.Open, to.Total, to.Pages, to.Missing), err
}

// stripRows returns a short form of the body, because the links to other pages are read several times. If the rows are
// nearly all of the body, they are left out. next is the place of the value at Paging.Next in the short form.
func (a *ListAnswer) stripRows() (body []byte, doc, next jsonspan.Value) {
	doc, next = a.Doc, a.Next
	if a.Array.Kind != jsonspan.Array || (a.Array.End-a.Array.Start)*8 < len(a.Body)*7 || paging.MustReadArray(a.Target.List.Key) {
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

// RelatedPages returns the paths and queries of other pages, taken from the links in the answer's header,
// without the next page. The names are those of paging.RelationField. The queries are as the upstream wrote
// them, because a client reads page numbers there. A link that leads to no list of the kind is left out.
func (a *ListAnswer) RelatedPages() (q understudy.Query) {
	if a.Target.Spec.PagingOf(a.Target.List).Style != "header" {
		return nil
	}
	for _, relation := range append([]string{"next"}, paging.Relations...) {
		link, params := paging.LinkAndParams(a.Header["Link"], relation)
		if params != "" {
			q = append(q, understudy.Param{Name: paging.ParamsField(relation), Value: params})
		}
		if link == "" || relation == "next" {
			continue
		}
		to, err := a.resolveLink(link)
		if err != nil {
			continue
		}
		link, _, _ = strings.Cut(link, "#")
		_, raw, _ := strings.Cut(link, "?")
		asked, _ := understudy.ParseQuery(raw) // no error is possible, because resolveLink has parsed the text
		uri := to.Path()
		if asked = a.Target.Spec.removeCredentials(asked); len(asked) > 0 {
			uri += "?" + asked.String()
		}
		q = append(q, understudy.Param{Name: paging.RelationField(relation), Value: uri})
	}
	return q
}

var errSamePage = errors.New("the link to the next page leads to this page again")

// resolveLink returns the key of a link. The link's host is never used, so a link cannot send requests or the
// credential elsewhere.
func (a *ListAnswer) resolveLink(link string) (understudy.Key, error) {
	t := a.Target
	link, err := t.resolvePath(a.Local(link))
	if err != nil {
		return understudy.Key{}, err
	}
	next, err := t.Spec.ResolveLink(t.Key.Source, link)
	if err != nil {
		return understudy.Key{}, fmt.Errorf("link %q: %w", understudy.Clip(link), err)
	}
	if next.List == nil || next.Kind != t.Kind {
		return understudy.Key{}, fmt.Errorf("the link %q does not lead to a list of %s", understudy.Clip(link), t.Kind.Name)
	}
	// If the page number identifies the page, the next request keeps the path of this one. Pages of one list
	// under two paths would not be recognized as parts of one list.
	paged := t.Spec.PagingOf(t.List)
	if next.Key.Path() != t.Key.Path() && next.List.Shape == t.List.Shape && paged.HasNextInHeader() && paged.IsSliding() {
		if next, err = t.Spec.Resolve(t.Key.Source, t.Key.Path(), next.Query.String()); err != nil {
			return understudy.Key{}, fmt.Errorf("link %q: %w", understudy.Clip(link), err)
		}
	}
	return next.Key, nil
}

// resolvePath returns a link with an absolute path. A relative link is resolved against the request's path (RFC 3986).
func (t *Target) resolvePath(link string) (string, error) {
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

// buildNextKey returns the key of the same list with param in place of all parameters that say where a page begins.
func (a *ListAnswer) buildNextKey(p *Paging, param understudy.Param) (understudy.Key, error) {
	t := a.Target
	query := t.Query.Remove(func(q understudy.Param) bool { return p.IsPosition(q.Name) })
	next, err := t.Spec.Resolve(t.Key.Source, t.Key.Path(), append(query, param).String())
	if err != nil {
		return understudy.Key{}, fmt.Errorf("the next page: %w", err)
	}
	return a.checkNext(next.Key)
}

// checkNext returns the key of the next page if it is not this page again. A page without rows that links to
// itself is the last page.
func (a *ListAnswer) checkNext(next understudy.Key) (understudy.Key, error) {
	switch {
	case next != a.Target.Key:
		return next, nil
	case a.Count > 0:
		return understudy.Key{}, errSamePage
	}
	return understudy.Key{}, nil
}

// SlidingList returns a name for the list of a page that is identified by number or offset. All pages of the
// list have the same name. For any other request it returns "".
func (t *Target) SlidingList() string {
	if t.List == nil || !t.Spec.PagingOf(t.List).IsSliding() {
		return ""
	}
	return t.Key.Source + " " + t.Key.Path() + "?" + t.Spec.PagingOf(t.List).ListQuery(t.Query).String() + " " + t.Header.String()
}

// CursorParam returns the parameter with the id of the record after which a page continues. It returns "" if
// the list pages in another way.
func (t *Target) CursorParam() string {
	if t.List == nil {
		return ""
	}
	rules := t.Spec.PagingOf(t.List)
	if rules.Style != "cursor" || rules.Token != "{id}" {
		return ""
	}
	return rules.Cursor
}

// WithParam returns the target with another value of one of its parameters.
func (t *Target) WithParam(name, value string) (*Target, error) {
	query := t.Query.Remove(func(p understudy.Param) bool { return p.Name == name })
	out, err := t.Spec.Resolve(t.Key.Source, t.Key.Path(), append(query, understudy.Param{Name: name, Value: value}).String())
	if err != nil {
		return nil, err
	}
	return out.WithHeader(t.Header)
}

// OverlappingPage returns the page that begins with the last row of this page, or slightly before it
// (paging.Rules.Overlapping). It returns nil if there is none. This page is identified by number or offset and
// has the given number of rows. first is the page with which the walk began.
func (t *Target) OverlappingPage(first *Target, rows int) *Target {
	if t.SlidingList() == "" {
		return nil
	}
	return t.slidingTarget(t.Spec.PagingOf(t.List).OverlappingQuery(first.Query, t.Query, rows))
}

// PageBeyond returns the page after this one, which has the given number of rows and no link to a next page. It
// returns nil if pages are not identified by number or offset.
func (t *Target) PageBeyond(rows int) *Target {
	if t.SlidingList() == "" {
		return nil
	}
	return t.slidingTarget(t.Spec.PagingOf(t.List).QueryBeyond(t.Query, rows))
}

// IsPagedByLastID reports whether the page continues after a record's id and no answer says whether another
// page follows.
func (t *Target) IsPagedByLastID() bool {
	return t.List != nil && t.CursorParam() != "" && t.Spec.PagingOf(t.List).Next == ""
}

// IsPagedByOffset reports whether the page is identified by the number of rows before it.
func (t *Target) IsPagedByOffset() bool {
	return t.List != nil && t.Spec.PagingOf(t.List).Style == "offset"
}

// IsEndUnstated reports whether an answer to a page by number or offset says nothing about the end of the list,
// so that only its rows tell.
func (t *Target) IsEndUnstated(page *understudy.Page) bool {
	if t.SlidingList() == "" {
		return false
	}
	next := t.Spec.PagingOf(t.List).Next
	return next == "" || slices.Contains(page.MissingPlaces(), next)
}

// IsGuessed reports whether no answer announced the page: it is requested by number or offset where the list
// may already have ended.
func (t *Target) IsGuessed() bool {
	return t.SlidingList() != "" && t.Spec.PagingOf(t.List).IsGuessing()
}

// PreviousPage returns the page before a page by number or offset, or nil.
func (t *Target) PreviousPage() *Target {
	if t.SlidingList() == "" {
		return nil
	}
	return t.slidingTarget(t.Spec.PagingOf(t.List).PreviousQuery(t.Query))
}

// slidingTarget returns the target of the same list with another query, or nil if ok is false or the page is this one.
func (t *Target) slidingTarget(query understudy.Query, ok bool) *Target {
	if !ok {
		return nil
	}
	to, err := t.Spec.Resolve(t.Key.Source, t.Key.Path(), query.String())
	if err == nil {
		to, err = to.WithHeader(t.Header)
	}
	if err != nil || to.Key == t.Key {
		return nil
	}
	return to
}
