// The forms by which an administrator starts and ends viewing the pages as another role.

package roles

import (
	"understudy"
	"understudy/internal/signin"
	"understudy/internal/viewer/page"
)

// beginViewAs handles the form that starts viewing the pages as another role.
func beginViewAs(q *page.Exchange) error {
	role, err := findRole(q, q.R.PostFormValue("role"))
	if err != nil {
		return err
	}
	back := page.LocalPath(q.R.PostFormValue("back"))
	if role == understudy.RoleAll {
		return page.NewBadRequest("You already have this role", "Choose a role that sees less.", nil)
	}
	if err := page.WriteAudit(q, understudy.AuditEntry{Action: understudy.ActionAdminister, What: "view as " + role}); err != nil {
		return err
	}
	signin.ViewAs{Cookies: q.V.Options.Cookies}.Begin(q.Reply.W, q.Rights.Caller, role)
	q.RedirectBack(back, "")
	return nil
}

// endViewAs handles the form that ends viewing the pages as another role. It does nothing if the caller is not doing so.
func endViewAs(q *page.Exchange) error {
	back := page.LocalPath(q.R.PostFormValue("back"))
	if q.Rights.IsViewingAs() {
		if err := page.WriteAudit(q, understudy.AuditEntry{Action: understudy.ActionAdminister, What: "view as ended"}); err != nil {
			return err
		}
	}
	signin.ViewAs{Cookies: q.V.Options.Cookies}.End(q.Reply.W)
	q.RedirectBack(back, "")
	return nil
}
