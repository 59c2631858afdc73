// Contact: people jump to a record, play a recording, look at an image, read a
// number and a conversation, and know of an outage.

package support

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"understudy/e2e/browser"
	"understudy/e2e/rig"
)

func TestBrowserContact(t *testing.T) {
	t.Parallel()
	demo := rig.StartDemo(t, "--latency", "20ms", "--records", "1000")
	var page struct {
		Recordings []struct {
			Sid           string
			CallSid       string `json:"call_sid"`
			ConferenceSid any    `json:"conference_sid"`
			Status        string
		}
		Messages []struct {
			Sid, From, To string
			NumMedia      string `json:"num_media"`
		}
	}
	user := rig.Account + ":" + rig.DemoToken
	for _, path := range []string{"/Recordings.json?PageSize=200", "/Messages.json?PageSize=1000"} {
		if err := json.Unmarshal(rig.Get(t, user, demo.URL("twilio")+rig.Base+path).Body, &page); err != nil {
			t.Fatal(err)
		}
	}
	b := browser.OpenTab(t, demo.URL("viewer"))
	asked := b.Fetched()
	media := func() (n int) {
		for _, url := range asked() {
			if strings.Contains(url, "/-/media/") {
				n++
			}
		}
		return n
	}

	// A recording, by its id: its player fetches nothing until it plays.
	i := slices.IndexFunc(page.Recordings, func(r struct {
		Sid           string
		CallSid       string `json:"call_sid"`
		ConferenceSid any    `json:"conference_sid"`
		Status        string
	}) bool {
		return r.Status == "completed" && r.ConferenceSid == nil
	})
	if i < 0 {
		t.Fatal("no recording of a call")
	}
	b.Open("/")
	b.Jump(page.Recordings[i].Sid)
	if path := browser.Eval[string](b, `location.pathname`); path != "/twilio/recordings/"+page.Recordings[i].Sid {
		t.Fatalf("the jump leads to %s", path)
	}
	if n := media(); n != 0 {
		t.Errorf("%d contents were fetched before anybody played one", n)
	}
	b.Do(chromedp.Evaluate[chromedp.Void](`void document.querySelector("audio").play()`))
	rig.Await(t, func() string {
		if at := browser.Eval[float64](b, `document.querySelector("audio").currentTime`); at <= 0 {
			return "nothing is heard: " + browser.Eval[string](b, `document.querySelector("audio").error?.message ?? "no error"`)
		}
		return ""
	})
	b.Do(chromedp.Evaluate[chromedp.Void](`document.querySelector("audio").pause()`))
	if kept := browser.Eval[int](b, `document.querySelectorAll("a[download]").length`); kept < 2 {
		t.Errorf("%d files to keep", kept)
	}
	b.CheckComplaints("recording")

	// The call it is of shows it too.
	b.Follow(chromedp.Click(chromedp.CSS(`main a[href="/twilio/calls/` + page.Recordings[i].CallSid + `"]`)))
	if n := browser.Eval[int](b, `document.querySelectorAll("td audio").length`); n == 0 {
		t.Error("the call has no player")
	}
	b.CheckComplaints("call")

	// An image, behind a click, in its place.
	m, before := -1, 0
	for i, message := range page.Messages {
		if before = media(); message.NumMedia == "0" {
			continue
		}
		b.Open("/twilio/messages/" + message.Sid)
		if browser.Eval[int](b, `document.querySelectorAll("a[data-image]").length`) > 0 {
			m = i
			break
		}
	}
	if m < 0 {
		t.Fatal("no message with an image")
	}
	if media() != before {
		t.Error("an image was fetched before anybody asked")
	}
	b.Do(chromedp.Click(chromedp.CSS(`a[data-image]`)))
	rig.Await(t, func() string {
		if !browser.Eval[bool](b, `(document.querySelector("a[data-image] img")?.naturalWidth ?? 0) > 0`) {
			return "no image shows"
		}
		return ""
	})
	if media() == before {
		t.Error("an image shows that was never fetched")
	}
	b.CheckComplaints("image")

	// A number, as a person writes it; then what passed between two.
	number := page.Messages[m].From
	b.Jump(number[:4] + " " + number[4:7] + "-" + number[7:])
	if path := browser.Eval[string](b, `location.pathname`); path != "/twilio/number/"+number {
		t.Fatalf("the jump leads to %s", path)
	}
	b.Follow(chromedp.Click(chromedp.CSS(`.partners a`)))
	if n := browser.Eval[int](b, `document.querySelectorAll(".turn").length`); n == 0 {
		t.Error("a conversation without turns")
	}
	b.CheckComplaints("conversation")

	// Words that are nowhere find nothing, and the page says what can be typed.
	b.Jump("xyzzy plugh")
	text := browser.Eval[string](b, `document.querySelector("main").innerText`)
	for _, want := range []string{"Nothing found.", "Search help"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q: %s", want, text)
		}
	}
	b.CheckComplaints("search")
}

