// Tests of the page of forecasts, and of their line on the home page.

package outlook_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/forecast"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/viewertest"
	"understudy/request"
)

// fills is a mirror that fetches nothing.
type fills struct{}

func (fills) Fill(context.Context, request.Fill) (request.PageSaved, error) {
	return request.PageSaved{}, errors.New("not in this test")
}

// foreseen is a viewer whose balance has hourly samples: so many of them, and the last
// of them at noon.
func foreseen(t *testing.T, samples int, set ...func(*page.Options)) *viewertest.Fixture {
	t.Helper()
	db, err := store.Open(t.Context(), store.Options{Path: storetest.File(t)})
	viewertest.Must(t, err)
	t.Cleanup(func() { viewertest.Must(t, db.Close()) })
	rnd, left := rand.New(rand.NewPCG(1, 2)), 180.0
	var all []understudy.Sample
	for i := range samples {
		left -= 0.3 * rnd.Float64()
		all = append(all, understudy.Sample{At: viewertest.Noon.Add(time.Duration(i+1-samples) * time.Hour), Value: fmt.Sprintf("%.5f", left)})
	}
	viewertest.Must(t, db.Series.AddSamples(t.Context(), understudy.Series{Source: "twilio", Kind: "balance", Field: "balance"}, all...))
	return viewertest.Open(t, append(set, func(o *page.Options) {
		f, err := forecast.New(forecast.Options{Sources: o.Sources, Store: db.Series, KV: db.KV, Mirror: fills{}, Now: o.Now})
		viewertest.Must(t, err)
		o.Forecasts = f
	})...)
}

const outlookPath = "/-/forecast/twilio/balance.balance"

