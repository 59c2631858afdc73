// Print: what is on paper.

package viewer

import (
	"testing"

	"github.com/chromedp/cdproto/emulation"

	"understudy/e2e/browser"
	"understudy/e2e/pages"
	"understudy/e2e/rig"
)

// On paper are records and nothing that a reader could click on; dots keep their colors.
func TestBrowserPrintsRecordsAlone(t *testing.T) {
	t.Parallel()
	demo := rig.StartDemo(t, "--latency", "20ms", "--records", "300")
	past, err := pages.Alter(demo.URL("viewer"), demo.URL("slowapi"))
	if err != nil {
		t.Fatal(err)
	}
	b := browser.OpenTab(t, demo.URL("viewer"))
	browser.Command(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print"})
	b.Resize(1122, 793) // A4 on its side
	seen := map[string]bool{}
	for _, path := range []string{"/twilio/calls", "/twilio/calls?Status=completed", past[0].Path, past[1].Path, "/twilio/recordings", "/-/roles", "/search?q=kind:calls",
		"/search/sums?kind=messages&sum=price&by=day&by=direction"} {
		b.Open(path)
		const shown = `.filter((e) => e.checkVisibility() && e.getClientRects().length > 0 && !e.closest(".unseen"))`
		for _, control := range browser.Eval[[]string](b, `[...document.querySelectorAll("button, .button, input, select, textarea, nav, summary, .ranges, .came, .leads, .ways, .pick")]`+shown+`.map((e) => e.outerHTML.slice(0, 120))`) {
			t.Errorf("%s prints %s", path, control)
		}
		for _, kind := range browser.Eval[[]string](b, `[...document.querySelectorAll("table, dl, .legend span, .rights td > a, .timeline li, td, .pill")]`+shown+`.map((e) => {
			const name = e.className && typeof e.className === "string" ? e.className.split(" ")[0] : e.localName;
			return ["", "::before"].every((part) => getComputedStyle(e, part).printColorAdjust === "exact") ? name : "faded " + name;
		})`) {
			if seen[kind] = true; len(kind) > 6 && kind[:6] == "faded " {
				t.Errorf("%s prints a %s", path, kind)
			}
		}
	}
	for _, kind := range []string{"table", "dl", "a", "pill", "state", "share", "shown"} {
		if !seen[kind] {
			t.Errorf("no page has a %s: %v", kind, seen)
		}
	}
	b.CheckComplaints("print")
}
