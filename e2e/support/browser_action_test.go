// Actions: a person sends a message with two clicks on one button, and one is sent.

package support

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"understudy/e2e/browser"
	"understudy/e2e/rig"
)

// sent are the ids of upstream's messages with a body.
func sent(t *testing.T, api, body string) (ids []string) {
	t.Helper()
	r, err := rig.Ask("GET", rig.Account+":slowapitoken", api+rig.Base+"/Messages.json?PageSize=200", "")
	if err != nil || r.Status != 200 {
		t.Fatalf("%v, %d", err, r.Status)
	}
	var page struct {
		Messages []struct{ Sid, Body string }
	}
	if err := json.Unmarshal(r.Body, &page); err != nil {
		t.Fatal(err)
	}
	for _, m := range page.Messages {
		if m.Body == body {
			ids = append(ids, m.Sid)
		}
	}
	return ids
}

// By keyboard and mouse, without a script of ours: the form, its review, and two clicks on its
// button. The browser may send the second form in place of the first, or both: what many
// forms at once do, TestDoubleClicks of the viewer shows.
func TestBrowserDoubleClick(t *testing.T) {
	t.Parallel()
	demo := rig.StartDemo(t, "--latency", "500ms", "--records", "300")
	b := browser.OpenTab(t, demo.URL("viewer"))
	b.Open("/twilio/messages")
	b.Follow(chromedp.Click(chromedp.CSS(`a[href="/-/do/twilio/messages/send"]`)))
	b.Do(chromedp.SendKeys(chromedp.CSS("#f-To"), "+14155550123"))
	const body = "Two clicks, one message"
	b.Do(chromedp.SendKeys(chromedp.CSS("#f-Body"), body))
	b.Follow(chromedp.Click(chromedp.CSS(`button[value="review"]`)))
	if text := browser.Eval[string](b, `document.querySelector(".action").innerText`); !strings.Contains(text, body) || !strings.Contains(text, "1 segment") {
		t.Errorf("the review says %q", text)
	}
	at := browser.Eval[[]float64](b, `(r => [r.x + r.width / 2, r.y + r.height / 2])(document.querySelector("button[value=do]").getBoundingClientRect())`)
	b.Do(chromedp.MouseClickXY(at[0], at[1]))
	b.Do(chromedp.MouseClickXY(at[0], at[1], chromedp.ClickCount(2)))
	rig.Await(t, func() string {
		if text := browser.Eval[string](b, `document.querySelector("main")?.innerText ?? ""`); !strings.Contains(text, "The message is on its way.") {
			return fmt.Sprintf("the page says %q", text)
		}
		return ""
	})
	ids := sent(t, demo.URL("slowapi"), body)
	if len(ids) != 1 || !strings.HasSuffix(browser.Eval[string](b, `location.pathname`), "/twilio/messages/"+ids[0]) {
		t.Errorf("%v were sent, and the browser is at %s", ids, browser.Eval[string](b, `location.pathname`))
	}
	b.Do(chromedp.KeyEvent(kb.F5))
	if ids := sent(t, demo.URL("slowapi"), body); len(ids) != 1 {
		t.Errorf("a reload sent another: %v", ids)
	}
	b.CheckComplaints("a double click")
}

// The count beside the text that is typed is that of its review.
func TestBrowserCountsSegments(t *testing.T) {
	t.Parallel()
	b := browser.OpenTab(t, rig.StartDemo(t, "--records", "300").URL("viewer"))
	for _, text := range []string{
		"hi", strings.Repeat("a", 160), strings.Repeat("a", 161), strings.Repeat("a", 152) + "€" + strings.Repeat("b", 20), "café ☕",
		strings.Repeat("ж", 71), strings.Repeat("a", 66) + "😀 and more", "{[~]}\n|^\\", strings.Repeat("€", 80) + "a",
	} {
		b.Open("/-/do/twilio/messages/send?To=%2B14155550123&Body=" + url.QueryEscape(text))
		counted := browser.Eval[string](b, `document.querySelector("textarea + .fine").textContent`)
		counted, _, _ = strings.Cut(counted, ", because")
		b.Follow(chromedp.Click(chromedp.CSS(`button[value="review"]`)))
		if review := browser.Eval[string](b, `document.querySelector(".action").innerText`); counted == "" || !strings.Contains(review, counted) {
			t.Errorf("%q counts as %q while it is typed, and is reviewed as %q", text, counted, review)
		}
	}
	b.Follow(chromedp.Click(chromedp.CSS(`button[value="change"]`)))
	b.Do(chromedp.SendKeys(chromedp.CSS("#f-Body"), "x"))
	if counted := browser.Eval[string](b, `document.querySelector("textarea + .fine").textContent`); counted != "2 segments, 162 characters (GSM-7)" {
		t.Errorf("one letter more: %q", counted)
	}
	b.CheckComplaints("counting segments")
}
