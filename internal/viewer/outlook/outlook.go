// The page of a forecast, and the sentence about a forecast on the home page.

// Package outlook shows when a sampled number, such as a balance, may reach a level.
package outlook

import (
	"context"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/forecast"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/plan"
	"understudy/spec"
)

// seriesPathPrefix is the path below which each forecast has its page.
const seriesPathPrefix = forecast.Path + "/"

// Routes returns the routes of the forecasts' pages.
func Routes() []page.Route {
	return []page.Route{{Pattern: "GET " + seriesPathPrefix + "{source}/{series}", Handler: serve}}
}

// outlookPage is the data of the template outlook.html: a forecast in words.
type outlookPage struct {
	Forecast   *forecast.Forecast
	Name       string
	Says       amounts
	Newest     *page.When
	By         page.When
	Likely     string // the probability that the number reaches the level by the date, in percent
	LikelyBand string
	Dates      []dateView
	Sure       string

	Title   string
	Action  string
	Asked   formValues
	Chart   *chart
	JSON    string
	Kind    string // the address of the page of the kind to which the number belongs
	Samples string
	Oldest  *page.When
}

// formValues has the values of the form's fields.
type formValues struct{ Level, By, Percent string }

// amounts are the numbers of a forecast formatted for people. Value is the newest sample.
type amounts struct{ Value, Level, Need, Daily string }

// dateView says by which date the number reaches the level with a certain probability.
type dateView struct {
	Percent, Band string
	At            page.When
	Never         bool
}

// serve shows the forecast of a sampled number, or sends it as JSON.
func serve(q *page.Exchange) error {
	name := strings.TrimSuffix(q.R.PathValue("series"), q.DataFormat)
	kind, field, _ := strings.Cut(name, ".")
	s := understudy.Series{Source: q.Source.Name, Kind: kind, Field: field}
	shown := seriesOf(q, q.Source)
	if !slices.Contains(shown, s) {
		var known []string
		for _, one := range shown {
			known = append(known, one.Kind+"."+one.Field)
		}
		return page.NewUnknownWord("forecast of "+q.Source.Spec.Title, name, known,
			func(n string) string { return seriesPathPrefix + q.Source.Name + "/" + n })
	}
	query := q.R.URL.Query()
	for parameter := range query {
		if !slices.Contains(forecast.Parameters, parameter) {
			return page.NewUnknownWord("parameter", parameter, forecast.Parameters, nil)
		}
	}
	question, err := forecast.ParseQuestion(s, query)
	if err != nil {
		return page.NewBadRequest("This forecast cannot be computed", page.Sentence(err), nil)
	}
	if err := page.WriteAudit(q, understudy.AuditEntry{Action: understudy.ActionRecord, What: "forecast", Kind: kind}); err != nil {
		return err
	}
	made, err := q.V.Options.Forecasts.Ask(q.Ctx, question)
	if err != nil {
		return err
	}
	if q.DataFormat != "" {
		return q.SendJSON(made)
	}
	figures := figuresOf(q.Ctx, q, s)
	p := newPage(q, made, s, figures)
	p.Action, p.Kind = href(s), "/"+q.Source.Name+"/"+kind
	p.Asked = formValues{query.Get("level"), query.Get("by"), query.Get("percent")}
	p.Title, p.Chart, p.Oldest = plan.UpperFirst(p.Name), newChart(q, made, figures), q.Clock.Moment(made.Since)
	p.JSON = p.Action + page.DataSuffix
	if len(query) > 0 {
		p.JSON += "?" + query.Encode()
	}
	p.Samples = page.Thousands(int64(made.Samples))
	return q.Render(http.StatusOK, "outlook", "Forecast of "+p.Name, p)
}

// seriesOf returns the sampled numbers of a source whose forecasts the caller may see.
func seriesOf(q *page.Exchange, s *plan.Source) (all []understudy.Series) {
	if q.V.Options.Forecasts == nil {
		return nil
	}
	for _, one := range q.V.Options.Forecasts.Series(s.Name) {
		if q.V.Options.Forecasts.CanSee(q.Rights.Gate, q.Rights.Caller, one) {
			all = append(all, one)
		}
	}
	return all
}

// Links returns links from a record's page to the forecasts of its sampled numbers.
func Links(q *page.Exchange) (links []page.Link) {
	for _, one := range seriesOf(q, q.Source) {
		if one.Kind == q.Kind.Spec.Name {
			links = append(links, page.Link{Href: href(one), Text: "Forecast of the " + seriesName(q, one)})
		}
	}
	return links
}

func href(s understudy.Series) string {
	return seriesPathPrefix + s.Source + "/" + s.Kind + "." + s.Field
}

// Line is a sampled number on the home page. It has a sentence about the forecast, which may be empty.
type Line struct {
	Name, Href, Value, Text string
	At                      *page.When // when the value of the number was sampled
	Bad                     bool
}

// minLikely is the probability below which the home page does not mention that a number may reach zero.
const minLikely = 0.01

// Lines returns the sampled numbers of a source, and when each may reach zero. If a forecast fails, it returns the
// lines before it, because the page has other content too.
func Lines(ctx context.Context, q *page.Exchange, s *plan.Source) (lines []Line) {
	for _, one := range seriesOf(q, s) {
		question, err := forecast.NewQuestion(one, "", "", "")
		if err != nil {
			return nil
		}
		made, err := q.V.Options.Forecasts.Ask(ctx, question)
		if err != nil {
			return lines
		}
		v := newPage(q, made, one, figuresOf(ctx, q, one))
		line := Line{Name: v.Name, Href: href(one), Value: v.Says.Value, At: v.Newest}
		switch {
		case made.Value == "":
			continue
		case made.State == forecast.Reached:
			line.Bad = true
		case made.State == forecast.Ready && made.Probability.Figure >= minLikely && !v.Dates[0].Never:
			line.Text = "at this pace, a 50 % chance to reach 0 by " + v.Dates[0].At.Text
			if made.Need.Figure > 0 {
				line.Text += "; " + v.Says.Need + " more avoid that with " + v.Sure + " certainty until " + v.By.Text
			}
			line.Bad = made.Probability.Figure >= 0.5
		}
		lines = append(lines, line)
	}
	return lines
}

