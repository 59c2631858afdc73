// The page of the users, on which an administrator invites, changes and removes people.

package administration

import (
	"cmp"
	"errors"
	"net/http"

	"understudy"
	"understudy/internal/signin"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/people"
)

const usersPath = Path + "/users"

// maxUsers is the maximum number of users on the page.
const maxUsers = 300

// usersPage is the data of the template users.html.
type usersPage struct {
	Users       []userView // at most maxUsers
	Count       int64      // the number of all users
	Invitations []invitationView
	Roles       []page.Option
	Form        inviteForm
	Link        string // the link of the invitation that was just made; empty otherwise
	IsFixed     bool   // whether users cannot be changed here
}

// userView is a user with the number of browsers in which the person is signed in.
type userView struct {
	Name     string
	Roles    []page.Option
	Role     string
	Sessions int
	Seen     *page.When // the last use of a session; nil without a session
	IsCaller bool
}

// invitationView is an open invitation.
type invitationView struct {
	Invitation signin.Invitation
	Until      page.When
}

// inviteForm has the values of the form that invites a person.
type inviteForm struct {
	Name, Role string
	Wrong      string // why nobody was invited, in words; empty if there was no error
}

// admitUsers returns a handler for administrators of a server with a file of users. isChange says that the handler changes it.
func admitUsers(isChange bool, run page.Handler) page.Handler {
	return page.AdministratorHandler("manage users", func(q *page.Exchange) error {
		switch who := q.V.Options.People; {
		case who == nil || who.Users == nil:
			return page.NewNotFound("There are no users on this server",
				"People sign in with a password if the settings say viewer: {sign_in: users}; see docs/reference/signin.md.", Path)
		case isChange && who.File == nil:
			return page.NewNotFound("Users are not changed here",
				"Each process on the database has its own file of users; change it with understudy users.", usersPath)
		}
		return run(q)
	})
}

func serveUsers(q *page.Exchange) error { return showUsers(q, http.StatusOK, inviteForm{}, "") }

// showUsers shows the users, the form and the link of a new invitation.
func showUsers(q *page.Exchange, status int, f inviteForm, link string) error {
	who := q.V.Options.People
	p := usersPage{Form: f, Link: link, IsFixed: who.File == nil, Roles: rolesOf(q, cmp.Or(f.Role, q.V.Options.Gate.NarrowestRole()))}
	all := who.Users.All()
	p.Count = int64(len(all))
	sessions := map[string][]signin.Session{}
	for _, s := range who.Sessions.All() {
		sessions[s.Name] = append(sessions[s.Name], s)
	}
	for _, u := range all[:min(len(all), maxUsers)] {
		view := userView{Name: u.Name, Role: u.Role, Roles: rolesOf(q, u.Role), Sessions: len(sessions[u.Name]),
			IsCaller: u.Name == q.Rights.Caller.Name}
		if view.Sessions > 0 {
			seen := q.Clock.FormatMoment(sessions[u.Name][0].Seen, false)
			view.Seen = &seen
		}
		p.Users = append(p.Users, view)
	}
	open, err := who.ReadInvitations(q.Ctx)
	if err != nil {
		return err
	}
	for _, i := range open {
		p.Invitations = append(p.Invitations, invitationView{Invitation: i, Until: q.Clock.FormatMoment(i.Until, false)})
	}
	return q.Render(status, "users", "Users", p)
}

// rolesOf returns the choices of a role.
func rolesOf(q *page.Exchange, selected string) (all []page.Option) {
	for _, r := range q.V.Options.Gate.Roles() {
		all = append(all, page.Option{Value: r, Text: r, Selected: r == selected})
	}
	return all
}

// invite makes a link with which a person chooses a password: a new user, or one who has forgotten it.
func invite(q *page.Exchange) error {
	f := inviteForm{Name: q.R.PostFormValue("name"), Role: q.R.PostFormValue("role")}
	if err := writeUserAudit(q, "invite", f.Name); err != nil {
		return err
	}
	token, err := q.V.Options.People.Invite(q.Ctx, f.Name, f.Role, q.Rights.Caller.Name)
	switch {
	case errors.Is(err, understudy.ErrInvalid):
		f.Wrong = page.Sentence(err)
		return showUsers(q, http.StatusBadRequest, f, "")
	case err != nil:
		return err
	}
	return showUsers(q, http.StatusOK, inviteForm{}, q.V.Origin(q.R)+people.InvitationLink(token))
}

// removeInvitation removes an invitation.
func removeInvitation(q *page.Exchange) error {
	name := q.R.PathValue("name")
	if err := writeUserAudit(q, "withdraw", name); err != nil {
		return err
	}
	if err := q.V.Options.People.RemoveInvitation(q.Ctx, name); err != nil {
		return err
	}
	q.RedirectBack(usersPath, "The invitation is withdrawn.")
	return nil
}

// setUserRole gives a user another role. The person's open streams end, and the next page has the new role.
func setUserRole(q *page.Exchange) error {
	role := q.R.PostFormValue("role")
	return changeUser(q, "role", "The role has changed.", func(u *signin.Users, name string) error { return u.SetRole(name, role) })
}

// removeUser removes a user with all sessions, and an open invitation.
func removeUser(q *page.Exchange) error {
	if q.R.PostFormValue("sure") != "yes" {
		return page.NewBadRequest("The user was not removed", "Tick the box to confirm that the person can't sign in any more.", nil)
	}
	return changeUser(q, "remove", "The user is removed.", func(u *signin.Users, name string) error {
		return cmp.Or(q.V.Options.People.RemoveInvitation(q.Ctx, name), u.Remove(name))
	})
}

// changeUser changes the user of the path. Administrators do not change themselves, so that
// nobody locks the last one out by mistake.
func changeUser(q *page.Exchange, what, done string, change func(u *signin.Users, name string) error) error {
	name := q.R.PathValue("name")
	if name == q.Rights.Caller.Name {
		return page.NewBadRequest("You can't change yourself", "Ask another administrator, or use understudy users.", nil)
	}
	if err := writeUserAudit(q, what, name); err != nil {
		return err
	}
	err := q.V.Options.People.File.Change(q.Ctx, func(u *signin.Users) error { return change(u, name) })
	switch {
	case errors.Is(err, understudy.ErrNotFound):
		return page.NewNotFound("There is no such user", "Somebody may have removed it meanwhile.", usersPath)
	case errors.Is(err, understudy.ErrInvalid):
		return page.NewBadRequest("This can't be saved", page.Sentence(err), nil)
	case errors.Is(err, understudy.ErrNotStored):
		q.V.Options.Logger.ErrorContext(q.Ctx, "users not changed", "error", err)
		return &page.Problem{Title: "The change is not in effect", Kind: understudy.ErrNotStored, Href: usersPath,
			Hint: page.Sentence(err) + " The server must be able to write the file of users and its folder, and to read its settings."}
	case err != nil:
		return err
	}
	q.RedirectBack(usersPath, done)
	return nil
}

// writeUserAudit writes an audit entry about a change of a user.
func writeUserAudit(q *page.Exchange, what, name string) error {
	return page.WriteAudit(q, understudy.AuditEntry{Action: understudy.ActionAdminister, What: "users " + what + " " + understudy.Clip(name)})
}
