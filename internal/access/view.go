// This file makes the view of a page: the page without the parts that the caller may not see.

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
	Body        []byte // the shown body, which is the page's own bytes if Unredacted is true
	Unredacted  bool   // whether nothing in the body had to be hidden
	ContentType string
	Charset     string   // the charset of the body for clients (see understudy.Page)
	Sum         [16]byte // the first half of Body's SHA-256, for an ETag

	plan *plan // how the body was rewritten; nil if the role sees everything
	kind *spec.Kind
	list bool
	key  string // the JSON key under which Body contains its only record; "" if Body is the record itself
}

// viewKey identifies a cached view. The checksum of the bytes says at least as much as the page's version. The plan
// stands for the policy, role, source and kind. The paging stands for the envelope fields beside the records of a list.
type viewKey struct {
	sum     [16]byte
	plan    *plan
	list    *spec.Paging // the paging of the list; nil if the page is not a list
	key     string       // the JSON key under which the body contains its only record
	charset string       // the charset of the page
}

// cachedView is a view in the cache. view is nil for a page in which nothing is hidden, so that the cache keeps no such
// page in memory.
type cachedView struct{ view *View }

// viewCache caches the views of pages.
type viewCache struct {
	views  *lru.Cache[viewKey, *cachedView]
	errors map[*spec.Spec]errorShape // where the error bodies of each source contain the error code
}

// viewOverhead is the memory that a cached view needs in addition to its body, in bytes.
const viewOverhead = 256

// MakeView returns the part of a page that a caller may see. A page in which nothing has to be hidden keeps its
// bytes. A response that is not a success is written anew in the spec's format unless the role is all, because
// upstream's text may quote hidden values. MakeView returns ErrForbidden if the caller may see nothing of the
// page, or if the body is not JSON and the role is not all.
func (g *Gate) MakeView(c understudy.Caller, p *understudy.Page) (*View, error) {
	source := p.Key.Source
	if p.Key.IsZero() && source == "" {
		source = c.Source // the response to a write names no source, so the source of the caller's grant counts
	}
	s := Visibility{gate: g, caller: c, source: source, kind: p.Kind}
	if s.plan, s.all, s.err = g.plan(c, source, p.Kind); s.err != nil {
		return nil, s.err
	}
	return s.show(p)
}

// Asker answers requests. Mirror.Page is one.
type Asker func(context.Context, request.Request) (*request.Response, error)

// RequestPage sends a request with ask for the caller. For a caller that does not see what makes a record final, no
// record is final. For a caller that does not see every field, the request names the fields that it sees. If such a
// caller reads an earlier time and that version is not stored, it gets the next version. A filter by a hash uses only
// stored records, because upstream knows no hashes. Without row rules RequestPage changes nothing else.
//
// With row rules:
//   - A list is made from the records that the caller may find, or the error is ErrNotMirrored. It is never a page
//     of upstream.
//   - A record that the caller may not find is ErrNotFound, and so is every path below it. Like a missing record it
//     costs one request to upstream per second at most. Without upstream both are ErrUnavailable.
//   - At an earlier time the caller finds the records that it may find by their newest version.
func (s *Visibility) RequestPage(ctx context.Context, a request.Request, ask Asker) (*request.Response, error) {
	g, c := s.gate, s.caller
	if a.Target.Kind != nil && s.plan != nil {
		a.NotFinal, a.CanSee = !s.plan.seesFinal, s.plan.isShown
		a.FillGaps = !a.AsOf.IsZero() && !s.SeesAll
	}
	if equal := g.equalities(c, a.Target); equal != nil {
		w := request.LocalQuery{}
		if a.Local != nil {
			w = *a.Local
		}
		w.Conditions = equal
		a.Local = &w
	}
	r := s.rowRules
	if r == nil {
		return ask(ctx, a)
	}
	if err := checkHeader(c, a.Target); err != nil {
		return nil, err
	}
	if err := g.checkParents(ctx, c, r, &a, ask); err != nil {
		return nil, err
	}
	t := a.Target
	if t.Kind == nil {
		return nil, refuse("your role (%s) can see only some records, and Understudy doesn't know what this path shows", c.Grant.Role)
	}
	f := r.rows[t.Kind.Name]
	switch {
	case f == nil:
		return ask(ctx, a)
	case f.findsNone:
		return nil, refuse("your role (%s) can't see %s", c.Grant.Role, t.Kind.Name)
	case t.List != nil:
		return f.askList(ctx, c, a, ask)
	case len(t.Kind.ID) == 0:
		if len(r.parentRecords(g.specs[t.Key.Source], t, g.users[t.Key.Source])) == 0 {
			return nil, fmt.Errorf("access: %w", understudy.ErrNotFound)
		}
		return ask(ctx, a)
	}
	return f.askInstance(ctx, c, a, ask)
}

// MakeView returns what the caller sees of a page, as Gate.MakeView does. It shows nothing if the grant has
// ended since the Visibility was made.
func (s *Visibility) MakeView(page *understudy.Page) (*View, error) {
	if s.err != nil || page.Kind != s.kind || page.Key.Source != s.source || !s.caller.Grant.IsActive(s.gate.now()) {
		return s.gate.MakeView(s.caller, page)
	}
	return s.show(page)
}

