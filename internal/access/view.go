// View: a page with the hidden parts gone.

package access

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"

	"understudy"
	"understudy/internal/query"
	"understudy/kit/e164"
	"understudy/kit/jsonspan"
	"understudy/kit/lru"
	"understudy/request"
	"understudy/spec"
)

// View is what one role sees of one page. It is shared and never changed.
type View struct {
	Body        []byte // the page's own bytes when Whole
	Whole       bool   // nothing had to be hidden
	ContentType string
	Charset     string   // how a program gets the body (see understudy.Page)
	Sum         [16]byte // the first half of Body's SHA-256: what an ETag may say

	plan *plan // nil: the role sees everything
	kind *spec.Kind
	list bool
	key  string // where the one record stands in Body; "": it is Body
}

// viewKey names a view in memory. A page is named by its bytes, which says at least as much as its version; the plan
// stands for policy, role, source and kind, the paging for what stands beside the records of a list.
type viewKey struct {
	sum  [16]byte
	plan *plan
	list *spec.Paging // nil: no list
	key  string       // where the one record stands
	set  string       // the page's charset
}

// kept is a remembered view. One of a whole page holds no bytes, only that it
// is whole, so that it keeps no page in memory.
type kept struct{ view *View }

// viewCache makes the views of pages and keeps them.
type viewCache struct {
	of     *lru.Cache[viewKey, *kept]
	errors map[*spec.Spec]errorShape // how each source words its errors
}

// keptOverhead is what a remembered view costs beside its bytes.
const keptOverhead = 256

// View is what a caller sees of a page. A page in which nothing has to be hidden passes untouched. An answer that is
// not a success is made anew in the spec's shape unless the role is all: upstream's text may quote what is hidden.
// The error is ErrForbidden: the caller may see nothing of it, or the body is not a JSON document, of which only all
// sees anything.
func (g *Gate) View(c understudy.Caller, p *understudy.Page) (*View, error) {
	source := p.Key.Source
	if p.Key.IsZero() && source == "" {
		source = c.Source // the answer of a write
	}
	s := Sight{gate: g, caller: c, source: source, kind: p.Kind}
	if s.plan, s.all, s.err = g.plan(c, source, p.Kind); s.err != nil {
		return nil, s.err
	}
	return s.show(p)
}

// Asker answers requests; it is the mirror's Page.
type Asker func(context.Context, request.Request) (*request.Response, error)

// Page asks for a caller. For a caller that does not see what makes a record final, no record is final. For a caller
// that does not see every field, the request says which it sees; in the past such a caller gets, for a version that
// is not kept, the version after it. A filter that is given a hash is asked of the records alone; upstream knows no
// hashes. Without row rules the rest is ask itself.
//
// With row rules:
//   - a list is made from the records that the caller may find, or it is
//     ErrNotMirrored. It is never a page of upstream.
//   - a record that the caller may not find is ErrNotFound, and so is everything
//     under it. Like a record that never existed, it costs a request to upstream
//     unless it was asked for within a second. Without upstream both are
//     ErrUnavailable.
//   - at an earlier time the caller finds the records that it may find by their
//     newest version.
func (s *Sight) Page(ctx context.Context, a request.Request, ask Asker) (*request.Response, error) {
	g, c := s.gate, s.caller
	if a.Target.Kind != nil && s.plan != nil {
		a.NotFinal, a.CanSee = !s.plan.final, s.plan.shown
		a.FillGaps = !a.AsOf.IsZero() && !s.Whole
	}
	if equal := g.equalities(c, a.Target); equal != nil {
		w := request.LocalQuery{}
		if a.Local != nil {
			w = *a.Local
		}
		w.Conditions = equal
		a.Local = &w
	}
	r := s.ruled
	if r == nil {
		return ask(ctx, a)
	}
	if err := apart(c, a.Target); err != nil {
		return nil, err
	}
	if err := g.findOver(ctx, c, r, &a, ask); err != nil {
		return nil, err
	}
	t := a.Target
	if t.Kind == nil {
		return nil, refuse("role %s finds some records alone, and what this path shows is not known", c.Grant.Role)
	}
	f := r.rows[t.Kind.Name]
	switch {
	case f == nil:
		return ask(ctx, a)
	case f.never:
		return nil, refuse("role %s may not see %s", c.Grant.Role, t.Kind.Name)
	case t.List != nil:
		return f.list(ctx, c, a, ask)
	case len(t.Kind.ID) == 0:
		if len(r.over(g.specs[t.Key.Source], t, g.users[t.Key.Source])) == 0 {
			return nil, fmt.Errorf("access: %w", understudy.ErrNotFound)
		}
		return ask(ctx, a)
	}
	return f.instance(ctx, c, a, ask)
}

// View returns what the caller sees of a page, as Gate.View does. A grant that has ended since the look shows nothing.
func (s *Sight) View(page *understudy.Page) (*View, error) {
	if s.err != nil || page.Kind != s.kind || page.Key.Source != s.source || !s.caller.Grant.IsActive(s.gate.now()) {
		return s.gate.View(s.caller, page)
	}
	return s.show(page)
}

func (s *Sight) show(p *understudy.Page) (*View, error) {
	g, plan := s.gate, s.plan
	switch {
	case s.all:
		return wholeView(p, nil, g.specs[s.source], g.specs[s.source].RecordKey(p)), nil
	case p.Status >= http.StatusMultipleChoices:
		return g.views.failed(plan, p), nil
	case len(p.Body) == 0:
		return wholeView(p, plan, plan.spec, ""), nil
	}
	key := viewKey{p.Sum, plan, plan.cut(p), plan.spec.RecordKey(p), p.Charset}
	if p.Sum != [16]byte{} {
		if k, ok := g.views.of.Get(key); ok {
			if k.view == nil {
				return wholeView(p, plan, plan.spec, key.key), nil
			}
			return k.view, nil
		}
	}
	v, err := rewrite(plan, p, key)
	if err != nil {
		return nil, err
	}
	if p.Sum != [16]byte{} {
		g.views.keep(key, v)
	}
	return v, nil
}

