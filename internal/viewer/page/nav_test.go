// Nav: the menu of kinds, and the keys that lead to them.

package page_test

import (
	"regexp"
	"strings"
	"testing"

	"understudy/internal/viewer/viewertest"
)

// Every kind has a key of its own, the same on every page.
func TestJumps(t *testing.T) {
	h := viewertest.Open(t)
	find := func(page string) map[string]string {
		keys := map[string]string{}
		for _, m := range regexp.MustCompile(`<a href="([^"]*)" data-key="(.)">`).FindAllStringSubmatch(page, -1) {
			if keys[m[2]] != "" {
				t.Errorf("%s leads to %s and %s", m[2], keys[m[2]], m[1])
			}
			keys[m[2]] = m[1]
		}
		return keys
	}
	home := find(h.Page("/-/keys", viewertest.All))
	for key, want := range map[string]string{"h": "/", "c": "/twilio/calls", "m": "/twilio/messages", "s": "/search"} {
		if home[key] != want {
			t.Errorf("g %s leads to %q, want %s", key, home[key], want)
		}
	}
	for _, path := range []string{"/twilio/calls", "/twilio/accounts", "/search"} {
		link := regexp.MustCompile(`href="([^"]*)" data-keys`).FindStringSubmatch(h.Page(path, viewertest.All))
		if link == nil {
			t.Fatalf("%s does not lead to the keys", path)
		}
		if got := find(h.Page(link[1], viewertest.All)); len(got) != len(home) || got["a"] != home["a"] {
			t.Errorf("%s has other keys: %v", path, got)
		}
	}
	if got := find(h.Page("/-/keys?source=twilio", viewertest.Clerk)); got["m"] == "/twilio/messages" || len(got) < 5 {
		t.Errorf("keys of a role without messages: %v", got)
	}
	if _, body, _ := h.Get("/-/keys", viewertest.Browser{}); len(find(body)) != 0 {
		t.Error("a stranger has keys")
	}
}

// Main kinds first, the others under their headings, hidden ones nowhere.
func TestNav(t *testing.T) {
	h := viewertest.Open(t)
	page := h.Page("/twilio/queues", viewertest.All)
	head := regexp.MustCompile(`(?s)<nav class="kinds".*?</nav>`).FindString(page)
	main, more, _ := strings.Cut(head, "popovertarget")
	for _, want := range []string{"Calls", "Messages", "Phone numbers", "Recordings", "Conferences", "Alerts", `aria-current="page">Queues`} {
		if !strings.Contains(main, want) {
			t.Errorf("the header lacks %s", want)
		}
	}
	for _, want := range []string{"<h2>Account</h2>", "<h2>Monitoring</h2>", "/twilio/balance", "/twilio/usage_records",
		"/twilio/available_phone_numbers"} {
		if !strings.Contains(more, want) {
			t.Errorf("More lacks %s", want)
		}
	}
	if strings.Contains(head, "/twilio/participants") || strings.Contains(main, "Accounts") {
		t.Error("the header is full of what nobody opens from there")
	}
	page = h.Page("/", viewertest.Counter)
	if strings.Contains(page, `id="more"`) || strings.Contains(page, "Account<") {
		t.Error("a role with one kind has More")
	}
}
