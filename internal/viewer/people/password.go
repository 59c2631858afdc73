// The forms with which people choose a password: their own, and that of an invitation.

package people

import (
	"errors"
	"net/http"

	"understudy"
	"understudy/internal/signin"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/plan"
	"understudy/kit/accesslog"
)

// invitationPath is the page on which an invited person chooses a password.
const invitationPath = page.ControlPrefix + "invitation"

// InvitationLink returns the path of an invitation. The access log hides the values of queries, so the token stays out of it.
func InvitationLink(token string) string {
	return invitationPath + plan.WithQuery(understudy.Query{{Name: "token", Value: token}})
}

// changePassword replaces the password of the person.
func changePassword(q *page.Exchange) error {
	if err := checkSignedIn(q); err != nil {
		return err
	}
	people := q.V.Options.People
	if people.File == nil {
		return page.NewNotFound("Passwords are not changed here", "An administrator changes them with understudy users passwd.", sessionsPath)
	}
	err := people.ChangePassword(q.Reply.W, q.R, q.R.PostFormValue("current"), q.R.PostFormValue("password"))
	status, wrong := explainPassword(q, err)
	switch {
	case err == nil:
		q.RedirectBack(sessionsPath, "Your password has changed. You are signed out in all other browsers.")
		return nil
	case errors.Is(err, understudy.ErrUnauthorized) && !errors.Is(err, understudy.ErrTooMany):
		e := understudy.AuditEntry{Action: understudy.ActionSignIn, What: "password change refused", Status: http.StatusForbidden}
		if err := page.WriteAudit(q, e); err != nil {
			return err
		}
		status, wrong = http.StatusForbidden, "The current password is wrong."
	case wrong == "":
		return err
	}
	return showSessions(q, status, wrong)
}

// explainPassword returns the status and the sentence for a password that was not taken. The sentence is empty for other errors.
func explainPassword(q *page.Exchange, err error) (status int, wrong string) {
	switch {
	case errors.Is(err, understudy.ErrInvalid):
		return http.StatusBadRequest, page.Sentence(err)
	case errors.Is(err, understudy.ErrTooMany):
		q.Reply.W.Header().Set("Retry-After", "2")
		return http.StatusTooManyRequests, page.Sentence(err)
	case errors.Is(err, understudy.ErrForbidden), errors.Is(err, understudy.ErrConflict):
		return http.StatusForbidden, page.Sentence(err)
	case errors.Is(err, understudy.ErrNotStored), errors.Is(err, understudy.ErrNotAudited):
		q.V.Options.Logger.ErrorContext(q.Ctx, "users not changed", "error", err)
		return http.StatusServiceUnavailable,
			"The new password is not in effect. Tell an administrator; the server's log has the reason."
	}
	return 0, ""
}

// invitationPage is the data of the template invitation.html.
type invitationPage struct {
	Invitation signin.Invitation
	Token      string
	Wrong      string // why the password was not taken, in words; empty before the first attempt
	HasNoForm  bool   // whether a password that is typed here would be refused
}

// errNoInvitation is the error of a link that is unknown, used or too old.
var errNoInvitation = page.NewNotFound("This invitation is not valid", "It may have been used, withdrawn, or have ended after three days. "+
	"Ask an administrator for a new one.", page.SignInPath)

// serveInvitation shows the form with which an invited person chooses a password.
func serveInvitation(q *page.Exchange) error {
	return showInvitation(q, http.StatusOK, q.R.URL.Query().Get("token"), "")
}

// showInvitation shows the form. wrong says why a password was not taken.
func showInvitation(q *page.Exchange, status int, token, wrong string) error {
	people := q.V.Options.People
	if people == nil || people.File == nil {
		return errNoInvitation
	}
	i, err := people.FindInvitation(q.Ctx, token)
	switch {
	case errors.Is(err, understudy.ErrNotFound):
		return errNoInvitation
	case err != nil:
		return err
	}
	p := invitationPage{Invitation: i, Token: token, Wrong: wrong}
	if err := people.CheckTransport(q.R); err != nil {
		p.Wrong, p.HasNoForm, status = page.Sentence(err), true, http.StatusForbidden
	}
	return q.Render(status, "invitation", "Choose a password", p)
}

// acceptInvitation makes the invited person a user with the chosen password, and signs the person in.
func acceptInvitation(q *page.Exchange) error {
	people, token := q.V.Options.People, q.R.PostFormValue("token")
	if people == nil || people.File == nil {
		return errNoInvitation
	}
	i, err := people.FindInvitation(q.Ctx, token)
	if err == nil {
		err = people.Accept(q.Reply.W, q.R, token, q.R.PostFormValue("password"))
	}
	status, wrong := explainPassword(q, err)
	switch {
	case errors.Is(err, understudy.ErrNotFound):
		return errNoInvitation
	case wrong != "":
		return showInvitation(q, status, token, wrong)
	case err != nil:
		return err
	}
	line := accesslog.LineOf(q.Ctx)
	line.Caller, line.Person = i.Name, i.Name
	q.RedirectBack("/", "Welcome, "+i.Name+".")
	return nil
}
