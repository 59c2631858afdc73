// Exchange: one request from its caller to its last byte.

package page

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

	"understudy"
	"understudy/internal/viewer/plan"
	"understudy/kit/accesslog"
	"understudy/kit/header"
	"understudy/request"
)

// Exchange is one request on its way through the viewer.
type Exchange struct {
	V       *Visitor
	R       *http.Request
	Ctx     context.Context
	Rights  Rights
	Source  *plan.Source // that the address names
	Kind    *plan.Kind
	Data    string // the form of data that is wanted: ".json", ".csv", ".jsonl"; "" = a page
	Clock   Clock
	Tasks   tasks
	Reply   Reply
	records recordEditions
	Answer  *request.Response // what the mirror said, for the footer
	Found   bool              // the page shows what a search found
	Typed   string            // what was put in the search box
}

// Reply is what goes out.
type Reply struct {
	W         http.ResponseWriter
	r         *http.Request
	v         *Visitor
	Sent      bool          // the answer has begun to go out
	page      *bytes.Buffer // what is written of the page and not sent
	out       *stream       // the page as it is sent in pieces; nil: nothing is out
	Fragments []*Fragment   // of the page, by the numbers in their marks
	said      string        // what a form has done, for this page
	session   Session       // of the browser, once a page has contents to show
}

// Exchange names the caller, runs the handler under the deadline and turns its
// error into a page.
func (v *Visitor) Exchange(w http.ResponseWriter, r *http.Request, run Handler) {
	v.Open(w, r, func(q *Exchange) error {
		if err := q.enter(); err != nil {
			return err
		}
		return run(q)
	})
}

// Refuse shows an error as a page.
func (v *Visitor) Refuse(w http.ResponseWriter, r *http.Request, err error) {
	v.Exchange(w, r, func(*Exchange) error { return err })
}

// Open is Exchange for what anybody may ask: the caller stays unknown.
func (v *Visitor) Open(w http.ResponseWriter, r *http.Request, run Handler) {
	ctx, cancel := context.WithTimeout(r.Context(), v.Options.Deadline)
	q, end := v.Begin(ctx, w, r)
	defer end()
	defer cancel()
	err := contain(func() error { return run(q) })
	if q.Answer != nil {
		line := accesslog.LineOf(ctx)
		line.Outcome, line.Upstream = q.Answer.Outcome.String(), q.Answer.Upstream
	}
	if err == nil {
		return
	}
	if q.Reply.out != nil && r.Context().Err() != nil {
		panic(http.ErrAbortHandler) // the reader has gone
	}
	if q.Reply.Sent { // half an answer must not look like a whole one
		v.Options.Logger.ErrorContext(ctx, "viewer: answer broken off", "path", r.URL.Path, "error", err)
		panic(http.ErrAbortHandler)
	}
	if worse := contain(func() error { q.Fail(err); return nil }); worse != nil {
		v.Options.Logger.ErrorContext(ctx, "viewer: no page for an error", "error", err, "worse", worse)
		http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
	}
}

// Begin makes an exchange. end waits for what it has begun, which ends with ctx.
func (v *Visitor) Begin(ctx context.Context, w http.ResponseWriter, r *http.Request) (q *Exchange, end func()) {
	q = &Exchange{
		V: v, R: r, Ctx: ctx, Rights: Rights{Gate: v.Options.Gate, v: v}, Clock: Clock{Start: v.Options.Now()},
		Reply: Reply{W: w, r: r, v: v},
		Tasks: tasks{ctx: ctx, r: r, logger: v.Options.Logger, ended: make(chan struct{}, 1), slots: make(chan struct{}, atOnce)},
	}
	q.Clock.Zone, q.Clock.zoned = v.zones.of(r)
	endTimes := q.Tasks.hurry(w.Header())
	return q, func() { endTimes(); q.Tasks.behind.Wait() }
}

// hurry begins the times a page waits before its first byte; data have none.
func (t *tasks) hurry(h http.Header) (end func()) {
	t.soon, t.late = t.ctx, t.ctx
	if formOf(t.r.URL.Path) != "" {
		return func() {}
	}
	soon, late := patience, firstByte
	if wait, ok := header.Wait(t.r.Header.Values("Prefer")); ok && wait > 0 { // for the whole page, with the status of all of it
		wait = min(wait, time.Hour)
		soon, late = wait, wait
		h.Set("Preference-Applied", "wait="+strconv.Itoa(int(wait/time.Second)))
	}
	var endSoon, endLate context.CancelFunc
	t.soon, endSoon = context.WithTimeout(t.ctx, soon)
	t.late, endLate = context.WithTimeout(t.ctx, late)
	return func() { endSoon(); endLate() }
}

// Audit lists what the caller does, before the answer goes out. Its error ends the exchange.
func Audit(q *Exchange, e understudy.AuditEntry) error { return AuditLater(q, e)(q.Ctx) }

