// View-as: an administrator looks through another role, and back.

package roles

import (
	"understudy"
	"understudy/internal/signin"
	"understudy/internal/viewer/page"
)

// begin has the caller look through a role.
func begin(q *page.Exchange) error {
	role, err := roleOf(q, q.R.PostFormValue("role"))
	if err != nil {
		return err
	}
	back := page.LocalPath(q.R.PostFormValue("back"))
	if role == understudy.RoleAll {
		return page.BadRequest("You have this role yourself", "Choose a role that sees less.", nil)
	}
	if err := page.Audit(q, understudy.AuditEntry{Action: understudy.ActionAdminister, What: "view as " + role}); err != nil {
		return err
	}
	signin.ViewAs{Cookies: q.V.Options.Cookies}.Begin(q.Reply.W, q.Rights.Caller, role)
	q.GoBack(back, "")
	return nil
}

// end has the caller look through no role any more. A caller who never did loses nothing.
func end(q *page.Exchange) error {
	back := page.LocalPath(q.R.PostFormValue("back"))
	if q.Rights.ViewsAs() {
		if err := page.Audit(q, understudy.AuditEntry{Action: understudy.ActionAdminister, What: "view as ended"}); err != nil {
			return err
		}
	}
	signin.ViewAs{Cookies: q.V.Options.Cookies}.End(q.Reply.W)
	q.GoBack(back, "")
	return nil
}
