// Failures: error pages with advice for the reader. This is the only place that maps errors to status codes.

package page

import (
	"cmp"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/query"
	"understudy/internal/viewer/plan"
	"understudy/kit/jsonhttp"
	"understudy/kit/suggest"
)

// Problem is an error that is written for people.
type Problem struct {
	Title      string   // a phrase that says what is wrong
	Hint       string   // what the reader can do about the problem
	KnownWords []string // the words that the viewer accepts instead, the most similar first
	Href       string   // the address of a page that helps; empty for the home page
	Link       string   // the text of the link that helps
	Mistake    *Pointer // the place of the mistake in the reader's input; nil if it is not known
	// Reason has upstream's error code and its meaning. It is nil if upstream gave no code.
	Reason *plan.Reason
	Kind   error
}

// Error returns the title and the hint in one line.
func (p *Problem) Error() string { return "viewer: " + p.Title + ". " + p.Hint }

// Unwrap returns the error kind.
func (p *Problem) Unwrap() error { return p.Kind }

// NewBadRequest returns an error about the reader's input. known are the words that would be accepted.
func NewBadRequest(title, hint string, known []string) error {
	return &Problem{Title: title, Hint: hint, KnownWords: known, Kind: understudy.ErrInvalid}
}

// NewNotFound returns an error for an address of nothing. href is the address of a page that may help.
func NewNotFound(title, hint, href string) error {
	p := &Problem{Title: title, Hint: hint, Href: href, Kind: understudy.ErrNotFound}
	if href != "" && href != "/" {
		p.Link = "Go to " + understudy.Clip(href)
	}
	return p
}

// NewUnknownWord returns an error about an unknown word in the address. If the word stands for a source or kind, the
// status is 404 and link returns the address for a known word. If it stands for a parameter, the status is 400.
func NewUnknownWord(what, word string, known []string, link func(string) string) error {
	p := &Problem{Title: "There is no " + what + " “" + understudy.Clip(word) + "”", Kind: understudy.ErrNotFound}
	if link == nil {
		p.Kind = understudy.ErrInvalid
	}
	near := suggest.ClosestWord(understudy.Clip(word), known)
	if near != "" {
		p.KnownWords = append(p.KnownWords, near)
		p.Hint = "Did you mean “" + near + "”?"
		if link != nil {
			p.Href, p.Link = link(near), "Go to "+near
		}
	}
	for _, k := range known {
		if k != near {
			p.KnownWords = append(p.KnownWords, k)
		}
	}
	p.Hint = cmp.Or(p.Hint, "Check the spelling.")
	return p
}

// failure is the data of the error page.
type failure struct {
	Status  int
	Problem Problem
	Outage  *outage
}

// outage is what the error page says about a source whose API does not answer.
type outage struct {
	State         Health
	Retry         int        // the number of seconds until upstream is tried again
	ReadableKinds []kindView // the kinds whose stored records can be read during the outage
}

// Fail answers with an error page, or with the error as JSON.
func (q *Exchange) Fail(err error) {
	status := understudy.Status(err)
	if errors.Is(err, understudy.ErrInvalid) {
		status = http.StatusBadRequest // a person has typed an address that exists neither here nor upstream
	}
	if status == http.StatusUnauthorized && q.V.Options.People != nil && q.DataFormat == "" && len(q.R.Header["Authorization"]) == 0 {
		path := SignInPath // which redirects to the page of this request after the sign-in; the fields of a form are lost
		if q.R.Method == http.MethodGet && q.R.URL.Path != "/" {
			path += plan.WithQuery(understudy.Query{{Name: "back", Value: q.R.URL.RequestURI()}})
		}
		q.RedirectBack(path, "")
		return
	}
	f := failure{Status: status, Problem: q.explain(status, err)}
	h := q.Reply.W.Header()
	jsonhttp.SignError(h, status, f.Problem.Title)
	switch status {
	case http.StatusUnauthorized:
		jsonhttp.RequestCredential(q.Reply.W, q.R, "Understudy")
	case http.StatusTooManyRequests:
		wait := 2.0
		if over := (*understudy.RateError)(nil); errors.As(err, &over) {
			wait = math.Ceil(over.Wait.Seconds())
		}
		h.Set("Retry-After", strconv.Itoa(int(wait)))
	case http.StatusServiceUnavailable:
		f.Outage = q.outage(err)
		h.Set("Retry-After", strconv.Itoa(f.Outage.Retry))
	case http.StatusInternalServerError:
		q.V.Options.Logger.ErrorContext(q.Ctx, "viewer: request failed", "path", q.R.URL.Path, "error", err)
	}
	if q.DataFormat != "" {
		said := map[string]any{"status": status, "message": f.Problem.Title, "hint": f.Problem.Hint, "known": f.Problem.KnownWords}
		if r := f.Problem.Reason; r != nil {
			said["code"], said["meaning"], said["docs"] = r.Code, r.Meaning, r.Docs
		}
		body, _ := json.Marshal(said)
		q.send(status, "application/json", append(body, '\n'))
		return
	}
	if err := q.Render(status, "failure", f.Problem.Title, f); err != nil {
		q.V.Options.Logger.ErrorContext(q.Ctx, "viewer: render error page", "error", err)
		http.Error(q.Reply.W, http.StatusText(status), status)
	}
}

