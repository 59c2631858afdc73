// Usage records: how much was used and what it cost, by category and by time.
package slowapi

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// usageFilters narrow every list of usage; usage reads them, since they say
// which rows there are rather than which to leave out.
var usageFilters = []filter{{key: "Category"}, {key: "StartDate"}, {key: "EndDate"}, {key: "IncludeSubaccounts"}}

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
func wholeLife(w *world, account int) span {
	return span{from: dayOf(w.top.created(int64(account))), until: dayOf(w.now().Unix()) + day}
}

// certain is the time a list is of by its name; the whole time for most.
func certain(name string, life span) span {
	today := life.until - day
	switch name {
	case "Today":
		return span{from: today, until: today + day}
	case "Yesterday":
		return span{from: today - day, until: today}
	case "ThisMonth":
		return span{from: monthOf(today), until: today + day}
	case "LastMonth":
		return span{from: monthOf(monthOf(today) - day), until: monthOf(today)}
	}
	return life
}

// usageDate reads a date, or so many days from today: -30days, +1day.
func usageDate(value string, today int64) (int64, bool) {
	if d, ok := parseDate(value); ok {
		return dayOf(d.from), true
	}
	number, offset := strings.CutSuffix(strings.TrimSuffix(value, "s"), "day")
	// A plus in a query that was not encoded is a space.
	sign := map[byte]int64{'-': -1, '+': 1, ' ': 1}
	if !offset || number == "" || sign[number[0]] == 0 {
		return 0, false
	}
	n, ok := whole(number[1:])
	return today + sign[number[0]]*min(n, 1e6)*day, ok
}

// usageTime narrows a time to what StartDate and EndDate leave of it.
func usageTime(q query, time, life span) (span, *refusal) {
	for name, edge := range map[string]func(int64){
		"StartDate": func(at int64) { time.from = max(time.from, at) },
		"EndDate":   func(at int64) { time.until = min(time.until, at+day) },
	} {
		value := q.given[name].value
		if value == "" {
			continue
		}
		at, ok := usageDate(value, life.until-day)
		if !ok {
			return time, invalid("Invalid date value.")
		}
		edge(at)
	}
	return time, nil
}

// pieces cuts a time into days, months or years, the newest first, or leaves it whole.
func pieces(name string, time span) (all []span) {
	if time.until <= time.from {
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
		return []span{time}
	}
	for at := begin(time.from); at < time.until; at = next(at) {
		all = append(all, span{from: max(at, time.from), until: min(next(at), time.until)})
	}
	slices.Reverse(all)
	return all
}

// usage answers one of the lists.
func usage(r *computedRequest, name string) answer {
	w, q := r.w, r.q
	w.mu.RLock()
	defer w.mu.RUnlock()
	in := []int{r.account}
	switch with := strings.ToLower(q.given["IncludeSubaccounts"].value); {
	case with != "" && with != "true" && with != "false":
		return invalid("Invalid boolean value.").answer()
	case with != "false" && r.account == 0:
		for account := 1; account < len(w.below); account++ {
			in = append(in, account)
		}
	}
	shown := []*category{}
	for i := range categories {
		if asked := q.given["Category"].value; asked == "" || asked == categories[i].name {
			shown = append(shown, &categories[i])
		}
	}
	life := wholeLife(w, r.account)
	time, refused := usageTime(q, certain(name, life), life)
	if refused != nil {
		return refused.answer()
	}
	times := pieces(name, time)
	l := computedList{count: int64(len(times) * len(shown)), row: func(dst []byte, i int64) []byte {
		of := usageRow{category: shown[i%int64(len(shown))], time: times[i/int64(len(shown))], account: r.account, name: name}
		return of.append(dst, w, in)
	}}
	return l.page(r)
}

// usageRow is one category in one time.
type usageRow struct {
	category *category
	time     span
	account  int
	name     string
}

// append writes the row. It has no SID; its URI asks for it again.
func (u *usageRow) append(dst []byte, w *world, in []int) []byte {
	f := figuresOf(w, u.category, in, u.time)
	date := func(t int64) string { return time.Unix(t, 0).UTC().Format(time.DateOnly) }
	account := w.accountSID(u.account)
	base := version + "/Accounts/" + account + "/Usage/Records"
	own := base
	if u.name != "" {
		own += "/" + u.name
	}
	from, to := date(u.time.from), date(u.time.until-day)

	o := object{b: dst}
	o.open()
	o.text("account_sid", account)
	o.text("api_version", apiVersion)
	o.text("as_of", w.now().UTC().Format("2006-01-02T15:04:05+00:00"))
	o.text("category", u.category.name)
	if u.category.counts == "" {
		o.null("count")
	} else {
		o.text("count", strconv.FormatInt(f.count, 10))
	}
	o.text("count_unit", u.category.counts)
	o.text("description", u.category.says)
	o.text("end_date", to)
	o.name("price")
	o.b = append(o.b, decimal(f.price)...)
	o.text("price_unit", "usd")
	o.text("start_date", from)
	o.name("subresource_uris")
	o.open()
	for _, sub := range usageSubresources {
		o.text(sub[0], base+"/"+sub[1]+".json?Category="+u.category.name)
	}
	o.close()
	o.text("uri", own+".json?Category="+u.category.name+"&StartDate="+from+"&EndDate="+to)
	o.text("usage", decimal(f.usage*100))
	o.text("usage_unit", u.category.measures)
	o.close()
	return o.b
}

var usageSubresources = [][2]string{
	{"all_time", "AllTime"}, {"daily", "Daily"}, {"last_month", "LastMonth"}, {"monthly", "Monthly"},
	{"this_month", "ThisMonth"}, {"today", "Today"}, {"yearly", "Yearly"}, {"yesterday", "Yesterday"},
}
