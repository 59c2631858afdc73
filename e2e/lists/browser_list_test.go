// Browser, lists: people choose columns, sort, narrow, search, keep searches and
// take everything with them, with a mouse and by single keys.

package lists

import (
	"encoding/csv"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"understudy/e2e/browser"
	"understudy/e2e/rig"
	"understudy/internal/checktest"
)

func TestBrowserKeys(t *testing.T) {
	t.Parallel()
	demo := rig.StartDemo(t, "--latency", "20ms", "--records", "300")
	b := browser.OpenTab(t, demo.URL("viewer"))
	b.Open("/twilio/calls")
	row := `[...document.querySelectorAll("tbody tr")].indexOf(document.activeElement.closest("tr"))`
	b.Press("j", "j", "j", "k")
	if at := browser.Eval[int](b, row); at != 1 {
		t.Errorf("j j j k leads to row %d", at)
	}
	if !browser.Eval[bool](b, `(() => { const r = document.activeElement.getBoundingClientRect(); return r.bottom > 0 && r.top < innerHeight })()`) {
		t.Error("the row is off the screen")
	}
	want := browser.Eval[string](b, `document.activeElement.getAttribute("href")`)
	b.Follow(chromedp.KeyEvent("o"))
	if b.Path() != want || !strings.HasPrefix(want, "/twilio/calls/CA") {
		t.Errorf("o leads to %s, want %s", b.Path(), want)
	}
	b.Open("/twilio/calls")
	first := browser.Eval[string](b, `document.querySelector("tbody").innerText`)
	b.Follow(chromedp.KeyEvent("l"))
	if browser.Eval[string](b, `document.querySelector("tbody").innerText`) == first {
		t.Error("l shows the same page")
	}
	b.Follow(chromedp.KeyEvent("h"))
	if browser.Eval[string](b, `document.querySelector("tbody").innerText`) != first {
		t.Error("h does not lead back")
	}
	b.Press("g")
	b.Follow(chromedp.KeyEvent("m"))
	if b.Path() != "/twilio/messages" {
		t.Errorf("g m leads to %s", b.Path())
	}
	b.Press("g")
	b.Follow(chromedp.KeyEvent("h"))
	if b.Path() != "/" {
		t.Errorf("g h leads to %s", b.Path())
	}
	// In a box keys are letters, and Esc leaves it.
	b.Press("/")
	b.Press("j", "?", "g", "c")
	// A key that is sent by protocol writes its character even when a page has taken it.
	if text := browser.Eval[string](b, `document.activeElement.id + " " + document.querySelector("#q").value.replace("/", "")`); text != "q j?gc" || b.Path() != "/" {
		t.Errorf("typed into the box: %q at %s", text, b.Path())
	}
	b.Press(kb.Escape)
	if at := browser.Eval[string](b, `document.activeElement.id`); at == "q" {
		t.Error("Esc does not leave the box")
	}
	b.Press("?")
	b.Do(chromedp.WaitVisible(chromedp.CSS("#keys")))
	if !browser.Eval[bool](b, `document.querySelector("#keys").matches(":popover-open")`) || !strings.Contains(browser.Eval[string](b, `document.querySelector("#keys").innerText`), "Messages") {
		t.Error("? does not show the keys")
	}
	b.Press("g", "m", kb.Escape)
	if browser.Eval[bool](b, `document.querySelector("#keys").matches(":popover-open")`) || b.Path() != "/" {
		t.Error("keys work behind the list of them, or Esc does not close it")
	}
	// They can be turned off, and stay off.
	b.Press("?")
	b.Do(chromedp.Click(chromedp.CSS("#keys-on")), chromedp.KeyEvent(kb.Escape))
	b.Open("/twilio/calls")
	b.Press("j", "?")
	if browser.Eval[int](b, row) != -1 || browser.Eval[bool](b, `!!document.querySelector(":popover-open")`) {
		t.Error("keys that are off work")
	}
	b.CheckComplaints("keys")
}

func TestBrowserColumns(t *testing.T) {
	t.Parallel()
	demo := rig.StartDemo(t, "--latency", "20ms", "--records", "300")
	b := browser.OpenTab(t, demo.URL("viewer"))
	b.Open("/twilio/calls")
	b.Follow(chromedp.Click(chromedp.CSS(`.acts [href$="#columns"]`)))
	b.Do(chromedp.Click(chromedp.CSS(`[id="col-price"]`)), chromedp.Click(chromedp.CSS(`[id="col-forwarded_from"]`)), chromedp.Click(chromedp.CSS(`[name="earlier"][value="to"]`)))
	b.Follow(chromedp.Click(chromedp.CSS(`#columns .primary`)))
	heads := browser.Eval[[]string](b, `[...document.querySelectorAll("thead th")].map(e => e.textContent)`)
	checktest.True(t, !slices.Contains(heads, "Price"), "the columns are: heads is %v", heads)
	checktest.True(t, slices.Contains(heads, "Forwarded from"), "the columns are: heads is %v", heads)
	checktest.Equal(t, slices.Index(heads, "To"), slices.Index(heads, "From")-1,
		`the columns are: slices.Index(heads, "To")`)
	shared := b.Path()
	b.Open("/twilio/calls")
	if b.Path() != shared {
		t.Errorf("not remembered: %s, want %s", b.Path(), shared)
	}
	b.Follow(chromedp.Click(chromedp.CSS(`.acts [href$="#columns"]`)))
	b.Follow(chromedp.Click(chromedp.CSS(`#columns [name="reset"]`)))
	if b.Path() != "/twilio/calls" {
		t.Errorf("as usual leads to %s", b.Path())
	}
	b.CheckComplaints("columns")
}

