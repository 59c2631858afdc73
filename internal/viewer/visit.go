// Visit: one request from its caller to its last byte.

package viewer

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"understudy"
)

// visit is one request on its way through the viewer.
type visit struct {
	v      *Viewer
	w      http.ResponseWriter
	r      *http.Request
	ctx    context.Context
	start  time.Time
	zone   *time.Location
	zoned  bool // the browser has said its zone
	json   bool // data is wanted, not a page
	caller understudy.Caller
	known  bool // caller has been named
	source *sourcePlan
	kind   *kindPlan
	answer *understudy.Answer // what the mirror said, for the footer
}

// visit names the caller, runs the visitor under the deadline and turns its
// error into a page.
func (v *Viewer) visit(w http.ResponseWriter, r *http.Request, run visitor) {
	ctx, cancel := context.WithTimeout(r.Context(), v.Deadline)
	defer cancel()
	q := &visit{v: v, w: w, r: r, ctx: ctx, start: v.Now()}
	q.zone, q.zoned = v.zones.of(r)
	err := q.enter()
	if err == nil {
		err = run(q)
	}
	if err != nil {
		q.fail(err)
	}
}

// enter finds who asks, and for what.
func (q *visit) enter() (err error) {
	q.json = strings.HasSuffix(q.r.URL.Path, dataSuffix)
	if q.caller, err = q.v.Callers.Person(q.r); err != nil {
		return err
	}
	q.known = true
	name := q.r.PathValue("source")
	if name == "" {
		return nil
	}
	if q.source = q.v.byName[name]; q.source == nil || !q.sees(q.source) {
		known := []string{}
		for _, s := range q.v.sources {
			if q.sees(s) {
				known = append(known, s.Name)
			}
		}
		return unknownWord("source", name, known, func(s string) string { return "/" + s })
	}
	return q.enterKind(q.r.PathValue("kind"))
}

func (q *visit) enterKind(name string) error {
	if q.json && q.r.PathValue("id") == "" {
		name = strings.TrimSuffix(name, dataSuffix)
	}
	if q.kind = q.source.byName[name]; q.kind != nil {
		return nil
	}
	var known []string
	for _, k := range q.readable(q.source) {
		known = append(known, k.Name)
	}
	return unknownWord("kind of "+q.source.Spec.Title+" record", name, known, func(s string) string { return "/" + q.source.Name + "/" + s })
}

// dataSuffix ends the address of a page's data.
const dataSuffix = ".json"

// sees reports whether the caller may ask a source at all.
func (q *visit) sees(s *sourcePlan) bool {
	return q.caller.Source == "" || q.caller.Source == s.Name
}

// readable are the kinds of a source the caller may list.
func (q *visit) readable(s *sourcePlan) []*kindPlan {
	if !q.known || s == nil || !q.sees(s) {
		return nil
	}
	var kinds []*kindPlan
	for _, k := range s.kinds {
		if k.browsable() && q.v.Gate.Read(q.caller, k.lists[0].newest) == nil {
			kinds = append(kinds, k)
		}
	}
	return kinds
}

// ask reads one target through the gate's permission and the mirror, and begins
// to ask which numbers are our own. A refusal asks for nothing.
func (q *visit) ask(t *understudy.Target) (marks, error) {
	if err := q.v.Gate.Read(q.caller, t); err != nil {
		return nil, err
	}
	own := q.v.numbers.begin(q)
	a := understudy.Ask{Target: t, NoCache: forced(q.r)}
	if q.caller.Grant != nil {
		a.MaxStale = q.caller.Grant.MaxStale
	}
	answer, err := q.v.Mirror.Page(q.ctx, a)
	if err != nil {
		return nil, err
	}
	q.answer = answer
	return own, nil
}

// forced reports a reload with the shift key, which sends no-cache.
func forced(r *http.Request) bool {
	return slices.ContainsFunc(r.Header.Values("Cache-Control"), func(s string) bool { return strings.Contains(s, "no-cache") })
}

// since is the time since then as the process measures it.
func (q *visit) since(then time.Time) time.Duration { return q.v.Now().Sub(then) }
