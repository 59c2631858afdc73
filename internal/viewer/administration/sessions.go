// The page with the sessions of all people, on which an administrator can end a session.

package administration

import (
	"errors"
	"net/http"

	"understudy"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/people"
)

// sessionsPage is the data of the template all-sessions.html.
type sessionsPage struct {
	People   []personView
	Sessions int
}

// personView is a person with sessions.
type personView struct {
	Name     string
	Sessions []people.Session
}

// checkSignIn returns an error if nobody can sign in to this server.
func checkSignIn(q *page.Exchange) error {
	if q.V.Options.People == nil {
		return page.NewNotFound("Nobody signs in on this server",
			"An administrator chooses how people sign in with viewer.sign_in in the settings; see docs/reference/signin.md.", Path)
	}
	return nil
}

func serveSessions(q *page.Exchange) error {
	if err := checkSignIn(q); err != nil {
		return err
	}
	p, here := sessionsPage{}, q.V.Options.People.CurrentSessionID(q.R)
	for _, s := range q.V.Options.People.Sessions.All() {
		if n := len(p.People); n == 0 || p.People[n-1].Name != s.Name {
			p.People = append(p.People, personView{Name: s.Name})
		}
		of := &p.People[len(p.People)-1]
		of.Sessions = append(of.Sessions, people.NewSession(q, s, here))
		p.Sessions++
	}
	return q.Render(http.StatusOK, "all-sessions", "Everybody's sessions", p)
}

// endSession ends a session of a person at once.
func endSession(q *page.Exchange) error {
	if err := checkSignIn(q); err != nil {
		return err
	}
	id, name := q.R.PathValue("id"), q.R.PostFormValue("name")
	what := "session end of " + understudy.Clip(name)
	if err := page.WriteAudit(q, understudy.AuditEntry{Action: understudy.ActionAdminister, What: what}); err != nil {
		return err
	}
	switch err := q.V.Options.People.Sessions.End(q.Ctx, id, name); {
	case errors.Is(err, understudy.ErrNotFound):
		return page.NewNotFound("This session does not exist", "It may have ended already.", sessionsPath)
	case err != nil:
		return err
	}
	q.RedirectBack(sessionsPath, "The session of "+name+" has ended.")
	return nil
}
