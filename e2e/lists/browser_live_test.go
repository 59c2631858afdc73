// Live rows: a list that is open says what came since, and is silent when it
// is out of sight.

package lists

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"understudy/e2e/binary"
	"understudy/e2e/browser"
	"understudy/e2e/rig"
	"understudy/internal/checktest"
	"understudy/internal/sample"
)

// anew makes the mirror ask upstream for the newest calls. no-cache is heeded
// once a second for a page, so each time it is another page.
func anew(t *testing.T, dropIn string, size int) {
	t.Helper()
	r, err := rig.Ask("GET", rig.Account+":"+rig.DemoToken, fmt.Sprintf("%s%s/Calls.json?PageSize=%d", dropIn, rig.Base, size), "", "Cache-Control", "no-cache")
	if err != nil || r.Status != 200 {
		t.Fatalf("%v, %d", err, r.Status)
	}
}

// advance makes calls upstream.
func advance(t *testing.T, api string, calls int) {
	t.Helper()
	r, err := rig.Ask("POST", "", api+"/-/advance", fmt.Sprintf(`{"calls":%d,"seconds":60}`, calls))
	if err != nil || r.Status != 200 {
		t.Fatalf("advance: %v, %d", err, r.Status)
	}
}

// sight tells the page that it is in sight, or not.
func sightOf(b *browser.Tab, hidden bool) {
	b.T.Helper()
	b.Do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`Object.defineProperty(document, "hidden", {value: %v, configurable: true}); document.dispatchEvent(new Event("visibilitychange", {bubbles: true}))`, hidden)))
}

func TestBrowserLiveRows(t *testing.T) {
	t.Parallel()
	demo := rig.StartDemo(t, "--latency", "20ms", "--records", "300")
	anew(t, demo.URL("twilio"), 50)
	b := browser.OpenTab(t, demo.URL("viewer"))
	// Every stream the page opens is counted.
	b.Open("/twilio/calls?PageSize=20")
	b.Do(chromedp.Evaluate[chromedp.Void](`window.opened = []; const Native = EventSource; window.EventSource = class extends Native { constructor(u) { super(u); opened.push(this) } }`))
	sightOf(b, true)
	sightOf(b, false)
	rig.Await(t, func() string {
		if open := browser.Eval[int](b, `opened.filter(s => s.readyState === 1).length`); open != 1 {
			return fmt.Sprintf("%d streams are open", open)
		}
		return ""
	})
	advance(t, demo.URL("slowapi"), 12)
	anew(t, demo.URL("twilio"), 51)
	rig.Await(t, func() string {
		if text := browser.Eval[string](b, browser.LiveText); !strings.Contains(text, "12 new") {
			return fmt.Sprintf("the list says %q", text)
		}
		return ""
	})
	if role := browser.Eval[string](b, `document.querySelector(".news").getAttribute("role")`); role != "status" {
		t.Errorf("the line is a %q to screen readers", role)
	}

	// Out of sight there is no stream; back in sight nothing was missed.
	sightOf(b, true)
	if open := browser.Eval[int](b, `opened.filter(s => s.readyState !== 2).length`); open != 0 {
		t.Errorf("%d streams are open while nobody looks", open)
	}
	advance(t, demo.URL("slowapi"), 3)
	anew(t, demo.URL("twilio"), 52)
	sightOf(b, false)
	rig.Await(t, func() string {
		if text := browser.Eval[string](b, browser.LiveText); !strings.Contains(text, "15 new") {
			return fmt.Sprintf("after a while out of sight the list says %q", text)
		}
		return ""
	})
	if open := browser.Eval[int](b, `opened.filter(s => s.readyState !== 2).length`); open != 1 {
		t.Errorf("%d streams are open", open)
	}

	// A stream that is refused, as one with a place of another role is, begins anew.
	b.Do(chromedp.Evaluate[chromedp.Void](`const wait = setTimeout; window.setTimeout = (f, ms) => wait(f, Math.min(ms, 100));
		const Right = EventSource; let refused;
		window.EventSource = function (u) {
			if (refused) return new Right(u);
			opened.push(refused = { readyState: 2, close() {} });
			wait(() => refused.onerror());
			return refused;
		}`))
	sightOf(b, true)
	sightOf(b, false)
	rig.Await(t, func() string {
		if open := browser.Eval[string](b, `opened.slice(-2).map(s => s.readyState).join()`); open != "2,1" {
			return "after a refusal the last two streams are " + open
		}
		return ""
	})
	advance(t, demo.URL("slowapi"), 1)
	anew(t, demo.URL("twilio"), 53)
	rig.Await(t, func() string {
		if text := browser.Eval[string](b, browser.LiveText); !strings.Contains(text, "16 new") {
			return fmt.Sprintf("after a refusal the list says %q", text)
		}
		return ""
	})
	before := browser.Eval[string](b, `document.querySelector("tbody").innerText`)
	b.Follow(chromedp.Click(chromedp.CSS(`.news a`)))
	if after := browser.Eval[string](b, `document.querySelector("tbody").innerText`); after == before {
		t.Error("the link shows no new rows")
	}
	if path := browser.Eval[string](b, `location.pathname + location.search`); path != "/twilio/calls?PageSize=20" {
		t.Errorf("the link leads to %s", path)
	}
	b.CheckComplaints("live rows")

	// A filtered list counts nothing.
	b.Open("/twilio/calls?Status=busy")
	if text := browser.Eval[string](b, browser.LiveText); text != "" {
		t.Errorf("a filtered list says %q", text)
	}
}

