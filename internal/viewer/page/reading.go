// Reads through the gate: the gate permits the request, the mirror answers it, and the gate hides fields of the
// answer. All reads of a page run at the same time.

package page

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/viewer/plan"
	"understudy/kit/jsonspan"
	"understudy/request"
	"understudy/spec"
)

// partTimeout is how long the read of one part may take. After that the part says that it could not be read.
const partTimeout = 10 * time.Second

// maxConcurrentReads is the maximum number of reads of one page that run at once. No page has more parts, so parts
// never wait for each other.
const maxConcurrentReads = 16

// Reading is an answer of the mirror as the caller may see it, or the error of the read.
type Reading struct {
	Answer *request.Response
	View   *access.View
	Err    error
}

// Read reads one target. If the gate refuses it, no request is sent to the mirror.
func (q *Exchange) Read(ctx context.Context, t *spec.Target) Reading {
	return q.Rights.readChecked(ctx, request.Request{Target: t, AsOf: q.Clock.AsOf.At, NoCache: IsForcedReload(q.R)})
}

// ReadExportPage reads one page of a list for an export, which reads the list from the beginning to the end. If whole is
// true, the page must be composed from stored records. Only the first page may cause a request to upstream.
func (q *Exchange) ReadExportPage(ctx context.Context, t *spec.Target, whole, first bool) Reading {
	a := request.Request{Target: t, AsOf: q.Clock.AsOf.At, OnlyIfCached: whole || !first}
	if whole {
		a.Local = &request.LocalQuery{}
	}
	return q.Rights.readChecked(ctx, a)
}

// readChecked reads a target, if the gate permits the caller to read it. All of the viewer's requests to the mirror go
// through ask and readPermitted.
func (r *Rights) readChecked(ctx context.Context, a request.Request) Reading {
	if err := r.Gate.CheckRead(r.Caller, a.Target); err != nil {
		return Reading{Err: err}
	}
	return r.readPermitted(ctx, a)
}

// readPermitted reads a target that the gate has already permitted.
func (r *Rights) readPermitted(ctx context.Context, a request.Request) Reading {
	a.Flow = r.Caller.Flow
	if r.Caller.Grant != nil {
		a.AgeLimit = r.Caller.Grant.MaxStale
	}
	sight := r.Gate.Visibility(r.Caller, a.Target)
	answer, err := sight.RequestPage(ctx, a, r.v.Options.Mirror.Answer)
	if err != nil {
		return Reading{Err: err}
	}
	view, err := sight.MakeView(answer.Page)
	return Reading{answer, view, err}
}

// TargetRead is a target that is read in the background of a page.
type TargetRead struct {
	Future  *Future // the running read; nil if the target is not read
	Target  *spec.Target
	Reading Reading // the result of the read, set before Future ends
}

// StartRead starts to read a target in the background. The read may take at most Visitor.PartTimeout.
func (q *Exchange) StartRead(t *spec.Target) *TargetRead {
	a := &TargetRead{Target: t}
	a.Future = q.Tasks.Begin(t.Key.String(), q.V.PartTimeout, func(ctx context.Context) error {
		a.Reading = q.Read(ctx, t)
		return a.Reading.Err
	})
	return a
}

// Wait waits for the read and returns its result.
func (a *TargetRead) Wait() Reading {
	<-a.Future.done
	if a.Future.Err != nil { // the read has panicked or was never started
		a.Reading.Err = a.Future.Err
	}
	return a.Reading
}

// ReadAll reads several targets at the same time. Each read may take at most Visitor.PartTimeout.
func (q *Exchange) ReadAll(targets []*spec.Target) []Reading {
	begun := make([]*TargetRead, len(targets))
	for i, t := range targets {
		begun[i] = q.StartRead(t)
	}
	all := make([]Reading, len(targets))
	for i, a := range begun {
		all[i] = a.Wait()
	}
	return all
}