// explain returns the text for an error. It uses the texts of the root package's errors, which are written for
// people. All other texts go only to the log.
func (q *Exchange) explain(status int, err error) Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return *p
	}
	switch status {
	case http.StatusBadRequest:
		return Problem{Title: "This address is not valid", Hint: Sentence(err)}
	case http.StatusUnauthorized:
		return Problem{Title: "Sign in to see this", Hint: "Use the user name and the secret of a credential. " + Sentence(err)}
	case http.StatusTooManyRequests:
		return Problem{Title: "Too many tries", Hint: Sentence(err) + " Wait a few seconds, then try again."}
	case http.StatusForbidden:
		return Problem{Title: "Your role does not allow this", Hint: Sentence(err) + q.Rights.remedy(q.Kind, err)}
	case http.StatusNotFound:
		return Problem{Title: "There is no page at this address", Hint: "Check the spelling of the id, or pick the record from its list."}
	case http.StatusMethodNotAllowed:
		return Problem{Title: "This page can only be read", Hint: "Use GET. Programs change records at the drop-in address."}
	case http.StatusServiceUnavailable:
		if errors.Is(err, understudy.ErrNotAudited) {
			return Problem{Title: "This can't be shown now", Hint: "Everything shown here must be recorded in the audit log, and the log can't " +
				"be written. The server's log has the reason. Try again in a moment."}
		}
		title := "No answer in time"
		if q.Source != nil {
			title = q.Source.Spec.Title + " is not answering"
		}
		return Problem{Title: title, Hint: plan.UpperFirst(understudy.ExplainNoStoredAnswer(err)) + ".",
			Reason: q.Rights.ReasonOf(q.Source, err)}
	}
	return Problem{Title: "Something went wrong here", Hint: "Try again. If it happens again, tell an administrator the time: " +
		"the server's log has the details."}
}

// remedy returns the line of settings that allows what the gate refused: to see a kind, or to use a field. It returns
// "" if no line allows it.
func (r *Rights) remedy(k *plan.Kind, err error) string {
	var unseen *access.UnseenError
	switch {
	case r.Caller.Role() == "" || k == nil:
		return ""
	case errors.As(err, &unseen):
		return r.RemedyOf(k, unseen.Field)
	case !r.Gate.CanSee(r.Caller, k.Source.Name, k.Spec.Name):
		return r.rule(k.Source, k.Spec.Name+": see")
	}
	return ""
}

// Sentence returns the text of an error for people, as a sentence.
func Sentence(err error) string {
	text := strings.TrimPrefix(understudy.PlainText(err), understudy.ErrNotMirrored.Error()+": ")
	if text == "" {
		return ""
	}
	text = plan.UpperFirst(text)
	if !strings.HasSuffix(text, ".") {
		text += "."
	}
	return text
}

// outage returns when the outage began, when upstream is tried again, and what can be read until then. It returns nil
// if err is not about an outage.
func (q *Exchange) outage(err error) *outage {
	o := &outage{Retry: 5}
	if q.Source != nil {
		snap := q.V.Options.Snapshot(q.Ctx, q.Source.Name)
		o.State = q.Clock.HealthOf(snap, q.Source.Spec.Title)
		if wait := snap.NextProbe.Sub(q.Clock.Start); !snap.NextProbe.IsZero() && wait > 0 {
			o.Retry = int(math.Ceil(wait.Seconds()))
		}
		for _, group := range q.Rights.KindGroups(q.Source, &snap, &q.Clock) {
			for _, k := range group.Kinds {
				if k.Stored > 0 && (q.Kind == nil || k.Href != q.Kind.Href || q.R.URL.RawQuery != "" || q.R.PathValue("id") != "") {
					o.ReadableKinds = append(o.ReadableKinds, k)
				}
			}
		}
	}
	if up, ok := errors.AsType[*understudy.UpstreamError](err); ok && up.RetryAfter > time.Duration(o.Retry)*time.Second {
		o.Retry = int(math.Ceil(up.RetryAfter.Seconds()))
	}
	return o
}

// Pointer shows where in the reader's input a mistake is.
type Pointer struct {
	Before, At, After, Why string
	Kind                   error
}

// FindSyntaxError returns the syntax error of a search that err wraps, or nil if there is none.
func FindSyntaxError(err error) *query.SyntaxError {
	if wrong, ok := errors.AsType[*query.SyntaxError](err); ok {
		return wrong
	}
	return nil
}

// NewPointer splits the text of a search before and after its mistake, but never within a character.
func NewPointer(e *query.SyntaxError) *Pointer {
	at := min(max(e.At, 0), len(e.Text))
	end := min(max(e.End, at), len(e.Text))
	for at > 0 && at < len(e.Text) && !utf8.RuneStart(e.Text[at]) {
		at--
	}
	for end < len(e.Text) && !utf8.RuneStart(e.Text[end]) {
		end++
	}
	return &Pointer{Before: e.Text[:at], At: e.Text[at:end], After: e.Text[end:], Why: plan.UpperFirst(strings.TrimSuffix(e.Why, ".")) + ".",
		Kind: e.Kind}
}