// rewrite changes a record upstream and has the mirror see it.
func rewrite(t *testing.T, demo *binary.Server, sid, fields, seen string) {
	t.Helper()
	r, err := rig.Ask("POST", "", demo.URL("slowapi")+"/-/edit", `{"kind":"calls","records":[{"sid":"`+sid+`",`+fields+`}]}`)
	if err != nil || r.Status != 200 {
		t.Fatalf("edit: %v, %d %s", err, r.Status, r.Body)
	}
	rig.Await(t, func() string { // no-cache is heeded once a second
		r, err := rig.Ask("GET", rig.Account+":"+rig.DemoToken, demo.URL("twilio")+rig.Base+"/Calls/"+sid+".json", "", "Cache-Control", "no-cache")
		if err != nil || r.Status != 200 || !strings.Contains(string(r.Body), seen) {
			return fmt.Sprintf("%v, %d %s", err, r.Status, r.Body)
		}
		return ""
	})
}

// placed waits until a page has its place in the feed: it shows what comes from then on.
func placed(t *testing.T, b *browser.Tab) {
	t.Helper()
	rig.Await(t, func() string {
		if n := browser.Eval[int](b, `performance.getEntriesByType("resource").filter(e => e.name.includes("/-/feed.json")).length`); n == 0 {
			return "no feed was asked for"
		}
		return ""
	})
}