// figures formats the values of a sampled number for people.
type figures struct {
	field *spec.Field // the field of the spec; nil if the spec does not describe the number
	unit  string      // the unit of the number, such as a currency; empty if it is not known
}

// figuresOf returns how to format the values of a sampled number. The currency comes from the record with the number
// if it is stored, else from the newest sample.
func figuresOf(ctx context.Context, q *page.Exchange, s understudy.Series) (w figures) {
	src := q.V.ByName[s.Source]
	k := src.ByName[s.Kind]
	if k == nil || k.Spec.Field(s.Field) == nil {
		return w
	}
	w.field = k.Spec.Field(s.Field)
	target, err := src.Config.ResolveSample(k.Spec)
	if w.field.Unit == "" || err != nil {
		return w
	}
	for _, row := range q.ReadExportPage(ctx, target, false, false).Rows() {
		if v := row.Field(w.field.Unit); v.State == access.Seen {
			w.unit = v.Text
		}
	}
	if w.unit == "" && q.Rights.Level(k, w.field.Unit) == access.See {
		w.unit = q.V.Options.Forecasts.Unit(ctx, s)
	}
	return w
}

// format returns one value formatted for people.
func (w figures) format(number string) string {
	if w.field == nil {
		return number
	}
	if text, _, ok := plan.Figure(w.field, number, w.unit); ok {
		return text
	}
	return number
}

// newPage returns the data of a forecast's page, except its form and chart.
func newPage(q *page.Exchange, f *forecast.Forecast, s understudy.Series, w figures) outlookPage {
	v := outlookPage{Forecast: f, Name: seriesName(q, s), Newest: q.Clock.Moment(f.At), By: sayDay(q, f.By), Sure: percentText(f.Percent)}
	v.Says.Value, v.Says.Level = w.format(f.Value), w.format(f.Level)
	if f.State != forecast.Ready {
		return v
	}
	v.Likely, v.LikelyBand = percentText(f.Probability.Figure), rangeText(percentText(f.Probability.Low), percentText(f.Probability.High))
	for _, d := range f.Dates {
		one := dateView{Percent: strconv.FormatFloat(d.Probability, 'g', 6, 64), Never: d.At == nil}
		if d.At != nil {
			one.At = sayDay(q, *d.At)
			one.Band = rangeText(dayText(q, d.Early), dayText(q, d.Late))
		}
		v.Dates = append(v.Dates, one)
	}
	v.Says.Need = w.format(strconv.FormatFloat(f.Need.Figure, 'f', 2, 64))
	v.Says.Daily = w.format(shortNumber(f.Drift)) + " a day, deviation " + w.format(shortNumber(f.Deviation))
	if f.Drift > 0 {
		v.Says.Daily = "+" + v.Says.Daily
	}
	return v
}

// seriesName returns the name of a sampled number: its kind, followed by its field if that has another name.
func seriesName(q *page.Exchange, s understudy.Series) string {
	src := q.V.ByName[s.Source]
	k := src.ByName[s.Kind]
	if k == nil {
		return s.Kind + "." + s.Field
	}
	field := k.Spec.Field(s.Field).DisplayName()
	if field == k.Spec.Singular {
		return k.Spec.Singular
	}
	return k.Spec.Singular + ": " + field
}

// dayText returns the day of a moment in the reader's zone. If the moment is near the current time, it adds the time of
// day. It returns "never" for nil.
func dayText(q *page.Exchange, at *time.Time) string {
	if at == nil {
		return "never"
	}
	l := at.In(q.Clock.Zone)
	switch {
	case at.Sub(q.Clock.Start).Abs() < maxTimeOfDayDistance:
		return page.FormatDay(l, q.Clock.Start.In(q.Clock.Zone)) + " " + l.Format("15:04")
	case l.Year() == q.Clock.Start.In(q.Clock.Zone).Year():
		return l.Format("2 January")
	}
	return l.Format("2 January 2006")
}

// sayDay is like day, but the result also has the exact time, which is shown on hover.
func sayDay(q *page.Exchange, at time.Time) page.When {
	w := q.Clock.FormatMoment(at, false)
	w.Text = dayText(q, &at)
	return w
}

// maxTimeOfDayDistance is how near to the current time a moment must be for its time of day to be shown.
const maxTimeOfDayDistance = 48 * time.Hour

// percentText returns a probability in percent. It never rounds a probability to 0 or 100 percent.
func percentText(p float64) string {
	switch {
	case p > 0 && p < 0.001:
		return "< 0.1 %"
	case p < 1 && p > 0.999:
		return "> 99.9 %"
	}
	return strconv.FormatFloat(math.Round(p*1000)/10, 'f', -1, 64) + " %"
}

// rangeText returns a range in words. It returns "" if both ends are the same.
func rangeText(low, high string) string {
	if low == high {
		return ""
	}
	return low + " to " + high
}

// shortNumber returns a number with two decimal places. Below 1 it returns three significant digits.
func shortNumber(x float64) string {
	if math.Abs(x) < 1 {
		return strconv.FormatFloat(x, 'g', 3, 64)
	}
	return strconv.FormatFloat(x, 'f', 2, 64)
}