// show returns the view of a page from the cache, or makes it.
func (s *Visibility) show(p *understudy.Page) (*View, error) {
	g, plan := s.gate, s.plan
	switch {
	case s.all:
		return wholeView(p, nil, g.specs[s.source], g.specs[s.source].RecordKey(p)), nil
	case p.Status >= http.StatusMultipleChoices:
		return g.views.errorView(plan, p), nil
	case len(p.Body) == 0:
		return wholeView(p, plan, plan.spec, ""), nil
	}
	key := viewKey{p.Sum, plan, plan.paging(p), plan.spec.RecordKey(p), p.Charset}
	if p.Sum != [16]byte{} {
		if k, ok := g.views.views.Get(key); ok {
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
		if v.Unredacted {
			g.views.views.Put(key, &cachedView{}, viewOverhead)
		} else {
			g.views.views.Put(key, &cachedView{v}, int64(cap(v.Body))+viewOverhead)
		}
	}
	return v, nil
}

// wholeView returns the view of a page of which nothing is hidden.
func wholeView(p *understudy.Page, plan *plan, s *spec.Spec, key string) *View {
	v := &View{
		Body: p.Body, Unredacted: true, ContentType: p.ContentType, Charset: p.Charset, Sum: p.Sum, plan: plan,
		kind: s.Kind(p.Kind), list: p.List, key: key,
	}
	if v.Sum == [16]byte{} {
		v.Sum = bodySum(p.Body)
	}
	return v
}

// errorView returns the view of an error response that upstream sent.
func (c *viewCache) errorView(plan *plan, p *understudy.Page) *View {
	body, contentType := Error(plan.spec, Failure{
		Word: errorWord(p.Status), Status: p.Status, Path: p.Key.Path(),
		Code: c.errors[plan.spec].read(p.Body),
	})
	return &View{Body: body, ContentType: contentType, Sum: bodySum(body), plan: plan}
}

// rewrite returns the view of a page with hidden values replaced.
func rewrite(plan *plan, p *understudy.Page, key viewKey) (*View, error) {
	doc, err := jsonspan.Parse(p.Body)
	if err != nil {
		return nil, fmt.Errorf("access: %w: only the role all can see answers that are not JSON", understudy.ErrForbidden)
	}
	w := rewriter{data: p.Body, hash: plan.hash}
	c := jsonspan.NewCursor(p.Body, doc)
	w.rewriteValue(&c, plan.root(p.Body, doc, key))
	if w.out == nil {
		return wholeView(p, plan, plan.spec, key.key), nil
	}
	body := append(w.out, p.Body[w.from:]...)
	return &View{Body: body, ContentType: p.ContentType, Charset: p.Charset, Sum: bodySum(body), plan: plan, kind: plan.kind, list: p.List,
		key: key.key}, nil
}

// root returns the node of a body. It is the node of the list if the body has an array at the place of the list's
// records. Otherwise it is the node of a record, for example for the response to a POST to a list path.
func (p *plan) root(data []byte, doc jsonspan.Value, at viewKey) *node {
	switch {
	case at.key != "" && p.record.open:
		return p.recordBodies[at.key]
	case at.list == nil:
		return p.record
	}
	for _, key := range p.listKeys {
		if v, ok := jsonspan.Find(data, doc, key); ok && key != "" && v.Kind == jsonspan.Array {
			return p.listBodies[at.list]
		}
	}
	return p.record
}

// bodySum returns the first half of a body's SHA-256.
func bodySum(body []byte) (half [16]byte) {
	full := sha256.Sum256(body)
	copy(half[:], full[:])
	return half
}

// rewriter copies a JSON document and replaces hidden values. It starts to copy at the first hidden value;
// until then out is nil.
type rewriter struct {
	data []byte
	out  []byte
	from int // the offset in data of the first byte that is not copied yet
	hash *Hasher
}

// rewriteValue rewrites the next value as its node says. A nil node is a value that the spec does not name.
func (w *rewriter) rewriteValue(c *jsonspan.Cursor, n *node) {
	switch c.Kind() {
	case jsonspan.Object:
		if n == nil || !n.open || n.named == nil {
			w.replace(c.Skip(), null)
			return
		}
		c.Enter()
		for c.Next() {
			w.rewriteValue(c, n.member(c.Name()))
		}
	case jsonspan.Array:
		if n == nil || !n.open {
			w.replace(c.Skip(), null)
			return
		}
		c.Enter()
		for c.Next() {
			w.rewriteValue(c, n)
		}
	case jsonspan.Null:
		c.Skip()
	default:
		w.rewriteScalar(c.Skip(), n)
	}
}

// rewriteScalar rewrites a text, number or bool as its node says.
func (w *rewriter) rewriteScalar(v jsonspan.Value, n *node) {
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

// replace copies the data before a value, then the replacement.
func (w *rewriter) replace(v jsonspan.Value, by []byte) {
	if w.out == nil {
		w.out = make([]byte, 0, len(w.data)+64)
	}
	w.out = append(append(w.out, w.data[w.from:v.Start]...), by...)
	w.from = v.End
}

// mask is the text that stands for a hidden value, whatever the length of the value.
const mask = "********"

// maxMasked is the maximum length of a masked text, in bytes.
const maxMasked = max(len(mask)+len("1234"), len(hashPrefix)+numberHash)

// appendMasked appends the part of a text that the node's level shows. The result needs no escapes in JSON. Even
// the result for an empty text has a mask, so that its length reveals nothing.
func (n *node) appendMasked(dst []byte, h *Hasher, text string) []byte {
	switch n.level {
	case Hash:
		return h.append(dst, text, n.phone)
	case Country:
		dst = append(dst, mask...)
		if p := understudy.ParsePhone(text); p.HasCountryCode {
			dst = append(dst, e164.Country(p.Digits)...)
		}
		return dst
	}
	return query.AppendLast4(append(dst, mask...), text)
}
