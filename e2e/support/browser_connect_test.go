// Connect: an administrator gives a program access, takes it away while its list is open, and
// looks through another role, in a real browser.

package support

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"understudy/e2e/browser"
	"understudy/e2e/rig"
	"understudy/internal/checktest"
)

func TestBrowserConnect(t *testing.T) {
	t.Parallel()
	script := browser.Axe(t)
	demo := rig.StartDemo(t, "--latency", "5ms", "--records", "300")
	b := browser.OpenTab(t, demo.URL("viewer"))
	main := func(b *browser.Tab) string {
		return browser.Eval[string](b, `document.querySelector("main").innerText`)
	}
	b.Open("/-/administration")
	b.Follow(chromedp.Click(chromedp.CSS(`a[href="/-/connect"]`)))
	b.Do(chromedp.SetValue(chromedp.CSS(`#name`), "desk"))
	at := browser.Eval[[]float64](b, `(r => [r.x + r.width / 2, r.y + r.height / 2])(document.querySelector('form[action="/-/connect"] .primary').getBoundingClientRect())`)
	b.Do(chromedp.MouseClickXY(at[0], at[1]))
	b.Do(chromedp.MouseClickXY(at[0], at[1], chromedp.ClickCount(2))) // the second answer shows what the first made
	rig.Await(t, func() string {
		n, err := chromedp.Run(b.Ctx, chromedp.Evaluate[int](`document.querySelectorAll(".new code").length`))
		switch {
		case err != nil: // the page is being left
			return err.Error()
		case n < 2:
			return "the page shows no secret"
		}
		return ""
	})
	user, secret := browser.Eval[string](b, `document.querySelectorAll(".new code")[0].innerText`), browser.Eval[string](b, `document.querySelectorAll(".new code")[1].innerText`)
	checktest.MustTrue(t, strings.HasPrefix(user, "SK"), "made: user is %q", user)
	checktest.MustTrue(t, len(secret) >= 40, "made: len(secret) is %v, want >= 40", len(secret))
	checktest.MustContains(t, main(b), `Client("`+user+`", "`+secret+`"`, "made: main(b)")
	b.CheckAccessibility(script, "a credential that was made")
	b.Follow(chromedp.Click(chromedp.CSS(`form[action$="/try"] .primary`)))
	{
		text := main(b)
		checktest.Contains(t, text, "200 OK", "tried, the page says: text")
		checktest.Contains(t, text, " old", "tried, the page says: text")
		checktest.Contains(t, text, secret, "tried, the page says: text")
	}
	b.CheckAccessibility(script, "a credential that was tried")

	// The program's credential opens a list in another browser, and is revoked meanwhile.
	other := browser.OpenTab(t, demo.URL("viewer"))
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+secret))
	browser.Command(other, network.SetExtraHTTPHeaders, network.SetExtraHTTPHeadersParams{Headers: network.Headers{"Authorization": basic}})
	other.Open("/twilio/calls")
	if text := main(other); !strings.Contains(text, "••••") {
		t.Errorf("the role support is shown %.300s", text)
	}
	b.Open("/-/connect/desk")
	if strings.Contains(main(b), secret) {
		t.Error("the secret is shown again")
	}
	b.Do(chromedp.Click(chromedp.CSS(`#sure`)))
	b.Follow(chromedp.Click(chromedp.CSS(`form[action$="/revoke"] button`)))
	if said := browser.Eval[string](b, `document.querySelector(".notice.good").innerText`); !strings.Contains(said, "desk is revoked") {
		t.Errorf("revoked, the page says %q", said)
	}
	rig.Await(t, func() string {
		if said := browser.Eval[string](other, browser.LiveText); !strings.Contains(said, "Your session has ended") {
			return "the list that is open says " + said
		}
		return ""
	})

	// Through another role, and back.
	b.Follow(chromedp.Click(chromedp.CSS(`a[href="/-/roles"]`)))
	b.Open("/-/roles/support")
	b.Follow(chromedp.Click(chromedp.CSS(`form[action="/-/view-as"] button`)))
	b.Open("/twilio/messages")
	if text := main(b); !strings.Contains(text, "You are viewing as the role support.") || !strings.Contains(text, "••••") {
		t.Errorf("through the role the page says %.500s", text)
	}
	b.CheckAccessibility(script, "through another role")
	b.CheckComplaints("through another role")
	b.Follow(chromedp.Click(chromedp.CSS(`form[action="/-/view-as/end"] button`)))
	{
		text := main(b)
		checktest.Equal(t, b.Path(), "/twilio/messages", "back at: b.path(); text %.300s", text)
		checktest.Lacks(t, text, "You are viewing as", "back at: text")
		checktest.Lacks(t, text, "••••", "back at: text")
	}
	b.CheckComplaints("connect")
}
