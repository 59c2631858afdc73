// The commands about one kind: sync fetches its records and keeps them complete, forecast estimates when a number of them reaches a level.

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"understudy"
	"understudy/cmd/understudy/terminal"
	"understudy/internal/crawl"
	"understudy/internal/forecast"
	"understudy/kit/touch"
)

type syncCmd struct {
	What   string     `arg:"" name:"source/kind" help:"A source of the settings and one of its kinds."`
	End    bool       `help:"Stop keeping this kind complete. Records already stored are kept."`
	Output outputFlag `embed:""`
	Place  dataFlags  `embed:""`
}

// syncPatience is how long the command waits while upstream is down or the sync makes no progress. The server
// continues after that.
const syncPatience = 2 * time.Minute

// Run asks the server to start or end a sync, and shows the progress.
func (c *syncCmd) Run(ctx context.Context, p *process) error {
	source, kind, ok := strings.Cut(c.What, "/")
	if !ok || source == "" || kind == "" || strings.Contains(kind, "/") {
		return usageError{fmt.Errorf("%q is not SOURCE/KIND; write for example NAME/calls", c.What)}
	}
	o := crawl.Command{Source: source, Kind: kind, End: c.End}
	return c.Place.askServer(ctx, p, false, func(ctx context.Context, server *admin) error {
		return watchSync(ctx, p, c.Output, o, server.sync(o))
	})
}

// sync returns a function for watchSync. Called with first, it starts or ends the sync. Otherwise it asks for the progress.
func (a *admin) sync(o crawl.Command) func(ctx context.Context, first bool) (crawl.Report, error) {
	return func(ctx context.Context, first bool) (r crawl.Report, err error) {
		if first {
			err = a.ask(ctx, http.MethodPost, "/-/sync", o, &r)
		} else {
			err = a.ask(ctx, http.MethodGet, "/-/sync?"+url.Values{"source": {o.Source}, "kind": {o.Kind}}.Encode(), nil, &r)
		}
		return r, err
	}
}

// watchSync shows the progress of a sync. It returns when all records are stored, or when they cannot be, with the
// reason as the error. It prints the reason of a delay at once.
func watchSync(ctx context.Context, p *process, out outputFlag, o crawl.Command,
	ask func(ctx context.Context, first bool) (crawl.Report, error)) error {
	name := o.Source + "/" + o.Kind
	progress := terminal.NewProgress(p.stderr, name, p.quiet)
	defer progress.End()
	var down time.Time
	first, told := true, ""
	err := poll(ctx, func() (bool, error) {
		r, err := ask(ctx, first)
		first = false
		switch {
		case err != nil:
			return false, err
		case o.End, r.Complete:
			progress.End()
			return true, out.print(p.stdout, r, func(w io.Writer) error {
				if o.End {
					_, err := fmt.Fprintf(w, "%s is no longer kept complete; its stored records stay\n", name)
					return err
				}
				_, err := fmt.Fprintf(w, "%s is complete: %s\n", name, formatCount(int(r.Progress.Done), "record"))
				return err
			})
		case r.Failed:
			return false, errors.New(r.Why)
		case !r.Kept:
			return false, errors.New("someone ended the sync; the kind is no longer kept complete")
		case !r.Stuck.IsZero() && time.Since(r.Stuck) > syncPatience:
			return false, fmt.Errorf("%s; the sync continues as soon as possible", r.Why)
		case r.Down == "":
			down = time.Time{}
		case down.IsZero():
			down = time.Now()
		case time.Since(down) > syncPatience:
			return false, fmt.Errorf("the provider cannot be reached: %s; the sync continues as soon as possible", r.Down)
		}
		if !r.Stuck.IsZero() && r.Why != told {
			told = r.Why
			progress.Print(p.stderr, fmt.Sprintf("%s waits: %s; it is tried again", name, r.Why))
		}
		progress.Set(syncState(r))
		return false, nil
	})
	if ctx.Err() != nil {
		return errors.New("interrupted; the next sync continues where this one stopped")
	}
	return err
}

