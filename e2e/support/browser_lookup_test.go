// Lookups: a person who answers the phone finds the caller by the whole number, in a real browser.

package support

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"understudy/e2e/browser"
	"understudy/e2e/rig"
	"understudy/internal/signin"
)

func TestBrowserFindsACaller(t *testing.T) {
	t.Parallel()
	script := browser.Axe(t)
	users := filepath.Join(t.TempDir(), "users")
	if err := signin.UpdateFile(users, func(u *signin.Users) error { return u.Add("sam", "desk", rig.AnnasPassword) }); err != nil {
		t.Fatal(err)
	}
	house, dir := rig.StartServer(t, rig.Settings{Upstream: rig.StartAPI(t, "--latency", "1ms", "--records", "300").URL("slowapi"), Users: rig.ReadFile(t, users),
		Roles: "  desk: {twilio: {\"*\": see, phone: last4, body: hide, do: [lookup, messages.send]}}\n"})
	web := house.URL("viewer")
	var list struct{ Calls []struct{ Sid, To string } }
	if err := json.Unmarshal(rig.Get(t, rig.Account+":"+rig.DemoToken, web+"/twilio/calls.json").Body, &list); err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(list.Calls, func(c struct{ Sid, To string }) bool { return strings.HasPrefix(c.To, "+") })
	if at < 0 {
		t.Fatalf("no call to a number among %d", len(list.Calls))
	}
	call, number := list.Calls[at].Sid, list.Calls[at].To
	digits := number[1:]

	b := browser.OpenTab(t, web)
	b.Open("/twilio/calls")
	b.SignIn("sam", rig.AnnasPassword)
	masked := func(where string) {
		t.Helper()
		if path := b.Path(); strings.Contains(path, digits) {
			t.Errorf("%s has the address %s", where, path)
		}
		if browser.Eval[bool](b, `document.documentElement.outerHTML.includes("`+digits+`")`) {
			t.Errorf("%s shows the number", where)
		}
		if from := browser.Eval[string](b, `document.referrer`); from != "" {
			t.Errorf("%s was told where the reader came from: %q", where, from)
		}
	}
	// The last four digits are what the list shows.
	b.Jump(digits[len(digits)-4:])
	if hits := browser.Eval[string](b, `document.querySelector("#rows")?.innerText ?? ""`); !strings.Contains(hits, digits[len(digits)-4:]) {
		t.Errorf("the last four digits find %q", hits)
	}
	// The whole number, in the same box.
	b.Open("/twilio/calls")
	b.Jump(number)
	if path := b.Path(); !strings.HasPrefix(path, "/-/lookup/") {
		t.Fatalf("a number leads to %s", path)
	}
	masked("the page of the number")
	b.CheckAccessibility(script, "the records of a number")
	b.CheckComplaints("the records of a number")
	record := `#rows a[href="/twilio/calls/` + call + `"]`
	if !browser.Eval[bool](b, `!!document.querySelector('`+record+`')`) {
		t.Fatalf("the call is not found: %s", browser.Eval[string](b, `document.querySelector("main").innerText`))
	}
	// The oldest stands first; the last contact and what may be sent are one click away.
	if act := browser.Eval[string](b, `document.querySelector(".acts a[href^='/-/do/twilio/messages/']")?.getAttribute("href") ?? ""`); act != "/-/do/twilio/messages/send" {
		t.Errorf("a message is sent at %q", act)
	}
	b.Do(chromedp.Click(chromedp.CSS(`.acts a[href="#newest"]`)))
	rig.Await(t, func() string {
		return browser.Eval[string](b, `(r => r.top >= 0 && r.bottom <= innerHeight ? "" : "the last contact is at " + r.top)([...document.querySelectorAll("#rows .turn")].at(-1).getBoundingClientRect())`)
	})
	masked("the last contact")
	b.Follow(chromedp.Click(chromedp.CSS(record)))
	masked("the record")
	browser.Eval[bool](b, `(history.back(), true)`)
	rig.Await(t, func() string {
		if path := b.Path(); !strings.HasPrefix(path, "/-/lookup/") {
			return "back leads to " + path
		}
		return ""
	})
	b.Open("/-/do/twilio/messages/send")
	if to := browser.Eval[string](b, `document.querySelector("main [name=To]")?.value ?? "no box"`); to != "" {
		t.Errorf("a message is sent to %q", to)
	}
	b.Open("/search")
	b.CheckAccessibility(script, "the search of who may look numbers up")
	// The page of its own, with a part of a number and with one that nobody has.
	b.Open("/")
	b.Follow(chromedp.Click(chromedp.CSS(`main a[href="/-/lookup"]`)))
	b.CheckAccessibility(script, "Find a caller")
	b.Follow(chromedp.KeyEvent(digits[3:] + kb.Enter))
	if said := browser.Eval[string](b, `document.querySelector("[role=alert]").innerText`); !strings.Contains(said, "Write the whole number") {
		t.Errorf("a part of a number: %q", said)
	}
	b.CheckAccessibility(script, "a part of a number")
	b.Complaints = nil // the browser's console tells of the 400
	b.Follow(chromedp.KeyEvent("+1 555 000 1111" + kb.Enter))
	if text := browser.Eval[string](b, `document.querySelector("main").innerText`); !strings.Contains(text, "Nothing found.") {
		t.Errorf("a number that nobody has: %q", text)
	}
	b.CheckAccessibility(script, "no records of a number")
	b.CheckComplaints("no records of a number")
	if log := house.Log() + rig.ReadFile(t, filepath.Join(dir, rig.AccessLog)); strings.Contains(log, digits) || !strings.Contains(log, "caller=sam") {
		t.Error("the logs hold the number, or do not name sam")
	}
}