// AuditLater is Audit for work that outlives the request: what it returns lists the entry.
func AuditLater(q *Exchange, e understudy.AuditEntry) func(context.Context) error {
	if q.V.Options.Audit == nil {
		return func(context.Context) error { return nil }
	}
	e = EntryOf(q, e)
	return func(ctx context.Context) error { return q.V.Options.Audit.RecordAction(ctx, e) }
}

// EntryOf is an entry with what the exchange knows: who asks, and for what.
func EntryOf(q *Exchange, e understudy.AuditEntry) understudy.AuditEntry {
	if e.Caller.Name == "" {
		e.Caller = q.Rights.Caller
	}
	e.AsPerson, e.Request = true, accesslog.LineOf(q.Ctx).ID
	if q.Source != nil && e.Source == "" {
		e.Source = q.Source.Name
	}
	if q.Kind != nil && e.Kind == "" {
		e.Kind = q.Kind.Spec.Name
	}
	return e
}

// streams reports whether the answer may be sent in pieces: it is a page, and of a
// page all of it.
func streams(r *http.Request) bool { return r.Method == http.MethodGet && formOf(r.URL.Path) == "" }

// contain makes a panic an error like any other.
func contain(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("viewer: panic: %v\n%s", p, debug.Stack())
		}
	}()
	return f()
}

// enter finds the caller, the source and the kind of a request.
func (q *Exchange) enter() (err error) {
	q.Data = formOf(q.R.URL.Path)
	if q.Rights.Caller, err = q.V.Options.Callers.IdentifyPerson(q.R); err != nil {
		return err
	}
	q.Rights.Known = true
	if q.Rights.ViewsAs() && q.R.Method == http.MethodPost && q.R.URL.Path != ViewAsEndPath {
		return &Problem{Title: "You are viewing as " + q.Rights.Caller.Role(), Kind: understudy.ErrForbidden,
			Hint: "Nothing can be changed meanwhile. End it first, above."}
	}
	q.Reply.TakeSaid(q.Rights.Caller.Name)
	name := q.R.PathValue("source")
	if name == "" {
		return nil
	}
	if q.Source = q.V.ByName[name]; q.Source == nil || !q.Rights.Sees(q.Source) {
		q.Source = nil
		known := []string{}
		for _, s := range q.V.Planned {
			if q.Rights.Sees(s) {
				known = append(known, s.Name)
			}
		}
		return UnknownWord("source", name, known, func(s string) string { return "/" + s })
	}
	if name = q.R.PathValue("kind"); name == "" {
		return nil
	}
	return q.enterKind(name)
}

func (q *Exchange) enterKind(name string) error {
	if q.R.PathValue("id") == "" {
		name = strings.TrimSuffix(name, q.Data)
	}
	if q.Kind = q.Source.ByName[name]; q.Kind != nil {
		return nil
	}
	var known []string
	for _, k := range q.Source.Kinds {
		if q.Rights.SeesKind(k) && len(k.PlannedLists) > 0 {
			known = append(known, k.Spec.Name)
		}
	}
	return UnknownWord("kind of "+q.Source.Spec.Title+" record", name, known, func(s string) string { return "/" + q.Source.Name + "/" + s })
}

// The forms of data, as they end an address.
const (
	DataSuffix  = ".json"
	CsvSuffix   = ".csv"
	LinesSuffix = ".jsonl"
)

// formOf is the form of data a path asks for. Lists and searches have all of
// them, every other page has .json alone.
func formOf(path string) string {
	for _, form := range []string{DataSuffix, CsvSuffix, LinesSuffix} {
		if strings.HasSuffix(path, form) && (form == DataSuffix || strings.Count(path, "/") < 3) {
			return form
		}
	}
	return ""
}

// Forced reports a reload with the shift key, which sends no-cache.
func Forced(r *http.Request) bool {
	return slices.ContainsFunc(r.Header.Values("Cache-Control"), func(s string) bool { return strings.Contains(s, "no-cache") })
}

// Administers reports whether the caller may change how the server works: it sees
// everything of every source.
func Administers(q *Exchange) bool {
	c := &q.Rights.Caller
	return c.Role() == understudy.RoleAll && (c.Source == "" || len(q.V.Options.Sources) == 1) && c.Grant.Live(q.Clock.Start)
}

// ForAll answers with a handler those alone who see everything of every source. what begins the sentence that refuses others.
func ForAll(what string, run Handler) Handler {
	return func(q *Exchange) error {
		if !Administers(q) {
			return fmt.Errorf("%w: %s the role %s alone", understudy.ErrForbidden, what, understudy.RoleAll)
		}
		return run(q)
	}
}

// SeesJobs reports whether the caller may see jobs: their keys and errors name records of every source.
func (q *Exchange) SeesJobs() bool { return q.V.Options.Jobs != nil && Administers(q) }

// The forms by which a caller looks through a role, and ends that.
const (
	ViewAsPath    = ControlPrefix + "view-as"
	ViewAsEndPath = ViewAsPath + "/end"
)
