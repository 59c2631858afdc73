// The pages on which people sign in, sign out, and see their own sessions.

// Package people shows the pages about sign-in and sessions.
package people

import (
	"errors"
	"net/http"
	"slices"

	"understudy"
	"understudy/internal/signin"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/plan"
	"understudy/kit/accesslog"
)

// providerPath is the path that redirects to the identity provider for sign-in.
const providerPath = page.SignInPath + "/provider"

// sessionsPath is the page of the caller's own sessions.
const sessionsPath = page.ControlPrefix + "sessions"

// Open returns the routes that are open to everyone.
func Open() []page.Route {
	return []page.Route{
		{Pattern: "GET " + page.SignInPath, Handler: serveSignIn},
		{Pattern: "POST " + page.SignInPath, Handler: signIn},
		{Pattern: "GET " + providerPath, Handler: redirectToProvider},
		{Pattern: "GET " + page.CallbackPath, Handler: finishProvider},
		{Pattern: "POST /-/sign-out", Handler: signOut},
		{Pattern: "GET " + invitationPath, Handler: serveInvitation},
		{Pattern: "POST " + invitationPath, Handler: acceptInvitation},
	}
}

// Routes returns the routes for people who have signed in.
func Routes() []page.Route {
	return []page.Route{
		{Pattern: "GET " + sessionsPath, Handler: serveSessions},
		{Pattern: "POST " + sessionsPath + "/{id}/end", Handler: endSession},
		{Pattern: "POST " + sessionsPath + "/password", Handler: changePassword},
	}
}

// errNoSignIn is the error of a server on which nobody can sign in.
var errNoSignIn = page.NewNotFound("There is no sign-in page",
	"An administrator chooses how people sign in with viewer.sign_in in the settings; see docs/reference/signin.md.", "/")

// signInPage is the data of the template sign-in.html.
type signInPage struct {
	Back  string
	At    string // the host of the identity provider; empty if people sign in with a password
	To    string
	Name  string // the name that the person typed before the sign-in failed
	Wrong string // why the sign-in failed, in words; empty before the first attempt
	// HasNoForm is true if a password that is typed here would be refused.
	HasNoForm bool
	Idle      int // a session ends if it is not used for this number of hours
	Days      int // a session ends after this number of days
}

// serveSignIn shows the sign-in page. A person who has already signed in is redirected.
func serveSignIn(q *page.Exchange) error {
	if q.V.Options.People == nil {
		return errNoSignIn
	}
	back := page.LocalPath(q.R.URL.Query().Get("back"))
	if _, err := q.V.Options.People.Identify(q.R); err == nil {
		q.RedirectBack(back, "")
		return nil
	}
	q.Reply.TakeMessage(q.Rights.Caller.Name)
	return showSignIn(q, http.StatusOK, signInPage{Back: back})
}

func showSignIn(q *page.Exchange, status int, p signInPage) error {
	if provider := q.V.Options.People.Provider; provider != nil {
		p.At = provider.Host()
		p.To = providerPath + plan.WithQuery(understudy.Query{{Name: "back", Value: p.Back}})
	} else if err := q.V.Options.People.CheckTransport(q.R); err != nil {
		p.Wrong, p.HasNoForm, status = page.Sentence(err), true, http.StatusForbidden
	}
	p.Idle, p.Days = int(signin.IdleEnd.Hours()), int(signin.AbsoluteEnd.Hours()/24)
	return q.Render(status, "sign-in", "Sign in", p)
}

// signIn handles the sign-in form and starts a session. If the sign-in fails, it shows the form again with the error.
func signIn(q *page.Exchange) error {
	if q.V.Options.People == nil || q.V.Options.People.Users == nil {
		return errNoSignIn
	}
	p := signInPage{Name: q.R.PostFormValue("name"), Back: page.LocalPath(q.R.PostFormValue("back"))}
	if err := q.V.Options.People.SignIn(q.Reply.W, q.R, p.Name, q.R.PostFormValue("password")); err != nil {
		return showSignInError(q, p, err)
	}
	line := accesslog.LineOf(q.Ctx)
	line.Caller, line.Person = p.Name, p.Name
	q.RedirectBack(p.Back, "")
	return nil
}

func redirectToProvider(q *page.Exchange) error {
	if q.V.Options.People == nil || q.V.Options.People.Provider == nil {
		return errNoSignIn
	}
	back := page.LocalPath(q.R.URL.Query().Get("back"))
	if err := q.V.Options.People.Provider.Begin(q.Reply.W, q.R, back); err != nil {
		return showSignInError(q, signInPage{Back: back}, err)
	}
	return nil
}

// finishProvider starts a session for a person whom the identity provider has redirected back.
func finishProvider(q *page.Exchange) error {
	if q.V.Options.People == nil || q.V.Options.People.Provider == nil {
		return errNoSignIn
	}
	name, back, err := q.V.Options.People.Finish(q.Reply.W, q.R)
	if err != nil {
		return showSignInError(q, signInPage{Back: "/"}, err)
	}
	line := accesslog.LineOf(q.Ctx)
	line.Caller, line.Person = name, name
	q.RedirectBack(page.LocalPath(back), "")
	return nil
}