// Rows of an open list change in place, as it is filtered; one that no longer fits stays
// and says so.
func TestBrowserRowsChangeInPlace(t *testing.T) {
	t.Parallel()
	demo := rig.StartDemo(t, "--latency", "20ms", "--records", "300")
	anew(t, demo.URL("twilio"), 50)
	b := browser.OpenTab(t, demo.URL("viewer"))
	// row is what the page shows of a call, with the classes of its row and of its cells.
	row := func(sid, what string) string {
		return browser.Eval[string](b, fmt.Sprintf(`(() => { const tr = document.querySelector('#rows a[href="/twilio/calls/%s"]')?.closest("tr");
			return tr ? %s : "no row" })()`, sid, what))
	}
	paths := []string{"/twilio/calls", "/twilio/calls?Status=completed"}
	if sample.IsFullRun() {
		paths = append(paths, "/twilio/calls?understudy.q=status%3Acompleted")
	}
	for _, path := range paths {
		b.Open(path)
		rig.Await(t, func() string { // a list that upstream is asked for comes in pieces
			if !browser.Eval[bool](b, `[...document.querySelectorAll("#rows > tr")].some(tr => /completed/.test(tr.textContent)) && document.readyState === "complete"`) {
				return path + ": no call is completed: " + browser.Eval[string](b, `document.querySelector("main")?.innerText ?? "no page"`)
			}
			return ""
		})
		sid := browser.Eval[string](b, `[...document.querySelectorAll("#rows > tr")].findLast(tr => /completed/.test(tr.textContent)).querySelector("a").pathname.split("/").pop()`)
		b.Do(chromedp.Evaluate[chromedp.Void](`window.kept = document.querySelector("#rows"); window.top0 = kept.getBoundingClientRect().top`))
		placed(t, b)
		price := fmt.Sprintf("0.77%02d1", len(path))
		rewrite(t, demo, sid, `"price":"-`+price+`"`, price)
		rig.Await(t, func() string {
			if cells := row(sid, `[...tr.querySelectorAll(".fresh")].map(c => c.innerText).join()`); !strings.Contains(cells, price) {
				return path + ": the cells that changed are " + cells
			}
			return ""
		})
		if told := browser.Eval[string](b, `document.querySelector(".news + [role=status]").textContent`); told != "1 row changed" {
			t.Errorf("%s: a screen reader is told %q", path, told)
		}
		if !browser.Eval[bool](b, `kept === document.querySelector("#rows") && top0 === kept.getBoundingClientRect().top`) {
			t.Errorf("%s: the page was loaded again, or its rows have moved", path)
		}
		rewrite(t, demo, sid, `"status":"busy"`, `"busy"`)
		rig.Await(t, func() string {
			said := row(sid, `tr.className + " " + tr.title + " " + tr.innerText`)
			if fits := path == "/twilio/calls"; fits && !strings.Contains(said, "busy") || !fits && !strings.HasPrefix(said, "left No longer in this list") {
				return path + ": the row says " + said
			}
			return ""
		})
		if path == "/twilio/calls" {
			b.Do(chromedp.Focus(chromedp.CSS(`#rows a[href="/twilio/calls/` + sid + `"]`)))
		}
		rewrite(t, demo, sid, `"status":"completed"`, `"completed"`)
		rig.Await(t, func() string {
			if said := row(sid, `tr.className + "|" + tr.innerText`); strings.HasPrefix(said, "left") || !strings.Contains(said, "completed") {
				return path + ": the row says " + said
			}
			return ""
		})
		if path == "/twilio/calls" && !strings.Contains(row(sid, `document.activeElement.href ?? "nothing"`), sid) {
			t.Error("the focus is lost when a row changes")
		}
	}

	// Calls under way go on.
	b.Open("/twilio/calls")
	sid := browser.Eval[string](b, `document.querySelector("tbody .pill.busy").closest("tr").querySelector("a").pathname.split("/").pop()`)
	placed(t, b)
	advance(t, demo.URL("slowapi"), 0)
	anew(t, demo.URL("twilio"), 60)
	rig.Await(t, func() string {
		if said := row(sid, `tr.querySelector(".fresh .pill") ? "" : tr.innerText`); said != "" {
			return "the call under way says " + said
		}
		return ""
	})
	b.CheckComplaints("rows that change")
}

