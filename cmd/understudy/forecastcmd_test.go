// Forecast: the table for people is the one that the document shows.

package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"understudy/internal/forecast"
	"understudy/kit/touch"
)

func TestForecastPrintsWhatTheDocumentShows(t *testing.T) {
	doc, err := os.ReadFile("../../docs/how-to/forecast.md")
	if err != nil {
		t.Fatal(err)
	}
	day := func(month, day int) *time.Time {
		at := time.Date(2026, time.Month(month), day, 12, 5, 0, 0, time.Local)
		return &at
	}
	f := &forecast.Forecast{
		Of: "twilio/balance.balance", State: forecast.Ready, Level: "0", By: *day(7, 1), Percent: 0.95, Value: "88.35548", At: *day(6, 1),
		Since: day(5, 7).Add(time.Hour), Samples: 600, Probability: &forecast.Band{Figure: 1, Low: 0.9999, High: 1},
		Dates: []forecast.Date{{Probability: 0.5, At: day(6, 25), Early: day(6, 24), Late: day(6, 26)},
			{Probability: 0.95, At: day(6, 26), Early: day(6, 25), Late: day(6, 27)}},
		Need:  &forecast.Band{Figure: 27.32, Low: 21.17, High: 30.74},
		Drift: -3.66, Deviation: 0.43, Backtest: &touch.BacktestResult{Forecasts: 6, Touched: 5}, BacktestWithin: "3.2 d",
	}
	print := func(f *forecast.Forecast) string {
		var out strings.Builder
		if err := printForecast(&out, f); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	if have := print(f); !strings.Contains(string(doc), "\n```text\n"+have+"```\n") {
		t.Errorf("docs/how-to/forecast.md does not show\n%s", have)
	}
	f.Dates[1].At, f.LeftOut = nil, 2
	for _, want := range []string{
		"with probability 0.95        not within ten years\n", "left out                     2 jumps away from the level\n",
	} {
		if have := print(f); !strings.Contains(have, want) {
			t.Errorf("no %q in\n%s", want, have)
		}
	}
	f.State = forecast.Reached
	if have := print(f); !strings.HasSuffix(have, "it is at 0 already, or beyond it\n") || strings.Contains(have, "%") {
		t.Error(have)
	}
}