// Every kind is two keys away, and what opens closes again.
func TestBrowserMore(t *testing.T) {
	t.Parallel()
	demo := rig.StartDemo(t, "--latency", "20ms", "--records", "300")
	b := browser.OpenTab(t, demo.URL("viewer"))
	b.Open("/twilio/calls")
	const shown = `document.querySelector("#more").matches(":popover-open")`
	b.Do(chromedp.Focus(chromedp.CSS(`[popovertarget]`)), chromedp.KeyEvent(kb.Enter))
	if !browser.Eval[bool](b, shown) {
		t.Fatal("More does not open by the keyboard")
	}
	b.Do(chromedp.KeyEvent(kb.Escape))
	if browser.Eval[bool](b, shown) {
		t.Error("More does not close")
	}
	b.Do(chromedp.Click(chromedp.CSS(`[popovertarget]`)))
	b.Follow(chromedp.Click(chromedp.CSS(`#more a[href="/twilio/queues"]`)))
	if at := browser.Eval[string](b, `document.querySelector(".kinds [aria-current]").innerText`); at != "Queues" {
		t.Errorf("the header says %q", at)
	}
	b.CheckComplaints("more")
}

// In an outage every page says so, and what is held is still there.
func TestBrowserOutage(t *testing.T) {
	t.Parallel()
	demo := rig.StartDemo(t, "--latency", "20ms", "--records", "300")
	b := browser.OpenTab(t, demo.URL("viewer"))
	b.Open("/twilio/calls")
	rig.Control(t, demo.URL("slowapi"), "/-/faults", `{"rules":[{"match":"","status":503}]}`)
	user := rig.Account + ":" + rig.DemoToken
	rig.Await(t, func() string {
		var asks sync.WaitGroup
		for _, size := range []string{"3", "4", "5", "6", "7", "8"} {
			asks.Go(func() { _, _ = rig.Ask("GET", user, demo.URL("twilio")+rig.Base+"/Calls.json?PageSize="+size, "") })
		}
		asks.Wait()
		b.Open("/twilio/calls")
		if !browser.Eval[bool](b, `!!document.querySelector(".banner[class]")`) {
			return "no banner"
		}
		return ""
	})
	text := browser.Eval[string](b, `document.querySelector("[role=status][aria-live] .banner").innerText`)
	for _, want := range []string{"Twilio is down", "since", "next check"} {
		if !strings.Contains(text, want) {
			t.Errorf("the banner does not say %q: %s", want, text)
		}
	}
	if rows := browser.Eval[int](b, `document.querySelectorAll("tbody tr").length`); rows == 0 || !strings.Contains(browser.Eval[string](b, `document.querySelector(".sub").innerText`), "as of") {
		t.Errorf("%d rows are left, or nothing says as of when", rows)
	}
	b.Open("/")
	if !browser.Eval[bool](b, `!!document.querySelector(".banner")`) {
		t.Error("home has no banner")
	}
	rig.Control(t, demo.URL("slowapi"), "/-/faults", `{"rules":[]}`)
	rig.Await(t, func() string {
		b.Open("/twilio/calls")
		if browser.Eval[bool](b, `!!document.querySelector(".banner")`) {
			return "the banner stays"
		}
		return ""
	})
}
