// Visit: one request from its caller to its last byte.

package viewer

import (
	"context"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"understudy"
)

// visit is one request on its way through the viewer.
type visit struct {
	v        *Viewer
	w        http.ResponseWriter
	r        *http.Request
	ctx      context.Context
	start    time.Time
	zone     *time.Location
	zoned    bool   // the browser has said its zone
	data     string // the form of data that is wanted: ".json", ".csv", ".jsonl"; "" = a page
	sent     bool   // the answer has begun to go out
	caller   understudy.Caller
	known    bool // caller has been named
	source   *sourcePlan
	kind     *kindPlan
	answer   *understudy.Answer // what the mirror said, for the footer
	found    bool               // the page shows what a search found
	typed    string             // what was put in the search box
	compared comparison         // the moments whose versions are compared
	versions int                // how many versions a timeline shows; 0 = a few
	asOf     asOf               // the moment the page is asked for
}

// visit names the caller, runs the visitor under the deadline and turns its
// error into a page.
func (v *Viewer) visit(w http.ResponseWriter, r *http.Request, run visitor) {
	ctx, cancel := context.WithTimeout(r.Context(), v.Deadline)
	defer cancel()
	q := &visit{v: v, w: w, r: r, ctx: ctx, start: v.Now()}
	q.zone, q.zoned = v.zones.of(r)
	err := contain(func() error {
		if err := q.enter(); err != nil {
			return err
		}
		return run(q)
	})
	if err == nil {
		return
	}
	if q.sent { // half an answer must not look like a whole one
		v.Logger.ErrorContext(ctx, "viewer: answer broken off", "path", r.URL.Path, "error", err)
		panic(http.ErrAbortHandler)
	}
	if worse := contain(func() error { q.fail(err); return nil }); worse != nil {
		v.Logger.ErrorContext(ctx, "viewer: no page for an error", "error", err, "worse", worse)
		http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
	}
}

// contain makes a panic an error like any other. A page is sent in one piece at
// its end, so nothing of it is out yet.
func contain(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("viewer: panic: %v\n%s", p, debug.Stack())
		}
	}()
	return f()
}

// enter finds who asks, and for what.
func (q *visit) enter() (err error) {
	q.data = formOf(q.r.URL.Path)
	if q.caller, err = q.v.Callers.Person(q.r); err != nil {
		return err
	}
	q.known = true
	name := q.r.PathValue("source")
	if name == "" {
		return nil
	}
	if q.source = q.v.byName[name]; q.source == nil || !q.sees(q.source) {
		q.source = nil
		known := []string{}
		for _, s := range q.v.sources {
			if q.sees(s) {
				known = append(known, s.Name)
			}
		}
		return unknownWord("source", name, known, func(s string) string { return "/" + s })
	}
	if name = q.r.PathValue("kind"); name == "" {
		return nil
	}
	return q.enterKind(name)
}

func (q *visit) enterKind(name string) error {
	if q.r.PathValue("id") == "" {
		name = strings.TrimSuffix(name, q.data)
	}
	if q.kind = q.source.byName[name]; q.kind != nil {
		return nil
	}
	var known []string
	for _, k := range q.source.kinds {
		if q.seesKind(k) && len(k.lists) > 0 {
			known = append(known, k.Name)
		}
	}
	return unknownWord("kind of "+q.source.Spec.Title+" record", name, known, func(s string) string { return "/" + q.source.Name + "/" + s })
}

// The forms of data, as they end an address.
const (
	dataSuffix  = ".json"
	csvSuffix   = ".csv"
	linesSuffix = ".jsonl"
)

// formOf is the form of data a path asks for. Lists and searches have all of
// them, every other page has .json alone.
func formOf(path string) string {
	for _, form := range []string{dataSuffix, csvSuffix, linesSuffix} {
		if strings.HasSuffix(path, form) && (form == dataSuffix || strings.Count(path, "/") < 3) {
			return form
		}
	}
	return ""
}

// sees reports whether the caller may ask a source at all.
func (q *visit) sees(s *sourcePlan) bool {
	return q.caller.Source == "" || q.caller.Source == s.Name
}

// readable are the kinds of a source the caller may open without naming a
// record.
func (q *visit) readable(s *sourcePlan) []*kindPlan {
	if !q.known || s == nil || !q.sees(s) {
		return nil
	}
	var kinds []*kindPlan
	for _, k := range s.kinds {
		if (k.browsable() || k.single() || k.orphaned()) && q.seesKind(k) {
			kinds = append(kinds, k)
		}
	}
	return kinds
}

// seesKind reports whether the caller sees anything of a kind.
func (q *visit) seesKind(k *kindPlan) bool {
	return q.v.Gate.Sees(q.caller, k.source.Name, k.Name)
}

// forced reports a reload with the shift key, which sends no-cache.
func forced(r *http.Request) bool {
	return slices.ContainsFunc(r.Header.Values("Cache-Control"), func(s string) bool { return strings.Contains(s, "no-cache") })
}

// since is the time since then as the process measures it.
func (q *visit) since(then time.Time) time.Duration { return q.v.Now().Sub(then) }
