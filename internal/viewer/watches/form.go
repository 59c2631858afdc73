// Form: a watch is made.

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

// formPage is what watch-form.html shows.
type formPage struct {
	Searches []choice
	Channels []choice
	To       string
	Wrong    string // why it did not go
	Signs    bool   // a webhook may be chosen, which is signed
	Made     made
}

// made is a watch that was made just now with a secret of ours.
type made struct{ Search, Href, Secret string }

// choice is one of several.
type choice struct {
	Value, Text string
	Selected    bool
}

func serveForm(q *page.Exchange) error {
	if q.V.Options.Watches == nil || q.V.Options.Shelf == nil {
		return errNone
	}
	return showForm(q, http.StatusOK, q.R.URL.Query().Get("search"), watch.Destination{}, "")
}

func showForm(q *page.Exchange, status int, search string, to watch.Destination, wrong string) error {
	p := formPage{To: to.To, Wrong: wrong}
	saved, err := q.V.Options.Shelf.Saved(q.Ctx, q.Rights.Caller)
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
		p.Signs = p.Signs || c == watch.Webhook
	}
	return q.Render(status, "watch-form", "New watch", p)
}

// makeWatch makes the watch of the form. What is wrong stands above the form.
func makeWatch(q *page.Exchange) error {
	if q.V.Options.Watches == nil || q.V.Options.Shelf == nil {
		return errNone
	}
	search := q.R.PostFormValue("search")
	to := watch.Destination{Channel: watch.Channel(q.R.PostFormValue("channel")), To: field(q, "to")}
	ours := ""
	if to.Channel == watch.Webhook {
		if to.Secret = field(q, "secret"); to.Secret == "" {
			ours = webhook.MakeSecret()
			to.Secret = ours
		}
	}
	if err := page.Audit(q, understudy.AuditEntry{Action: understudy.ActionAdminister, What: "watch make"}); err != nil {
		return err
	}
	id, err := q.V.Options.Watches.Make(q.Ctx, q.Rights.Caller, search, to)
	switch {
	case errors.Is(err, understudy.ErrInvalid):
		return showForm(q, http.StatusBadRequest, search, to, page.Sentence(err))
	case errors.Is(err, understudy.ErrNotFound):
		return showForm(q, http.StatusBadRequest, search, to, "There is no such saved search; choose one.")
	case err != nil:
		return err
	}
	if ours != "" { // it stands in this answer and nowhere else: an address that led to it could be opened again
		return q.Render(http.StatusOK, "watch-form", "Watched", formPage{Made: made{search, Path + "/" + url.PathEscape(id), ours}})
	}
	q.GoBack(Path+"/"+url.PathEscape(id), "The search “"+search+"” is watched. Send a test to see whether it arrives.")
	return nil
}