// Rows returns the records of a reading. It returns none if the read failed.
func (r Reading) Rows() []access.Row {
	if r.View == nil || r.Answer.Page.Status != http.StatusOK {
		return nil
	}
	return r.View.Rows()
}

// Inputs returns the values on which the HTML of a part depends if the part shows the reading.
func (r Reading) Inputs(q *Exchange) []any {
	if r.View == nil {
		return []any{r.MissingReason(q)}
	}
	return []any{r.View.Sum[:], r.Answer.Page.Next.URI, r.MissingReason(q), q.Clock.AnswerTime(r.Answer)}
}

// HasMore reports whether there are older records.
func (r Reading) HasMore() bool { return r.Answer != nil && !r.Answer.Page.Next.IsZero() }

// AnswerTime returns the moment as of which an answer is shown. For a list composed from stored records, this is the
// moment of its newest page.
func (c *Clock) AnswerTime(a *request.Response) *When {
	if a == nil || !c.AsOf.At.IsZero() {
		return nil
	}
	return c.Moment(c.Start.Add(-cmp.Or(a.Newest, a.CurrentAge())))
}

// MissingReason returns the reason why a part of a page has no content, or "" if it has content.
func (r Reading) MissingReason(q *Exchange) string {
	title := q.Source.Spec.Title
	var up *understudy.UpstreamError
	switch {
	case r.Err == nil && r.Answer != nil && r.Answer.Page.Status == http.StatusAccepted:
		return computingMessage(q.Source) + "; try again in a moment."
	case r.Err == nil && r.Answer != nil && r.Answer.Page.Status != http.StatusOK:
		if why := q.Rights.errorReason(q.Source, r.View.Body); why != nil {
			return fmt.Sprintf("%s refused this (%d): %s.", title, r.Answer.Page.Status, why)
		}
		return fmt.Sprintf("%s refused this (%d).", title, r.Answer.Page.Status)
	case r.Err == nil:
		return ""
	case errors.Is(r.Err, understudy.ErrForbidden):
		return "Your role can't see this."
	case errors.Is(r.Err, understudy.ErrNotMirrored):
		return "your role can see only some of these, and they are not synced yet."
	case !q.Clock.AsOf.At.IsZero() && !errors.Is(r.Err, understudy.ErrForbidden):
		return "there is no version of this from that time."
	case errors.As(r.Err, &up):
		return title + " has not answered (" + up.ShortText() + "), and " + understudy.ExplainNoStoredAnswer(r.Err) + "."
	case errors.Is(r.Err, context.DeadlineExceeded):
		return fmt.Sprintf("%s has not answered within %d s.", title, int(q.V.PartTimeout/time.Second))
	case errors.Is(r.Err, understudy.ErrUnavailable):
		return title + " is not answering, and " + understudy.ExplainNoStoredAnswer(r.Err) + "."
	}
	return "Something went wrong here. The server's log has the details."
}

// CheckReadable returns an error if an answer with status 200 is no JSON document or has an unknown encoding. Such an
// answer must not be shown as an empty list.
func CheckReadable(r Reading) error {
	why := r.Answer.Page.NotStored
	if len(r.View.Body) == 0 || why == "" || r.View.IsReadable() {
		return nil
	}
	return &Problem{
		Title: "This answer can't be shown", Kind: understudy.ErrUnavailable,
		Hint: "A page can't show its format (" + why + "). Programs receive it unchanged.",
	}
}

