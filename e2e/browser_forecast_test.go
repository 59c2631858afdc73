// Forecast: the page of a balance that runs out, in a real browser.

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"understudy"
	"understudy/e2e/binary"
	"understudy/internal/datadir"
	"understudy/internal/store"
)

func TestBrowserForecast(t *testing.T) {
	t.Parallel()
	script, dir := axe(t), t.TempDir()
	data := filepath.Join(dir, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(t.Context(), store.Options{Path: filepath.Join(data, datadir.StoreFile)})
	if err != nil {
		t.Fatal(err)
	}
	var samples []understudy.Sample // ten days in which the balance falls, now faster, now slower
	left, now := 90.0, time.Now()
	for i := range 240 {
		left -= 0.1 + 0.02*float64(i*7%11)
		samples = append(samples, understudy.Sample{At: now.Add(time.Duration(i-240) * time.Hour), Value: fmt.Sprintf("%.5f", left)})
	}
	if err := db.AddSamples(t.Context(), understudy.Series{Source: "twilio", Kind: "balance", Field: "balance"}, samples...); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	demo := start(t, dir, binary.Demo("--data", data, "--latency", "1ms", "--records", "300")...)
	b := openTab(t, demo.URL("viewer"))
	b.open("/")
	b.sound(script, "home with a forecast")
	b.follow(chromedp.Click(chromedp.CSS(`a[href="/-/forecast/twilio/balance.balance"]`)))
	main := func() string {
		return strings.Join(strings.Fields(eval[string](b, `document.querySelector("main").innerText`)), " ")
	}
	if text := main(); !strings.Contains(text, "100 % to reach 0 by") || !strings.Contains(text, "To be 95 % sure that it does not") {
		t.Errorf("the page says %s", text)
	}
	b.sound(script, "forecast")
	b.do(chromedp.SetValue(chromedp.CSS(`[name="level"]`), "-500"))
	b.follow(chromedp.Click(chromedp.CSS(`.ask button`)))
	if text := main(); !strings.Contains(text, "0 % to reach -500 by") {
		t.Errorf("asked for another level, the page says %s", text)
	}
	b.sound(script, "forecast of another level")
}
