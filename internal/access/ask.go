// This file answers requests of a caller that may find only some records. Such a caller never learns that a hidden
// record exists. A hidden record and a record that never existed give the same response, on the same code path.

package access

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"understudy"
	"understudy/internal/query"
	"understudy/kit/jsonspan"
	"understudy/request"
	"understudy/spec"
)

// CheckFind returns nil if a caller may find the record of an instance or media path and every record above the
// path. It returns ErrNotFound if the caller may not, and ErrUnavailable if that cannot be decided. It calls
// ask only for records that are not stored or that the caller may not find.
func (g *Gate) CheckFind(ctx context.Context, c understudy.Caller, t *spec.Target, ask Asker) error {
	r := g.limitedGrants(c, t.Key.Source)
	if r == nil {
		return nil
	}
	if err := checkHeader(c, t); err != nil {
		return err
	}
	a := request.Request{Target: t, Flow: c.Flow}
	if err := g.checkParents(ctx, c, r, &a, ask); err != nil {
		return err
	}
	if t.Kind == nil || t.ID == "" && !t.IsAddressed() || r.rows[t.Kind.Name] == nil {
		return nil
	}
	f := r.rows[t.Kind.Name]
	if f.canFindID(g.records.idOf(t), g.now(), 0) {
		return nil
	}
	at := instanceOf(t)
	if at == nil || f.findsNone {
		return fmt.Errorf("access: %w", understudy.ErrNotFound)
	}
	a.Target = at
	_, err := g.lookups.seek(ctx, c, f, a, ask)
	return err
}

// checkHeader refuses a path for which the spec requires a header of its own, if the caller may find only some
// records. The records under such a path are not stored, so no row rule can be applied to them.
func checkHeader(c understudy.Caller, t *spec.Target) error {
	if !t.HasKeyHeader() {
		return nil
	}
	return refuse("your role (%s) can see only some records, and Understudy doesn't know which of them the header %s selects",
		c.Grant.Role, t.Header[0].Name)
}

// CanSeePage reports whether a caller may find the record that a response contains. A response that is no
// success contains no record.
func (g *Gate) CanSeePage(c understudy.Caller, source, kind string, p *understudy.Page) bool {
	r := g.limitedGrants(c, source)
	switch {
	case r == nil || p.Status >= http.StatusMultipleChoices || len(p.Body) == 0:
		return true
	case kind == "":
		return false
	}
	f := r.rows[kind]
	return f == nil || f.canFindBody(recordIn(g.specs[source], p), g.now(), 0)
}

// recordIn returns the JSON of the record in a response, or nil if there is none where the spec says.
func recordIn(s *spec.Spec, p *understudy.Page) []byte {
	key := s.RecordKey(p)
	if key == "" && p.Key.URI == "" && len(p.Rows) == 0 && s.Kind(p.Kind).IsWrapped() {
		return nil // no record was found in this response to a write
	}
	doc, err := jsonspan.Parse(p.Body)
	if err != nil {
		return nil
	}
	v, _ := jsonspan.Find(p.Body, doc, key)
	return v.Bytes(p.Body)
}

// instanceOf returns the path that shows the record of a target. This is the target itself, or for a media path an
// instance path that its variables can fill. It returns nil if there is no such path.
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