// Open reads the target that the page shows, which the gate has permitted, and starts to read our own numbers. If the
// answer is not stored, Open calls beside, which may start other reads. beside may be nil. If the request is for a
// data format, Open sends the response, and done is true.
func (q *Exchange) Open(t *spec.Target, beside func()) (view *access.View, own numberFlights, done bool, err error) {
	own = q.V.Numbers.Begin(q)
	var r Reading
	err = q.ReadFirst(func(ctx context.Context) error {
		r = q.Rights.readPermitted(ctx, request.Request{Target: t, AsOf: q.Clock.AsOf.At, NoCache: IsForcedReload(q.R)})
		return nil
	}, beside)
	if err != nil {
		return nil, nil, false, err
	}
	switch {
	case errors.Is(r.Err, understudy.ErrNotMirrored):
		return nil, nil, false, q.Rights.newNotMirrored(q.Kind, r.Err)
	case r.Err != nil && !q.Clock.AsOf.At.IsZero():
		return nil, nil, false, ExplainPastError(q, r.Err)
	case errors.Is(r.Err, understudy.ErrNotFound):
		return nil, nil, false, NewNoSuchRecord(q.Kind)
	}
	if r.Err != nil {
		return nil, nil, false, r.Err
	}
	q.Answer = r.Answer
	if r.Answer.Page.Status == http.StatusOK {
		if err := WriteAudit(q, q.V.auditEntry(q.Kind, q.Rights.Caller.Role(), q.Clock.AsOf, t, r.View)); err != nil {
			return nil, nil, false, err
		}
	}
	if err := CheckReadable(r); err != nil {
		return nil, nil, false, err
	}
	switch {
	case q.DataFormat == DataSuffix:
		q.send(r.Answer.Page.Status, "application/json", bytes.ToValidUTF8(r.View.Body, []byte("\ufffd")))
		return nil, nil, true, nil
	case r.Answer.Page.Status != http.StatusOK:
		return nil, nil, false, q.Rights.NewRefusal(q.Kind, r.Answer.Page.Status, r.View.Body)
	}
	return r.View, own, false, nil
}

// auditEntry returns the audit entry for a request of a page. For a record, the entry has the id and the phone
// numbers that the caller sees. For a list, it has the ids of the records and the values of the filters.
func (v *Visitor) auditEntry(k *plan.Kind, role string, asOf AsOf, t *spec.Target, view *access.View) understudy.AuditEntry {
	e := understudy.AuditEntry{Action: understudy.ActionList}
	if !asOf.At.IsZero() {
		e.What = "as of an earlier moment"
	}
	if t.Instance != nil {
		rows := view.Rows()
		e.Action, e.Rows, e.IDs = understudy.ActionRecord, len(rows), []string{t.ID}
		for _, row := range rows {
			for _, v := range row.Fields() {
				if v.State == access.Seen && plan.IsNumber(v.Text) {
					e.Values = append(e.Values, v.Text)
				}
			}
		}
		return e
	}
	e.IDs = v.idsIn(view, k, role)
	e.Rows = len(e.IDs)
	if t.List != nil {
		e.Values = append(FilterValues(t.List, t.Query), t.ParentIDs()...)
		e.Action = understudy.ListAction(t.First && asOf.At.IsZero(), e.Rows, e.Values)
	}
	return e
}

// idsIn returns the id of each row of a list, or "" for an id that the role may not see. It caches the result by a
// hash of the list. Callers must not change the result.
func (v *Visitor) idsIn(view *access.View, k *plan.Kind, role string) []string {
	key := idsKey{view.Sum, k, role}
	named := view.Sum != [16]byte{}
	if ids, ok := v.idCache.Get(key); ok && named {
		return ids
	}
	var ids []string
	for _, row := range view.Rows() {
		ids = append(ids, row.ID)
	}
	if named {
		v.idCache.Put(key, ids, int64(1+len(ids)))
	}
	return ids
}

// FilterValues returns the values by which a list is filtered.
func FilterValues(l *spec.List, params understudy.Query) (all []string) {
	for _, p := range params {
		if l.Filter(p.Name) != nil && p.Value != "" {
			all = append(all, p.Value)
		}
	}
	return all
}

// NewRefusal returns the error for people if upstream refused a request. It includes upstream's own message.
func (r *Rights) NewRefusal(k *plan.Kind, status int, body []byte) error {
	if status == http.StatusAccepted {
		return &Problem{Title: computingMessage(k.Source), Hint: "Try again in a moment.", Kind: understudy.ErrUnavailable}
	}
	p := r.refusal(k.Source, status, body)
	if status == http.StatusNotFound || status == http.StatusGone {
		p.Kind = understudy.ErrNotFound
		p.Href, p.Link = k.Href, "See all "+k.Spec.Title
		p.Title = "There is no such " + k.Spec.Singular
	}
	return p
}

