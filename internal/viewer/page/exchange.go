// Exchange: one request, from finding its caller to the last byte of the response.

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

// Exchange is one request and its response while the viewer handles them.
type Exchange struct {
	V           *Visitor
	R           *http.Request
	Ctx         context.Context
	Rights      Rights
	Source      *plan.Source // the source whose name the address contains; nil if it names none
	Kind        *plan.Kind
	DataFormat  string // the requested data format: ".json", ".csv" or ".jsonl"; empty for a page
	Clock       Clock
	Tasks       tasks
	Reply       Reply
	records     recordEditions
	Answer      *request.Response // the mirror's answer to the main read of the page; the footer shows its age and origin
	ShowsSearch bool              // whether the page shows the results of a search
	SearchText  string            // the text in the search box
}

// Reply is the response of an exchange.
type Reply struct {
	W         http.ResponseWriter
	r         *http.Request
	v         *Visitor
	Started   bool          // whether the first bytes of the response have been sent
	page      *bytes.Buffer // the rendered bytes of the page that have not been sent yet
	stream    *stream       // the response, if it is sent in pieces; nil until the first piece is sent
	Fragments []*Fragment   // the fragments of the page; the marks in the page are indexes of this slice
	message   string        // the message that a form left for this page, such as "Saved"
	session   Session       // the browser's session; set when the page shows the first audio or image
}

// Exchange finds the caller of the request, and runs the handler with the request deadline. If either fails, it sends
// an error page.
func (v *Visitor) Exchange(w http.ResponseWriter, r *http.Request, run Handler) {
	v.Open(w, r, func(q *Exchange) error {
		if err := q.enter(); err != nil {
			return err
		}
		return run(q)
	})
}

// Refuse answers a request with an error page.
func (v *Visitor) Refuse(w http.ResponseWriter, r *http.Request, err error) {
	v.Exchange(w, r, func(*Exchange) error { return err })
}

// Open runs a handler for a request by anybody. Other than Exchange, it does not identify the caller.
func (v *Visitor) Open(w http.ResponseWriter, r *http.Request, run Handler) {
	ctx, cancel := context.WithTimeout(r.Context(), v.Options.Deadline)
	if r.ProtoMajor == 2 && r.Header.Get("Sec-Fetch-Mode") == "navigate" && canStream(r) {
		h := &hinter{to: w, header: w.Header().Clone(), link: v.preloadLink()}
		defer h.begin()
		time.AfterFunc(firstByteTimeout, h.sendHint)
		w = h
	}
	q, end := v.Begin(ctx, w, r)
	defer end()
	defer cancel()
	err := recoverPanics(func() error { return run(q) })
	if q.Answer != nil {
		line := accesslog.LineOf(ctx)
		line.Outcome, line.Upstream = q.Answer.Outcome.String(), q.Answer.UpstreamTime
	}
	if err == nil {
		return
	}
	if q.Reply.stream != nil && r.Context().Err() != nil {
		panic(http.ErrAbortHandler) // the client has closed the connection
	}
	if q.Reply.Started { // the connection is aborted, so that the client does not take the response for complete
		v.Options.Logger.ErrorContext(ctx, "viewer: answer interrupted", "path", r.URL.Path, "error", err)
		panic(http.ErrAbortHandler)
	}
	if worse := recoverPanics(func() error { q.Fail(err); return nil }); worse != nil {
		v.Options.Logger.ErrorContext(ctx, "viewer: no page for an error", "error", err, "worse", worse)
		http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
	}
}

// Begin returns a new exchange and a function end, which waits for the exchange's background reads. The reads are
// cancelled when ctx ends.
func (v *Visitor) Begin(ctx context.Context, w http.ResponseWriter, r *http.Request) (q *Exchange, end func()) {
	q = &Exchange{
		V: v, R: r, Ctx: ctx, Rights: Rights{Gate: v.Options.Gate, v: v}, Clock: Clock{Start: v.Options.Now()},
		Reply: Reply{W: w, r: r, v: v},
		Tasks: tasks{ctx: ctx, r: r, logger: v.Options.Logger, ended: make(chan struct{}, 1), slots: make(chan struct{}, maxConcurrentReads)},
	}
	q.Clock.Zone, q.Clock.zoneChosen = v.zones.requestZone(r)
	endTimes := q.Tasks.startTimers(w.Header())
	return q, func() { endTimes(); q.Tasks.background.Wait() }
}

// startTimers starts the timers that limit how long a page waits before it sends its first byte, and for its parts.
// Responses in a data format have no such limit.
func (t *tasks) startTimers(h http.Header) (end func()) {
	t.partsWait, t.firstByteWait = t.ctx, t.ctx
	if dataFormatOf(t.r.URL.Path) != "" {
		return func() {}
	}
	soon, late := partsTimeout, firstByteTimeout
	// the client wants the complete page, with its final status
	if wait, ok := header.Wait(t.r.Header.Values("Prefer")); ok && wait > 0 {
		wait = min(wait, time.Hour)
		soon, late = wait, wait
		h.Set("Preference-Applied", "wait="+strconv.Itoa(int(wait/time.Second)))
	}
	var endSoon, endLate context.CancelFunc
	t.partsWait, endSoon = context.WithTimeout(t.ctx, soon)
	t.firstByteWait, endLate = context.WithTimeout(t.ctx, late)
	return func() { endSoon(); endLate() }
}

