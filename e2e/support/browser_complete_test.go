// Completion of searches, in a browser.

package support

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"understudy/e2e/browser"
	"understudy/e2e/rig"
	"understudy/internal/checktest"
)

// Ctrl-K leads to the box; while one types it offers fields and values, and only the word at hand is sent, without numbers.
func TestBrowserSearchIsCompleted(t *testing.T) {
	t.Parallel()
	demo := rig.StartDemo(t, "--latency", "20ms", "--records", "300", "--epoch", "2026-06-01T12:00:00Z")
	b := browser.OpenTab(t, demo.URL("viewer"))
	b.Open("/twilio/messages")
	browser.Eval[bool](b, `{
		window.sent = [];
		const fetched = window.fetch;
		window.fetch = (...of) => (window.sent.push(String(of[0])), fetched(...of));
		dispatchEvent(new KeyboardEvent("keydown", {key: "k", ctrlKey: true, bubbles: true}));
		document.activeElement.id === "q"
	}`)
	type offered struct{ Open, Expanded, Active, Value, Texts string }
	look := func() offered {
		return browser.Eval[offered](b, `(() => {
			const list = document.querySelector("#offers"), box = document.querySelector("#q");
			return {Open: String(list.matches(":popover-open")), Expanded: box.getAttribute("aria-expanded"), Value: box.value,
				Active: document.getElementById(box.getAttribute("aria-activedescendant") ?? "")?.dataset.text ?? "",
				Texts: [...list.children].map((o) => o.dataset.text).join(" ")};
		})()`)
	}
	b.Do(chromedp.KeyEvent("hello kind:messages stat"))
	b.Do(chromedp.WaitVisible(chromedp.CSS(`#offers [data-text="status:"]:only-child`)))
	{
		got := look()
		checktest.Equal(t, got.Texts, "status:", "of stat: got.Texts")
		checktest.Equal(t, got.Expanded, "true", "of stat: got.Expanded")
		checktest.Equal(t, got.Active, "", "of stat: got.Active")
	}
	b.Do(chromedp.KeyEvent(kb.ArrowDown))
	browser.Command(b, input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: "keyDown", Key: "Enter", Code: "Enter", Text: "\r", WindowsVirtualKeyCode: 13})
	browser.Command(b, input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: "keyUp", Key: "Enter", Code: "Enter", WindowsVirtualKeyCode: 13})
	b.Do(chromedp.WaitVisible(chromedp.CSS(`#offers [data-text="status:failed"]`)))
	b.CheckComplaints("a box with offers")
	if dir := os.Getenv("SCREENS"); dir != "" {
		png, err := chromedp.Run(b.Ctx, chromedp.CaptureScreenshot())
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "completed.png"), png, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b.Do(chromedp.KeyEvent("fa"))
	b.Do(chromedp.WaitVisible(chromedp.CSS(`#offers [data-text="status:failed"]:only-child`)))
	browser.Eval[bool](b, `{
		const list = document.querySelector("#offers");
		new MutationObserver(() => { list.dataset.drawn = "again"; }).observe(list, {childList: true});
		true
	}`)
	b.Do(chromedp.KeyEvent("i")) // whose offers come while one of those before them is chosen
	b.Do(chromedp.KeyEvent(kb.ArrowDown))
	b.Do(chromedp.WaitVisible(chromedp.CSS("#offers[data-drawn]")))
	b.Do(chromedp.KeyEvent(kb.Tab))
	if got := look(); got.Value != "hello kind:messages status:failed " || got.Open != "false" {
		t.Errorf("taken: %+v", got)
	}
	browser.Eval[bool](b, `{ // slowly: each time the pause is over
		const box = document.querySelector("#q"), value = box.value, later = window.setTimeout;
		window.setTimeout = (then) => { then(); return 0; };
		for (const word of ["number:+1", "from:+141", "from:415-55", "from:415.5550"]) {
			box.value = word;
			box.setSelectionRange(word.length, word.length);
			box.dispatchEvent(new InputEvent("input", {bubbles: true}));
		}
		window.setTimeout = later;
		box.value = value;
		box.setSelectionRange(value.length, value.length);
		true
	}`)
	b.Do(chromedp.KeyEvent("number:+14155550123"))
	for _, at := range browser.Eval[[]string](b, `window.sent`) {
		if at == "/search/complete?word=hello" { // its writer paused after it: it is the word at hand
			continue
		}
		checktest.Lacks(t, at, "hello", "sent: at")
		checktest.Lacks(t, at, "4155", "sent: at")
		checktest.Lacks(t, at, "%2B", "sent: at")
		checktest.Lacks(t, at, "415", "sent: at")
	}
	b.Follow(chromedp.KeyEvent(kb.Enter))
	if got := b.Path(); !strings.HasPrefix(got, "/search") {
		t.Errorf("Enter leads to %s", got)
	}
}
