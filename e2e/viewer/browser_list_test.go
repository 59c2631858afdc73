// Browser, lists: people choose columns, sort, narrow, search, keep searches and
// take everything with them, with a mouse and by single keys.

package viewer

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

	"understudy/e2e/rig"
	"understudy/internal/checktest"
)

// column is the texts of one column.
func (b *tab) column(title string) []string {
	b.t.Helper()
	return eval[[]string](b, `[...document.querySelectorAll("tbody td[data-t='`+title+`']")].map(e => e.innerText.trim())`)
}

// press types single keys, as they are on a keyboard.
func (b *tab) press(keys ...string) {
	b.t.Helper()
	for _, k := range keys {
		b.do(chromedp.KeyEvent(k))
	}
}

// popover opens a popover by its button, and axe-core looks at it.
func (b *tab) popover(axe, id string) {
	b.t.Helper()
	b.do(chromedp.Click(chromedp.CSS(`[popovertarget="`+id+`"]`)), chromedp.WaitVisible(chromedp.CSS("#"+id)))
	b.sound(axe, "the popover "+id)
}

func (b *tab) path() string {
	b.t.Helper()
	return eval[string](b, `location.pathname + location.search`)
}

func TestBrowserKeys(t *testing.T) {
	t.Parallel()
	demo := rig.StartDemo(t, "--latency", "20ms", "--records", "300")
	b := openTab(t, demo.URL("viewer"))
	b.open("/twilio/calls")
	row := `[...document.querySelectorAll("tbody tr")].indexOf(document.activeElement.closest("tr"))`
	b.press("j", "j", "j", "k")
	if at := eval[int](b, row); at != 1 {
		t.Errorf("j j j k leads to row %d", at)
	}
	if !eval[bool](b, `(() => { const r = document.activeElement.getBoundingClientRect(); return r.bottom > 0 && r.top < innerHeight })()`) {
		t.Error("the row is off the screen")
	}
	want := eval[string](b, `document.activeElement.getAttribute("href")`)
	b.follow(chromedp.KeyEvent("o"))
	if b.path() != want || !strings.HasPrefix(want, "/twilio/calls/CA") {
		t.Errorf("o leads to %s, want %s", b.path(), want)
	}
	b.open("/twilio/calls")
	first := eval[string](b, `document.querySelector("tbody").innerText`)
	b.follow(chromedp.KeyEvent("l"))
	if eval[string](b, `document.querySelector("tbody").innerText`) == first {
		t.Error("l shows the same page")
	}
	b.follow(chromedp.KeyEvent("h"))
	if eval[string](b, `document.querySelector("tbody").innerText`) != first {
		t.Error("h does not lead back")
	}
	b.press("g")
	b.follow(chromedp.KeyEvent("m"))
	if b.path() != "/twilio/messages" {
		t.Errorf("g m leads to %s", b.path())
	}
	b.press("g")
	b.follow(chromedp.KeyEvent("h"))
	if b.path() != "/" {
		t.Errorf("g h leads to %s", b.path())
	}
	// In a box keys are letters, and Esc leaves it.
	b.press("/")
	b.press("j", "?", "g", "c")
	// A key that is sent by protocol writes its character even when a page has taken it.
	if text := eval[string](b, `document.activeElement.id + " " + document.querySelector("#q").value.replace("/", "")`); text != "q j?gc" || b.path() != "/" {
		t.Errorf("typed into the box: %q at %s", text, b.path())
	}
	b.press(kb.Escape)
	if at := eval[string](b, `document.activeElement.id`); at == "q" {
		t.Error("Esc does not leave the box")
	}
	b.press("?")
	b.do(chromedp.WaitVisible(chromedp.CSS("#keys")))
	if !eval[bool](b, `document.querySelector("#keys").matches(":popover-open")`) || !strings.Contains(eval[string](b, `document.querySelector("#keys").innerText`), "Messages") {
		t.Error("? does not show the keys")
	}
	b.press("g", "m", kb.Escape)
	if eval[bool](b, `document.querySelector("#keys").matches(":popover-open")`) || b.path() != "/" {
		t.Error("keys work behind the list of them, or Esc does not close it")
	}
	// They can be turned off, and stay off.
	b.press("?")
	b.do(chromedp.Click(chromedp.CSS("#keys-on")), chromedp.KeyEvent(kb.Escape))
	b.open("/twilio/calls")
	b.press("j", "?")
	if eval[int](b, row) != -1 || eval[bool](b, `!!document.querySelector(":popover-open")`) {
		t.Error("keys that are off work")
	}
	b.calm("keys")
}

