// Notices of outages.

package push

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
)

// openOutages returns notices about two sources, which ann's device receives, and the state of the first source. Ann may see
// the first source only.
func openOutages(t *testing.T, f *apple) (*Outages, *Health) {
	t.Helper()
	b := openBook(t, f.clock, func(p *Policy) {
		p.APNs, p.Owners, p.URL = f.client(), staff{"ann": "support"}, "https://desk.example.com"
		p.CanSee = func(c understudy.Caller, source string) bool { return source == "twilio" && c.Role() == "support" }
	})
	checktest.MustNoError(t, b.Add(t.Context(), ann, Receiver{Device: device, Outages: true}), "add")
	h := &Health{Source: "twilio", State: "ok", Since: epoch, IsKnown: true}
	return &Outages{Book: b, Logger: slog.New(slog.DiscardHandler), Health: func() []Health {
		hidden := *h
		hidden.Source = "secret"
		return []Health{*h, hidden}
	}}, h
}

// takeNotices checks the state of the sources, and returns what the device has received since.
func takeNotices(t *testing.T, f *apple, o *Outages) string {
	t.Helper()
	checktest.NoError(t, o.check(t.Context()), "check")
	f.mu.Lock()
	defer f.mu.Unlock()
	all := strings.Join(f.payloads, "\n")
	f.payloads = nil
	return all
}

func TestOutageCausesOneNoticeForItsBeginAndOneForItsEnd(t *testing.T) {
	f := newApple(t)
	o, h := openOutages(t, f)
	quiet := func(why string) {
		t.Helper()
		checktest.Equal(t, takeNotices(t, f, o), "", "a notice %s", why)
	}
	turn := func(state string) {
		h.State, h.Since = state, f.clock()
	}
	f.pass(time.Hour)
	quiet("of a source that answers")
	for range 5 { // each failure is short
		turn("down")
		f.pass(time.Minute)
		quiet("of a failure of a minute")
		turn("ok")
		f.pass(time.Hour)
		quiet("after a failure of a minute")
	}
	turn("down")
	f.pass(3 * time.Minute)
	notice := takeNotices(t, f, o)
	checktest.Equal(t, strings.Count(notice, `"title"`), 1, "notices of an outage")
	checktest.Contains(t, notice, `"title":"twilio is down"`, "the notice")
	checktest.Contains(t, notice, "It has failed since 18:05 UTC", "the notice")
	checktest.Contains(t, notice, `"url":"https://desk.example.com"`, "the notice")
	for _, state := range []string{"ok", "down", "limited", "credential"} { // a flapping upstream is one outage
		turn(state)
		f.pass(time.Minute)
		quiet("while the upstream flaps")
	}
	f.pass(2 * time.Hour)
	quiet("of an outage that goes on")
	o = &Outages{Book: o.Book, Health: o.Health} // a restart, after which nothing is known of the upstream
	turn("ok")
	h.IsKnown = false
	f.pass(time.Hour)
	quiet("of an upstream of which nothing is known")
	h.IsKnown = true
	checktest.Contains(t, takeNotices(t, f, o), `"title":"twilio answers again"`, "the notice of the end")
	quiet("after the end")
	turn("credential")
	f.pass(3 * time.Minute)
	checktest.Contains(t, takeNotices(t, f, o), `"title":"twilio refuses its credential"`, "the notice of a refused credential")
}

func TestNoticeGoesToPeopleWhoWantItAndMaySeeTheSource(t *testing.T) {
	f := newApple(t)
	o, h := openOutages(t, f)
	h.State = "down"
	f.pass(time.Hour - time.Minute)
	people := o.Book.policy.Load().Owners.(staff)
	people["ann"] = "narrow" // a role that may not see the source
	checktest.Equal(t, takeNotices(t, f, o), "", "a notice for a person who may not see the source")
	value, err := o.Book.kv.Value(t.Context(), "outage/twilio")
	checktest.NoError(t, err, "read the stored state")
	checktest.Equal(t, string(value), "down", "the stored state")
	restart := func(change func(*Receiver)) {
		r := Receiver{Device: device, Outages: true}
		change(&r)
		checktest.NoError(t, o.Book.kv.SetValue(t.Context(), "outage/twilio", nil), "forget the notice")
		checktest.MustNoError(t, o.Book.Add(t.Context(), ann, r), "add")
	}
	restart(func(*Receiver) { delete(people, "ann") })
	checktest.Equal(t, takeNotices(t, f, o), "", "a notice for a person without access")
	restart(func(r *Receiver) { people["ann"], r.Outages = "support", false })
	checktest.Equal(t, takeNotices(t, f, o), "", "a notice that nobody wants")
	// A notice that is not accepted is sent again.
	restart(func(*Receiver) {})
	f.answers = []func(http.ResponseWriter){func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) }}
	checktest.True(t, o.check(t.Context()) != nil, "a notice that was not accepted is no error")
	checktest.Contains(t, takeNotices(t, f, o), "twilio is down", "the second try")
	checktest.Equal(t, takeNotices(t, f, o), "", "a notice after it was accepted")
}

func TestOutagesAreNoticedWhileRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := storetest.Open(t, store.Options{})
		b, err := Open(t.Context(), db.KV, time.Now)
		checktest.MustNoError(t, err, "open")
		people := staff{}
		b.SetPolicy(Policy{Owners: people})
		checktest.MustNoError(t, b.kv.SetValue(t.Context(), receiverPrefix+"x/y", []byte("{}")), "store")
		ctx, cancel := context.WithCancel(t.Context())
		ended, asked := make(chan error), 0
		o := &Outages{Book: b, Logger: slog.New(slog.DiscardHandler), Health: func() []Health { asked++; return nil }}
		go func() { ended <- o.Run(ctx) }()
		time.Sleep(ownerInterval + time.Second)
		synctest.Wait()
		cancel()
		checktest.NoError(t, <-ended, "run")
		checktest.Equal(t, asked, int(ownerInterval/healthInterval), "checks in an hour")
		left, err := b.kv.ReadValues(t.Context(), receiverPrefix)
		checktest.NoError(t, err, "read")
		checktest.Equal(t, len(left), 0, "receivers without an owner")
	})
}
