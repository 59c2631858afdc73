// Usage categories: how much of each there is in a time, what it costs, and the balance left.
package computed

import (
	"net/http"
	"strconv"

	"understudy/internal/slowapi/fake"
	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/kinds"
	"understudy/internal/slowapi/world"
)

// category is one thing that is counted. One with parts is their sum; any
// other is a share of the records created in the time, or of the owned numbers.
type category struct {
	name, says       string
	counts, measures string // units
	parts            []string

	kind  *world.Kind
	share int64 // of a thousand records
	each  int64 // thousandths of a unit to one record
	price int64 // of a unit, in hundred-thousandths of a dollar
}

// Categories are the world's, in the order lists show them. The figures are
// shares of true counts, not sums over the records themselves.
var Categories = []category{
	{name: "calls", says: "Voice Minutes", counts: "calls", measures: "minutes", parts: []string{"calls-inbound", "calls-outbound",
		"calls-client", "calls-sip"}},
	{name: "calls-client", says: "Client Calls", counts: "calls", measures: "minutes", kind: kinds.Calls, share: 6, each: 3200, price: 400},
	{name: "calls-inbound", says: "Inbound Voice Minutes", counts: "calls", measures: "minutes", parts: []string{"calls-inbound-local",
		"calls-inbound-mobile", "calls-inbound-tollfree"}},
	{name: "calls-inbound-local", says: "Inbound Local Calls", counts: "calls", measures: "minutes", kind: kinds.Calls, share: 330, each: 4100,
		price: 850},
	{name: "calls-inbound-mobile", says: "Inbound Mobile Calls", counts: "calls", measures: "minutes", kind: kinds.Calls, share: 130,
		each:  3800,
		price: 1000},
	{name: "calls-inbound-tollfree", says: "Inbound Toll Free Calls", counts: "calls", measures: "minutes", kind: kinds.Calls, share: 60,
		each:  4700,
		price: 2200},
	{name: "calls-outbound", says: "Outbound Voice Minutes", counts: "calls", measures: "minutes", kind: kinds.Calls, share: 472, each: 3500,
		price: 2400},
	{name: "calls-sip", says: "SIP Calls", counts: "calls", measures: "minutes", kind: kinds.Calls, share: 2, each: 5000, price: 400},
	{name: "mms", says: "MMS Messages", counts: "messages", measures: "messages", kind: kinds.Messages, share: 50, each: 1000, price: 2000},
	{name: "phonenumbers", says: "Phone Numbers", counts: "numbers", measures: "numbers", kind: kinds.Numbers, each: 1000, price: 115_000},
	{name: "recordings", says: "Call Recordings", counts: "calls", measures: "minutes", kind: kinds.Calls, share: 100, each: 3900, price: 250},
	{name: "sms", says: "SMS Messages", counts: "messages", measures: "segments", parts: []string{"sms-inbound", "sms-outbound"}},
	{name: "sms-inbound", says: "Inbound SMS", counts: "messages", measures: "segments", parts: []string{"sms-inbound-longcode",
		"sms-inbound-shortcode"}},
	{name: "sms-inbound-longcode", says: "Long Code Inbound SMS", counts: "messages", measures: "segments", kind: kinds.Messages, share: 375,
		each: 1100, price: 790},
	{name: "sms-inbound-shortcode", says: "Short Code Inbound SMS", counts: "messages", measures: "segments", kind: kinds.Messages, share: 5,
		each: 1100, price: 790},
	{name: "sms-outbound", says: "Outbound SMS", counts: "messages", measures: "segments", kind: kinds.Messages, share: 570, each: 1300,
		price: 2300},
	{name: "totalprice", says: "Total Price", measures: "usd", parts: []string{"calls", "mms", "phonenumbers", "recordings", "sms"}},
}

// categoryNamed finds a category; nil for none.
func categoryNamed(name string) *category {
	for i := range Categories {
		if Categories[i].name == name {
			return &Categories[i]
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
	for _, part := range c.parts {
		g := figuresOf(w, categoryNamed(part), in, time)
		f.count, f.usage, f.price = f.count+g.count, f.usage+g.usage, f.price+g.price
	}
	if c.name == "totalprice" {
		f.count, f.usage = 0, f.price/100
	}
	if c.kind == nil {
		return f
	}
	for _, account := range in {
		s := w.Of(c.kind, account)
		f.count += counted(w, c, s, time)
	}
	f.usage = f.count * c.each
	f.price = f.usage * c.price / 1000
	return f
}

// counted is how many records of a sequence belong to a category. Numbers are
// paid for by the month: those there are, on the first of each month.
func counted(w *world.World, c *category, s *world.Sequence, time format.Span) int64 {
	if s.Kind != kinds.Numbers {
		return (s.FirstSince(time.Until) - s.FirstSince(time.From)) * c.share / 1000
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
func Balance(r *Request) format.Answer {
	w := r.W
	w.Mu.RLock()
	defer w.Mu.RUnlock()
	had := int64(0)
	if r.Account == 0 {
		d := fake.RngFor(w.Seed, world.TagSecrets<<8|0x6261, 0)
		had = 10_000_000 + int64(d.Below(5_000_000)) // 100 to 150 dollars
	}
	var o format.Object
	o.Open()
	o.Text("account_sid", w.AccountSID(r.Account))
	o.Text("balance", format.Decimal(had-kinds.Spent(w, r.Account)))
	o.Text("currency", "USD")
	o.Close()
	return format.Answer{Status: http.StatusOK, Body: o.B}
}

// iceServers are where a token lets its bearer go. The first asks for none.
var iceServers = []string{
	"stun:global.stun.twilio.com:3478",
	"turn:global.turn.twilio.com:3478?transport=udp",
	"turn:global.turn.twilio.com:3478?transport=tcp",
	"turn:global.turn.twilio.com:443?transport=tcp",
}

// NewToken answers POST to Tokens with a user name and a real password. Nothing
// keeps them, and they open nothing here.
func NewToken(r *Request) format.Answer {
	form := r.Form
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

	var o format.Object
	o.Open()
	o.Text("account_sid", w.AccountSID(r.Account))
	o.Date("date_created", w.Now().Unix())
	o.Date("date_updated", w.Now().Unix())
	o.Name("ice_servers")
	o.B = append(o.B, '[')
	for i, at := range iceServers {
		if i > 0 {
			o.B = append(o.B, ',')
		}
		o.Open()
		if i > 0 {
			o.Text("credential", password)
			o.Text("username", user)
		}
		o.Text("url", at)
		o.Text("urls", at)
		o.Close()
	}
	o.B = append(o.B, ']')
	o.More = true
	o.Text("password", password)
	o.Text("ttl", strconv.FormatInt(ttl, 10))
	o.Text("username", user)
	o.Close()
	return format.Answer{Status: http.StatusCreated, Body: o.B}
}
