// Rows of a list, in a browser.

package e2e

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// A click anywhere in a row opens its record, one on a link of the row follows that link, and one
// that ends the choice of a text does nothing.
func TestBrowserRowOpensItsRecord(t *testing.T) {
	t.Parallel()
	demo := startDemo(t, "--latency", "20ms", "--records", "300", "--epoch", "2026-06-01T12:00:00Z")
	b := openTab(t, demo.URL("viewer"))
	const list, cell = "/twilio/calls?Status=completed", "#rows tr:nth-child(3) td.state"
	b.open(list)
	record := eval[string](b, `document.querySelector("#rows tr:nth-child(3) a").pathname`)
	b.follow(chromedp.Click(chromedp.CSS(cell)))
	if got := b.path(); got != record {
		t.Errorf("a click on the status leads to %s, want %s", got, record)
	}
	b.open(list)
	b.follow(chromedp.Click(chromedp.CSS("#rows tr:nth-child(3) td.tel a")))
	if got := b.path(); !strings.HasPrefix(got, "/twilio/number/") {
		t.Errorf("a click on a number leads to %s", got)
	}
	b.open(list)
	got := eval[string](b, `(() => {
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
