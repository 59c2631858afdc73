// Usage categories: how much of each there is in a time, what it costs, and the balance left.
package computed

import (
	_ "embed"
	"net/http"
	"strconv"

	"understudy/internal/slowapi/fake"
	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/kinds"
	"understudy/internal/slowapi/table"
	"understudy/internal/slowapi/world"
)

// category is one thing that is counted. One with parts is their sum; any
// other is a share of the records created in the time, or of the owned numbers.
type category struct {
	Name, Says       string
	Counts, Measures string // units
	Parts            []string

	Kind  string
	Share int64 // of a thousand records
	Each  int64 // thousandths of a unit to one record
	Price int64 // of a unit, in hundred-thousandths of a dollar
}

//go:embed categories.json
var rawCategories []byte

// Categories are the world's, in the order lists show them. The figures are
// shares of true counts, not sums over the records themselves.
var Categories = format.Embedded[[]category](rawCategories)

// categoryNamed finds a category; nil for none.
func categoryNamed(name string) *category {
	for i := range Categories() {
		if Categories()[i].Name == name {
			return &Categories()[i]
		}
	}
	return nil
}

// figures are how much of a category there was.
type figures struct {
	count int64
	usage int64 // thousandths
	price int64 // hundred-thousandths of a dollar
}

// figuresOf counts a category in some accounts over a time, in Unix seconds.
// The caller holds mu.
func figuresOf(w *world.World, c *category, in []int, time format.Span) (f figures) {
	for _, part := range c.Parts {
		g := figuresOf(w, categoryNamed(part), in, time)
		f.count, f.usage, f.price = f.count+g.count, f.usage+g.usage, f.price+g.price
	}
	if c.Name == "totalprice" {
		f.count, f.usage = 0, f.price/100
	}
	if c.Kind == "" {
		return f
	}
	for _, account := range in {
		s := w.Of(w.KindNamed(c.Kind), account)
		f.count += counted(w, c, s, time)
	}
	f.usage = f.count * c.Each
	f.price = f.usage * c.Price / 1000
	return f
}

// counted is how many records of a sequence belong to a category. Numbers are
// paid for by the month: those there are, on the first of each month.
func counted(w *world.World, c *category, s *world.Sequence, time format.Span) int64 {
	if s.Kind != kinds.Numbers {
		return (s.FirstSince(time.Until) - s.FirstSince(time.From)) * c.Share / 1000
	}
	firsts := int64(0)
	for at := monthOf(time.From); at < time.Until; at = monthAfter(at) {
		if at >= time.From {
			firsts += s.FirstSince(at)
		}
	}
	return firsts
}

// Balance tells what is left on an account: what the main one had when the world began,
// less what its calls and messages have cost since. Those of other accounts begin at
// nothing. Like real ones it may fall below that.
func Balance(r *world.Request) format.Answer {
	w := r.W
	w.Mu.RLock()
	defer w.Mu.RUnlock()
	had := int64(0)
	if r.Account == 0 {
		d := fake.RngFor(w.Seed, world.TagSecrets<<8|0x6261, 0)
		had = 10_000_000 + int64(d.Below(5_000_000)) // 100 to 150 dollars
	}
	v := table.Values{"account": w.AccountSID(r.Account), "balance": format.Decimal(had - kinds.Spent(w, r.Account))}
	return format.Answer{Status: http.StatusOK, Body: shapes()["balance"].Append(nil, v, "")}
}

// NewToken answers POST to Tokens with a user name and a real password. Nothing
// keeps them, and they open nothing here.
func NewToken(r *world.Request) format.Answer {
	form := r.In.Form
	ttl, ok := int64(86400), true
	if form.Has("Ttl") {
		ttl, ok = format.Whole(form.Get("Ttl"))
	}
	if !ok || ttl == 0 || ttl > 86400 {
		return format.Invalid("Ttl must be a number of seconds from 1 to 86400").Answer()
	}
	w := r.W
	w.Mu.RLock()
	defer w.Mu.RUnlock()
	d := fake.RngFor(w.Seed, world.TagSecrets<<8|0x544f, int64(r.Account))
	user, password := string(d.Hex(nil, 32)), string(d.Hex(nil, 22))
	v := table.Values{
		"account": w.AccountSID(r.Account), "created": w.Now().Unix(), "user": user, "password": password, "ttl": strconv.FormatInt(ttl, 10),
	}
	return format.Answer{Status: http.StatusCreated, Body: shapes()["token"].Append(nil, v, "")}
}
