// What a browser chooses for itself: the theme, and the timezone that it sends when it comes for the first time.

package viewer

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"understudy/e2e/browser"
	"understudy/e2e/rig"
	"understudy/internal/signin"
)

// A chosen theme goes before that of the system, on every page and before any script has run.
func TestBrowserTheme(t *testing.T) {
	t.Parallel()
	script := browser.Axe(t)
	demo := rig.StartDemo(t, "--latency", "5ms", "--records", "200")
	b := browser.OpenTab(t, demo.URL("viewer"))
	scheme := func() string {
		return browser.Eval[string](b, `getComputedStyle(document.documentElement).colorScheme`)
	}
	ground := func() string { return browser.Eval[string](b, `getComputedStyle(document.body).backgroundColor`) }
	browser.Command(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	for _, c := range []struct{ theme, scheme string }{{"dark", "dark"}, {"light", "light"}, {"auto", "light dark"}} {
		b.Open("/-/timezone?back=/twilio/calls")
		b.Follow(chromedp.Click(chromedp.CSS(`button[value="` + c.theme + `"]`)))
		for _, path := range []string{"/twilio/calls", "/", "/-/administration", "/nowhere"} {
			if path != b.Path() {
				b.Open(path)
			}
			if got := scheme(); got != c.scheme {
				t.Errorf("%s: the color-scheme of %s is %q", c.theme, path, got)
			}
		}
		grounds := map[string]bool{}
		for _, system := range []string{"light", "dark"} {
			browser.Command(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: system}}})
			grounds[ground()] = true
		}
		if follows := len(grounds) > 1; follows != (c.theme == "auto") {
			t.Errorf("%s: the grounds of a light and a dark system are %v", c.theme, grounds)
		}
	}
	browser.Command(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{})
	b.Complaints = nil // of the page that is not there
	for _, theme := range []string{"dark", "light", "auto"} {
		b.Open("/-/timezone?back=/twilio/calls")
		b.CheckAccessibility(script, "timezone and theme")
		b.Follow(chromedp.Click(chromedp.CSS(`button[value="` + theme + `"]`)))
		b.CheckAccessibility(script, theme)
		b.CheckComplaints(theme)
	}
}

// The timezone is sent without a reload of the page on which somebody signs in.
func TestBrowserFirstVisitKeepsWhatIsTyped(t *testing.T) {
	t.Parallel()
	users := filepath.Join(t.TempDir(), "users")
	if err := signin.UpdateFile(users, func(u *signin.Users) error { return u.Add("anna", "all", rig.AnnasPassword) }); err != nil {
		t.Fatal(err)
	}
	house, _ := rig.StartServer(t, rig.Settings{Upstream: rig.StartAPI(t, "--latency", "1ms", "--records", "50").URL("slowapi"), Users: rig.ReadFile(t, users)})
	b := browser.OpenTab(t, house.URL("viewer"))
	browser.Command(b, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Asia/Tehran"})
	browser.Command(b, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: `sessionStorage.loads = 1 + +(sessionStorage.loads || 0)`})
	b.Do(chromedp.Navigate(b.Home+"/-/sign-in?back=/-/timezone"), chromedp.SendKeys(chromedp.CSS("#name"), "anna"))
	zone := `document.querySelector("a[href^='/-/timezone']").lastChild.textContent.trim()`
	rig.Await(t, func() string {
		if got := browser.Eval[string](b, zone); got != "Asia/Tehran" {
			return "the timezone is still " + got
		}
		return ""
	})
	if name := browser.Eval[string](b, `document.querySelector("#name").value`); name != "anna" {
		t.Errorf("of the name %q is left", name)
	}
	if loads := browser.Eval[string](b, `sessionStorage.loads`); loads != "1" {
		t.Errorf("the page was loaded %s times", loads)
	}
	b.Do(chromedp.SendKeys(chromedp.CSS("#password"), "wrong"), chromedp.Click(chromedp.CSS(".reveal")))
	if kind := browser.Eval[string](b, `document.querySelector("#password").type + document.querySelector(".reveal").ariaPressed`); kind != "texttrue" {
		t.Errorf("shown, the password is %s", kind)
	}
	b.Do(chromedp.Evaluate[chromedp.Void](`document.querySelector("#password").value = ""`))
	b.SignIn("anna", rig.AnnasPassword)
	if got := browser.Eval[string](b, zone); !strings.HasPrefix(b.Path(), "/-/timezone") || got != "Asia/Tehran" {
		t.Errorf("the page after it, %s, is in %s", b.Path(), got)
	}
	b.CheckComplaints("first visit")
}
