// Contact: people jump to a record, play a recording, look at an image, read a
// number and a conversation, and know of an outage.

package viewer

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"understudy/e2e/rig"
)

// fetched gathers what the browser asks for from now on.
func (b *tab) fetched() func() []string {
	b.t.Helper()
	var all []string
	err := chromedp.Listen(b.ctx, func(event any) {
		b.mu.Lock()
		defer b.mu.Unlock()
		if e, ok := event.(*network.EventRequestWillBeSent); ok {
			all = append(all, e.Request.URL)
		}
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return func() []string {
		b.mu.Lock()
		defer b.mu.Unlock()
		return slices.Clone(all)
	}
}

// jump types into the search box, which the slash leads to.
func (b *tab) jump(text string) {
	b.t.Helper()
	b.do(chromedp.KeyEvent("/"))
	if at := eval[string](b, `document.activeElement.id`); at != "q" {
		b.t.Fatalf("the slash leads to %q", at)
	}
	// The protocol types the slash even if the page cancels the key; a keyboard does not.
	b.do(chromedp.SetValue(chromedp.CSS(`#q`), text))
	b.follow(chromedp.KeyEvent(kb.Enter))
}

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
	b := openTab(t, demo.URL("viewer"))
	asked := b.fetched()
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
	b.open("/")
	b.jump(page.Recordings[i].Sid)
	if path := eval[string](b, `location.pathname`); path != "/twilio/recordings/"+page.Recordings[i].Sid {
		t.Fatalf("the jump leads to %s", path)
	}
	if n := media(); n != 0 {
		t.Errorf("%d contents were fetched before anybody played one", n)
	}
	b.do(chromedp.Evaluate[chromedp.Void](`void document.querySelector("audio").play()`))
	rig.Await(t, func() string {
		if at := eval[float64](b, `document.querySelector("audio").currentTime`); at <= 0 {
			return "nothing is heard: " + eval[string](b, `document.querySelector("audio").error?.message ?? "no error"`)
		}
		return ""
	})
	b.do(chromedp.Evaluate[chromedp.Void](`document.querySelector("audio").pause()`))
	if kept := eval[int](b, `document.querySelectorAll("a[download]").length`); kept < 2 {
		t.Errorf("%d files to keep", kept)
	}
	b.calm("recording")

	// The call it is of shows it too.
	b.follow(chromedp.Click(chromedp.CSS(`main a[href="/twilio/calls/` + page.Recordings[i].CallSid + `"]`)))
	if n := eval[int](b, `document.querySelectorAll("td audio").length`); n == 0 {
		t.Error("the call has no player")
	}
	b.calm("call")

	// An image, behind a click, in its place.
	m, before := -1, 0
	for i, message := range page.Messages {
		if before = media(); message.NumMedia == "0" {
			continue
		}
		b.open("/twilio/messages/" + message.Sid)
		if eval[int](b, `document.querySelectorAll("a[data-image]").length`) > 0 {
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
	b.do(chromedp.Click(chromedp.CSS(`a[data-image]`)))
	rig.Await(t, func() string {
		if !eval[bool](b, `(document.querySelector("a[data-image] img")?.naturalWidth ?? 0) > 0`) {
			return "no image shows"
		}
		return ""
	})
	if media() == before {
		t.Error("an image shows that was never fetched")
	}
	b.calm("image")

	// A number, as a person writes it; then what passed between two.
	number := page.Messages[m].From
	b.jump(number[:4] + " " + number[4:7] + "-" + number[7:])
	if path := eval[string](b, `location.pathname`); path != "/twilio/number/"+number {
		t.Fatalf("the jump leads to %s", path)
	}
	b.follow(chromedp.Click(chromedp.CSS(`.partners a`)))
	if n := eval[int](b, `document.querySelectorAll(".turn").length`); n == 0 {
		t.Error("a conversation without turns")
	}
	b.calm("conversation")

	// Words that are nowhere find nothing, and the page says what can be typed.
	b.jump("xyzzy plugh")
	text := eval[string](b, `document.querySelector("main").innerText`)
	for _, want := range []string{"Nothing found.", "Search help"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q: %s", want, text)
		}
	}
	b.calm("search")
}

// Every kind is two keys away, and what opens closes again.
func TestBrowserMore(t *testing.T) {
	t.Parallel()
	demo := rig.StartDemo(t, "--latency", "20ms", "--records", "300")
	b := openTab(t, demo.URL("viewer"))
	b.open("/twilio/calls")
	const shown = `document.querySelector("#more").matches(":popover-open")`
	b.do(chromedp.Focus(chromedp.CSS(`[popovertarget]`)), chromedp.KeyEvent(kb.Enter))
	if !eval[bool](b, shown) {
		t.Fatal("More does not open by the keyboard")
	}
	b.do(chromedp.KeyEvent(kb.Escape))
	if eval[bool](b, shown) {
		t.Error("More does not close")
	}
	b.do(chromedp.Click(chromedp.CSS(`[popovertarget]`)))
	b.follow(chromedp.Click(chromedp.CSS(`#more a[href="/twilio/queues"]`)))
	if at := eval[string](b, `document.querySelector(".kinds [aria-current]").innerText`); at != "Queues" {
		t.Errorf("the header says %q", at)
	}
	b.calm("more")
}

// In an outage every page says so, and what is held is still there.
func TestBrowserOutage(t *testing.T) {
	t.Parallel()
	demo := rig.StartDemo(t, "--latency", "20ms", "--records", "300")
	b := openTab(t, demo.URL("viewer"))
	b.open("/twilio/calls")
	rig.Control(t, demo.URL("slowapi"), "/-/faults", `{"rules":[{"match":"","status":503}]}`)
	user := rig.Account + ":" + rig.DemoToken
	rig.Await(t, func() string {
		var asks sync.WaitGroup
		for _, size := range []string{"3", "4", "5", "6", "7", "8"} {
			asks.Go(func() { _, _ = rig.Ask("GET", user, demo.URL("twilio")+rig.Base+"/Calls.json?PageSize="+size, "") })
		}
		asks.Wait()
		b.open("/twilio/calls")
		if !eval[bool](b, `!!document.querySelector(".banner[class]")`) {
			return "no banner"
		}
		return ""
	})
	text := eval[string](b, `document.querySelector("[role=status][aria-live] .banner").innerText`)
	for _, want := range []string{"Twilio is down", "since", "next check"} {
		if !strings.Contains(text, want) {
			t.Errorf("the banner does not say %q: %s", want, text)
		}
	}
	if rows := eval[int](b, `document.querySelectorAll("tbody tr").length`); rows == 0 || !strings.Contains(eval[string](b, `document.querySelector(".sub").innerText`), "as of") {
		t.Errorf("%d rows are left, or nothing says as of when", rows)
	}
	b.open("/")
	if !eval[bool](b, `!!document.querySelector(".banner")`) {
		t.Error("home has no banner")
	}
	rig.Control(t, demo.URL("slowapi"), "/-/faults", `{"rules":[]}`)
	rig.Await(t, func() string {
		b.open("/twilio/calls")
		if eval[bool](b, `!!document.querySelector(".banner")`) {
			return "the banner stays"
		}
		return ""
	})
}