func TestOutlook(t *testing.T) {
	h := foreseen(t, 600)
	viewertest.CheckGolden(t, "outlook", h.Page(outlookPath, viewertest.All))
	shown := h.Page(outlookPath+"?level=80&by=2w&percent=0.5", viewertest.All)
	for _, want := range []string{
		`to reach $80.00 by <time datetime="2026-06-15T12:05:00Z" title="Mon, 15 Jun 2026 12:05:00 UTC">15 June</time>`,
		`value="80"`, `value="2w"`, `value="0.5"`, "the level $80.00", "JSON", `">$88.36</a>`,
		`text-anchor="end">$100.00</text>`, "<dd>−$3.66 a day, deviation $0.429</dd>",
	} {
		if !strings.Contains(shown, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	status, body, _ := h.Get(outlookPath+".json?level=80&by=2w", viewertest.All)
	var f forecast.Forecast
	viewertest.Must(t, json.Unmarshal([]byte(body), &f))
	p := f.Probability
	checktest.Equal(t, status, http.StatusOK, "status; body %s", body)
	checktest.Equal(t, f.State, forecast.Ready, "f.State; body %s", body)
	checktest.Equal(t, f.Level, "80", "f.Level; body %s", body)
	checktest.Equal(t, f.Samples, 600, "f.Samples; body %s", body)
	checktest.True(t, p.Low <= p.Figure, "p.Low is %v; body %s", p.Low, body)
	checktest.True(t, p.High >= p.Figure, "p.High is %v; body %s", p.High, body)
	checktest.True(t, f.By.Equal(viewertest.Noon.Add(14*24*time.Hour)),
		"f.By.Equal(viewertest.Noon.Add(14*24*time.Hour)) is false; body %s", body)
	home := h.Page("/", viewertest.All)
	checktest.Contains(t, home, "at this pace, a 50 % chance to reach 0 by ",
		"the home page has no line of it: home")
	checktest.Contains(t, home, " more avoid that with 95 % certainty until ",
		"the home page has no line of it: home")
	checktest.Contains(t, home, `href="`+outlookPath+`"`, "the home page has no line of it: home")
}

// TestOutlookIsLinked from the page of the number, for those who may follow.
func TestOutlookIsLinked(t *testing.T) {
	h := foreseen(t, 600)
	if shown := h.Page("/twilio/balance", viewertest.All); !strings.Contains(shown, `<a href="`+outlookPath+`">Forecast of the balance</a>`) {
		t.Error("no link from the balance")
	}
	if _, shown, _ := h.Get("/twilio/balance", viewertest.Clerk); strings.Contains(shown, "orecast") {
		t.Error("a link for who does not see the balance")
	}
}

// inDollars are forecasts whose samples were in dollars.
type inDollars struct{ page.Forecasts }

func (inDollars) Unit(context.Context, understudy.Series) string { return "USD" }

// TestHomeSaysACurrencyAndATimeOfABalance also when the record that has the currency is not held.
func TestHomeSaysACurrencyAndATimeOfABalance(t *testing.T) {
	h := foreseen(t, 600)
	h.Viewer.Visitor.Options.Forecasts = inDollars{h.Viewer.Visitor.Options.Forecasts}
	balance := regexp.MustCompile(`<p class="figure[ a-z]*">\$[0-9.]+</p><p class="fine">at <time `)
	for _, held := range []bool{false, true} {
		if held {
			h.Page("/twilio/balance", viewertest.All)
		}
		if home := h.Page("/", viewertest.All); !balance.MatchString(home) {
			t.Errorf("held %v: home has no balance with its currency and time", held)
		}
	}
}

// TestOutlookNotYet: without history there is no number, on no page.
func TestOutlookNotYet(t *testing.T) {
	for _, samples := range []int{0, 1, 24} {
		h := foreseen(t, samples)
		if shown := h.Page(outlookPath, viewertest.All); !strings.Contains(shown, "Not yet") || strings.Contains(shown, "to reach") {
			t.Errorf("%d samples: %s", samples, shown)
		}
		if home := h.Page("/", viewertest.All); strings.Contains(home, "at this pace") {
			t.Errorf("%d samples: the home page foresees something", samples)
		}
	}
}

// TestOutlookHidden: who does not see the number as it is gets no page, no data, no line
// and no other answer than for one that is not there.
func TestOutlookHidden(t *testing.T) {
	h := foreseen(t, 600)
	for role, token := range map[string]string{"clerk": "clerktoken", "counter": "countertoken"} {
		who := viewertest.Browser{Token: token}
		for _, path := range []string{outlookPath, outlookPath + ".json", outlookPath + "?level=1"} {
			status, body, _ := h.Get(path, who)
			_, none, _ := h.Get(strings.Replace(path, "balance.balance", "balance.nothings", 1), who)
			if status != http.StatusNotFound || strings.ReplaceAll(none, "balance.nothings", "balance.balance") != body {
				t.Errorf("%s: %s answers %d, otherwise than what is not there", role, path, status)
			}
		}
		if home := h.Page("/", who); strings.Contains(home, "forecast") {
			t.Errorf("%s: the home page tells of it", role)
		}
	}
	if status, _, _ := h.Get(outlookPath, viewertest.Support); status != http.StatusOK {
		t.Errorf("a role that sees prices gets %d", status)
	}
	for path, want := range map[string]int{
		"/-/forecast/twilio/balance": 404, "/-/forecast/twilio/calls.price": 404, "/-/forecast/other/balance.balance": 404,
		outlookPath + "?level=much": 400, outlookPath + "?by=1s": 400, outlookPath + "?percent=95": 400, outlookPath + "?when=now": 400,
	} {
		if status, _, _ := h.Get(path, viewertest.All); status != want {
			t.Errorf("%s: %d, want %d", path, status, want)
		}
	}
}

// TestOutlookIsAudited before it is answered.
func TestOutlookIsAudited(t *testing.T) {
	a := &viewertest.AuditLog{}
	h := foreseen(t, 600, func(o *page.Options) { o.Audit = a })
	h.Page(outlookPath, viewertest.All)
	if len(a.Entries()) != 1 {
		t.Fatalf("%+v", a.Entries())
	}
	e := a.Entries()[0]
	checktest.Equal(t, e.Action, understudy.ActionRecord, "e.Action")
	checktest.Equal(t, e.Kind, "balance", "e.Kind")
	checktest.Equal(t, e.Source, "twilio", "e.Source")
	a.Fail(understudy.ErrNotAudited)
	if status, body, _ := h.Get(outlookPath+".json", viewertest.All); status != http.StatusServiceUnavailable || strings.Contains(body,
		"probability") {
		t.Errorf("not listed, and answered %d %s", status, body)
	}
}