func (c *viewCache) keep(key viewKey, v *View) {
	if v.Whole {
		c.of.Put(key, &kept{}, keptOverhead)
		return
	}
	c.of.Put(key, &kept{v}, int64(cap(v.Body))+keptOverhead)
}

// wholeView is the view of a page of which nothing is hidden.
func wholeView(p *understudy.Page, plan *plan, s *spec.Spec, key string) *View {
	v := &View{
		Body: p.Body, Whole: true, ContentType: p.ContentType, Charset: p.Charset, Sum: p.Sum, plan: plan, kind: s.Kind(p.Kind), list: p.List,
		key: key,
	}
	if v.Sum == [16]byte{} {
		v.Sum = sum(p.Body)
	}
	return v
}

// failed is the view of an error of upstream's.
func (c *viewCache) failed(plan *plan, p *understudy.Page) *View {
	body, contentType := Error(plan.spec, Failure{
		Word: word(p.Status), Status: p.Status, Path: p.Key.Path(),
		Code: c.errors[plan.spec].read(p.Body),
	})
	return &View{Body: body, ContentType: contentType, Sum: sum(body), plan: plan}
}

// rewrite is the view of a page with hidden values replaced.
func rewrite(plan *plan, p *understudy.Page, key viewKey) (*View, error) {
	doc, err := jsonspan.Parse(p.Body)
	if err != nil {
		return nil, fmt.Errorf("access: %w: an answer that is not JSON is shown to role all alone", understudy.ErrForbidden)
	}
	w := rewriter{data: p.Body, hash: plan.hash}
	c := jsonspan.NewCursor(p.Body, doc)
	w.value(&c, plan.root(p.Body, doc, key))
	if w.out == nil {
		return wholeView(p, plan, plan.spec, key.key), nil
	}
	body := append(w.out, p.Body[w.from:]...)
	return &View{Body: body, ContentType: p.ContentType, Charset: p.Charset, Sum: sum(body), plan: plan, kind: plan.kind, list: p.List,
		key: key.key}, nil
}

// root is the node of a body: a list's when it has records where a list keeps
// them, else a record's (what a list path answers to a POST is one record).
func (p *plan) root(data []byte, doc jsonspan.Value, at viewKey) *node {
	switch {
	case at.key != "" && p.record.open:
		return p.ones[at.key]
	case at.list == nil:
		return p.record
	}
	for _, key := range p.keys {
		if v, ok := jsonspan.Find(data, doc, key); ok && key != "" && v.Kind == jsonspan.Array {
			return p.lists[at.list]
		}
	}
	return p.record
}

func sum(body []byte) (half [16]byte) {
	full := sha256.Sum256(body)
	copy(half[:], full[:])
	return half
}

// rewriter copies a document, hidden values replaced. It begins to copy at the
// first of them: out is nil as long as nothing is hidden.
type rewriter struct {
	data []byte
	out  []byte
	from int // data[from:] is not copied yet
	hash *Hasher
}

// value rewrites the value to come by its node; nil is a place the spec does not name.
func (w *rewriter) value(c *jsonspan.Cursor, n *node) {
	switch c.Kind() {
	case jsonspan.Object:
		if n == nil || !n.open || n.named == nil {
			w.replace(c.Skip(), null)
			return
		}
		c.Enter()
		for c.Next() {
			w.value(c, n.inside(c.Name()))
		}
	case jsonspan.Array:
		if n == nil || !n.open {
			w.replace(c.Skip(), null)
			return
		}
		c.Enter()
		for c.Next() {
			w.value(c, n)
		}
	case jsonspan.Null:
		c.Skip()
	default:
		w.scalar(c.Skip(), n)
	}
}

func (w *rewriter) scalar(v jsonspan.Value, n *node) {
	switch {
	case n != nil && n.level == See:
	case n != nil && n.level > Hide && v.Kind == jsonspan.String:
		var buf [maxMasked + 2]byte
		w.replace(v, append(n.appendMasked(append(buf[:0], '"'), w.hash, jsonspan.Text(w.data, v)), '"'))
	default:
		w.replace(v, null)
	}
}

var null = []byte("null")

func (w *rewriter) replace(v jsonspan.Value, by []byte) {
	if w.out == nil {
		w.out = make([]byte, 0, len(w.data)+64)
	}
	w.out = append(append(w.out, w.data[w.from:v.Start]...), by...)
	w.from = v.End
}

// mask stands for what is not shown, whatever its length.
const mask = "********"

// maxMasked is the most bytes a masked text has.
const maxMasked = max(len(mask)+len("1234"), len(hashPrefix)+numberHash)

// appendMasked appends what a node's level shows of a text. Nothing in it needs an
// escape in JSON. A text is "" too where there is a value, so that length tells nothing.
func (n *node) appendMasked(dst []byte, h *Hasher, text string) []byte {
	switch n.level {
	case Hash:
		return h.append(dst, text, n.phone)
	case Country:
		return appendCountry(append(dst, mask...), text)
	}
	return query.AppendLast4(append(dst, mask...), text)
}

// appendCountry appends the country of a number that begins with a country code; of any other text nothing.
func appendCountry(dst []byte, text string) []byte {
	if p := understudy.ParsePhone(text); p.HasCountryCode {
		return append(dst, e164.Country(p.Digits)...)
	}
	return dst
}
