// Usage records: amounts and costs by category and time, and the balance of an account.
package kinds

import (
	_ "embed"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"understudy/internal/slowapi/fake"
	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/table"
	"understudy/internal/slowapi/world"
)

// UsageFilters are the filters of all lists of usage records. They decide which rows are computed, so the function
// Usage parses them itself.
var UsageFilters = []world.Filter{{Key: "Category"}, {Key: "StartDate"}, {Key: "EndDate"}, {Key: "IncludeSubaccounts"}}

const day = 86400 // a day in seconds

// UsageLists are the lists of usage records by name. A list without a unit (day, month or year) covers all time.
// Other lists have a row for every unit, or only for one, which began a number of units ago.
var UsageLists = map[string]struct {
	unit  string
	every bool
	ago   int
}{
	"": {}, "AllTime": {}, "Daily": {"day", true, 0}, "Monthly": {"month", true, 0}, "Yearly": {"year", true, 0},
	"Today": {"day", false, 0}, "Yesterday": {"day", false, 1}, "ThisMonth": {"month", false, 0}, "LastMonth": {"month", false, 1},
}

// periodStart returns when the day, month or year begins that contains a time in Unix seconds. later is a number of
// days, months or years to add.
func periodStart(unit string, t int64, later int) int64 {
	year, month, day := time.Unix(t, 0).UTC().Date()
	switch unit {
	case "year":
		year, month, day = year+later, 1, 1
	case "month":
		month, day = month+time.Month(later), 1
	default:
		day += later
	}
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Unix()
}

// usageDate parses a date, or a number of days relative to today, such as -30days or +1day.
func usageDate(value string, today int64) (int64, bool) {
	if d, ok := format.ParseDate(value); ok {
		return periodStart("day", d.From, 0), true
	}
	number, offset := strings.CutSuffix(strings.TrimSuffix(value, "s"), "day")
	// If the client did not encode the plus sign, it was decoded as a space.
	sign := map[byte]int64{'-': -1, '+': 1, ' ': 1}
	if !offset || number == "" || sign[number[0]] == 0 {
		return 0, false
	}
	n, ok := format.ParseWhole(number[1:])
	return today + sign[number[0]]*min(n, 1e6)*day, ok
}

// usageTimes returns the time spans of the rows in a list, newest first. StartDate and EndDate limit them. life is
// the time from the creation of the account until the end of today.
func usageTimes(q format.Query, name string, life format.Span) (all []format.Span, _ *format.Answer) {
	of, over, today := UsageLists[name], life, life.Until-day
	if of.unit != "" && !of.every {
		over = format.Span{From: periodStart(of.unit, today, -of.ago), Until: min(periodStart(of.unit, today, 1-of.ago), life.Until)}
	}
	for name, edge := range map[string]func(int64){
		"StartDate": func(at int64) { over.From = max(over.From, at) },
		"EndDate":   func(at int64) { over.Until = min(over.Until, at+day) },
	} {
		value := q.Given[name].Value
		if value == "" {
			continue
		}
		at, ok := usageDate(value, today)
		if !ok {
			return nil, format.NewInvalid("Invalid date value.")
		}
		edge(at)
	}
	if !of.every && over.From < over.Until {
		return []format.Span{over}, nil
	}
	for at := over.From; at < over.Until; at = all[len(all)-1].Until {
		all = append(all, format.Span{From: at, Until: min(periodStart(of.unit, at, 1), over.Until)})
	}
	slices.Reverse(all)
	return all, nil
}

// Usage answers with a list of usage records.
func Usage(r *world.Request, name string) format.Answer {
	w, q := r.World, r.Query
	in := []int{r.Account}
	switch with := strings.ToLower(q.Given["IncludeSubaccounts"].Value); {
	case with != "" && with != "true" && with != "false":
		return *format.NewInvalid("Invalid boolean value.")
	case with != "false" && r.Account == 0:
		for account := 1; account < len(w.Sequences); account++ {
			in = append(in, account)
		}
	}
	shown := []*category{}
	for i := range Categories() {
		if wanted := q.Given["Category"].Value; wanted == "" || wanted == Categories()[i].Name {
			shown = append(shown, &Categories()[i])
		}
	}
	created := w.AccountSequence.CreationTime(int64(r.Account))
	life := format.Span{From: periodStart("day", created, 0), Until: periodStart("day", w.Now().Unix(), 1)}
	times, refused := usageTimes(q, name, life)
	if refused != nil {
		return *refused
	}
	path := ""
	if name != "" {
		path = "/" + name
	}
	return numberedPage(r, int64(len(times)*len(shown)), func(i int64) table.Part {
		c, time := shown[i%int64(len(shown))], times[i/int64(len(shown))]
		v := usageValues(w, c, in, time)
		v["account"], v["list"] = w.AccountSID(r.Account), path
		return table.Part{Template: Shapes()["usage"], Values: v}
	})
}

// usageValues returns the values of one category in one time span. The row has no SID. Its URI requests the same
// category and time span.
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

// category is a category of usage. If it has parts, it is the sum of them. Otherwise it is a share of the records
// that were created in a time span, or of the phone numbers that are owned.
type category struct {
	Name, Says       string   // the name and the description of the category
	Counts, Measures string   // the units of the fields count and usage
	Parts            []string // the names of the categories whose sum this category is

	Kind  string // the name of the kind whose records are counted; "" if there is none
	Share int64  // how many of a thousand records are counted
	Each  int64  // the usage of one record in thousandths of a unit
	Price int64  // the price of one unit in hundred-thousandths of a dollar
}

//go:embed categories.json
var rawCategories []byte

