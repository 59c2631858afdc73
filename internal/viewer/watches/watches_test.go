// Watches: who sees which, how one is made, and what is done with it.

package watches_test

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"understudy"
	"understudy/internal/search"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/viewertest"
	"understudy/internal/viewer/watches"
	"understudy/internal/watch"
)

// openWatching starts a viewer whose settings permit to tell hooks.example, with a saved search of everything.
func openWatching(t *testing.T) (*viewertest.Fixture, *viewertest.AuditLog) {
	t.Helper()
	log := &viewertest.AuditLog{}
	h := viewertest.Open(t, viewertest.WithSearch(t), func(o *page.Options) {
		db := storetest.Open(t, store.Options{})
		book, err := watch.Open(t.Context(), watch.Options{Sources: o.Sources, Records: db, KV: db.KV, Key: []byte("key"), Now: o.Now,
			Enqueue: func(context.Context, ...understudy.Job) ([]int64, error) { return nil, nil }})
		viewertest.Must(t, err)
		book.SetPolicy(watch.Policy{Search: o.Search.(*search.Searcher), Owners: owners{}, Rules: watch.Rules{Hosts: []string{"hooks.example"}}})
		o.Watches, o.Audit = book, log
	})
	if status, body, _ := h.Do("POST", "/search/save", "q=status%3Abusy&name=Busy", viewertest.All); status != http.StatusSeeOther {
		t.Fatalf("saving a search: %d %s", status, body)
	}
	return h, log
}

// owners are callers as they are.
type owners struct{}

func (owners) Owner(c understudy.Caller) understudy.Owner {
	return understudy.Owner{Name: c.Name, Source: c.Source, Role: c.Role(), LastSeen: viewertest.Noon}
}

func (owners) Resolve(understudy.Owner) (c understudy.Caller, ok bool) { return c, false }

const toHook = "search=Busy&channel=webhook&to=https%3A%2F%2Fhooks.example%2Fin%3Ftoken%3Dsesame"

// filled returns the form of a watch that tells hooks.example.
func filled(t *testing.T) url.Values {
	t.Helper()
	form, err := url.ParseQuery(toHook)
	viewertest.Must(t, err)
	return form
}

func TestWatchIsMadeAndItsSecretIsShownOnce(t *testing.T) {
	h, log := openWatching(t)
	form := h.Page("/-/watches/new?search=Busy", viewertest.All)
	viewertest.CheckHTML(t, "the form", form)
	if !strings.Contains(form, `<option value="Busy" selected>`) || strings.Contains(form, `value="mail"`) {
		t.Error("the form does not offer the saved search, or offers what the settings do not permit")
	}
	for wrong, says := range map[string]string{
		strings.Replace(toHook, "hooks.example", "evil.example", 1): "do not permit",
		strings.Replace(toHook, "Busy", "Idle", 1):                  "This saved search does not exist",
		strings.Replace(toHook, "webhook", "pigeon", 1):             "not a way to notify",
		toHook + "&secret=short":                                    "whsec_",
	} {
		status, body, _ := h.Do("POST", "/-/watches/new", wrong, viewertest.All)
		if status != http.StatusBadRequest || !strings.Contains(body, says) {
			t.Errorf("%s: %d, and does not say %q: %.900s", wrong, status, says, body)
		}
	}
	made := h.Post(viewertest.All, "/-/watches/new", filled(t), http.StatusOK, "whsec_").Body.String()
	at := regexp.MustCompile(`href="(/-/watches/[a-z0-9]+)">Open the watch`).FindStringSubmatch(made)
	if at == nil {
		t.Fatalf("the page does not lead to the watch: %s", made)
	}
	if log.Last().What != "watch make" {
		t.Errorf("listed %+v", log.Last())
	}
	for _, path := range []string{"/-/watches", at[1]} {
		shown := h.Page(path, viewertest.All)
		viewertest.CheckHTML(t, path, shown)
		if !strings.Contains(shown, "hooks.example") {
			t.Errorf("%s does not name the receiver", path)
		}
		if strings.Contains(shown, "sesame") || strings.Contains(shown, "whsec_") {
			t.Errorf("%s shows a secret", path)
		}
	}
}

func TestWatchIsPausedResumedAndRemoved(t *testing.T) {
	h, log := openWatching(t)
	made := h.Post(viewertest.All, "/-/watches/new", filled(t), http.StatusOK).Body.String()
	at := regexp.MustCompile(`/-/watches/[a-z0-9]{8,}`).FindString(made)
	for _, step := range []struct{ do, to, state string }{
		{"pause", at, ">paused</span>"}, {"resume", at, ">active</span>"}, {"remove", watches.Path, "You have no watches."},
	} {
		status, _, head := h.Do("POST", at+"/"+step.do, "a=b", viewertest.All)
		if status != http.StatusSeeOther || head.Get("Location") != step.to {
			t.Errorf("%s: %d to %s", step.do, status, head.Get("Location"))
		}
		if what := log.Last().What; !strings.HasPrefix(what, "watch "+step.do+" ") {
			t.Errorf("%s is listed as %s", step.do, what)
		}
		if shown := h.Page(step.to, viewertest.All); !strings.Contains(shown, step.state) {
			t.Errorf("after %s the page does not say %s", step.do, step.state)
		}
	}
	for _, do := range []string{"pause", "resume", "remove", "test"} {
		if status, _, _ := h.Do("POST", at+"/"+do, "a=b", viewertest.All); status != http.StatusNotFound {
			t.Errorf("%s of one that was removed: %d", do, status)
		}
	}
}

// A watch is seen by its owner and by who administers; to others it is not there.
func TestWatchesOfOthersAreNotShown(t *testing.T) {
	h, log := openWatching(t)
	made := h.Post(viewertest.All, "/-/watches/new", filled(t), http.StatusOK).Body.String()
	at := regexp.MustCompile(`/-/watches/[a-z0-9]{8,}`).FindString(made)
	before := len(log.Entries())
	if shown := h.Page("/-/watches", viewertest.Watcher); strings.Contains(shown, "Busy") || !strings.Contains(shown, "You have no watches.") {
		t.Error("another sees the watch in the list")
	}
	for _, ask := range []string{"GET " + at, "POST " + at + "/pause", "POST " + at + "/remove", "POST " + at + "/test"} {
		method, path, _ := strings.Cut(ask, " ")
		status, body, _ := h.Do(method, path, "", viewertest.Watcher)
		if status != http.StatusNotFound || strings.Contains(body, "hooks.example") {
			t.Errorf("%s as another: %d", ask, status)
		}
	}
	if n := len(log.Entries()); n != before {
		t.Errorf("%d entries for what was not done", n-before)
	}
	if status, _, _ := viewertest.Open(t).Get("/-/watches", viewertest.All); status != http.StatusNotFound {
		t.Errorf("a server without watches: %d", status)
	}
}
