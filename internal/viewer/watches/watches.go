// The pages of watches. Callers see their own watches, and administrators see all.

// Package watches shows the pages of watches, which notify people of new records that match a saved search.
package watches

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"understudy"
	"understudy/internal/query"
	"understudy/internal/viewer/page"
	"understudy/internal/watch"
)

// Path is the page that lists watches.
const Path = page.ControlPrefix + "watches"

// Routes returns the routes of watches.
func Routes() []page.Route {
	return []page.Route{
		{Pattern: "GET " + Path, Handler: serveAll},
		{Pattern: "GET " + Path + "/new", Handler: serveForm},
		{Pattern: "POST " + Path + "/new", Handler: makeWatch},
		{Pattern: "GET " + Path + "/{id}", Handler: serveOne},
		{Pattern: "POST " + Path + "/{id}/test", Handler: test},
		{Pattern: "POST " + Path + "/{id}/pause", Handler: pause},
		{Pattern: "POST " + Path + "/{id}/resume", Handler: resume},
		{Pattern: "POST " + Path + "/{id}/remove", Handler: remove},
	}
}

// errNoWatches is the error of a server that has no watches.
var errNoWatches = page.NewNotFound("Watches are not available here", "This server can't save searches.", "/")

// watchView is a watch as a page shows it.
type watchView struct {
	ID, Name, Href string
	Channel, To    string
	Owner          string // the name of the caller to whom the watch belongs; empty if it is the reader
	State, Tone    string
	Why            string // why the watch has stopped; empty if it has not
	Bad            bool   // whether the watch has stopped because of an error
	Told           string
	Pending        int
	Made, Sent     *page.When
}

// viewOf returns a watch as the caller may see it. It shows only the host of a receiver's address, because the rest
// may be a secret.
func viewOf(q *page.Exchange, s *watch.Status) watchView {
	w := &s.Watch
	v := watchView{ID: w.ID, Name: w.Search, Href: Path + "/" + url.PathEscape(w.ID), Channel: channelWord(w.To.Channel), To: w.To.Host(),
		Told: count(s.State.Told, "match", "matches"), Pending: s.Pending,
		Made: q.Clock.Moment(w.Made), Sent: q.Clock.Moment(s.State.Sent)}
	if !isOwn(q, s) {
		v.Owner = w.Owner.Name
	}
	switch v.Why = s.State.Stopped; {
	case v.Why == watch.Paused:
		v.State = "paused"
	case v.Why != "":
		v.State, v.Tone, v.Bad = "stopped", "bad", true
	case !s.State.Failing.IsZero():
		v.State, v.Tone = "failing", "busy"
	default:
		v.State, v.Tone = "active", "good"
	}
	return v
}

func isOwn(q *page.Exchange, s *watch.Status) bool {
	return s.Watch.Owner.Name == q.Rights.Caller.Name && s.Watch.Owner.Source == q.Rights.Caller.Source
}

func channelWord(c watch.Channel) string {
	switch c {
	case watch.Slack:
		return "Slack"
	case watch.Mail:
		return "Mail"
	case watch.Push:
		return "Notification"
	}
	return "Webhook"
}

func count(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.FormatInt(n, 10) + " " + many
}

// watchesPage is the data of the template watches.html.
type watchesPage struct {
	Own, Others []watchView
	Makes       bool // whether the settings permit at least one way to notify people
	All         bool // whether the page shows the watches of all callers
}

func serveAll(q *page.Exchange) error {
	if q.V.Options.Watches == nil {
		return errNoWatches
	}
	p := watchesPage{Makes: q.V.Options.Shelf != nil && len(q.V.Options.Watches.Channels()) > 0, All: page.IsAdministrator(q)}
	for _, s := range q.V.Options.Watches.Watches(q.Rights.Caller, p.All) {
		if isOwn(q, &s) {
			p.Own = append(p.Own, viewOf(q, &s))
		} else {
			p.Others = append(p.Others, viewOf(q, &s))
		}
	}
	return q.Render(http.StatusOK, "watches", "Watches", p)
}

// watchPage is the data of the template watch-log.html.
type watchPage struct {
	Watch   watchView
	Stopped bool
	Goes    bool // whether the watch continues where it stopped when it is resumed
	Query   string
	Search  string // the address of the search that the watch runs
	Log     []deliveryView
}

// deliveryView is one line in the log of a watch.
type deliveryView struct {
	At            *page.When
	What          string
	Outcome, Tone string
	Said, Tries   string
}