// Sorted, narrowed by counts, searched, kept, and taken away as a file.
func TestBrowserSearch(t *testing.T) {
	t.Parallel()
	demo := rig.StartDemo(t, "--latency", "20ms", "--records", "300")
	b := browser.OpenTab(t, demo.URL("viewer"))
	script := browser.Axe(t)
	b.Open("/twilio/messages")
	for _, id := range []string{"more", "moment", "exports"} {
		b.Popover(script, id)
		b.Press(kb.Escape)
	}
	b.Open("/twilio/calls")
	b.Follow(chromedp.Click(chromedp.CSS(`thead th.len a`)))
	var durations []int
	for _, text := range b.Column("Duration") {
		if minutes, seconds, ok := strings.Cut(text, ":"); ok {
			m, _ := strconv.Atoi(minutes)
			n, _ := strconv.Atoi(seconds)
			durations = append(durations, m*60+n)
		}
	}
	checktest.MustTrue(t, len(durations) >= 10, "sorted by duration: len(durations) is %v, want >= 10",
		len(durations))
	checktest.True(t, slices.IsSortedFunc(durations, func(a, b int) int { return b - a }),
		"sorted by duration: slices.IsSortedFunc(durations, func(a, b int) int { return b - a }) is false")
	checktest.Equal(t, browser.Eval[string](b, `document.querySelector("th[aria-sort]").innerText.trim()`), "Duration",
		"sorted by duration: eval[string](b, `document.querySelector(\"th[aria-sort]\").inn…")
	b.Open("/twilio/calls")
	rig.Await(t, func() string { // counts come after the page
		if !browser.Eval[bool](b, `[...document.querySelectorAll(".facets a")].some(a => a.innerText.startsWith("inbound"))`) {
			return "no counts: " + browser.Eval[string](b, `document.querySelector("main").innerText.slice(0, 300)`)
		}
		return ""
	})
	b.Follow(chromedp.Evaluate[chromedp.Void](`[...document.querySelectorAll(".facets a")].find(a => a.innerText.startsWith("inbound")).click()`))
	for _, d := range b.Column("Direction") {
		if d != "inbound" {
			t.Errorf("narrowed by inbound: a row says %q", d)
		}
	}
	rows := browser.Eval[int](b, `document.querySelectorAll("tbody tr").length`)
	if rows == 0 {
		t.Error("nothing is inbound")
	}
	// The file has this view: all rows, the columns on the page.
	file := browser.Eval[string](b, `document.querySelector("#exports a").href`)
	at, err := url.Parse(file)
	if err != nil {
		t.Fatal(err)
	}
	in := csv.NewReader(strings.NewReader(string(rig.Get(t, rig.Account+":"+rig.DemoToken, demo.URL("viewer")+at.RequestURI()).Body)))
	in.Comment = '#' // the kind is not held whole, and the last line says so
	records, err := in.ReadAll()
	checktest.MustNoError(t, err, "the file has %d records for %d rows", len(records), rows)
	checktest.MustTrue(t, len(records) >= rows, "the file has %d records for %d rows: len(records) is %v",
		len(records), rows, len(records))
	checktest.Equal(t, len(records[0]), browser.Eval[int](b, `document.querySelectorAll("thead th").length`),
		"the file has %d records for %d rows: len(records[0])", len(records), rows)
	b.CheckComplaints("lists")

	b.Press("/")
	b.Do(chromedp.Evaluate[chromedp.Void](`document.querySelector("#q").value = ""`))
	b.Follow(chromedp.SendKeys(chromedp.CSS("#q"), "kind:messages has:body"+kb.Enter))
	hits := browser.Eval[int](b, `document.querySelectorAll(".hits > li").length`)
	if hits == 0 || !strings.HasPrefix(b.Path(), "/search?") {
		t.Fatalf("%d hits at %s", hits, b.Path())
	}
	b.Press("j", "j")
	if at := browser.Eval[int](b, `[...document.querySelectorAll(".hits > li")].indexOf(document.activeElement.closest("li"))`); at != 1 {
		t.Errorf("j j leads to hit %d", at)
	}
	b.Popover(script, "save")
	b.Follow(chromedp.KeyEvent("With text" + kb.Enter)) // the name has the focus
	b.Open("/search")
	b.Follow(chromedp.Click(chromedp.CSS(`[aria-labelledby="saved"] li a`)))
	if browser.Eval[int](b, `document.querySelectorAll(".hits > li").length`) != hits {
		t.Errorf("the saved search leads to %s", b.Path())
	}
	b.Popover(script, "forget-0")
	b.Follow(chromedp.Click(chromedp.CSS(`#forget-0 .primary`))) // it asks once
	if browser.Eval[bool](b, `!!document.querySelector("[aria-labelledby=saved]")`) {
		t.Error("the saved search is still there")
	}
	b.CheckComplaints("search")
	// A mistake is pointed at, and the box says so.
	b.Open("/search?q=" + url.QueryEscape("late (lost"))
	if described := browser.Eval[string](b, `document.getElementById(document.querySelector("#q").getAttribute("aria-describedby").split(" ")[0]).innerText`); !strings.Contains(described, "late (lost") {
		t.Errorf("the box is described by %q", described)
	}
	if mark := browser.Eval[string](b, `document.querySelector(".wrong mark").textContent`); mark != "(" {
		t.Errorf("pointed at %q", mark)
	}
	var doc struct{ Count int }
	if err := json.Unmarshal(rig.Get(t, rig.Account+":"+rig.DemoToken, demo.URL("viewer")+"/search.json?q=kind:messages+has:body").Body, &doc); err != nil || doc.Count < hits {
		t.Errorf("as data %d: %v", doc.Count, err)
	}
}
