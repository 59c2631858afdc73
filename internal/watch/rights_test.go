// Tests of whose rights a watch has, and where it may tell.

package watch

import (
	"errors"
	"strings"
	"testing"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/search"
)

func TestRightsOfTheOwner(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what   string
		change func(*rig)
		why    string
	}{
		{"nothing", func(*rig) {}, ""},
		{"a credential that is gone", func(r *rig) { r.role = "" }, "desk no longer has access"},
		{"a role that sees no messages", func(r *rig) { r.role = "narrow" }, "The role narrow can no longer run this search."},
		{"a field that is hidden now", func(r *rig) { r.roles["support"]["twilio"]["messages.status"] = "hide" },
			"The role support can no longer run this search."},
		{"the search is deleted", func(r *rig) {
			if err := r.book.policy.Load().Search.(*search.Searcher).Forget(r.Context(), r.desk(), "slack kind:messages status:failed"); err != nil {
				r.Fatal(err)
			}
		}, "The saved search “slack kind:messages status:failed” no longer exists."},
	} {
		r := newRig(t)
		id := r.watch(Slack, "kind:messages status:failed")
		c.change(r)
		r.enforce()
		r.put(message(1, "inbound", "failed"))
		const message3 = "|message SM00000000000000000000000000000003"
		if n := len(r.told()); (n == 0) != (c.why != "") {
			t.Errorf("%s: %d messages", c.what, n)
		}
		r.role = "support"
		s := r.status(id)
		checktest.True(t, strings.HasPrefix(s.State.Stopped, c.why), "%s: s.State.Stopped is %q", c.what,
			s.State.Stopped)
		checktest.Equal(t, (s.State.Stopped == ""), (c.why == ""), `%s: (s.State.Stopped == "")`, c.what)
		checktest.Equal(t, s.Pending, 0, "%s: s.Pending", c.what)
		if c.why == "" {
			continue
		}
		// Rights that come back wake nothing by themselves, and nothing of the time without.
		r.roles["support"]["twilio"]["messages.status"] = "see"
		r.enforce()
		r.save("slack kind:messages status:failed", "kind:messages status:failed")
		r.put(message(2, "inbound", "failed"))
		if n := len(r.told()); n != 0 {
			t.Errorf("%s: a stopped watch told %d", c.what, n)
		}
		if err := r.book.Resume(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		r.put(message(3, "inbound", "failed"))
		if all := r.told(); len(all) != 1 || !strings.Contains(all[0].body, message3) {
			t.Errorf("%s: resumed, it told %v", c.what, all)
		}
	}
}

// What was found and cannot be told yet is not told under a role that may not know it.
func TestRightsEndBeforeItIsTold(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.watch(Slack, "status:failed")
	r.receiver.answers = []int{503}
	r.put(message(1, "inbound", "failed"))
	if err := r.round(); err == nil {
		t.Fatal("503 is no error")
	}
	if all := r.receiver.take(); len(all) != 1 || !strings.Contains(all[0].body, "from ***") {
		t.Errorf("at first it told %v", all)
	}
	r.roles["support"]["twilio"]["phone"] = "hide"
	r.enforce()
	if all := r.told(); len(all) != 1 || strings.Contains(all[0].body, "from") {
		t.Errorf("with less rights it told %v", all)
	}
	s := r.status(id)
	checktest.Equal(t, s.Log[0].Tries, 2, "the log is: s.Log[0].Tries")
	checktest.Equal(t, s.Log[0].Outcome, Delivered, "the log is: s.Log[0].Outcome")
	checktest.Equal(t, len(s.Log), 1, "the log is: len(s.Log)")
}