func TestBrowserColumns(t *testing.T) {
	t.Parallel()
	demo := rig.StartDemo(t, "--latency", "20ms", "--records", "300")
	b := openTab(t, demo.URL("viewer"))
	b.open("/twilio/calls")
	b.follow(chromedp.Click(chromedp.CSS(`.acts [href$="#columns"]`)))
	b.do(chromedp.Click(chromedp.CSS(`[id="col-price"]`)), chromedp.Click(chromedp.CSS(`[id="col-forwarded_from"]`)), chromedp.Click(chromedp.CSS(`[name="earlier"][value="to"]`)))
	b.follow(chromedp.Click(chromedp.CSS(`#columns .primary`)))
	heads := eval[[]string](b, `[...document.querySelectorAll("thead th")].map(e => e.textContent)`)
	checktest.True(t, !slices.Contains(heads, "Price"), "the columns are: heads is %v", heads)
	checktest.True(t, slices.Contains(heads, "Forwarded from"), "the columns are: heads is %v", heads)
	checktest.Equal(t, slices.Index(heads, "To"), slices.Index(heads, "From")-1,
		`the columns are: slices.Index(heads, "To")`)
	shared := b.path()
	b.open("/twilio/calls")
	if b.path() != shared {
		t.Errorf("not remembered: %s, want %s", b.path(), shared)
	}
	b.follow(chromedp.Click(chromedp.CSS(`.acts [href$="#columns"]`)))
	b.follow(chromedp.Click(chromedp.CSS(`#columns [name="reset"]`)))
	if b.path() != "/twilio/calls" {
		t.Errorf("as usual leads to %s", b.path())
	}
	b.calm("columns")
}

// Sorted, narrowed by counts, searched, kept, and taken away as a file.
func TestBrowserSearch(t *testing.T) {
	t.Parallel()
	demo := rig.StartDemo(t, "--latency", "20ms", "--records", "300")
	b := openTab(t, demo.URL("viewer"))
	script := axe(t)
	b.open("/twilio/messages")
	for _, id := range []string{"more", "moment", "exports"} {
		b.popover(script, id)
		b.press(kb.Escape)
	}
	b.open("/twilio/calls")
	b.follow(chromedp.Click(chromedp.CSS(`thead th.len a`)))
	var durations []int
	for _, text := range b.column("Duration") {
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
	checktest.Equal(t, eval[string](b, `document.querySelector("th[aria-sort]").innerText.trim()`), "Duration",
		"sorted by duration: eval[string](b, `document.querySelector(\"th[aria-sort]\").inn…")
	b.open("/twilio/calls")
	rig.Await(t, func() string { // counts come after the page
		if !eval[bool](b, `[...document.querySelectorAll(".facets a")].some(a => a.innerText.startsWith("inbound"))`) {
			return "no counts: " + eval[string](b, `document.querySelector("main").innerText.slice(0, 300)`)
		}
		return ""
	})
	b.follow(chromedp.Evaluate[chromedp.Void](`[...document.querySelectorAll(".facets a")].find(a => a.innerText.startsWith("inbound")).click()`))
	for _, d := range b.column("Direction") {
		if d != "inbound" {
			t.Errorf("narrowed by inbound: a row says %q", d)
		}
	}
	rows := eval[int](b, `document.querySelectorAll("tbody tr").length`)
	if rows == 0 {
		t.Error("nothing is inbound")
	}
	// The file has this view: all rows, the columns on the page.
	file := eval[string](b, `document.querySelector("#exports a").href`)
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
	checktest.Equal(t, len(records[0]), eval[int](b, `document.querySelectorAll("thead th").length`),
		"the file has %d records for %d rows: len(records[0])", len(records), rows)
	b.calm("lists")

	b.press("/")
	b.do(chromedp.Evaluate[chromedp.Void](`document.querySelector("#q").value = ""`))
	b.follow(chromedp.SendKeys(chromedp.CSS("#q"), "kind:messages has:body"+kb.Enter))
	hits := eval[int](b, `document.querySelectorAll(".hits > li").length`)
	if hits == 0 || !strings.HasPrefix(b.path(), "/search?") {
		t.Fatalf("%d hits at %s", hits, b.path())
	}
	b.press("j", "j")
	if at := eval[int](b, `[...document.querySelectorAll(".hits > li")].indexOf(document.activeElement.closest("li"))`); at != 1 {
		t.Errorf("j j leads to hit %d", at)
	}
	b.popover(script, "save")
	b.follow(chromedp.KeyEvent("With text" + kb.Enter)) // the name has the focus
	b.open("/search")
	b.follow(chromedp.Click(chromedp.CSS(`[aria-labelledby="saved"] li a`)))
	if eval[int](b, `document.querySelectorAll(".hits > li").length`) != hits {
		t.Errorf("the saved search leads to %s", b.path())
	}
	b.popover(script, "forget-0")
	b.follow(chromedp.Click(chromedp.CSS(`#forget-0 .primary`))) // it asks once
	if eval[bool](b, `!!document.querySelector("[aria-labelledby=saved]")`) {
		t.Error("the saved search is still there")
	}
	b.calm("search")
	// A mistake is pointed at, and the box says so.
	b.open("/search?q=" + url.QueryEscape("late (lost"))
	if described := eval[string](b, `document.getElementById(document.querySelector("#q").getAttribute("aria-describedby").split(" ")[0]).innerText`); !strings.Contains(described, "late (lost") {
		t.Errorf("the box is described by %q", described)
	}
	if mark := eval[string](b, `document.querySelector(".wrong mark").textContent`); mark != "(" {
		t.Errorf("pointed at %q", mark)
	}
	var doc struct{ Count int }
	if err := json.Unmarshal(rig.Get(t, rig.Account+":"+rig.DemoToken, demo.URL("viewer")+"/search.json?q=kind:messages+has:body").Body, &doc); err != nil || doc.Count < hits {
		t.Errorf("as data %d: %v", doc.Count, err)
	}
}
