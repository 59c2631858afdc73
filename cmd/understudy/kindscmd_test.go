// Tests of how the command that syncs ends, and of the table that forecast prints.

package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy/internal/crawl"
	"understudy/internal/forecast"
	"understudy/kit/touch"
	"understudy/request"
)

// The command ends with nothing but completeness, or with the reason; whatever
// the server says, it does not wait for ever.
func TestASyncEnds(t *testing.T) {
	progress := &request.Progress{Done: 7}
	for name, c := range map[string]struct {
		says  func(began time.Time) crawl.Report
		after time.Duration // at most
		text  string        // of the error; "": it ends well
	}{
		"complete": {func(time.Time) crawl.Report { return crawl.Report{Kept: true, Complete: true, Progress: progress} }, 0, ""},
		"failed": {func(time.Time) crawl.Report { return crawl.Report{Kept: true, Failed: true, Why: "it is too heavy"} }, 0,
			"it is too heavy"},
		"dropped": {func(began time.Time) crawl.Report {
			return crawl.Report{Kept: time.Since(began) < time.Minute, Why: "the first sync has not finished"}
		}, 2 * time.Minute, "someone ended the sync"},
		"down": {func(time.Time) crawl.Report {
			return crawl.Report{Kept: true, Why: "not synced", Down: "the credential is refused"}
		}, syncPatience + time.Second, "the provider cannot be reached: the credential is refused"},
		"stuck": {func(began time.Time) crawl.Report {
			return crawl.Report{Kept: true, Why: "not synced: a page always fails", Stuck: began}
		}, syncPatience + time.Second, "a page always fails"},
		"stuck for a while, then not": {func(began time.Time) crawl.Report {
			now := time.Now()
			if now.Sub(began) > time.Hour {
				return crawl.Report{Kept: true, Complete: true, Progress: progress}
			}
			return crawl.Report{Kept: true, Why: "not synced", Stuck: now}
		}, time.Hour + time.Minute, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				var out bytes.Buffer
				err := watchSync(t.Context(), &process{stdout: &out, stderr: io.Discard}, outputFlag{}, crawl.Command{Source: "a", Kind: "b"},
					func(context.Context, bool) (crawl.Report, error) {
						return c.says(began), nil
					})
				if took := time.Since(began); took > c.after {
					t.Errorf("it ended after %v", took)
				}
				switch {
				case c.text == "" && (err != nil || !strings.Contains(out.String(), "a/b is complete: 7 records")):
					t.Errorf("%q, %v", out.String(), err)
				case c.text != "" && (err == nil || !strings.Contains(err.Error(), c.text) || out.Len() > 0):
					t.Errorf("error %v, %q", err, out.String())
				}
			})
		})
	}
	broken := errors.New("no answer")
	p := &process{stdout: &bytes.Buffer{}, stderr: io.Discard}
	if err := watchSync(t.Context(), p, outputFlag{}, crawl.Command{}, func(context.Context, bool) (crawl.Report, error) {
		return crawl.Report{}, broken
	}); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
}

func TestASyncSaysAtOnceWhatHoldsItUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, asked := time.Now(), 0
		var messages bytes.Buffer
		said := time.Hour
		_ = watchSync(t.Context(), &process{stdout: io.Discard, stderr: &messages, quiet: true}, outputFlag{},
			crawl.Command{Source: "a", Kind: "b"},
			func(context.Context, bool) (crawl.Report, error) {
				if asked++; messages.Len() > 0 {
					said = min(said, time.Since(began))
				}
				return crawl.Report{Kept: true, Why: "a page cannot be stored", Stuck: began}, nil
			})
		if said > 5*time.Second {
			t.Errorf("said after %v", said)
		}
		if got := messages.String(); got != "a/b waits: a page cannot be stored; it is tried again\n" {
			t.Errorf("%d reports: %q", asked, got)
		}
	})
}

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