func TestDestinations(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.rules = Rules{Hosts: []string{"hooks.example.com", "other.example.com:8443"}, Mail: []string{"example.com"}}
	r.save("all", "kind:messages")
	r.enforce()
	for _, c := range []struct {
		d    Destination
		want string // "": it is taken
	}{
		{Destination{Slack, "https://hooks.example.com/services/T0/B0/x", ""}, ""},
		{Destination{Slack, "https://HOOKS.example.com:443/x", ""}, ""},
		{Destination{Slack, "https://other.example.com:8443/x", ""}, ""},
		{Destination{Webhook, "https://hooks.example.com/x", testSecret}, ""},
		{Destination{Mail, "desk@example.com", ""}, ""},
		{Destination{Mail, "desk+a.b@EXAMPLE.com", ""}, ""},
		{Destination{Slack, "https://evil.example.com/", ""}, "watches.hosts"},
		{Destination{Slack, "https://hooks.example.com.evil.example/", ""}, "watches.hosts"},
		{Destination{Slack, "https://hooks.example.com:8443/", ""}, "watches.hosts"},
		{Destination{Slack, "https://other.example.com/", ""}, "watches.hosts"},
		{Destination{Slack, "http://hooks.example.com/", ""}, "use https"},
		{Destination{Slack, "https://me:pw@hooks.example.com/", ""}, "can't contain credentials"},
		{Destination{Slack, "https://127.0.0.1/", ""}, "loopback"},
		{Destination{Slack, "https://169.254.169.254/", ""}, "metadata"},
		{Destination{Slack, "javascript:alert(1)", ""}, "write https"},
		{Destination{Slack, "https://hooks.example.com/" + strings.Repeat("x", 500), ""}, "longer than"},
		{Destination{Webhook, "https://hooks.example.com/x", ""}, "whsec_"},
		{Destination{Webhook, "https://hooks.example.com/x", "whsec_c2hvcnQ="}, "whsec_"},
		{Destination{Mail, "desk@evil.example", ""}, "watches.mail"},
		{Destination{Mail, "desk@sub.example.com", ""}, "watches.mail"},
		{Destination{Mail, "Desk <desk@example.com>", ""}, "not a mail address"},
		{Destination{Mail, "desk@example.com\r\nBcc: all@example.com", ""}, "not a mail address"},
		{Destination{Mail, "desk@evil.example,desk@example.com", ""}, "not a mail address"},
		{Destination{Mail, `"a b"@example.com`, ""}, "not a mail address"},
		{Destination{Mail, "@example.com", ""}, "not a mail address"},
		{Destination{Mail, "däsk@example.com", ""}, "not a mail address"},
		{Destination{Mail, "", ""}, "not a mail address"},
		{Destination{"carrier pigeon", "x", ""}, "not a way to notify"},
	} {
		_, err := r.book.Make(t.Context(), r.desk(), "all", c.d)
		if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, understudy.ErrInvalid) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s %q: %v, want %q", c.d.Channel, c.d.To, err, c.want)
		}
	}
	desk := Destination{Mail, "desk@example.com", ""}
	if _, err := r.book.Make(t.Context(), r.desk(), "nothing", desk); !errors.Is(err, understudy.ErrNotFound) {
		t.Errorf("a search that is not there: %v", err)
	}
	if n := len(r.book.Watches(r.desk(), false)); n != 6 {
		t.Errorf("%d watches", n)
	}
	if _, err := r.book.Make(t.Context(), r.desk(), "all", desk); err != nil ||
		len(r.book.Watches(r.desk(), false)) != 6 {
		t.Errorf("the same again: %v, %d", err, len(r.book.Watches(r.desk(), false)))
	}
	for n := range maxWatchesEach {
		_, _ = r.book.Make(t.Context(), r.desk(), "all", Destination{Slack, "https://hooks.example.com/" + strings.Repeat("y", n), ""})
	}
	if n := len(r.book.Watches(r.desk(), false)); n != maxWatchesEach {
		t.Errorf("%d watches of one owner", n)
	}
	other := understudy.Caller{Name: "other", Grant: &understudy.Grant{Role: understudy.RoleAll}}
	if n, m := len(r.book.Watches(other, false)), len(r.book.Watches(other, true)); n != 0 || m != maxWatchesEach {
		t.Errorf("another sees %d, and %d of all", n, m)
	}
	// A destination that the settings permit no more gets nothing.
	r.rules = Rules{}
	r.enforce()
	r.put(message(1, "inbound", "failed"))
	_ = r.round()
	for _, s := range r.book.Watches(r.desk(), false) {
		if !strings.Contains(s.State.Stopped, "an administrator can add it") || !s.State.Continues {
			t.Errorf("%s: stopped for %q", s.Watch.To.To, s.State.Stopped)
		}
	}
}