// find returns the watch at an address. It returns ErrNotFound if the caller may not see the watch.
func find(q *page.Exchange) (s watch.Status, err error) {
	if q.V.Options.Watches == nil {
		return s, errNoWatches
	}
	everybody := page.IsAdministrator(q)
	some := q.V.Options.Watches.Watches(q.Rights.Caller, everybody)
	i := slices.IndexFunc(some, func(s watch.Status) bool { return s.Watch.ID == q.R.PathValue("id") })
	if i < 0 {
		return s, page.NewNotFound("This watch does not exist", "It may have been removed.", Path)
	}
	return some[i], nil
}

// serveOne shows a watch and its log.
func serveOne(q *page.Exchange) error {
	s, err := find(q)
	if err != nil {
		return err
	}
	p := watchPage{Watch: viewOf(q, &s), Stopped: s.State.Stopped != "", Goes: s.State.Continues}
	if isOwn(q, &s) && q.V.Options.Shelf != nil {
		if saved, ok, err := findSearch(q, s.Watch.Search); err != nil {
			return err
		} else if ok {
			p.Query, p.Search = saved.Request.Text, page.SearchAddress("/search", saved.Request)
		}
	}
	for _, d := range s.Log {
		p.Log = append(p.Log, deliveryOf(q, d))
	}
	return q.Render(http.StatusOK, "watch-log", "Watch "+s.Watch.Search, p)
}

// deliveryOf returns one line in the log of a watch.
func deliveryOf(q *page.Exchange, d watch.Delivery) deliveryView {
	v := deliveryView{At: q.Clock.Moment(d.At), What: count(int64(d.Matches), "match", "matches"), Outcome: string(d.Outcome), Said: d.Said}
	if d.Test {
		v.What = "Test"
	}
	switch d.Outcome {
	case watch.Delivered:
		v.Tone = "good"
	case watch.Failed:
		v.Tone, v.Outcome = "busy", "failed, will be tried again"
	default:
		v.Tone = "bad"
	}
	if d.Tries > 1 {
		v.Tries = strconv.Itoa(d.Tries) + " tries"
	}
	return v
}

// findSearch returns the caller's saved search of a name.
func findSearch(q *page.Exchange, name string) (found query.SavedSearch, ok bool, err error) {
	some, err := q.V.Options.Shelf.ListSaved(q.Ctx, q.Rights.Caller)
	for _, one := range some {
		if one.Owner == q.Rights.Caller.Name && one.Name == name {
			return one, true, nil
		}
	}
	return found, false, err
}

// changeWatch writes an audit entry and calls do for the watch at the address. It then redirects to the address to, where
// the page shows the message that do returned.
func changeWatch(q *page.Exchange, what, to string, do func(id string) (said string, err error)) error {
	s, err := find(q)
	if err != nil {
		return err
	}
	entry := understudy.AuditEntry{Action: understudy.ActionAdminister, What: "watch " + what + " " + s.Watch.ID}
	if err := page.WriteAudit(q, entry); err != nil {
		return err
	}
	said, err := do(s.Watch.ID)
	if errors.Is(err, understudy.ErrNotFound) {
		return page.NewNotFound("This watch does not exist", "It may have been removed.", Path)
	}
	if err != nil {
		return err
	}
	q.RedirectBack(cmp.Or(to, Path+"/"+url.PathEscape(s.Watch.ID)), said)
	return nil
}

func test(q *page.Exchange) error {
	return changeWatch(q, "test", "", func(id string) (string, error) {
		d, err := q.V.Options.Watches.Test(q.Ctx, id)
		said := "The test arrived."
		switch {
		case errors.Is(err, understudy.ErrTooMany):
			return "It was tested a moment ago. Wait a few seconds.", nil
		case d.Outcome != watch.Delivered:
			said = "The test did not arrive: " + d.Said
		case d.Said != "":
			said = "The test arrived. The receiver said: " + d.Said
		}
		return said, err
	})
}

func pause(q *page.Exchange) error {
	return changeWatch(q, "pause", "", func(id string) (string, error) { return "The watch is paused.", q.V.Options.Watches.Pause(q.Ctx, id) })
}

func resume(q *page.Exchange) error {
	return changeWatch(q, "resume", "", func(id string) (string, error) {
		return "The watch is running again.", q.V.Options.Watches.Resume(q.Ctx, id)
	})
}

func remove(q *page.Exchange) error {
	return changeWatch(q, "remove", Path, func(id string) (string, error) {
		return "The watch is removed.", q.V.Options.Watches.Remove(q.Ctx, id)
	})
}

// formField returns the value of a field in a form, without the spaces around it.
func formField(q *page.Exchange, name string) string {
	return strings.TrimSpace(q.R.PostFormValue(name))
}
