// Watch: an administrator makes a watch of a saved search, and sees it, a webhook and the
// sessions of people, in a real browser.

package support

import (
	"encoding/base64"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"understudy/e2e/browser"
	"understudy/e2e/rig"
	"understudy/internal/checktest"
	"understudy/internal/signin"
)

func TestBrowserWatch(t *testing.T) {
	t.Parallel()
	script := browser.Axe(t)
	users := filepath.Join(t.TempDir(), "users")
	if err := signin.UpdateFile(users, func(u *signin.Users) error { return u.Add("anna", "all", rig.AnnasPassword) }); err != nil {
		t.Fatal(err)
	}
	// Port 9 discards; nothing listens there, so the webhook fails.
	house, _ := rig.StartServer(t, rig.Settings{Upstream: rig.StartAPI(t, "--latency", "1ms", "--records", "300").URL("slowapi"), Users: rig.ReadFile(t, users), More: `watches: {hosts: [hooks.example.com]}
webhooks:
  - {name: crm, url: "http://127.0.0.1:9/", secret: "cmd:echo whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYqrTw==", role: support, kinds: [calls], allow_private: true}
`})
	b := browser.OpenTab(t, house.URL("viewer"))
	b.Open("/search?q=status:failed")
	b.SignIn("anna", rig.AnnasPassword)
	b.Do(chromedp.Evaluate[chromedp.Void](`document.querySelector(".save").showPopover()`), chromedp.SetValue(chromedp.CSS(`.save [name=name]`), "late parcels"))
	b.Follow(chromedp.Click(chromedp.CSS(`.save .primary`)))
	b.Follow(chromedp.Click(chromedp.CSS(`.shelf a[href^="/-/watches/new"]`)))
	b.CheckAccessibility(script, "the form of a watch")
	b.CheckComplaints("the form of a watch")
	b.Do(chromedp.SetValue(chromedp.CSS(`#channel`), "slack"), chromedp.SetValue(chromedp.CSS(`#to`), "https://else.example.org/x"))
	b.Follow(chromedp.Click(chromedp.CSS(`main form .primary`)))
	b.CheckAccessibility(script, "a watch that is refused")
	b.Do(chromedp.SetValue(chromedp.CSS(`#channel`), "slack"), chromedp.SetValue(chromedp.CSS(`#to`), "https://hooks.example.com/x"))
	b.Follow(chromedp.Click(chromedp.CSS(`main form .primary`)))
	// A webhook without a secret gets one, which is shown once.
	b.Open("/-/watches/new")
	b.Do(chromedp.SetValue(chromedp.CSS(`#channel`), "webhook"), chromedp.SetValue(chromedp.CSS(`#to`), "https://hooks.example.com/y"))
	b.Follow(chromedp.Click(chromedp.CSS(`main form .primary`)))
	secret := browser.Eval[string](b, `document.querySelector(".new code").innerText`)
	{
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
		checktest.MustNoError(t, err, "the secret is %q", secret)
		checktest.MustEqual(t, len(key), 32, "the secret is %q: len(key)", secret)
		checktest.Equal(t, secret[:6], "whsec_", "the secret is %q: secret[:6]", secret)
	}
	b.CheckAccessibility(script, "a watch with a secret")
	b.Follow(chromedp.Click(chromedp.CSS(`main .go a`)))
	if text := browser.Eval[string](b, `document.documentElement.outerHTML`); !strings.Contains(text, "Send a test") || strings.Contains(text, secret) {
		t.Error("the page of the watch shows the secret again, or is none")
	}
	b.Follow(chromedp.Click(chromedp.CSS(`form[action$="/remove"] button`)))
	b.Open("/-/watches")
	b.CheckAccessibility(script, "watches")
	b.Follow(chromedp.Click(chromedp.CSS(`.jobs h3 a`)))
	if name := browser.Eval[string](b, `document.querySelector("h1").innerText`); name != "late parcels" {
		t.Errorf("the page of the watch is called %q", name)
	}
	b.CheckAccessibility(script, "a watch")
	b.Open("/-/administration")
	if text := browser.Eval[string](b, `[...document.querySelectorAll("form.again button")].map(b => b.firstChild.textContent).join()`); text != "Send again,Pause" {
		t.Errorf("administration offers %q of the webhook", text)
	}
	b.CheckAccessibility(script, "administration with a webhook")
	b.Open("/-/administration/sessions")
	b.CheckAccessibility(script, "sessions of all people")
}
