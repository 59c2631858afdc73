// Connect: an administrator gives a program access, takes it away while its list is open, and
// looks through another role, in a real browser.

package viewer

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"understudy/e2e/rig"
	"understudy/internal/checktest"
)

func TestBrowserConnect(t *testing.T) {
	t.Parallel()
	script := axe(t)
	demo := rig.StartDemo(t, "--latency", "5ms", "--records", "300")
	b := openTab(t, demo.URL("viewer"))
	main := func(b *tab) string { return eval[string](b, `document.querySelector("main").innerText`) }
	b.open("/-/administration")
	b.follow(chromedp.Click(chromedp.CSS(`a[href="/-/connect"]`)))
	b.do(chromedp.SetValue(chromedp.CSS(`#name`), "desk"))
	at := eval[[]float64](b, `(r => [r.x + r.width / 2, r.y + r.height / 2])(document.querySelector('form[action="/-/connect"] .primary').getBoundingClientRect())`)
	b.do(chromedp.MouseClickXY(at[0], at[1]))
	b.do(chromedp.MouseClickXY(at[0], at[1], chromedp.ClickCount(2))) // the second answer shows what the first made
	rig.Await(t, func() string {
		n, err := chromedp.Run(b.ctx, chromedp.Evaluate[int](`document.querySelectorAll(".new code").length`))
		switch {
		case err != nil: // the page is being left
			return err.Error()
		case n < 2:
			return "the page shows no secret"
		}
		return ""
	})
	user, secret := eval[string](b, `document.querySelectorAll(".new code")[0].innerText`), eval[string](b, `document.querySelectorAll(".new code")[1].innerText`)
	checktest.MustTrue(t, strings.HasPrefix(user, "SK"), "made: user is %q", user)
	checktest.MustTrue(t, len(secret) >= 40, "made: len(secret) is %v, want >= 40", len(secret))
	checktest.MustContains(t, main(b), `Client("`+user+`", "`+secret+`"`, "made: main(b)")
	b.sound(script, "a credential that was made")
	b.follow(chromedp.Click(chromedp.CSS(`form[action$="/try"] .primary`)))
	{
		text := main(b)
		checktest.Contains(t, text, "200 OK", "tried, the page says: text")
		checktest.Contains(t, text, " old", "tried, the page says: text")
		checktest.Contains(t, text, secret, "tried, the page says: text")
	}
	b.sound(script, "a credential that was tried")

	// The program's credential opens a list in another browser, and is revoked meanwhile.
	other := openTab(t, demo.URL("viewer"))
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+secret))
	command(other, network.SetExtraHTTPHeaders, network.SetExtraHTTPHeadersParams{Headers: network.Headers{"Authorization": basic}})
	other.open("/twilio/calls")
	if text := main(other); !strings.Contains(text, "••••") {
		t.Errorf("the role support is shown %.300s", text)
	}
	b.open("/-/connect/desk")
	if strings.Contains(main(b), secret) {
		t.Error("the secret is shown again")
	}
	b.do(chromedp.Click(chromedp.CSS(`#sure`)))
	b.follow(chromedp.Click(chromedp.CSS(`form[action$="/revoke"] button`)))
	if said := eval[string](b, `document.querySelector(".notice.good").innerText`); !strings.Contains(said, "desk is revoked") {
		t.Errorf("revoked, the page says %q", said)
	}
	rig.Await(t, func() string {
		if said := eval[string](other, liveText); !strings.Contains(said, "Your session has ended") {
			return "the list that is open says " + said
		}
		return ""
	})

	// Through another role, and back.
	b.follow(chromedp.Click(chromedp.CSS(`a[href="/-/roles"]`)))
	b.open("/-/roles/support")
	b.follow(chromedp.Click(chromedp.CSS(`form[action="/-/view-as"] button`)))
	b.open("/twilio/messages")
	if text := main(b); !strings.Contains(text, "You are viewing as the role support.") || !strings.Contains(text, "••••") {
		t.Errorf("through the role the page says %.500s", text)
	}
	b.sound(script, "through another role")
	b.calm("through another role")
	b.follow(chromedp.Click(chromedp.CSS(`form[action="/-/view-as/end"] button`)))
	{
		text := main(b)
		checktest.Equal(t, b.path(), "/twilio/messages", "back at: b.path(); text %.300s", text)
		checktest.Lacks(t, text, "You are viewing as", "back at: text")
		checktest.Lacks(t, text, "••••", "back at: text")
	}
	b.calm("connect")
}
