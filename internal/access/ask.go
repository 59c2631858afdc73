// Ask: a request to the mirror by a caller that may not find every record.
//
// Such a caller never learns that a hidden record exists. A hidden record and a
// record that never existed give the same response, on the same code path.

package access

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"understudy"
	"understudy/internal/query"
	"understudy/kit/jsonspan"
	"understudy/request"
	"understudy/spec"
)

// Find is nil when a caller may find the record a target names, by an instance
// or a media path, and those the path lies under; paths the spec does not name
// lie under records, too. It is ErrNotFound when it may not, ErrUnavailable when
// it cannot be told. ask is asked only for what is not held or may not be found.
func (g *Gate) Find(ctx context.Context, c understudy.Caller, t *spec.Target, ask Asker) error {
	r := g.ruled(c, t.Key.Source)
	if r == nil {
		return nil
	}
	if err := apart(c, t); err != nil {
		return err
	}
	a := request.Request{Target: t, Flow: c.Flow}
	if err := g.findOver(ctx, c, r, &a, ask); err != nil {
		return err
	}
	if t.Kind == nil || t.ID == "" && !t.IsAddressed() || r.rows[t.Kind.Name] == nil {
		return nil
	}
	f := r.rows[t.Kind.Name]
	if f.held(g.held.idOf(t), g.now(), 0) {
		return nil
	}
	at := instanceOf(t)
	if at == nil || f.never {
		return fmt.Errorf("access: %w", understudy.ErrNotFound)
	}
	a.Target = at
	_, err := g.lookups.seek(ctx, c, f, a, ask)
	return err
}

// apart refuses what no records are kept of to a caller that finds some records alone.
func apart(c understudy.Caller, t *spec.Target) error {
	if !t.HasKeyHeader() {
		return nil
	}
	return refuse("role %s finds some records alone, and which there are under the header %s is not known", c.Grant.Role, t.Header[0].Name)
}

// Shows reports whether a caller may see the one record of an answer: it may
// find it. An answer that is no success holds none.
func (g *Gate) Shows(c understudy.Caller, source, kind string, p *understudy.Page) bool {
	r := g.ruled(c, source)
	switch {
	case r == nil || p.Status >= http.StatusMultipleChoices || len(p.Body) == 0:
		return true
	case kind == "":
		return false
	}
	f := r.rows[kind]
	return f == nil || f.matches(recordIn(g.specs[source], p), g.now(), 0)
}

// recordIn returns the one record of an answer, nil when it is not where the spec says.
func recordIn(s *spec.Spec, p *understudy.Page) []byte {
	key := s.RecordKey(p)
	if key == "" && p.Key.URI == "" && len(p.Rows) == 0 && s.Kind(p.Kind).IsWrapped() {
		return nil // a write's answer in which no record was found
	}
	doc, err := jsonspan.Parse(p.Body)
	if err != nil {
		return nil
	}
	v, _ := jsonspan.Find(p.Body, doc, key)
	return v.Bytes(p.Body)
}

// instanceOf is a path that shows the record a target names: its own, or of a
// media path one that needs no more than it gives.
func instanceOf(t *spec.Target) *spec.Target {
	if t.Instance != nil && len(t.Query) == 0 {
		return t
	}
	for _, in := range t.Kind.Instances {
		path, ok := in.Template().FillEscaped(func(name string) (string, bool) { return t.Var(name), true })
		if !ok {
			continue
		}
		if at, err := t.Spec.Resolve(t.Key.Source, path, ""); err == nil && at.Instance == in && at.ID == t.ID {
			return at
		}
	}
	return nil
}

// findOver finds the records a path lies under.
func (g *Gate) findOver(ctx context.Context, c understudy.Caller, r *grants, a *request.Request, ask Asker) error {
	for _, up := range r.over(g.specs[a.Target.Key.Source], a.Target, g.users[a.Target.Key.Source]) {
		if up.found() {
			continue
		}
		if up.f.never || up.told() {
			return fmt.Errorf("access: %w", understudy.ErrNotFound)
		}
		of := *a
		of.Target, of.Local = up.target, nil
		if _, err := g.lookups.seek(ctx, c, up.f, of, ask); err != nil {
			return err
		}
	}
	return nil
}

// told reports whether a path alone tells whether the record it names may be found.
func (n named) told() bool {
	return n.f.named || n.target.IsAddressed() && n.f.byRoot() && n.target.RootID() != ""
}

// found reports whether the record may be found, by the path or as it is held.
func (n named) found() bool {
	switch {
	case n.f.named:
		return n.f.holds(rootName(n.target.ID))
	case n.told():
		return n.f.holds(rootName(n.target.RootID()))
	}
	return n.f.held(n.f.gate.held.idOf(n.target), n.f.gate.now(), 0)
}

