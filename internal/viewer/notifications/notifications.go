// Package notifications shows the page on which people switch notifications on and off for their browsers and devices.
package notifications

import (
	"errors"
	"net/http"

	"understudy"
	"understudy/internal/push"
	"understudy/internal/viewer/page"
)

// Path is the page of the reader's browsers and devices.
const Path = page.ControlPrefix + "notifications"

// Routes returns the routes of notifications.
func Routes() []page.Route {
	return []page.Route{
		{Pattern: "GET " + Path, Handler: serveAll},
		{Pattern: "POST " + Path, Handler: add},
		{Pattern: "POST " + Path + "/{id}/remove", Handler: remove},
	}
}

// errNone is the error of a server that sends no notifications.
var errNone = page.NewNotFound("Notifications are not available here", "An administrator can set push.contact or push.apns.", "/")

// receiverView is a browser or a device as the page shows it.
type receiverView struct {
	Receiver            push.Receiver
	Since, FailingSince *page.When
}

// notificationsPage is the data of the template notifications.html.
type notificationsPage struct {
	Receivers []receiverView
	Wrong     string // why nothing was added; empty if there was no error
	Key       string // the key for a subscription; empty if browsers receive no notifications
	Script    string // the address of the script, which is also the service worker
	Devices   bool   // whether devices of Apple may receive notifications
}

func serveAll(q *page.Exchange) error { return show(q, http.StatusOK, "") }

func show(q *page.Exchange, status int, wrong string) error {
	screens := q.V.Options.Push
	if screens == nil || screens.PublicKey() == "" && !screens.HasDevices() {
		return errNone
	}
	own, err := screens.List(q.Ctx, ownerOf(q))
	if err != nil {
		return err
	}
	p := notificationsPage{Wrong: wrong, Key: screens.PublicKey(), Script: q.V.Files.Address["notify.js"], Devices: screens.HasDevices()}
	for _, r := range own {
		p.Receivers = append(p.Receivers, receiverView{r, q.Clock.Moment(r.Made), q.Clock.Moment(r.Failing)})
	}
	return q.Render(status, "notifications", "Notifications", p)
}

// add stores the browser or the device in the form.
func add(q *page.Exchange) error {
	r := push.Receiver{Name: q.R.PostFormValue("name"), Endpoint: q.R.PostFormValue("endpoint"), P256dh: q.R.PostFormValue("p256dh"),
		Auth: q.R.PostFormValue("auth"), Device: q.R.PostFormValue("device"), Outages: q.R.PostFormValue("outages") != ""}
	return change(q, "on", func(screens *push.Book) error { return screens.Add(q.Ctx, ownerOf(q), r) })
}

func ownerOf(q *page.Exchange) understudy.Owner {
	return q.V.Options.Push.Owner(q.Rights.Caller)
}

// remove removes the browser or the device at the address.
func remove(q *page.Exchange) error {
	return change(q, "off", func(screens *push.Book) error { return screens.Remove(q.Ctx, ownerOf(q), q.R.PathValue("id")) })
}

// change writes an audit entry, calls do, and shows what was wrong or that notifications are now on or off.
func change(q *page.Exchange, state string, do func(*push.Book) error) error {
	if q.V.Options.Push == nil {
		return errNone
	}
	if err := page.WriteAudit(q, understudy.AuditEntry{Action: understudy.ActionAdminister, What: "notifications " + state}); err != nil {
		return err
	}
	switch err := do(q.V.Options.Push); {
	case errors.Is(err, understudy.ErrInvalid):
		return show(q, http.StatusBadRequest, page.Sentence(err))
	case errors.Is(err, understudy.ErrNotFound):
		return page.NewNotFound("This browser or device is not known", "It may have been removed.", Path)
	case err != nil:
		return err
	}
	q.RedirectBack(Path, "Notifications are "+state+" there.")
	return nil
}
