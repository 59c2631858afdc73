// Usage records: how much was used and what it cost, by category and by time.
package computed

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/table"
	"understudy/internal/slowapi/world"
)

// UsageFilters narrow every list of usage; usage reads them, since they say
// which rows there are rather than which to leave out.
var UsageFilters = []world.Filter{{Key: "Category"}, {Key: "StartDate"}, {Key: "EndDate"}, {Key: "IncludeSubaccounts"}}

const day = 86400

func dayOf(t int64) int64 { return t - t%day }

func monthOf(t int64) int64 {
	at := time.Unix(t, 0).UTC()
	return time.Date(at.Year(), at.Month(), 1, 0, 0, 0, 0, time.UTC).Unix()
}

func monthAfter(month int64) int64 { return time.Unix(month, 0).UTC().AddDate(0, 1, 0).Unix() }

func yearOf(t int64) int64 {
	return time.Date(time.Unix(t, 0).UTC().Year(), 1, 1, 0, 0, 0, 0, time.UTC).Unix()
}

func yearAfter(year int64) int64 { return time.Unix(year, 0).UTC().AddDate(1, 0, 0).Unix() }

// wholeLife is the time from an account's first day to the end of today. The
// caller holds mu.
func wholeLife(w *world.World, account int) format.Span {
	return format.Span{From: dayOf(w.Top.Created(int64(account))), Until: dayOf(w.Now().Unix()) + day}
}

// certain is the time a list is of by its name; the whole time for most.
func certain(name string, life format.Span) format.Span {
	today := life.Until - day
	switch name {
	case "Today":
		return format.Span{From: today, Until: today + day}
	case "Yesterday":
		return format.Span{From: today - day, Until: today}
	case "ThisMonth":
		return format.Span{From: monthOf(today), Until: today + day}
	case "LastMonth":
		return format.Span{From: monthOf(monthOf(today) - day), Until: monthOf(today)}
	}
	return life
}

// usageDate reads a date, or so many days from today: -30days, +1day.
func usageDate(value string, today int64) (int64, bool) {
	if d, ok := format.ParseDate(value); ok {
		return dayOf(d.From), true
	}
	number, offset := strings.CutSuffix(strings.TrimSuffix(value, "s"), "day")
	// A plus in a query that was not encoded is a space.
	sign := map[byte]int64{'-': -1, '+': 1, ' ': 1}
	if !offset || number == "" || sign[number[0]] == 0 {
		return 0, false
	}
	n, ok := format.Whole(number[1:])
	return today + sign[number[0]]*min(n, 1e6)*day, ok
}

// usageTime narrows a time to what StartDate and EndDate leave of it.
func usageTime(q format.Query, time, life format.Span) (format.Span, *format.Refusal) {
	for name, edge := range map[string]func(int64){
		"StartDate": func(at int64) { time.From = max(time.From, at) },
		"EndDate":   func(at int64) { time.Until = min(time.Until, at+day) },
	} {
		value := q.Given[name].Value
		if value == "" {
			continue
		}
		at, ok := usageDate(value, life.Until-day)
		if !ok {
			return time, format.Invalid("Invalid date value.")
		}
		edge(at)
	}
	return time, nil
}

// pieces cuts a time into days, months or years, the newest first, or leaves it whole.
func pieces(name string, time format.Span) (all []format.Span) {
	if time.Until <= time.From {
		return nil
	}
	begin, next := dayOf, func(t int64) int64 { return t + day }
	switch name {
	case "Daily":
	case "Monthly":
		begin, next = monthOf, monthAfter
	case "Yearly":
		begin, next = yearOf, yearAfter
	default:
		return []format.Span{time}
	}
	for at := begin(time.From); at < time.Until; at = next(at) {
		all = append(all, format.Span{From: max(at, time.From), Until: min(next(at), time.Until)})
	}
	slices.Reverse(all)
	return all
}

// Usage answers one of the lists.
func Usage(r *world.Request, name string) format.Answer {
	w, q := r.W, r.Q
	w.Mu.RLock()
	defer w.Mu.RUnlock()
	in := []int{r.Account}
	switch with := strings.ToLower(q.Given["IncludeSubaccounts"].Value); {
	case with != "" && with != "true" && with != "false":
		return format.Invalid("Invalid boolean value.").Answer()
	case with != "false" && r.Account == 0:
		for account := 1; account < len(w.Below); account++ {
			in = append(in, account)
		}
	}
	shown := []*category{}
	for i := range Categories() {
		if asked := q.Given["Category"].Value; asked == "" || asked == Categories()[i].Name {
			shown = append(shown, &Categories()[i])
		}
	}
	life := wholeLife(w, r.Account)
	time, refused := usageTime(q, certain(name, life), life)
	if refused != nil {
		return refused.Answer()
	}
	times, path := pieces(name, time), ""
	if name != "" {
		path = "/" + name
	}
	l := numberedList{count: int64(len(times) * len(shown)), row: func(i int64) table.Part {
		c, time := shown[i%int64(len(shown))], times[i/int64(len(shown))]
		v := usageValues(w, c, in, time)
		v["account"], v["list"] = w.AccountSID(r.Account), path
		return table.Part{T: shapes()["usage"], V: v}
	}}
	return l.page(r)
}

// usageValues are one category in one time. Its row has no SID; its URI asks for it
// again.
func usageValues(w *world.World, c *category, in []int, over format.Span) table.Values {
	f := figuresOf(w, c, in, over)
	date := func(t int64) string { return time.Unix(t, 0).UTC().Format(time.DateOnly) }
	v := table.Values{
		"as_of": w.Now().UTC().Format("2006-01-02T15:04:05+00:00"), "category": c.Name, "count_unit": c.Counts, "description": c.Says,
		"from": date(over.From), "to": date(over.Until - day), "price": format.Decimal(f.price), "usage": format.Decimal(f.usage * 100),
		"usage_unit": c.Measures,
	}
	if c.Counts != "" {
		v["count"] = strconv.FormatInt(f.count, 10)
	}
	return v
}
