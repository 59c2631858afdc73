// Watch: an administrator makes a watch of a saved search, and sees it, a webhook and the
// sessions of people, in a real browser.

package viewer

import (
	"encoding/base64"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"understudy/e2e/rig"
	"understudy/internal/checktest"
	"understudy/internal/signin"
)

func TestBrowserWatch(t *testing.T) {
	t.Parallel()
	script := axe(t)
	users := filepath.Join(t.TempDir(), "users")
	if err := signin.UpdateFile(users, func(u *signin.Users) error { return u.Add("anna", "all", rig.AnnasPassword) }); err != nil {
		t.Fatal(err)
	}
	// Port 9 discards; nothing listens there, so the webhook fails.
	house, _ := rig.StartServer(t, rig.Settings{Upstream: rig.StartAPI(t, "--latency", "1ms", "--records", "300").URL("slowapi"), Users: rig.ReadFile(t, users), More: `watches: {hosts: [hooks.example.com]}
webhooks:
  - {name: crm, url: "http://127.0.0.1:9/", secret: "cmd:echo whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYqrTw==", role: support, kinds: [calls], allow_private: true}
`})
	b := openTab(t, house.URL("viewer"))
	b.open("/search?q=status:failed")
	b.signIn("anna", rig.AnnasPassword)
	b.do(chromedp.Evaluate[chromedp.Void](`document.querySelector(".save").showPopover()`), chromedp.SetValue(chromedp.CSS(`.save [name=name]`), "late parcels"))
	b.follow(chromedp.Click(chromedp.CSS(`.save .primary`)))
	b.follow(chromedp.Click(chromedp.CSS(`.shelf a[href^="/-/watches/new"]`)))
	b.sound(script, "the form of a watch")
	b.calm("the form of a watch")
	b.do(chromedp.SetValue(chromedp.CSS(`#channel`), "slack"), chromedp.SetValue(chromedp.CSS(`#to`), "https://else.example.org/x"))
	b.follow(chromedp.Click(chromedp.CSS(`main form .primary`)))
	b.sound(script, "a watch that is refused")
	b.do(chromedp.SetValue(chromedp.CSS(`#channel`), "slack"), chromedp.SetValue(chromedp.CSS(`#to`), "https://hooks.example.com/x"))
	b.follow(chromedp.Click(chromedp.CSS(`main form .primary`)))
	// A webhook without a secret gets one, which is shown once.
	b.open("/-/watches/new")
	b.do(chromedp.SetValue(chromedp.CSS(`#channel`), "webhook"), chromedp.SetValue(chromedp.CSS(`#to`), "https://hooks.example.com/y"))
	b.follow(chromedp.Click(chromedp.CSS(`main form .primary`)))
	secret := eval[string](b, `document.querySelector(".new code").innerText`)
	{
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
		checktest.MustNoError(t, err, "the secret is %q", secret)
		checktest.MustEqual(t, len(key), 32, "the secret is %q: len(key)", secret)
		checktest.Equal(t, secret[:6], "whsec_", "the secret is %q: secret[:6]", secret)
	}
	b.sound(script, "a watch with a secret")
	b.follow(chromedp.Click(chromedp.CSS(`main .go a`)))
	if text := eval[string](b, `document.documentElement.outerHTML`); !strings.Contains(text, "Send a test") || strings.Contains(text, secret) {
		t.Error("the page of the watch shows the secret again, or is none")
	}
	b.follow(chromedp.Click(chromedp.CSS(`form[action$="/remove"] button`)))
	b.open("/-/watches")
	b.sound(script, "watches")
	b.follow(chromedp.Click(chromedp.CSS(`.jobs h3 a`)))
	if name := eval[string](b, `document.querySelector("h1").innerText`); name != "late parcels" {
		t.Errorf("the page of the watch is called %q", name)
	}
	b.sound(script, "a watch")
	b.open("/-/administration")
	if text := eval[string](b, `[...document.querySelectorAll("form.again button")].map(b => b.firstChild.textContent).join()`); text != "Send again,Pause" {
		t.Errorf("administration offers %q of the webhook", text)
	}
	b.sound(script, "administration with a webhook")
	b.open("/-/administration/sessions")
	b.sound(script, "sessions of all people")
}
