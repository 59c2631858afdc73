// Rows of a list, in a browser.

package lists

import (
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"understudy/e2e/browser"
	"understudy/e2e/rig"
	"understudy/internal/checktest"
	"understudy/internal/sample"
)

// A click anywhere in a row opens its record, one on a link of the row follows that link, and one
// that ends the choice of a text does nothing.
func TestBrowserRowOpensItsRecord(t *testing.T) {
	t.Parallel()
	demo := rig.StartDemo(t, "--latency", "20ms", "--records", "300", "--epoch", "2026-06-01T12:00:00Z")
	b := browser.OpenTab(t, demo.URL("viewer"))
	const list, cell = "/twilio/calls?Status=completed", "#rows tr:nth-child(3) td.state"
	b.Open(list)
	record := browser.Eval[string](b, `document.querySelector("#rows tr:nth-child(3) a").pathname`)
	b.Follow(chromedp.Click(chromedp.CSS(cell)))
	if got := b.Path(); got != record {
		t.Errorf("a click on the status leads to %s, want %s", got, record)
	}
	b.Open(list)
	b.Follow(chromedp.Click(chromedp.CSS("#rows tr:nth-child(3) td.tel a")))
	if got := b.Path(); !strings.HasPrefix(got, "/twilio/number/") {
		t.Errorf("a click on a number leads to %s", got)
	}
	b.Open(list)
	got := browser.Eval[string](b, `(() => {
		const cell = document.querySelector("`+cell+`");
		getSelection().selectAllChildren(cell);
		let went = false;
		cell.closest("tr").querySelector("a").addEventListener("click", (e) => { went = true; e.preventDefault(); });
		cell.dispatchEvent(new MouseEvent("click", {bubbles: true}));
		return String(went);
	})()`)
	if got != "false" {
		t.Error("a click that ends the choice of a text opens the record")
	}
}

// Several rows are selected by their boxes, by a click anywhere in the row and by the key x; they are marked as handled
// together, and exported.
func TestBrowserSelectedRows(t *testing.T) {
	t.Parallel()
	demo := rig.StartDemo(t, "--latency", "20ms", "--records", "300", "--epoch", "2026-06-01T12:00:00Z")
	b := browser.OpenTab(t, demo.URL("viewer"))
	const list = "/twilio/messages"
	b.Open(list)
	b.Follow(chromedp.Click(chromedp.CSS(`a.button[href*="form=select"]`)))
	b.CheckComplaints("a list whose rows are selected")
	b.Do(chromedp.Click(chromedp.CSS("#rows tr:nth-child(1) td.state")), chromedp.Click(chromedp.CSS("#rows tr:nth-child(2) [name=record]")))
	b.Do(chromedp.KeyEvent("jx"))
	if got := browser.Eval[string](b, `document.querySelector("#select p").textContent`); got != "3 rows selected" {
		t.Errorf("beside the buttons stands %q", got)
	}
	ticked := browser.Eval[[]string](b, `[...document.querySelectorAll("[name=record]:checked")].map((box) => box.value.split("/").pop())`)
	b.Follow(chromedp.Click(chromedp.CSS(`#select [value=handled]`)))
	if got := b.Path(); got != list {
		t.Errorf("afterwards the page is %s", got)
	}
	if got := browser.Eval[int](b, `document.querySelectorAll("#rows .pill.good").length`); got != 3 || len(ticked) != 3 {
		t.Errorf("%d rows are handled, want 3 (%v)", got, ticked)
	}
	b.Open("/search?q=handled:yes&form=select")
	b.Do(chromedp.WaitVisible(chromedp.CSS("#select")))
	data := browser.Eval[string](b, `(async () => {
		for (const box of document.querySelectorAll("[name=record]")) box.checked = true;
		const form = document.querySelector("#select"), fields = new URLSearchParams(new FormData(form));
		fields.set("do", "csv");
		return await (await fetch(form.action, {method: "POST", body: fields})).text();
	})()`)
	if lines := strings.Split(strings.TrimSpace(data), "\n"); len(lines) != 1+3 || !strings.HasPrefix(lines[0], "date_sent,") {
		t.Errorf("the export has %d lines: %s", len(lines), data)
	}
	for _, id := range ticked {
		if !strings.Contains(data, id) {
			t.Errorf("the export lacks %s: %.300s", id, data)
		}
	}
}

// From 700 px on every list is a table that fits into its box; at 1280 px a row takes one line.
func TestBrowserTablesFit(t *testing.T) {
	t.Parallel()
	demo := rig.StartDemo(t, "--latency", "20ms", "--records", "500")
	b := browser.OpenTab(t, demo.URL("viewer"))
	b.Open("/")
	lists := browser.Eval[[]string](b, `[...new Set([...document.querySelectorAll("a[href^='/twilio/']")].map((a) => a.getAttribute("href")))].filter((at) => /^.twilio.\w+$/.test(at))`)
	checktest.MustTrue(t, len(lists) >= 15, "home leads to the lists: len(lists) is %v, want >= 15", len(lists))
	checktest.MustTrue(t, slices.Contains(lists, "/twilio/messages"), "home leads to the lists: lists is %v", lists)
	checktest.MustTrue(t, slices.Contains(lists, "/twilio/applications"), "home leads to the lists: lists is %v",
		lists)
	tables, some := 0, sample.OneIn(t, 4)
	for _, path := range append(lists, "/twilio/available_phone_numbers?CountryCode=US") {
		if chosen := some(); !chosen && path != "/twilio/messages" {
			continue
		}
		b.Open(path)
		if !browser.Eval[bool](b, `!!document.querySelector(".results #rows tr")`) {
			continue // one record, or a list that lies under a record
		}
		tables++
		for _, width := range []int64{700, 720, 768, 820, 1024, 1280} {
			b.Resize(width, 800)
			if over := browser.Eval[int](b, `Math.max(...[...document.querySelectorAll(".box")].map((box) => box.scrollWidth - box.clientWidth))`); over > 0 {
				t.Errorf("%s at %d px is %d px wider than its box", path, width, over)
			}
		}
		if heights := browser.Eval[[]int](b, `[...document.querySelectorAll("#rows tr")].map((row) => row.offsetHeight)`); slices.Max(heights) > 45 {
			t.Errorf("%s at 1280 px has rows of %v px, want one line", path, heights)
		}
	}
	if tables == 0 || sample.IsFullRun() && tables < 15 {
		t.Errorf("%d of %q are tables", tables, lists)
	}
	b.CheckComplaints("tables")
}