// showSignInError shows the sign-in page with an error. The reason of an identity provider's failure is written only
// to the log.
func showSignInError(q *page.Exchange, p signInPage, err error) error {
	if err := writeRefusal(q, p.Name, err); err != nil {
		return err
	}
	p.Wrong = page.Sentence(err)
	switch {
	case errors.Is(err, signin.ErrProvider):
		q.V.Options.Logger.ErrorContext(q.Ctx, "sign-in", "error", err)
		p.Wrong = "The sign-in provider does not answer as it should. Try again. The server's log has the details."
		q.Reply.W.Header().Set("Retry-After", "10")
		return showSignIn(q, http.StatusServiceUnavailable, p)
	case errors.Is(err, understudy.ErrTooMany):
		q.Reply.W.Header().Set("Retry-After", "2")
		return showSignIn(q, http.StatusTooManyRequests, p)
	case errors.Is(err, understudy.ErrNotStored), errors.Is(err, understudy.ErrNotAudited):
		q.V.Options.Logger.ErrorContext(q.Ctx, "sign-in", "error", err)
		p.Wrong = "Nobody can sign in now, because this server can't write to its disk. Tell an administrator; the server's log has the reason."
		q.Reply.W.Header().Set("Retry-After", "10")
		return showSignIn(q, http.StatusServiceUnavailable, p)
	case errors.Is(err, understudy.ErrUnauthorized), errors.Is(err, understudy.ErrForbidden):
		return showSignIn(q, http.StatusForbidden, p)
	}
	return err
}

// writeRefusal writes a failed sign-in to the audit log. People sometimes type their password as the name, so an
// unknown name is written as a hash. A sign-in that was not checked, such as after too many attempts, has no entry.
func writeRefusal(q *page.Exchange, name string, err error) error {
	if errors.Is(err, understudy.ErrTooMany) || !errors.Is(err, understudy.ErrUnauthorized) && !errors.Is(err, understudy.ErrForbidden) {
		return nil
	}
	e := understudy.AuditEntry{Action: understudy.ActionSignIn, What: "sign-in refused", Status: http.StatusForbidden}
	if users := q.V.Options.People.Users; users != nil && users.Has(name) {
		e.Caller.Name = name
	} else if name != "" {
		e.Values = []string{name}
	}
	return page.WriteAudit(q, e)
}

// signOut ends the browser's session.
func signOut(q *page.Exchange) error {
	if q.V.Options.People == nil {
		return errNoSignIn
	}
	if c, err := q.V.Options.People.Identify(q.R); err == nil {
		e := understudy.AuditEntry{Caller: c, Action: understudy.ActionSignIn, What: "sign-out"}
		if err := page.WriteAudit(q, e); err != nil {
			return err
		}
	}
	if err := q.V.Options.People.SignOut(q.Reply.W, q.R); err != nil {
		return err
	}
	signin.ViewAs{Cookies: q.V.Options.Cookies}.End(q.Reply.W)
	q.Rights.Caller = understudy.Caller{}
	q.RedirectBack(page.SignInPath, "You are signed out.")
	return nil
}

func checkSignedIn(q *page.Exchange) error {
	switch {
	case q.V.Options.People == nil:
		return errNoSignIn
	case !q.Rights.IsSignedIn():
		return page.NewNotFound("You have no sessions",
			"You use the credential "+q.Rights.Caller.Name+" and did not sign in.", "/")
	}
	return nil
}

// sessionsPage is the data of the template sessions.html.
type sessionsPage struct {
	Name     string
	Sessions []Session
	Theme    page.ThemeForm
	Password *passwordForm // nil if people do not change their passwords here
}

// passwordForm is the form with which a person changes the own password.
type passwordForm struct {
	Wrong     string // why the password has not changed, in words; empty before the first attempt
	HasNoForm bool   // whether a password that is typed here would be refused
}

// Session is a session of a person as pages show it.
type Session struct {
	Session    signin.Session
	Browser    string
	Made, Seen page.When
	Here       bool // whether this request belongs to the session
}

// NewSession returns a session as pages show it. here is the id of the session of this request.
func NewSession(q *page.Exchange, s signin.Session, here string) Session {
	return Session{Session: s, Browser: browserOf(s.Agent), Made: q.Clock.FormatMoment(s.Made, false),
		Seen: q.Clock.FormatMoment(s.Seen, false),
		Here: s.ID == here}
}

func serveSessions(q *page.Exchange) error {
	if err := checkSignedIn(q); err != nil {
		return err
	}
	return showSessions(q, http.StatusOK, "")
}

// showSessions shows the page. wrong says why the password has not changed.
func showSessions(q *page.Exchange, status int, wrong string) error {
	here := q.V.Options.People.CurrentSessionID(q.R)
	p := sessionsPage{Name: q.Rights.Caller.Name, Theme: page.NewThemeForm(q.R, sessionsPath)}
	if q.V.Options.People.File != nil {
		p.Password = &passwordForm{Wrong: wrong}
		if err := q.V.Options.People.CheckTransport(q.R); err != nil {
			p.Password.Wrong, p.Password.HasNoForm = page.Sentence(err), true
		}
	}
	for _, s := range q.V.Options.People.Sessions.PersonSessions(q.Rights.Caller.Name) {
		p.Sessions = append(p.Sessions, NewSession(q, s, here))
	}
	slices.SortStableFunc(p.Sessions, func(a, b Session) int { return order(b.Here) - order(a.Here) })
	return q.Render(status, "sessions", "Sessions", p)
}

func order(here bool) int {
	if here {
		return 1
	}
	return 0
}

// endSession ends one of the caller's sessions.
func endSession(q *page.Exchange) error {
	if err := checkSignedIn(q); err != nil {
		return err
	}
	id := q.R.PathValue("id")
	if id == q.V.Options.People.CurrentSessionID(q.R) {
		return signOut(q)
	}
	if err := page.WriteAudit(q, understudy.AuditEntry{Action: understudy.ActionSignIn, What: "session end"}); err != nil {
		return err
	}
	if err := q.V.Options.People.Sessions.End(q.Ctx, id, q.Rights.Caller.Name); err != nil && !errors.Is(err, understudy.ErrNotFound) {
		return err
	}
	q.RedirectBack(sessionsPath, "The session has ended.")
	return nil
}
