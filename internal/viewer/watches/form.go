// The form that makes a watch, which notifies people of new records that match a saved search.

package watches

import (
	"errors"
	"net/http"
	"net/url"

	"understudy"
	"understudy/internal/viewer/page"
	"understudy/internal/watch"
	"understudy/internal/webhook"
)

// formPage is the data of the template watch-form.html.
type formPage struct {
	Searches []choice
	Channels []choice
	To       string
	Wrong    string // why the form made no watch; empty if there was no error
	Pushes   bool   // whether the form offers notifications, which need no address
	Signs    bool   // whether the form offers webhooks, which are signed with a secret
	Made     made
}

// made is a watch that was just made, with the secret that the server has generated for it.
type made struct{ Search, Href, Secret string }

// choice is an option of a menu in the form.
type choice struct {
	Value, Text string
	Selected    bool
}

func serveForm(q *page.Exchange) error {
	if q.V.Options.Watches == nil || q.V.Options.Shelf == nil {
		return errNoWatches
	}
	return showForm(q, http.StatusOK, q.R.URL.Query().Get("search"), watch.Destination{}, "")
}

// showForm shows the form with the given values. wrong says which of them is wrong.
func showForm(q *page.Exchange, status int, search string, to watch.Destination, wrong string) error {
	p := formPage{To: to.To, Wrong: wrong}
	saved, err := q.V.Options.Shelf.ListSaved(q.Ctx, q.Rights.Caller)
	if err != nil {
		return err
	}
	for _, one := range saved {
		if one.Owner == q.Rights.Caller.Name {
			p.Searches = append(p.Searches, choice{one.Name, one.Name, one.Name == search})
		}
	}
	for _, c := range q.V.Options.Watches.Channels() {
		p.Channels = append(p.Channels, choice{string(c), channelWord(c), c == to.Channel})
		p.Signs, p.Pushes = p.Signs || c == watch.Webhook, p.Pushes || c == watch.Push
	}
	return q.Render(status, "watch-form", "New watch", p)
}

// makeWatch handles the form. If there is an error, it shows the form again.
func makeWatch(q *page.Exchange) error {
	if q.V.Options.Watches == nil || q.V.Options.Shelf == nil {
		return errNoWatches
	}
	search := q.R.PostFormValue("search")
	to := watch.Destination{Channel: watch.Channel(q.R.PostFormValue("channel")), To: formField(q, "to")}
	ours := ""
	if to.Channel == watch.Webhook {
		if to.Secret = formField(q, "secret"); to.Secret == "" {
			ours = webhook.MakeSecret()
			to.Secret = ours
		}
	}
	if err := page.WriteAudit(q, understudy.AuditEntry{Action: understudy.ActionAdminister, What: "watch make"}); err != nil {
		return err
	}
	id, err := q.V.Options.Watches.Make(q.Ctx, q.Rights.Caller, search, to)
	switch {
	case errors.Is(err, understudy.ErrInvalid):
		return showForm(q, http.StatusBadRequest, search, to, page.Sentence(err))
	case errors.Is(err, understudy.ErrNotFound):
		return showForm(q, http.StatusBadRequest, search, to, "This saved search does not exist. Choose another.")
	case err != nil:
		return err
	}
	if ours != "" { // only this response contains the secret; behind an address it could be read again
		return q.Render(http.StatusOK, "watch-form", "Watched", formPage{Made: made{search, Path + "/" + url.PathEscape(id), ours}})
	}
	q.RedirectBack(Path+"/"+url.PathEscape(id), "The search “"+search+"” is watched. Send a test to see whether it arrives.")
	return nil
}
