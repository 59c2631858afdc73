// The requests sent to upstream during the last day: a chart of stacked bars by reason, and a table by caller.

package administration

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"understudy/internal/viewer/page"
	"understudy/request"
)

// hourSpans, daySpans and barSpans say how many time spans of the request counters an hour, a day and a bar of the
// chart have. bars is the number of bars of a day.
const (
	hourSpans = int(time.Hour / request.SpendingStep)
	daySpans  = int(request.SpendingRetention / request.SpendingStep)
	barSpans  = 3
	bars      = daySpans / barSpans
)

// reasonWords are the names of the reasons for requests, in words.
var reasonWords = [request.ReasonCount]string{
	request.ReasonWaiting: "People and programs waiting", request.ReasonRefresh: "Background refresh",
	request.ReasonPoll: "Lists kept up to date",
	request.ReasonSync: "Full sync", request.ReasonCheck: "Checks of assembled lists",
	request.ReasonPrefetch: "Pages fetched ahead",
}

// budget shows the requests of the last day to the API of one source.
type budget struct {
	Bars  []barPart
	Grid  []page.GridLine
	Hours []page.Mark
	Rows  []reasonRow
	Each  []hourRow // the numbers in the chart as a table, one row for each hour
	// Callers are the numbers of requests for which a reader waited, by caller. The last row may add up all other callers.
	Callers []reasonRow
	Total   int64
	Most    int64 // the number of requests in the highest bar
	Shown   int   // the number of bars; they begin with the first request of the day and make complete hours
	Label   string
}

// barPart is one part of a stacked bar. Tall is its height.
type barPart struct {
	Class, Title      string
	X, Y, Width, Tall float64
}

// reasonRow is the number of requests for one reason or of one caller.
type reasonRow struct {
	Class, Word, Share string
	Hour, Day          int64
	Others             bool // whether the row adds up several callers, so that Word is not a name
}

// maxCallers is the maximum number of callers that have a row of their own.
const maxCallers = 8

// callers returns the callers with the most requests, and in the last row all other callers. It counts only requests
// for which a reader waited.
func callers(day, hour *request.Spending) (rows []reasonRow) {
	all := day.ByReason[request.ReasonWaiting]
	others := reasonRow{Word: "Others", Day: all, Hour: hour.ByReason[request.ReasonWaiting], Others: true}
	names := slices.SortedFunc(maps.Keys(day.ByCaller), func(a, b string) int {
		return cmp.Or(cmp.Compare(day.ByCaller[b], day.ByCaller[a]), cmp.Compare(a, b))
	})
	for _, name := range names {
		if n := day.ByCaller[name]; name != "" && len(rows) < maxCallers {
			rows = append(rows, reasonRow{Word: name, Day: n, Hour: hour.ByCaller[name], Share: percent(n, all)})
			others.Day, others.Hour = others.Day-n, others.Hour-hour.ByCaller[name]
		}
	}
	if others.Day > 0 {
		others.Share = percent(others.Day, all)
		rows = append(rows, others)
	}
	return rows
}

// hourRow is the number of requests in one hour.
type hourRow struct {
	When  page.When
	Parts []int64 // the numbers of requests by reason, in the order of budget.Rows
	Sent  int64

	Callers []int64 // the numbers of requests by caller, in the order of budget.Callers
}

// barsPerHour is the number of bars that the chart has for each hour.
const barsPerHour = bars / 24

// newBudget returns the chart and the tables of the requests. It returns nil if there were no requests.
func newBudget(q *page.Exchange, spent []request.Spending) *budget {
	sum := sumOf(spent, q.Clock.Start, daySpans)
	total := sum.Requests()
	if total == 0 {
		return nil
	}
	b := &budget{Total: total}
	end := q.Clock.Start.Truncate(request.SpendingStep).Add(request.SpendingStep)
	begin := end.Add(-request.SpendingRetention)
	var each [bars]request.Spending
	for i := range spent {
		at := int(spent[i].From.Sub(begin) / (barSpans * request.SpendingStep))
		if spent[i].From.Before(begin) || at >= bars {
			continue
		}
		each[at].Add(&spent[i])
	}
	for i := range each {
		if b.Most = max(b.Most, each[i].Requests()); b.Most > 0 && b.Shown == 0 {
			b.Shown = bars - i/barsPerHour*barsPerHour
		}
	}
	b.draw(q, end, &each)
	b.drawAxes(q, end)
	b.fillTables(q, spent, &each, begin)
	b.Label = "Requests to the API in the last 24 hours, by reason: " + page.Thousands(total) + " in total, " + page.Thousands(b.Most) +
		" at most in 15 minutes"
	return b
}