// syncState returns the progress in the form that the progress bar needs.
func syncState(r crawl.Report) terminal.State {
	s := terminal.State{Unit: "records", Note: r.Why}
	if p := r.Progress; p != nil && p.Running {
		s.Done, s.Note = p.Done, ""
		if p.ETA > 0 {
			s.Ends = time.Now().Add(time.Duration(p.ETA) * time.Second)
		}
		if p.Total != nil {
			s.Total = *p.Total
		}
		if p.Walk != "" {
			s.Note = "walk " + p.Walk
		}
	}
	if r.Down != "" {
		s.Note = "waits: " + r.Down
	}
	return s
}

type forecastCmd struct {
	Of      string      `arg:"" optional:"" name:"source/kind.field" help:"The sampled number (default: list all sampled numbers)."`
	Level   string      `placeholder:"NUMBER" help:"Level that the number may reach (default 0)."`
	By      string      `placeholder:"TIME" help:"How far to look ahead, such as 12h or 2w (default 30d; with --price a year)."`
	Percent *float64    `placeholder:"P" help:"Probability of the dates and needs that are printed, above 0 and below 1 (default 0.95)."`
	Output  outputFlag  `embed:""`
	Price   *float64    `placeholder:"PRICE" help:"A price instead of a number: print what it falls to with the probability of --percent."`
	Sigma   *float64    `placeholder:"S" help:"With --price: standard deviation of its logarithm in a year."`
	Drift   float64     `placeholder:"D" help:"With --price: drift of its logarithm in a year (default 0)."`
	Remote  serverFlags `embed:""`
}

// yearDuration is the time span for which the drift and the deviation of a price are given.
const yearDuration = 365 * 24 * time.Hour

// Run prints one forecast. Without arguments, it lists the sampled numbers.
func (c *forecastCmd) Run(ctx context.Context, p *process) error {
	if err := c.check(); err != nil {
		return usageError{err}
	}
	percent := forecast.DefaultPercent
	if c.Percent != nil {
		percent = *c.Percent
	}
	if c.Price != nil {
		return c.printPrice(p.stdout, percent)
	}
	server, err := c.Remote.findServer(ctx, p)
	if err != nil {
		return err
	}
	if c.Of == "" {
		var list forecast.SeriesList
		if err := server.ask(ctx, http.MethodGet, forecast.Path, nil, &list); err != nil {
			return err
		}
		return c.Output.print(p.stdout, list, func(w io.Writer) error {
			if len(list.Series) == 0 {
				list.Series = []string{"no number is sampled; a spec marks fields with sample: 1h (docs/reference/specs.md)"}
			}
			_, err := fmt.Fprintln(w, strings.Join(list.Series, "\n"))
			return err
		})
	}
	values := url.Values{"of": {c.Of}, "percent": {strconv.FormatFloat(percent, 'g', -1, 64)}}
	setQuery(values, map[string]string{"level": c.Level, "by": c.By})
	var f forecast.Forecast
	if err := server.ask(ctx, http.MethodGet, forecast.Path+"?"+values.Encode(), nil, &f); err != nil {
		return err
	}
	return c.Output.print(p.stdout, f, func(w io.Writer) error { return printForecast(w, &f) })
}

// check returns an error if flags do not fit together, or if a number is out of range.
func (c *forecastCmd) check() error {
	switch {
	case c.Percent != nil && !(*c.Percent > 0 && *c.Percent < 1):
		return errors.New("--percent: write a probability above 0 and below 1, such as 0.95")
	case c.Price == nil && (c.Sigma != nil || c.Drift != 0):
		return errors.New("--sigma and --drift need --price")
	case c.Price == nil:
		return nil
	case c.Of != "" || c.Level != "":
		return errors.New("--price cannot be combined with a number or --level; remove them")
	case c.Sigma == nil:
		return errors.New("--price needs --sigma")
	case !(*c.Price > 0) || !(*c.Sigma > 0) || math.IsInf(*c.Price+*c.Sigma, 0) || math.IsNaN(c.Drift) || math.IsInf(c.Drift, 0):
		return errors.New("--price and --sigma: write numbers above 0")
	}
	if c.By != "" {
		_, err := forecast.ParseWithin(c.By)
		return err
	}
	return nil
}

