// Forecast: the page of a balance that runs out, in a real browser.

package support

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"understudy/e2e/binary"
	"understudy/e2e/browser"
	"understudy/e2e/pages"
	"understudy/e2e/rig"
)

func TestBrowserForecast(t *testing.T) {
	t.Parallel()
	script, dir := browser.Axe(t), t.TempDir()
	data := filepath.Join(dir, "data")
	if err := pages.Fall(t.Context(), data); err != nil {
		t.Fatal(err)
	}
	demo := rig.Start(t, dir, binary.Demo("--data", data, "--latency", "1ms", "--records", "300")...)
	b := browser.OpenTab(t, demo.URL("viewer"))
	b.Open("/")
	b.CheckAccessibility(script, "home with a forecast")
	b.Follow(chromedp.Click(chromedp.CSS(`a[href="/-/forecast/twilio/balance.balance"]`)))
	main := func() string {
		return strings.Join(strings.Fields(browser.Eval[string](b, `document.querySelector("main").innerText`)), " ")
	}
	if text := main(); !strings.Contains(text, "100 % to reach 0.00 by") || !strings.Contains(text, "Needed to avoid it with 95 % certainty") {
		t.Errorf("the page says %s", text)
	}
	b.CheckAccessibility(script, "forecast")
	b.Do(chromedp.SetValue(chromedp.CSS(`[name="level"]`), "-500"))
	b.Follow(chromedp.Click(chromedp.CSS(`.ask button`)))
	if text := main(); !strings.Contains(text, "0 % to reach −500.00 by") {
		t.Errorf("asked for another level, the page says %s", text)
	}
	b.CheckAccessibility(script, "forecast of another level")
}
