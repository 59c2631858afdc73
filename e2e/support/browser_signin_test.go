// Sign-in: people come in by a form, and go by a button, in a real browser.

package support

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"understudy/e2e/browser"
	"understudy/e2e/rig"
	"understudy/internal/signin"
)

func TestBrowserSignIn(t *testing.T) {
	t.Parallel()
	script := browser.Axe(t)
	users := filepath.Join(t.TempDir(), "users")
	if err := signin.UpdateFile(users, func(u *signin.Users) error { return u.Add("anna", "support", rig.AnnasPassword) }); err != nil {
		t.Fatal(err)
	}
	house, dir := rig.StartServer(t, rig.Settings{Upstream: rig.StartAPI(t, "--latency", "1ms", "--records", "300").URL("slowapi"), Users: rig.ReadFile(t, users)})
	b := browser.OpenTab(t, house.URL("viewer"))
	b.Open("/twilio/calls?Status=busy")
	if path := b.Path(); !strings.HasPrefix(path, "/-/sign-in") {
		t.Fatalf("without a session a list leads to %s", path)
	}
	b.CheckAccessibility(script, "sign-in")
	b.CheckComplaints("sign-in")
	if focus := browser.Eval[string](b, `document.activeElement.id`); focus != "name" {
		t.Errorf("the form begins at %q", focus)
	}
	b.SignIn("anna", "guess")
	if said := browser.Eval[string](b, `document.querySelector("[role=alert]").innerText`); !strings.Contains(said, "Wrong name or password") {
		t.Errorf("a wrong password: %q", said)
	}
	if focus := browser.Eval[string](b, `document.activeElement.id`); focus != "password" {
		t.Errorf("after a wrong password the form begins at %q", focus)
	}
	b.CheckAccessibility(script, "sign-in, refused")
	b.Complaints = nil // the browser's console tells of the 403

	b.SignIn("anna", rig.AnnasPassword)
	if at := b.Path(); at != "/twilio/calls?Status=busy" {
		t.Fatalf("signed in, at %s", at)
	}
	if cookies := browser.Eval[string](b, `document.cookie`); strings.Contains(cookies, "understudy=") {
		t.Errorf("scripts see the cookie of the session: %q", cookies)
	}
	b.CheckComplaints("list")
	b.Follow(chromedp.Click(chromedp.CSS(`a[href="/-/sessions"]`)))
	if text := browser.Eval[string](b, `document.querySelector("main").innerText`); !strings.Contains(text, "Chrome on Linux") || !strings.Contains(text, "this browser") {
		t.Errorf("the sessions are %q", text)
	}
	b.CheckAccessibility(script, "sessions")
	b.CheckComplaints("sessions")

	other := browser.OpenTab(t, house.URL("viewer"))
	other.Open("/twilio/calls")
	other.SignIn("anna", rig.AnnasPassword) // and leaves the list open
	b.Open("/-/sessions")
	b.Follow(chromedp.Click(chromedp.CSS(`button[aria-label^="End the session"]`)))
	if said := browser.Eval[string](b, `document.querySelector(".notice.good").innerText`); said != "The session has ended." {
		t.Errorf("after the end of a session the page says %q", said)
	}
	b.CheckAccessibility(script, "a session was ended")
	if n := browser.Eval[int](b, `document.querySelectorAll(".job").length`); n != 1 {
		t.Errorf("after the end of one %d sessions are shown", n)
	}
	rig.Await(t, func() string {
		if said := browser.Eval[string](other, browser.LiveText); !strings.Contains(said, "Your session has ended") {
			return "the list that is open says " + said
		}
		return ""
	})
	other.Mu.Lock()
	other.Complaints = nil // the console tells of the 401
	other.Mu.Unlock()
	other.Open("/twilio/calls")
	if path := other.Path(); !strings.HasPrefix(path, "/-/sign-in") {
		t.Errorf("whose session was ended is at %s", path)
	}
	b.Follow(chromedp.Click(chromedp.CSS(`.acts button`)))
	b.Open("/twilio/calls")
	if path := b.Path(); !strings.HasPrefix(path, "/-/sign-in") {
		t.Errorf("signed out, at %s", path)
	}
	b.CheckComplaints("signed out")
	if log := house.Log() + rig.ReadFile(t, filepath.Join(dir, rig.AccessLog)); strings.Contains(log, "odd words") || !strings.Contains(log, "caller=anna") || !strings.Contains(log, "person=anna") {
		t.Errorf("the logs hold a password, or do not name anna:\n%s", log)
	}
}
