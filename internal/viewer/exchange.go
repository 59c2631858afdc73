// Exchange: one request from its caller to its last byte.

package viewer

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"
	"understudy/internal/viewer/plan"

	"understudy"
	"understudy/kit/accesslog"
	"understudy/kit/header"
)

// exchange is one request on its way through the viewer.
type exchange struct {
	v   *Visitor
	r   *http.Request
	ctx context.Context
	rights
	subject
	clock
	tasks
	reply
	recordEdition
	answer *understudy.Answer // what the mirror said, for the footer
	found  bool               // the page shows what a search found
	typed  string             // what was put in the search box
}

// subject is what an address names.
type subject struct {
	source *plan.Source
	kind   *plan.Kind
	data   string // the form of data that is wanted: ".json", ".csv", ".jsonl"; "" = a page
	asOf   asOf   // the moment the page is asked for
}

// reply is what goes out.
type reply struct {
	w         http.ResponseWriter
	sent      bool          // the answer has begun to go out
	page      *bytes.Buffer // what is written of the page and not sent
	out       *stream       // the page as it is sent in pieces; nil: nothing is out
	fragments []*fragment   // of the page, by the numbers in their marks
	session   session       // of the browser, once a page has contents to show
}

// exchange names the caller, runs the handler under the deadline and turns its
// error into a page.
func (v *Visitor) exchange(w http.ResponseWriter, r *http.Request, run handler) {
	ctx, cancel := context.WithTimeout(r.Context(), v.Deadline)
	q, end := v.begin(ctx, w, r)
	defer end()
	defer cancel()
	err := contain(func() error {
		if err := q.enter(); err != nil {
			return err
		}
		return run(q)
	})
	if q.answer != nil {
		line := accesslog.Of(ctx)
		line.How, line.Upstream = q.answer.How.String(), q.answer.Upstream
	}
	if err == nil {
		return
	}
	if q.out != nil && r.Context().Err() != nil {
		panic(http.ErrAbortHandler) // the reader has gone; nobody is left to tell
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

// begin makes an exchange. end waits for what it has begun, which ends with ctx.
func (v *Visitor) begin(ctx context.Context, w http.ResponseWriter, r *http.Request) (q *exchange, end func()) {
	q = &exchange{
		v: v, r: r, ctx: ctx, rights: rights{gate: v.Gate}, clock: clock{start: v.Now()}, reply: reply{w: w},
		tasks: tasks{ended: make(chan struct{}, 1), slots: make(chan struct{}, atOnce)},
	}
	q.zone, q.zoned = v.zones.of(r)
	endTimes := q.hurry()
	return q, func() { endTimes(); q.behind.Wait() }
}

// hurry begins the times a page waits before its first byte; data have none.
func (q *exchange) hurry() (end func()) {
	q.soon, q.late = q.ctx, q.ctx
	if formOf(q.r.URL.Path) != "" {
		return func() {}
	}
	soon, late := patience, firstByte
	if wait, ok := header.Wait(q.r.Header.Values("Prefer")); ok && wait > 0 { // for the whole page, with the status of all of it
		wait = min(wait, time.Hour)
		soon, late = wait, wait
		q.w.Header().Set("Preference-Applied", "wait="+strconv.Itoa(int(wait/time.Second)))
	}
	var endSoon, endLate context.CancelFunc
	q.soon, endSoon = context.WithTimeout(q.ctx, soon)
	q.late, endLate = context.WithTimeout(q.ctx, late)
	return func() { endSoon(); endLate() }
}

// streams reports whether the answer may be sent in pieces: it is a page, and of a
// page all of it.
func (q *exchange) streams() bool { return q.r.Method == http.MethodGet && formOf(q.r.URL.Path) == "" }

// contain makes a panic an error like any other.
func contain(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("viewer: panic: %v\n%s", p, debug.Stack())
		}
	}()
	return f()
}

// enter finds who asks, and for what.
func (q *exchange) enter() (err error) {
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

func (q *exchange) enterKind(name string) error {
	if q.r.PathValue("id") == "" {
		name = strings.TrimSuffix(name, q.data)
	}
	if q.kind = q.source.ByName[name]; q.kind != nil {
		return nil
	}
	var known []string
	for _, k := range q.source.Kinds {
		if q.seesKind(k) && len(k.PlannedLists) > 0 {
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

// forced reports a reload with the shift key, which sends no-cache.
func forced(r *http.Request) bool {
	return slices.ContainsFunc(r.Header.Values("Cache-Control"), func(s string) bool { return strings.Contains(s, "no-cache") })
}

func (q *exchange) seesJobs() bool {
	return q.v.Jobs != nil && q.caller.Role() == understudy.RoleAll && (q.caller.Source == "" || len(q.v.Sources) == 1) && q.caller.Grant.Live(q.start)
}