// Without a script the pages of the past and the jobs do all they do with one.
func TestBrowserPast(t *testing.T) {
	t.Parallel()
	demo := rig.StartDemo(t, "--latency", "20ms", "--records", "300")
	b := browser.OpenTab(t, demo.URL("viewer"))
	browser.Command(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	path := ""
	for _, c := range []struct{ at, beside, link string }{
		{"/search?q=kind:calls+status:completed", ".hits > li .pill", ".hits > li a"},
		{"/twilio/calls?Status=completed", "#rows td.tel a", "#rows td.tel a"},
		{"/twilio/calls?Status=completed", "#rows td.state", "#rows a"},
	} {
		b.Open(c.at)
		link := browser.Eval[string](b, `document.querySelector("`+c.link+`").getAttribute("href")`)
		b.Follow(chromedp.Click(chromedp.CSS(c.beside)))
		if path = b.Path(); path != link {
			t.Errorf("a click at %s of %s leads to %s, want %s", c.beside, c.at, path, link)
		}
	}
	sid := path[len("/twilio/calls/"):]
	for _, price := range []string{"-0.77100", "-0.88200"} {
		r, err := rig.Ask("POST", "", demo.URL("slowapi")+"/-/edit", `{"kind":"calls","records":[{"sid":"`+sid+`","price":"`+price+`"}]}`)
		if err != nil || r.Status != 200 {
			t.Fatalf("edit: %v, %d %s", err, r.Status, r.Body)
		}
		rig.Await(t, func() string { // no-cache is heeded once a second
			r, err := rig.Ask("GET", rig.Account+":"+rig.DemoToken, demo.URL("twilio")+rig.Base+"/Calls/"+sid+".json", "", "Cache-Control", "no-cache")
			if err != nil || r.Status != 200 || !strings.Contains(string(r.Body), price) {
				return fmt.Sprintf("%v, %d %s", err, r.Status, r.Body)
			}
			return ""
		})
	}
	b.Open(path)
	words := strings.ReplaceAll(browser.Eval[string](b, `document.querySelector("#timeline").innerText`), "\u2212", "-")
	for _, want := range []string{"First seen", "Changed", "$0.771", "$0.882"} {
		if !strings.Contains(words, want) {
			t.Errorf("the timeline lacks %q: %s", want, words)
		}
	}
	b.Follow(chromedp.Click(chromedp.CSS(`#timeline li:last-child .ways a`)))
	if banner := browser.Eval[string](b, `document.querySelector(".then").innerText`); !strings.Contains(banner, "Data as it was on") {
		t.Errorf("the banner says %q", banner)
	}
	if text := browser.Eval[string](b, `document.querySelector("main").innerText`); strings.Contains(text[:strings.Index(text, "Timeline")], "0.882") {
		t.Error("the first version shows the last price")
	}
	b.Follow(chromedp.Click(chromedp.CSS(`.then a`)))
	if now := browser.Eval[string](b, `location.pathname + location.search`); now != path {
		t.Errorf("back to now leads to %s", now)
	}
	b.Follow(chromedp.Submit(chromedp.CSS(`.pick select`)))
	rows := browser.Eval[[]string](b, `[...document.querySelectorAll("tr.changed")].map(e => e.innerText)`)
	checktest.MustEqual(t, len(rows), 1, "compared: len(rows)")
	checktest.Contains(t, rows[0], "0.771", "compared: rows[0]")
	checktest.Contains(t, rows[0], "0.882", "compared: rows[0]")
	checktest.Contains(t, rows[0], "changed", "compared: rows[0]")
	compared := browser.Eval[string](b, `location.pathname + location.search`)

	// The list as it was at that moment, by its form.
	b.Open("/twilio/calls")
	b.Do(browser.OpenAll, chromedp.SetValue(chromedp.CSS(`input[name="understudy.as_of"]`), "2026-01-01T00:00"))
	b.Follow(chromedp.Submit(chromedp.CSS(`input[name="understudy.as_of"]`)))
	if at := browser.Eval[string](b, `location.search`); !strings.Contains(at, "understudy.as_of=2026-01-01T00") {
		t.Errorf("the form leads to %s", at)
	}
	if text := browser.Eval[string](b, `document.querySelector("main").innerText`); !strings.Contains(text, "were known at that time") {
		t.Errorf("before anything was seen the list says %s", text)
	}
	b.CheckComplaints("the past")
	for _, p := range []string{path, compared, path + "?understudy.as_of=2026-01-01T00:00:00Z", "/twilio/calls?understudy.as_of=2026-01-01T00:00:00Z", "/jobs", "/"} {
		for _, width := range []int64{360, 768, 1920} {
			b.Resize(width, 800)
			b.Open(p)
			b.Do(browser.OpenAll)
			if wide := browser.Eval[int64](b, `Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)`); wide > width {
				t.Errorf("%s at %d px is %d px wide", p, width, wide)
			}
		}
	}
	b.Mu.Lock()
	defer b.Mu.Unlock()
	for _, c := range b.Complaints {
		if !strings.Contains(c, "status of 404") {
			t.Error(c)
		}
	}
}
