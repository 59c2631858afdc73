// Failure: errors as pages a person can act on. Only here an error becomes a
// status.

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

// Problem is an error that knows what to tell a person.
type Problem struct {
	Title string   // what is wrong
	Hint  string   // what to try next
	Known []string // the words that would have been right, nearest first
	Href  string   // where to go; "" = home
	Link  string   // the text of that link
	Wrong *Pointer // the place in what was asked, when there is one
	// Reason is upstream's error code and its meaning; nil: upstream gave none.
	Reason *plan.Reason
	Kind   error
}

// Error is the title and the hint in one line.
func (p *Problem) Error() string { return "viewer: " + p.Title + ". " + p.Hint }

// Unwrap is the error kind.
func (p *Problem) Unwrap() error { return p.Kind }

// BadRequest is a problem of what was asked; known are the words that would have been right.
func BadRequest(title, hint string, known []string) error {
	return &Problem{Title: title, Hint: hint, Known: known, Kind: understudy.ErrInvalid}
}

// NotFound is a problem of an address that names nothing; href leads on.
func NotFound(title, hint, href string) error {
	p := &Problem{Title: title, Hint: hint, Href: href, Kind: understudy.ErrNotFound}
	if href != "" && href != "/" {
		p.Link = "Go to " + understudy.Clip(href)
	}
	return p
}

// UnknownWord is a problem with a word of the address: what is 404 for a
// source or kind and 400 for a parameter. link is the address of a known word.
func UnknownWord(what, word string, known []string, link func(string) string) error {
	p := &Problem{Title: "There is no " + what + " “" + understudy.Clip(word) + "”", Kind: understudy.ErrNotFound}
	if link == nil {
		p.Kind = understudy.ErrInvalid
	}
	near := suggest.ClosestWord(understudy.Clip(word), known)
	if near != "" {
		p.Known = append(p.Known, near)
		p.Hint = "Did you mean “" + near + "”?"
		if link != nil {
			p.Href, p.Link = link(near), "Go to "+near
		}
	}
	for _, k := range known {
		if k != near {
			p.Known = append(p.Known, k)
		}
	}
	p.Hint = cmp.Or(p.Hint, "Check the spelling.")
	return p
}

// statusOf is understudy.Status, but for an address that cannot be read and names
// nothing of upstream's either: people who typed it are told of their mistake.
func statusOf(err error) int {
	if errors.Is(err, understudy.ErrInvalid) {
		return http.StatusBadRequest
	}
	return understudy.Status(err)
}

// failure is what the error page shows.
type failure struct {
	Status  int
	Problem Problem
	Outage  *outage
	Unseen  bool // the caller may read nothing here
}

// outage is what is known of a source that does not answer.
type outage struct {
	State Health
	Retry int        // seconds
	Still []kindView // kinds that can still be read
}

// Fail answers with an error page, or the same as data.
func (q *Exchange) Fail(err error) {
	status := statusOf(err)
	if status == http.StatusUnauthorized && q.V.Options.People != nil && q.Data == "" && len(q.R.Header["Authorization"]) == 0 {
		q.GoBack(signInPath(q.R), "") // it is the browser of a person
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
	if q.Data != "" {
		said := map[string]any{"status": status, "message": f.Problem.Title, "hint": f.Problem.Hint, "known": f.Problem.Known}
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

// signInPath is the page of sign-in that leads back. What a form sent is not kept.
func signInPath(r *http.Request) string {
	if r.Method != http.MethodGet || r.URL.Path == "/" {
		return SignInPath
	}
	return SignInPath + plan.WithQuery(understudy.Query{{Name: "back", Value: r.URL.RequestURI()}})
}

// explain finds the words for an error. Errors of the root kinds are written
// for people; anything else stays in the log.
func (q *Exchange) explain(status int, err error) Problem {
	var p *Problem
	if errors.As(err, &p) {
		return *p
	}
	switch status {
	case http.StatusBadRequest:
		return Problem{Title: "This address cannot be read", Hint: Sentence(err)}
	case http.StatusUnauthorized:
		return Problem{Title: "Sign in to see this", Hint: "Give the user and secret of a credential from the configuration. " + Sentence(err)}
	case http.StatusTooManyRequests:
		return Problem{Title: "Too many tries", Hint: Sentence(err) + " Wait a few seconds, then try again."}
	case http.StatusForbidden:
		return Problem{Title: "Your role does not allow this", Hint: Sentence(err) + q.Rights.remedy(q.Kind, err)}
	case http.StatusNotFound:
		return Problem{Title: "There is nothing under this address", Hint: "Check the spelling of the id, or pick the record from its list."}
	case http.StatusMethodNotAllowed:
		return Problem{Title: "This page can only be read", Hint: "Ask for it with GET. Programs change records through the drop-in address."}
	case http.StatusServiceUnavailable:
		if errors.Is(err, understudy.ErrNotAudited) {
			return Problem{Title: "This cannot be shown now", Hint: "What is looked at here is listed in the audit log first, and the log cannot " +
				"be written. The log of the server says why. Try again in a moment."}
		}
		title := "No answer in time"
		if q.Source != nil {
			title = q.Source.Spec.Title + " is not answering"
		}
		return Problem{Title: title, Hint: plan.UpperFirst(understudy.WhyNothingHeldAnswers(err)) + ".",
			Reason: q.Rights.ReasonOf(q.Source, err)}
	}
	return Problem{Title: "Something went wrong here", Hint: "The log of the server says what, beside this time. " +
		"Trying again may help; if it does not, show the log to whoever runs this server."}
}

// remedy is the line of the configuration that allows what was refused: a kind
// that is hidden whole, or what looks at a field. "" when no line does.
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

// Sentence returns what an error says to people, as a sentence.
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

// outage gathers what is known: since when, until when, and what can be read
// meanwhile.
func (q *Exchange) outage(err error) *outage {
	o := &outage{Retry: 5}
	if q.Source != nil {
		snap := q.V.Options.Snapshot(q.Ctx, q.Source.Name)
		o.State = q.Clock.HealthOf(snap)
		if wait := snap.NextProbe.Sub(q.Clock.Start); !snap.NextProbe.IsZero() && wait > 0 {
			o.Retry = int(math.Ceil(wait.Seconds()))
		}
		for _, group := range q.Rights.KindGroups(q.Source, &snap, &q.Clock) {
			for _, k := range group.Kinds {
				if k.Held > 0 && (q.Kind == nil || k.Href != q.Kind.Href || q.R.URL.RawQuery != "" || q.R.PathValue("id") != "") {
					o.Still = append(o.Still, k)
				}
			}
		}
	}
	var up *understudy.UpstreamError
	if errors.As(err, &up) && up.RetryAfter > time.Duration(o.Retry)*time.Second {
		o.Retry = int(math.Ceil(up.RetryAfter.Seconds()))
	}
	return o
}

// Pointer is the place of a mistake in what was asked.
type Pointer struct {
	Before, At, After, Why string
	Kind                   error
}

// SyntaxOf is the mistake in a search that an error tells of, nil when it tells of none.
func SyntaxOf(err error) *query.SyntaxError {
	var wrong *query.SyntaxError
	if errors.As(err, &wrong) {
		return wrong
	}
	return nil
}

// PointAt cuts a text where it is wrong, never within a character.
func PointAt(e *query.SyntaxError) *Pointer {
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