// printPrice prints which level a price reaches with a probability, and the level by the formula of an article (see
// touch.ArticlePrice).
func (c *forecastCmd) printPrice(w io.Writer, percent float64) error {
	within := 1.0
	if c.By != "" {
		d, err := forecast.ParseWithin(c.By)
		if err != nil {
			return usageError{err}
		}
		within = float64(d) / float64(yearDuration)
	}
	g := touch.Geometric{Walk: touch.Walk{Drift: c.Drift, Sigma: *c.Sigma}}
	article := touch.ArticlePrice(*c.Price, *c.Sigma, percent, within)
	result := struct {
		Price              float64 `json:"price"`
		Probability        float64 `json:"probability"`
		ArticlePrice       float64 `json:"article_price"`
		ArticleProbability float64 `json:"article_probability"`
	}{g.Level(*c.Price, percent, within, true), percent, article, g.Probability(*c.Price, article, within)}
	return c.Output.print(w, result, func(w io.Writer) error {
		table := terminal.Table{{fmt.Sprintf("%.3f", result.Price), fmt.Sprintf("is reached with probability %v", percent)}}
		table.Add(fmt.Sprintf("%.2f", article), fmt.Sprintf("by the article's formula; its probability is %.2f %%",
			100*result.ArticleProbability))
		return table.Print(w)
	})
}

// printForecast prints a forecast as a table with two columns.
func printForecast(w io.Writer, f *forecast.Forecast) error {
	var table terminal.Table
	line := func(what, format string, args ...any) { table.Add(what, fmt.Sprintf(format, args...)) }
	form := time.DateOnly
	if f.By.Sub(f.At) < 72*time.Hour {
		form = time.DateOnly + " 15:04"
	}
	day := func(at *time.Time) string {
		if at == nil {
			return "never"
		}
		return at.Local().Format(form)
	}
	samples := formatCount(f.Samples, "sample")
	if f.Value != "" {
		const form = time.DateOnly + " 15:04"
		samples = f.Value + " at " + f.At.Local().Format(form) + ", " + samples + " since " + f.Since.Local().Format(form)
	}
	line(f.Of, "%s", samples)
	switch f.State {
	case forecast.NotYet:
		line("not yet", "%s", f.Why)
		return table.Print(w)
	case forecast.Reached:
		line("reached", "it is at %s already, or beyond it", understudy.Clip(f.Level))
		return table.Print(w)
	}
	percent := func(x float64) string { return strconv.FormatFloat(math.Round(x*1000)/10, 'f', -1, 64) + " %" }
	line(fmt.Sprintf("reaches %s by %s", f.Level, day(&f.By)), "%s (%s to %s)", percent(f.Probability.Figure), percent(f.Probability.Low),
		percent(f.Probability.High))
	for _, d := range f.Dates {
		if d.At == nil {
			line(fmt.Sprintf("with probability %v", d.Probability), "not within ten years")
			continue
		}
		line(fmt.Sprintf("with probability %v", d.Probability), "by %s (%s to %s)", day(d.At), day(d.Early), day(d.Late))
	}
	line(fmt.Sprintf("to be %s sure it does not", percent(f.Percent)), "%.2f more (%.2f to %.2f)", f.Need.Figure, f.Need.Low, f.Need.High)
	line("pace", "%+.2f a day, deviation %.2f", f.Drift, f.Deviation)
	if f.Backtest != nil {
		line("looking back", "%d of %d levels with %s were reached within %s", f.Backtest.Touched, f.Backtest.Forecasts,
			percent(f.Percent), f.BacktestWithin)
	}
	if f.LeftOut > 0 {
		line("left out", "%s away from the level", formatCount(f.LeftOut, "jump"))
	}
	return table.Print(w)
}