// Categories returns the categories in the order of the lists. Amounts are computed from the number of records, not
// from single records.
var Categories = format.DecodeEmbedded[[]category](rawCategories)

// figures are the amounts of a category of usage.
type figures struct {
	count int64
	usage int64 // the usage in thousandths of a unit
	price int64 // the price in hundred-thousandths of a dollar
}

// figuresOf returns the amounts of a category in some accounts during a time span. The caller holds Mu.
func figuresOf(w *world.World, c *category, in []int, time format.Span) (f figures) {
	for _, part := range c.Parts {
		g := figuresOf(w, find(Categories(), func(c *category) bool { return c.Name == part }), in, time)
		f.count, f.usage, f.price = f.count+g.count, f.usage+g.usage, f.price+g.price
	}
	if c.Name == "totalprice" {
		f.count, f.usage = 0, f.price/100
	}
	if c.Kind == "" {
		return f
	}
	for _, account := range in {
		s := w.Sequence(w.KindNamed(c.Kind), account)
		f.count += recordCount(w, c, s, time)
	}
	f.usage = f.count * c.Each
	f.price = f.usage * c.Price / 1000
	return f
}

// recordCount returns how many records belong to a category of usage. A phone number is counted on the first day of
// each month, when it is paid.
func recordCount(w *world.World, c *category, s *world.Sequence, time format.Span) int64 {
	if s.Kind != Numbers {
		return (s.FirstSince(time.Until) - s.FirstSince(time.From)) * c.Share / 1000
	}
	firsts := int64(0)
	for at := periodStart("month", time.From, 0); at < time.Until; at = periodStart("month", at, 1) {
		if at >= time.From {
			firsts += s.FirstSince(at)
		}
	}
	return firsts
}

// Balance answers with the balance of an account. This is the balance when the simulated world began, minus the cost
// of calls and messages since then. The balance of a subaccount begins at 0. As at Twilio, a balance may be negative.
func Balance(r *world.Request) format.Answer {
	w := r.World
	had := int64(0)
	if r.Account == 0 {
		d := fake.RngFor(w.Seed, world.TagSecrets<<8|0x6261, 0)
		had = 10_000_000 + int64(d.IntBelow(5_000_000)) // the balance at the beginning is between 100 and 150 dollars
	}
	v := table.Values{"account": w.AccountSID(r.Account), "balance": format.Decimal(had - totalCost(w, r.Account))}
	return table.Show(table.Part{Template: Shapes()["balance"], Values: v}, "")
}

// NewToken answers a POST to Tokens with a user name and a password. They are not stored, and the simulated API does
// not accept them.
func NewToken(r *world.Request) format.Answer {
	form := r.Incoming.Form
	ttl, ok := int64(86400), true
	if form.Has("Ttl") {
		ttl, ok = format.ParseWhole(form.Get("Ttl"))
	}
	if !ok || ttl == 0 || ttl > 86400 {
		return *format.NewInvalid("Ttl must be a number of seconds from 1 to 86400")
	}
	w := r.World
	d := fake.RngFor(w.Seed, world.TagSecrets<<8|0x544f, int64(r.Account))
	user, password := string(d.Hex(nil, 32)), string(d.Hex(nil, 22))
	v := table.Values{
		"account": w.AccountSID(r.Account), "created": w.Now().Unix(), "user": user, "password": password, "ttl": strconv.FormatInt(ttl, 10),
	}
	return format.Answer{Status: http.StatusCreated, Body: Shapes()["token"].Append(nil, v, "")}
}

// charge returns the price of a call or message in hundred-thousandths of a dollar.
func charge(w *world.World, s *world.Sequence, i int64) int64 {
	if s.Kind == Calls {
		c := readCall(w, s, i)
		return c.charge(w)
	}
	m := readMessage(w, s, i)
	parts, _ := strconv.ParseInt(text(generateMessage(w, s, i), "segments"), 10, 64)
	return m.segmentPrice(w) * parts
}

// totalCost returns the cost of an account's calls and messages since the simulated world began, in hundred-thousandths of a
// dollar. It includes prices that have appeared or have been edited since then, and deleted records. The caller holds Mu.
func totalCost(w *world.World, account int) (amount int64) {
	for _, k := range []*world.Kind{Calls, Messages} {
		s := w.Sequence(k, account)
		first := max(s.SeededCount-world.UnfinishedWindow, 0)
		for i := first; i < s.Count(); i++ {
			amount += costSince(w, s, i)
		}
		for i := range s.History {
			if i < first {
				amount += costSince(w, s, i)
			}
		}
	}
	return amount
}

// costSince returns the current price of a record minus its price when the simulated world began.
func costSince(w *world.World, s *world.Sequence, i int64) (amount int64) {
	text, edited := s.WrittenValue(i, world.EditedPrice)
	first, now := s.InitialProgress(i), s.Progress(i)
	began := i < s.SeededCount && first.IsPriced()
	if began && !edited {
		return 0
	}
	if edited {
		amount = amountOf(text)
	} else if now.IsPriced() {
		amount = charge(w, s, i)
	}
	if began {
		amount -= charge(w, s, i)
	}
	return amount
}

// amountOf returns the cost in a text, in hundred-thousandths of a dollar. The text is a negative number of dollars.
// If it is not valid, the cost is 0.
func amountOf(price string) int64 {
	sign := int64(-1)
	if rest, negative := strings.CutPrefix(price, "-"); negative {
		sign, price = 1, rest
	}
	whole, fraction, _ := strings.Cut(price, ".")
	n, err := strconv.ParseInt(whole+(fraction + "00000")[:5], 10, 64)
	if err != nil || strings.ContainsAny(whole, "+-") {
		return 0
	}
	return sign * n
}
