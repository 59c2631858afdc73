// Sign-in: people come in by a form, and go by a button, in a real browser.

package viewer

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"understudy/e2e/rig"
	"understudy/internal/signin"
)

// signIn fills the form in by keyboard and sends it.
func (b *tab) signIn(name, password string) {
	b.t.Helper()
	b.do(chromedp.SetValue(chromedp.CSS(`#name`), name), chromedp.Focus(chromedp.CSS(`#password`)))
	b.follow(chromedp.KeyEvent(password + kb.Enter))
}

func TestBrowserSignIn(t *testing.T) {
	t.Parallel()
	script := axe(t)
	users := filepath.Join(t.TempDir(), "users")
	if err := signin.UpdateFile(users, func(u *signin.Users) error { return u.Add("anna", "support", rig.AnnasPassword) }); err != nil {
		t.Fatal(err)
	}
	house, dir := rig.StartServer(t, rig.Settings{Upstream: rig.StartAPI(t, "--latency", "1ms", "--records", "300").URL("slowapi"), Users: rig.ReadFile(t, users)})
	b := openTab(t, house.URL("viewer"))
	b.open("/twilio/calls?Status=busy")
	if path := b.path(); !strings.HasPrefix(path, "/-/sign-in") {
		t.Fatalf("without a session a list leads to %s", path)
	}
	b.sound(script, "sign-in")
	b.calm("sign-in")
	if focus := eval[string](b, `document.activeElement.id`); focus != "name" {
		t.Errorf("the form begins at %q", focus)
	}
	b.signIn("anna", "guess")
	if said := eval[string](b, `document.querySelector("[role=alert]").innerText`); !strings.Contains(said, "Wrong name or password") {
		t.Errorf("a wrong password: %q", said)
	}
	if focus := eval[string](b, `document.activeElement.id`); focus != "password" {
		t.Errorf("after a wrong password the form begins at %q", focus)
	}
	b.sound(script, "sign-in, refused")
	b.complaints = nil // the browser's console tells of the 403

	b.signIn("anna", rig.AnnasPassword)
	if at := b.path(); at != "/twilio/calls?Status=busy" {
		t.Fatalf("signed in, at %s", at)
	}
	if cookies := eval[string](b, `document.cookie`); strings.Contains(cookies, "understudy=") {
		t.Errorf("scripts see the cookie of the session: %q", cookies)
	}
	b.calm("list")
	b.follow(chromedp.Click(chromedp.CSS(`a[href="/-/sessions"]`)))
	if text := eval[string](b, `document.querySelector("main").innerText`); !strings.Contains(text, "Chrome on Linux") || !strings.Contains(text, "this browser") {
		t.Errorf("the sessions are %q", text)
	}
	b.sound(script, "sessions")
	b.calm("sessions")

	other := openTab(t, house.URL("viewer"))
	other.open("/twilio/calls")
	other.signIn("anna", rig.AnnasPassword) // and leaves the list open
	b.open("/-/sessions")
	b.follow(chromedp.Click(chromedp.CSS(`button[aria-label^="End the session"]`)))
	if said := eval[string](b, `document.querySelector(".notice.good").innerText`); said != "The session has ended." {
		t.Errorf("after the end of a session the page says %q", said)
	}
	b.sound(script, "a session was ended")
	if n := eval[int](b, `document.querySelectorAll(".job").length`); n != 1 {
		t.Errorf("after the end of one %d sessions are shown", n)
	}
	rig.Await(t, func() string {
		if said := eval[string](other, liveText); !strings.Contains(said, "Your session has ended") {
			return "the list that is open says " + said
		}
		return ""
	})
	other.mu.Lock()
	other.complaints = nil // the console tells of the 401
	other.mu.Unlock()
	other.open("/twilio/calls")
	if path := other.path(); !strings.HasPrefix(path, "/-/sign-in") {
		t.Errorf("whose session was ended is at %s", path)
	}
	b.follow(chromedp.Click(chromedp.CSS(`.acts button`)))
	b.open("/twilio/calls")
	if path := b.path(); !strings.HasPrefix(path, "/-/sign-in") {
		t.Errorf("signed out, at %s", path)
	}
	b.calm("signed out")
	if log := house.Log() + rig.ReadFile(t, filepath.Join(dir, rig.AccessLog)); strings.Contains(log, "odd words") || !strings.Contains(log, "caller=anna") {
		t.Errorf("the logs hold a password, or do not name anna:\n%s", log)
	}
}