// idOf is the id of the record that an instance path names, or whose own address it is; ""
// when that is not held.
func (h *held) idOf(t *spec.Target) string {
	if h.addressed != nil && t.IsAddressed() {
		return h.addressed(t)
	}
	return t.ID
}

// rootName is the id of a root as the field of its records that shows it.
func rootName(id string) query.Value {
	raw := jsonspan.Quote(nil, spec.FormatRoot(id))
	return query.NewValue(raw, jsonspan.Value{Kind: jsonspan.String, End: len(raw)}, spec.TypeSelect)
}

// list asks for a list of a ruled kind.
func (f *rowFilter) list(ctx context.Context, c understudy.Caller, a request.Request, ask Asker) (*request.Response, error) {
	settled := f.settled(a.Target)
	if len(f.kind.ID) == 0 && !settled {
		return nil, fmt.Errorf("access: %w", understudy.ErrNotFound)
	}
	now := f.gate.now()
	if len(f.kind.ID) > 0 {
		if err := f.token(c, a.Target, now); err != nil {
			return nil, err
		}
	}
	keep := a.Local == nil && a.AsOf.IsZero() && (!settled || f.within(a.Target))
	key, former := listKey{rule: f, list: a.Target.Key}, foundList{made: new(request.ListCache)}
	if keep {
		if f.timed() { // it is one list for a second
			now = now.Truncate(time.Second).Add(time.Second)
			key.second = now.Unix()
		}
		if have, ok := f.gate.lists.Get(key); ok {
			former = have
		}
	}
	if !settled {
		w := request.LocalQuery{}
		if a.Local != nil {
			w = *a.Local
		}
		w.CanFind = f.only(now, !a.AsOf.IsZero(), w.CanFind)
		if a.AsOf.IsZero() { // then by what a record is now, which its form of that time does not say
			f.narrow(&w, now)
			w.NoIndex = !f.told() || len(f.nums) > 1
		}
		if keep {
			w.Cache = former.made
		}
		a.Local = &w
	}
	answer, err := ask(ctx, a)
	switch {
	case err != nil:
		return nil, err
	case former.is(answer.Page):
	case !settled && answer.Outcome != request.Composed, len(f.kind.ID) > 0 && !f.fits(answer.Page, now, !a.AsOf.IsZero()):
		return nil, fmt.Errorf("access: %w: %s are not held whole, and the role finds some of them alone", understudy.ErrNotMirrored, f.kind.Name)
	}
	if keep && !former.is(answer.Page) {
		former.keep(f.gate, key, settled, answer.Page)
	}
	if len(f.kind.ID) > 0 {
		f.gives(c, answer.Page, now)
	}
	return answer, nil
}

// listKey names a list as a row rule leaves it.
type listKey struct {
	rule   *rowFilter
	list   understudy.Key
	second int64 // at whose end the rule was applied, when the rule depends on more than the records
}

// foundList is a list of which every record may be found.
type foundList struct {
	sum  [16]byte         // of a page that upstream gave; zero: it gave none
	page *understudy.Page // made from records
	made *request.ListCache
}

// is reports whether a page is the one that was looked at.
func (l *foundList) is(p *understudy.Page) bool {
	return l.page == p || l.page == nil && l.sum == p.Sum && p.Sum != [16]byte{}
}

const (
	maxLists  = 16 << 20 // bytes of lists
	rowWeight = 256      // of a row beside its bytes in the body
)

// keep remembers a page of which every record may be found. Of a list that is settled by its
// path the records need no second look while they are the same bytes.
func (l foundList) keep(g *Gate, key listKey, settled bool, p *understudy.Page) {
	if settled {
		g.lists.Put(key, foundList{sum: p.Sum, made: l.made}, keptOverhead)
		return
	}
	l.page = p
	g.lists.Put(key, l, int64(cap(p.Body)+rowWeight*len(p.Rows)+keptOverhead))
}

// Remembers reports whether a list that a caller's row rule leaves was made before, and kept.
func Remembers(g *Gate, c understudy.Caller, t *spec.Target) bool {
	r := g.ruled(c, t.Key.Source)
	if r == nil || t.List == nil || r.rows[t.Kind.Name] == nil {
		return false
	}
	_, ok := g.lists.Get(listKey{rule: r.rows[t.Kind.Name], list: t.Key})
	return ok
}

// timed reports whether the records that a rule finds change while all records stay the same:
// with the time, or with our own numbers.
func (f *rowFilter) timed() bool {
	for _, r := range f.rows { // one of them may be above
		if r != nil && (r.age > 0 || r.own) {
			return true
		}
	}
	return false
}