// computingMessage returns the message for a read that upstream answered with status 202, because it is still
// computing the answer.
func computingMessage(s *plan.Source) string { return s.Spec.Title + " is still computing this" }

// refusal returns the error for people if upstream refused a request. body is the body of upstream's answer as the
// caller may see it.
func (r *Rights) refusal(s *plan.Source, status int, body []byte) *Problem {
	return &Problem{
		Title: s.Spec.Title + fmt.Sprintf(" refused this (%d)", status),
		Hint:  upstreamMessage(body), Reason: r.errorReason(s, body), Kind: understudy.ErrInvalid,
	}
}

// CheckWrite returns an error for people if upstream refused a write. The error has upstream's message and error code
// (see ReasonOf).
func (r *Rights) CheckWrite(s *plan.Source, answer *understudy.Page) error {
	if answer.Status < http.StatusMultipleChoices {
		return nil
	}
	view, err := r.Gate.MakeView(r.Caller, answer)
	if err != nil {
		return err
	}
	return r.refusal(s, answer.Status, view.Body)
}

// ReasonOf returns the error code in an error of upstream, and the meaning of the code. err must wrap a Problem or an
// answer that could not be used. Otherwise, or if there is no code, the result is nil.
func (r *Rights) ReasonOf(s *plan.Source, err error) *plan.Reason {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p.Reason
	}
	var up *understudy.UpstreamError
	if !errors.As(err, &up) || up.Page == nil || s == nil {
		return nil
	}
	view, err := r.Gate.MakeView(r.Caller, up.Page)
	if err != nil {
		return nil
	}
	return r.errorReason(s, view.Body)
}

// errorReason returns the error code in the body of upstream's error. It returns nil if there is no code.
func (r *Rights) errorReason(s *plan.Source, body []byte) *plan.Reason {
	code := r.Gate.ErrorCode(s.Name, body)
	if code == "" {
		return nil
	}
	return s.Reason(code)
}

// NewNoSuchRecord returns the error that a record does not exist. A record that is hidden from the caller gets the same error.
func NewNoSuchRecord(k *plan.Kind) error {
	return &Problem{
		Title: "There is no such " + k.Spec.Singular, Hint: "Check the spelling of the id, or pick the record from its list.",
		Href: k.Href, Link: "See all " + k.Spec.Title, Kind: understudy.ErrNotFound,
	}
}

// newNotMirrored returns the error that a list can't be shown before all of its records are stored. This concerns
// callers who may see only some of the records, and filters by a hash.
func (r *Rights) newNotMirrored(k *plan.Kind, err error) error {
	why := k.Source.Spec.Title + " can't filter by codes"
	if r.Gate.HasRowRules(r.Caller, k.Source.Name) {
		why = "Your role can see only some of them"
	}
	return &Problem{
		Title: plan.UpperFirst(k.Spec.Title) + " are not synced yet",
		Hint:  why + ", so this list is assembled from stored records and needs a full sync first. " + Sentence(err),
		Kind:  understudy.ErrNotMirrored,
	}
}

// upstreamMessage returns the message in the body of upstream's error. If it finds none, it returns the beginning of the body.
func upstreamMessage(body []byte) string {
	if doc, err := jsonspan.Parse(body); err == nil && doc.Kind == jsonspan.Object {
		for _, name := range []string{"message", "detail", "error.message", "error", "title"} {
			if v, ok := jsonspan.Find(body, doc, name); ok && v.Kind == jsonspan.String {
				return "It says: " + understudy.ClipTo(jsonspan.Text(body, v), 400)
			}
		}
	}
	return "It says: " + understudy.ClipTo(string(body), 400)
}