// checkParents returns nil if the caller may find every record above a path, and otherwise an error as CheckFind does.
func (g *Gate) checkParents(ctx context.Context, c understudy.Caller, r *grants, a *request.Request, ask Asker) error {
	for _, up := range r.parentRecords(g.specs[a.Target.Key.Source], a.Target, g.users[a.Target.Key.Source]) {
		if up.canFind() {
			continue
		}
		if up.f.findsNone || up.isDecidedByPath() {
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

// isDecidedByPath reports whether the path alone decides that the caller may find the record, without a look at the
// stored record.
func (n pathRecord) isDecidedByPath() bool {
	return n.f.decidedByName || n.target.IsAddressed() && n.f.isRootOnly() && n.target.RootID() != ""
}

// canFind reports whether the caller may find the record. The path decides if it can, else the stored version of
// the record.
func (n pathRecord) canFind() bool {
	switch {
	case n.f.decidedByName:
		return n.f.canFindRoot(rootName(n.target.ID))
	case n.isDecidedByPath():
		return n.f.canFindRoot(rootName(n.target.RootID()))
	}
	return n.f.canFindID(n.f.gate.records.idOf(n.target), n.f.gate.now(), 0)
}

// idOf returns the id of the record that an instance path names, by its id or by the record's own address. It
// returns "" if no stored record has that address.
func (h *storedRecords) idOf(t *spec.Target) string {
	if h.addressed != nil && t.IsAddressed() {
		return h.addressed(t)
	}
	return t.ID
}

// rootName returns the id of a root as the value that its records have in their root field.
func rootName(id string) query.Value {
	raw := jsonspan.Quote(nil, spec.FormatRoot(id))
	return query.NewValue(raw, jsonspan.Value{Kind: jsonspan.String, End: len(raw)}, spec.TypeSelect)
}

// askList requests a list of a kind with a row rule, and returns it only if the caller may find every record in it.
func (f *rowFilter) askList(ctx context.Context, c understudy.Caller, a request.Request, ask Asker) (*request.Response, error) {
	settled := f.isWholeListFindable(a.Target)
	if len(f.kind.ID) == 0 && !settled {
		return nil, fmt.Errorf("access: %w", understudy.ErrNotFound)
	}
	now := f.gate.now()
	if len(f.kind.ID) > 0 {
		if err := f.checkToken(c, a.Target, now); err != nil {
			return nil, err
		}
	}
	keep := a.Local == nil && a.AsOf.IsZero() && (!settled || f.isPathEnough(a.Target))
	key, former := listKey{rule: f, list: a.Target.Key}, cachedList{composed: new(request.ListCache)}
	if keep {
		if f.isTimeDependent() { // a time rounded up to a second lets the cached list serve all requests in that second
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
		w.CanFind = f.recordFilter(now, !a.AsOf.IsZero(), w.CanFind)
		if a.AsOf.IsZero() { // for a list of the present time the store checks the current version of each record
			f.narrow(&w, now)
			w.NoIndex = !f.isIndexed() || len(f.wanted) > 1
		}
		if keep {
			w.Cache = former.composed
		}
		a.Local = &w
	}
	answer, err := ask(ctx, a)
	switch {
	case err != nil:
		return nil, err
	case former.isSame(answer.Page):
	case !settled && answer.Outcome != request.Composed, len(f.kind.ID) > 0 && !f.canFindAll(answer.Page, now, !a.AsOf.IsZero()):
		return nil, fmt.Errorf("access: %w: not all %s are stored here yet, and the role can see only some of them",
			understudy.ErrNotMirrored, f.kind.Name)
	}
	if keep && !former.isSame(answer.Page) {
		former.keep(f.gate, key, settled, answer.Page)
	}
	if p := answer.Page; len(f.kind.ID) > 0 && len(p.Rows) > 0 && p.Status == http.StatusOK {
		for _, row := range []understudy.Row{p.Rows[0], p.Rows[len(p.Rows)-1]} { // the caller received these records in the page's links
			// a copy of the id, because the id may point into the memory of the page
			f.gate.sentTokens.Put(f.keyFor(c, strings.Clone(row.ID)), now, 1)
		}
	}
	return answer, nil
}

// listKey identifies a cached list of the records that a row rule allows.
type listKey struct {
	rule   *rowFilter
	list   understudy.Key
	second int64 // the Unix time for which the rule was applied; 0 if the rule does not depend on the time
}

// cachedList is a cached list in which the caller may find every record.
type cachedList struct {
	sum      [16]byte         // the checksum of the page that upstream sent; zero if the list was made from stored records
	page     *understudy.Page // the page, if the list was made from stored records
	composed *request.ListCache
}

// isSame reports whether a page has the same content as the cached list.
func (l *cachedList) isSame(p *understudy.Page) bool {
	return l.page == p || l.page == nil && l.sum == p.Sum && p.Sum != [16]byte{}
}

const (
	maxLists  = 16 << 20 // the maximum size of all cached lists, in bytes
	rowWeight = 256      // the assumed size of a row without its bytes in the body, in bytes
)

// keep caches a page in which the caller may find every record. If settled is true, it caches only the page's
// checksum, so that a page with the same checksum needs no second check.
func (l cachedList) keep(g *Gate, key listKey, settled bool, p *understudy.Page) {
	if settled {
		g.lists.Put(key, cachedList{sum: p.Sum, composed: l.composed}, viewOverhead)
		return
	}
	l.page = p
	g.lists.Put(key, l, int64(cap(p.Body)+rowWeight*len(p.Rows)+viewOverhead))
}

// HasKeptList reports whether the list of the records that a caller's row rule allows is in the cache.
func HasKeptList(g *Gate, c understudy.Caller, t *spec.Target) bool {
	r := g.limitedGrants(c, t.Key.Source)
	if r == nil || t.List == nil || r.rows[t.Kind.Name] == nil {
		return false
	}
	_, ok := g.lists.Get(listKey{rule: r.rows[t.Kind.Name], list: t.Key})
	return ok
}

// isTimeDependent reports whether the set of records that a rule allows can change although no record changes. It
// changes with the time, and with the list of our own phone numbers.
func (f *rowFilter) isTimeDependent() bool {
	for _, r := range f.rows { // a record above is subject to the role's rules for other kinds
		if r != nil && (r.age > 0 || r.ownNumbers) {
			return true
		}
	}
	return false
}

// recordFilter returns a filter for the records of a list. A record must pass the row rule and the filter also. If
// then is true, the list is of an earlier time, and the newest version of each record decides.
func (f *rowFilter) recordFilter(now time.Time, then bool, also func(*understudy.Record) bool) func(*understudy.Record) bool {
	return func(r *understudy.Record) bool {
		switch {
		case r == nil || also != nil && !also(r):
			return false
		case then:
			return f.canFindID(r.ID, now, 0)
		}
		return f.canFindBody(r.Body, now, 0)
	}
}

// isWholeListFindable reports whether the caller may find every record of a list. That is so if the caller may
// find the list's parent record, or if the rule requires only the root in the list's path.
func (f *rowFilter) isWholeListFindable(t *spec.Target) bool {
	if len(f.kind.ID) == 0 {
		return len(listParents(t.Spec, t.List)) > 0
	}
	if !f.isRootOnly() || len(f.where) > 0 && !f.isRootWanted(t) {
		return false
	}
	var of *spec.Kind
	for _, a := range f.parents {
		switch {
		case a.kind == nil:
			return false
		case a.byPathOnly && f.rows[a.kind.Name] != nil && f.rows[a.kind.Name].isDecidedByRoot(a):
			// This rule belongs to the kind of the root itself.
			if root := t.RootID(); root == "" || !f.rows[a.kind.Name].canFindRoot(rootName(root)) {
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
	return slices.Contains(listParents(t.Spec, t.List), of)
}

// isRootWanted reports whether the rule requires the root that a path lies under, and nothing else.
func (f *rowFilter) isRootWanted(t *spec.Target) bool {
	root := t.RootID()
	return len(f.where) > 0 && f.isRootOnly() && root != "" && f.canFindRoot(rootName(root))
}

// isPathEnough reports whether the path of a record decides that the caller may find it: only the root is above
// the record, and the root's name decides.
func (f *rowFilter) isPathEnough(t *spec.Target) bool {
	return f.isRootWanted(t) && !slices.ContainsFunc(f.parents, func(a ancestor) bool {
		if a.kind == nil {
			return true
		}
		up := f.rows[a.kind.Name]
		return up != nil && !(a.root && up.isDecidedByRoot(a) && up.canFindRoot(rootName(t.RootID())))
	})
}

// canFindAll reports whether the caller may find every record of a list, whatever produced the list. For a list
// of an earlier time, then is true and the newest version of each record decides.
func (f *rowFilter) canFindAll(p *understudy.Page, now time.Time, then bool) bool {
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
				fits = f.canFindID(f.idOf(body), now, 0)
			} else {
				fits = f.canFindBody(body, now, 0)
			}
			return fits
		})
		break // one list is enough: all lists of a kind whose records have the same place in the body are alike
	}
	return some && fits
}

// idOf returns the id in the body of a record, or "" if the body is not JSON.
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

// askInstance requests a record of a kind with a row rule.
func (f *rowFilter) askInstance(ctx context.Context, c understudy.Caller, a request.Request, ask Asker) (*request.Response, error) {
	id := f.gate.records.idOf(a.Target)
	if !f.canFindID(id, f.gate.now(), 0) && !(a.AsOf.IsZero() && f.isPathEnough(a.Target)) {
		return f.gate.lookups.seek(ctx, c, f, a, ask)
	}
	answer, err := ask(ctx, a)
	switch {
	case err != nil:
		return nil, err
	case a.AsOf.IsZero():
		return f.decide(answer)
	case a.Target.ID == "" && answer.Page.ID != id: // at that time another record had this address
		return nil, fmt.Errorf("access: %w", understudy.ErrNotFound)
	}
	return answer, nil
}

// decide returns the response if the caller may find its record, or if the response contains no record.
func (f *rowFilter) decide(answer *request.Response) (*request.Response, error) {
	switch status := answer.Page.Status; {
	case status == http.StatusNotFound, status == http.StatusGone, status < http.StatusMultipleChoices &&
		!f.canFindBody(recordIn(f.gate.specs[f.source], answer.Page), f.gate.now(), 0):
		return nil, fmt.Errorf("access: %w", understudy.ErrNotFound)
	}
	return answer, nil
}