// only is the rule for records of a list: by the newest version of each when the
// list is of an earlier time.
func (f *rowFilter) only(now time.Time, then bool, also func(*understudy.Record) bool) func(*understudy.Record) bool {
	return func(r *understudy.Record) bool {
		switch {
		case r == nil || also != nil && !also(r):
			return false
		case then:
			return f.held(r.ID, now, 0)
		}
		return f.matches(r.Body, now, 0)
	}
}

// settled reports whether the caller may find all records of a list because it
// may find their parent record, or because the rule asks for the root in the list's path.
func (f *rowFilter) settled(t *spec.Target) bool {
	if len(f.kind.ID) == 0 {
		return len(listAbove(t.Spec, t.List)) > 0
	}
	if !f.byRoot() || len(f.where) > 0 && !f.asks(t) {
		return false
	}
	var of *spec.Kind
	for _, a := range f.above {
		switch {
		case a.kind == nil:
			return false
		case a.only && f.rows[a.kind.Name] != nil && f.rows[a.kind.Name].tells(a): // as the root's own rule, which is looked at
			if root := t.RootID(); root == "" || !f.rows[a.kind.Name].holds(rootName(root)) {
				return false
			}
		case of != nil && f.rows[a.kind.Name] != nil:
			return false
		case f.rows[a.kind.Name] != nil:
			of = a.kind
		}
	}
	if of == nil {
		return len(f.where) > 0
	}
	return slices.Contains(listAbove(t.Spec, t.List), of)
}

// asks reports whether the rule asks for the root that a path lies under, and for no more.
func (f *rowFilter) asks(t *spec.Target) bool {
	root := t.RootID()
	return len(f.where) > 0 && f.byRoot() && root != "" && f.holds(rootName(root))
}

// within reports whether the path of a record tells that it may be found: all that it lies
// under is the root, whose name decides.
func (f *rowFilter) within(t *spec.Target) bool {
	return f.asks(t) && !slices.ContainsFunc(f.above, func(a ancestor) bool {
		if a.kind == nil {
			return true
		}
		up := f.rows[a.kind.Name]
		return up != nil && !(a.root && up.tells(a) && up.holds(rootName(t.RootID())))
	})
}

// fits reports whether every record of a list may be found: whatever made it,
// nothing else is shown.
func (f *rowFilter) fits(p *understudy.Page, now time.Time, then bool) bool {
	if p.Status >= http.StatusMultipleChoices {
		return true
	}
	doc, err := jsonspan.Parse(p.Body)
	if err != nil {
		return false
	}
	fits, some := true, false
	for _, l := range f.kind.Lists {
		rows, ok := jsonspan.Find(p.Body, doc, l.Key)
		if !ok || rows.Kind != jsonspan.Array {
			continue
		}
		some = true
		jsonspan.VisitElements(p.Body, rows, func(e jsonspan.Value) bool {
			if body := e.Bytes(p.Body); then {
				fits = f.held(f.idOf(body), now, 0)
			} else {
				fits = f.matches(body, now, 0)
			}
			return fits
		})
		break // lists of a kind whose records stand elsewhere are of another body
	}
	return some && fits
}

// idOf is the id in a record's body.
func (f *rowFilter) idOf(body []byte) string {
	doc, err := jsonspan.Parse(body)
	if err != nil {
		return ""
	}
	parts := make([]string, len(f.kind.ID))
	for i, name := range f.kind.ID {
		parts[i] = query.Find(body, doc, query.FieldOf(f.kind.Field(name))).Text()
	}
	return f.kind.JoinID(parts)
}

// instance asks for a record of a ruled kind.
func (f *rowFilter) instance(ctx context.Context, c understudy.Caller, a request.Request, ask Asker) (*request.Response, error) {
	id := f.gate.held.idOf(a.Target)
	if !f.held(id, f.gate.now(), 0) && !(a.AsOf.IsZero() && f.within(a.Target)) {
		return f.gate.lookups.seek(ctx, c, f, a, ask)
	}
	answer, err := ask(ctx, a)
	switch {
	case err != nil:
		return nil, err
	case a.AsOf.IsZero():
		return f.decide(answer)
	case a.Target.ID == "" && answer.Page.ID != id: // another record had the address then
		return nil, fmt.Errorf("access: %w", understudy.ErrNotFound)
	}
	return answer, nil
}

// decide returns the response if the caller may find its record, or if the
// response says nothing about a record.
func (f *rowFilter) decide(answer *request.Response) (*request.Response, error) {
	switch status := answer.Page.Status; {
	case status == http.StatusNotFound, status == http.StatusGone, status < http.StatusMultipleChoices &&
		!f.matches(recordIn(f.gate.specs[f.source], answer.Page), f.gate.now(), 0):
		return nil, fmt.Errorf("access: %w", understudy.ErrNotFound)
	}
	return answer, nil
}
