// Failure: errors as pages a person can act on. Only here an error becomes a
// status.

package viewer

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"understudy/internal/viewer/plan"
	"unicode/utf8"

	"understudy"
	"understudy/internal/access"
	"understudy/kit/nearest"
)

// problem is an error that knows what to tell a person.
type problem struct {
	Title string   // what is wrong
	Hint  string   // what to try next
	Known []string // the words that would have been right, nearest first
	Href  string   // where to go; "" = home
	Link  string   // the text of that link
	Wrong *pointer // the place in what was asked, when there is one
	kind  error
}

// Error is the title and the hint in one line.
func (p *problem) Error() string { return "viewer: " + p.Title + ". " + p.Hint }

// Unwrap is the error kind.
func (p *problem) Unwrap() error { return p.kind }

func badRequest(title, hint string, known []string) error {
	return &problem{Title: title, Hint: hint, Known: known, kind: understudy.ErrInvalid}
}

func notFound(title, hint, href string) error {
	p := &problem{Title: title, Hint: hint, Href: href, kind: understudy.ErrNotFound}
	if href != "" && href != "/" {
		p.Link = "Go to " + clip(href)
	}
	return p
}

// unknownWord is a problem with a word of the address: what is 404 for a
// source or kind and 400 for a parameter. link is the address of a known word.
func unknownWord(what, word string, known []string, link func(string) string) error {
	p := &problem{Title: "There is no " + what + " “" + clip(word) + "”", kind: understudy.ErrNotFound}
	if link == nil {
		p.kind = understudy.ErrInvalid
	}
	near := nearest.Word(clip(word), known)
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
	if p.Hint == "" {
		p.Hint = "Check the spelling."
	}
	return p
}