// sumOf adds up the requests of the last time spans. spans is their number.
func sumOf(spent []request.Spending, now time.Time, spans int) (sum request.Spending) {
	since := now.Truncate(request.SpendingStep).Add(-time.Duration(spans-1) * request.SpendingStep)
	for i := range spent {
		if !spent[i].From.Before(since) {
			sum.Add(&spent[i])
		}
	}
	return sum
}

// draw draws each bar as a stack of the reasons for its requests.
func (b *budget) draw(q *page.Exchange, end time.Time, each *[bars]request.Spending) {
	width := 100 / float64(b.Shown) // the chart is 100 units wide and 100 units high
	for i := range b.Shown {
		y, from := 100.0, end.Add(time.Duration(i-b.Shown)*barSpans*request.SpendingStep).In(q.Clock.Zone)
		for r, n := range each[bars-b.Shown+i].ByReason {
			if n == 0 {
				continue
			}
			height := math.Max(100*float64(n)/float64(nextRoundNumber(b.Most)), 0.5)
			y -= height
			b.Bars = append(b.Bars, barPart{request.Reason(r).String(), from.Format("15:04 ") + reasonWords[r] + ": " + page.Thousands(n),
				page.RoundCoordinate(float64(i) * width), page.RoundCoordinate(y), page.RoundCoordinate(width * 0.86), page.RoundCoordinate(height)})
		}
	}
}

// drawAxes adds the horizontal grid lines and the labels of the hours.
func (b *budget) drawAxes(q *page.Exchange, end time.Time) {
	high := nextRoundNumber(b.Most)
	for _, part := range []int64{0, 1, 2} {
		n := high * part / 2
		if part == 1 && high%2 == 1 {
			continue // a number of requests is an integer, so a line between two integers is left out
		}
		b.Grid = append(b.Grid, page.GridLine{Y: page.RoundCoordinate(100 - 50*float64(part)), Text: page.Thousands(n)})
	}
	span := time.Duration(b.Shown) * barSpans * request.SpendingStep
	for quarter := range time.Duration(5) {
		at := end.Add(quarter*span/4 - span).In(q.Clock.Zone)
		b.Hours = append(b.Hours, page.Mark{X: 25 * float64(quarter), Text: at.Format("15:04")})
	}
}

// fillTables fills the tables of the requests by reason and by hour.
func (b *budget) fillTables(q *page.Exchange, spent []request.Spending, each *[bars]request.Spending, begin time.Time) {
	var day request.Spending
	for i := range each {
		day.Add(&each[i])
	}
	hour := sumOf(spent, q.Clock.Start, hourSpans)
	var reasons []int
	for r, n := range day.ByReason {
		if n == 0 {
			continue
		}
		reasons = append(reasons, r)
		b.Rows = append(b.Rows, reasonRow{Class: request.Reason(r).String(), Word: reasonWords[r], Share: percent(n, b.Total),
			Hour: hour.ByReason[r], Day: n})
	}
	b.Callers = callers(&day, &hour)
	for h := 23; h >= 0; h-- {
		var sum request.Spending
		for i := h * barsPerHour; i < (h+1)*barsPerHour; i++ {
			sum.Add(&each[i])
		}
		if sum.Requests() == 0 {
			continue
		}
		row := hourRow{When: q.Clock.FormatMoment(begin.Add(time.Duration(h)*time.Hour), false), Sent: sum.Requests()}
		for _, r := range reasons {
			row.Parts = append(row.Parts, sum.ByReason[r])
		}
		rest := sum.ByReason[request.ReasonWaiting]
		for i := range b.Callers {
			n := sum.ByCaller[b.Callers[i].Word]
			if b.Callers[i].Others {
				n = rest
			}
			row.Callers, rest = append(row.Callers, n), rest-n
		}
		b.Each = append(b.Each, row)
	}
}

// nextRoundNumber returns the number at the upper edge of the chart. It is the smallest number of the form 1, 2 or 5 followed
// by zeros that is at least n.
func nextRoundNumber(n int64) int64 {
	for step := int64(1); ; step *= 10 {
		for _, of := range []int64{1, 2, 5} {
			if of*step >= n {
				return of * step
			}
		}
	}
}

func percent(n, of int64) string {
	switch p := 100 * float64(n) / float64(of); {
	case n == of:
		return "100 %"
	case p < 1:
		return "under 1 %"
	default:
		return page.Thousands(int64(math.Min(math.Round(p), 99))) + " %"
	}
}