// WriteAudit writes an action of the caller to the audit log. It must be called before the response is sent. If it
// returns an error, the exchange must fail.
func WriteAudit(q *Exchange, e understudy.AuditEntry) error { return PrepareAudit(q, e)(q.Ctx) }

// PrepareAudit returns a function that writes an action of the caller to the audit log. Work that continues after the
// request uses it instead of WriteAudit.
func PrepareAudit(q *Exchange, e understudy.AuditEntry) func(context.Context) error {
	if q.V.Options.Audit == nil {
		return func(context.Context) error { return nil }
	}
	e = AuditEntry(q, e)
	return func(ctx context.Context) error { return q.V.Options.Audit.RecordAction(ctx, e) }
}

// AuditEntry adds the caller, the source and the kind of the exchange to an audit entry.
func AuditEntry(q *Exchange, e understudy.AuditEntry) understudy.AuditEntry {
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

// canStream reports whether the response may be sent in pieces. Only pages are, not responses in a data format.
func canStream(r *http.Request) bool {
	return r.Method == http.MethodGet && dataFormatOf(r.URL.Path) == ""
}

func recoverPanics(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("viewer: panic: %v\n%s", p, debug.Stack())
		}
	}()
	return f()
}

// enter identifies the caller, and finds the source and the kind in the address.
func (q *Exchange) enter() (err error) {
	q.DataFormat = dataFormatOf(q.R.URL.Path)
	if q.Rights.Caller, err = q.V.Options.Callers.IdentifyPerson(q.R); err != nil {
		return err
	}
	q.Rights.HasCaller = true
	if q.Rights.IsViewingAs() && q.R.Method == http.MethodPost && q.R.URL.Path != ViewAsEndPath {
		return &Problem{Title: "You are viewing as " + q.Rights.Caller.Role(), Kind: understudy.ErrForbidden,
			Hint: "You can't change anything while you do. End it first, above."}
	}
	q.Reply.TakeMessage(q.Rights.Caller.Name)
	name := q.R.PathValue("source")
	if name == "" {
		return nil
	}
	if q.Source = q.V.ByName[name]; q.Source == nil || !q.Rights.CanSee(q.Source) {
		q.Source = nil
		known := []string{}
		for _, s := range q.V.Planned {
			if q.Rights.CanSee(s) {
				known = append(known, s.Name)
			}
		}
		return NewUnknownWord("source", name, known, func(s string) string { return "/" + s })
	}
	if name = q.R.PathValue("kind"); name == "" {
		return nil
	}
	return q.enterKind(name)
}

func (q *Exchange) enterKind(name string) error {
	if q.R.PathValue("id") == "" {
		name = strings.TrimSuffix(name, q.DataFormat)
	}
	if q.Kind = q.Source.ByName[name]; q.Kind != nil {
		return nil
	}
	var known []string
	for _, k := range q.Source.Kinds {
		if q.Rights.CanSeeKind(k) && len(k.PlannedLists) > 0 {
			known = append(known, k.Spec.Name)
		}
	}
	return NewUnknownWord("kind of "+q.Source.Spec.Title+" record", name, known,
		func(s string) string { return "/" + q.Source.Name + "/" + s })
}

// The endings of addresses that request a data format instead of a page.
const (
	DataSuffix  = ".json"
	CsvSuffix   = ".csv"
	LinesSuffix = ".jsonl"
)

// dataFormatOf returns the data format that the path requests, or "" if it requests a page. Lists and searches have all
// three formats, other pages only .json.
func dataFormatOf(path string) string {
	for _, form := range []string{DataSuffix, CsvSuffix, LinesSuffix} {
		if strings.HasSuffix(path, form) && (form == DataSuffix || strings.Count(path, "/") < 3) {
			return form
		}
	}
	return ""
}

// IsForcedReload reports whether the request has Cache-Control: no-cache, as browsers send it for a reload with the shift key.
func IsForcedReload(r *http.Request) bool {
	return slices.ContainsFunc(r.Header.Values("Cache-Control"), func(s string) bool { return strings.Contains(s, "no-cache") })
}

// IsAdministrator reports whether the caller is an administrator, who may change how the server works. Administrators
// see everything of every source.
func IsAdministrator(q *Exchange) bool {
	c := &q.Rights.Caller
	return c.Role() == understudy.RoleAll && (c.Source == "" || len(q.V.Options.Sources) == 1) && c.Grant.IsActive(q.Clock.Start)
}

// AdministratorHandler returns a handler for administrators only. Other callers get an error that they can't do what,
// which is a verb phrase.
func AdministratorHandler(what string, run Handler) Handler {
	return func(q *Exchange) error {
		if !IsAdministrator(q) {
			return fmt.Errorf("%w: only the role %s can %s", understudy.ErrForbidden, understudy.RoleAll, what)
		}
		return run(q)
	}
}

// CanSeeJobs reports whether the caller may see jobs. Their keys and errors name records of every source.
func (q *Exchange) CanSeeJobs() bool { return q.V.Options.Jobs != nil && IsAdministrator(q) }

// The paths of the forms by which an administrator starts or ends viewing the pages as another role.
const (
	ViewAsPath    = ControlPrefix + "view-as"
	ViewAsEndPath = ViewAsPath + "/end"
)