// statusOf turns an error kind into a status.
func statusOf(err error) int {
	switch {
	case errors.Is(err, understudy.ErrInvalid):
		return http.StatusBadRequest
	case errors.Is(err, understudy.ErrTooMany):
		return http.StatusTooManyRequests
	case errors.Is(err, understudy.ErrUnauthorized):
		return http.StatusUnauthorized
	case errors.Is(err, understudy.ErrForbidden):
		return http.StatusForbidden
	case errors.Is(err, understudy.ErrNotFound):
		return http.StatusNotFound
	case errors.Is(err, understudy.ErrMethod):
		return http.StatusMethodNotAllowed
	case errors.Is(err, understudy.ErrUnavailable), errors.Is(err, understudy.ErrClosed), errors.Is(err, understudy.ErrNotMirrored), errors.Is(err, understudy.ErrIndexing),
		errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// failure is what the error page shows.
type failure struct {
	Status int
	problem
	Outage *outage
	Unseen bool // the caller may read nothing here
}

// outage is what is known of a source that does not answer.
type outage struct {
	State health
	Retry int        // seconds
	Still []kindView // kinds that can still be read
}

// fail answers with an error page, or the same as data.
func (q *exchange) fail(err error) {
	status := statusOf(err)
	f := failure{Status: status, problem: failureView{q}.explain(status, err)}
	h := q.w.Header()
	switch status {
	case http.StatusUnauthorized:
		h.Set("WWW-Authenticate", `Basic realm="Understudy", charset="UTF-8"`)
	case http.StatusTooManyRequests:
		h.Set("Retry-After", "2")
	case http.StatusServiceUnavailable:
		f.Outage = failureView{q}.outage(err)
		h.Set("Retry-After", strconv.Itoa(f.Outage.Retry))
	case http.StatusInternalServerError:
		q.v.Logger.ErrorContext(q.ctx, "viewer: request failed", "path", q.r.URL.Path, "error", err)
	}
	if q.data != "" {
		body, _ := json.Marshal(map[string]any{"status": status, "message": f.Title, "hint": f.Hint, "known": f.Known})
		q.send(status, "application/json", append(body, '\n'))
		return
	}
	if err := q.render(status, "failure", f.Title, f); err != nil {
		q.v.Logger.ErrorContext(q.ctx, "viewer: render error page", "error", err)
		http.Error(q.w, http.StatusText(status), status)
	}
}

// failureView is the page of an error.
type failureView struct{ *exchange }

// explain finds the words for an error. Errors of the root kinds are written
// for people; anything else stays in the log.
func (q failureView) explain(status int, err error) problem {
	var p *problem
	if errors.As(err, &p) {
		return *p
	}
	switch status {
	case http.StatusBadRequest:
		return problem{Title: "This address cannot be read", Hint: sentence(err)}
	case http.StatusUnauthorized:
		return problem{Title: "Sign in to see this", Hint: "Give the user and secret of a credential from the configuration. " + sentence(err)}
	case http.StatusTooManyRequests:
		return problem{Title: "Too many wrong secrets were given", Hint: "Wait a few seconds, then sign in again."}
	case http.StatusForbidden:
		return problem{Title: "Your role does not allow this", Hint: sentence(err) + q.remedy(err)}
	case http.StatusNotFound:
		return problem{Title: "There is nothing under this address", Hint: "Check the spelling of the id, or pick the record from its list."}
	case http.StatusMethodNotAllowed:
		return problem{Title: "This page can only be read", Hint: "Ask for it with GET. Programs change records through the drop-in address."}
	case http.StatusServiceUnavailable:
		return problem{Title: q.outageTitle(), Hint: "Nothing of this page is held, so there is nothing older to show."}
	}
	return problem{Title: "Something went wrong here", Hint: "The log of the server says what, beside this time. Trying again may help; if it does not, show the log to whoever runs this server."}
}

// remedy is the line of the configuration that allows what was refused: a kind
// that is hidden whole, or what looks at a field. "" when no line does.
func (q failureView) remedy(err error) string {
	var unseen *access.UnseenError
	switch {
	case q.caller.Role() == "" || q.kind == nil:
		return ""
	case errors.As(err, &unseen):
		return q.remedyOf(q.kind, unseen.Field)
	case !q.gate.Sees(q.caller, q.source.Name, q.kind.Name):
		return q.rule(q.source, q.kind.Name+": see")
	}
	return ""
}

func (q failureView) outageTitle() string {
	if q.source == nil {
		return "No answer in time"
	}
	return q.source.Spec.Title + " is not answering"
}

// sentence is an error's text without the room and the kind at its start, as a
// sentence.
func sentence(err error) string {
	text := err.Error()
	for _, start := range []string{
		"viewer: ", "access: ", "callers: ", "mirror: ", "search: ", understudy.ErrForbidden.Error() + ": ",
		understudy.ErrUnauthorized.Error() + ": ", understudy.ErrInvalid.Error() + ": ", understudy.ErrNotMirrored.Error() + ": ",
	} {
		text = strings.TrimPrefix(text, start)
	}
	if text == "" {
		return ""
	}
	text = plan.UpperFirst(text)
	if !strings.HasSuffix(text, ".") {
		text += "."
	}
	return text
}

func kindsOf(groups []kindViews) [][]kindView {
	var all [][]kindView
	for _, g := range groups {
		all = append(all, g.Kinds)
	}
	return all
}

// outage gathers what is known: since when, until when, and what can be read
// meanwhile.
func (q failureView) outage(err error) *outage {
	o := &outage{Retry: 5}
	if q.source != nil {
		snap := snapshotOf(q.exchange, q.source)
		o.State = healthOf(q.exchange, snap)
		if wait := snap.NextProbe.Sub(q.start); !snap.NextProbe.IsZero() && wait > 0 {
			o.Retry = int(math.Ceil(wait.Seconds()))
		}
		for _, k := range slices.Concat(kindsOf(kindGroups(q.exchange, q.source, snap))...) {
			if k.Held > 0 && (q.kind == nil || k.Href != q.kind.Href || q.r.URL.RawQuery != "" || q.r.PathValue("id") != "") {
				o.Still = append(o.Still, k)
			}
		}
	}
	var up *understudy.UpstreamError
	if errors.As(err, &up) && up.RetryAfter > time.Duration(o.Retry)*time.Second {
		o.Retry = int(math.Ceil(up.RetryAfter.Seconds()))
	}
	return o
}

// pointer is the place of a mistake in what was asked.
type pointer struct {
	Before, At, After, Why string
	kind                   error
}

func syntaxOf(err error) *understudy.SyntaxError {
	var wrong *understudy.SyntaxError
	if errors.As(err, &wrong) {
		return wrong
	}
	return nil
}

// pointAt cuts a text where it is wrong, never within a character.
func pointAt(e *understudy.SyntaxError) *pointer {
	at := min(max(e.At, 0), len(e.Text))
	end := min(max(e.End, at), len(e.Text))
	for at > 0 && at < len(e.Text) && !utf8.RuneStart(e.Text[at]) {
		at--
	}
	for end < len(e.Text) && !utf8.RuneStart(e.Text[end]) {
		end++
	}
	return &pointer{Before: e.Text[:at], At: e.Text[at:end], After: e.Text[end:], Why: plan.UpperFirst(strings.TrimSuffix(e.Why, ".")) + ".", kind: e.Kind}
}
