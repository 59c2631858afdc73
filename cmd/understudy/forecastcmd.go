// The forecast command: it prints when a sampled number, or a price, may reach a level.

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
	"understudy/internal/forecast"
	"understudy/kit/touch"
)

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
