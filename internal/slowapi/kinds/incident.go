// Incidents: what goes wrong during calls and messages, and the notifications of it.
package kinds

import (
	_ "embed"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"understudy/internal/slowapi/fake"
	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/table"
	"understudy/internal/slowapi/world"
)

// incident is one way for things to go wrong. In what it says {to}, {from},
// {body} and {url} stand for those of the call or message.
type incident struct {
	Code   int64
	Level  string // error, warning, notice or debug
	Says   string
	Status int // what the webhook answered, 0 when it was not asked or was silent
}

//go:embed incidents.json
var rawIncidents []byte

// incidents bear the codes of Twilio's dictionary of errors
// (twilio.com/docs/api/errors).
var incidents = format.DecodeEmbedded[struct {
	Calls    []incident
	Messages []incident
	Failures []struct { // why messages do not arrive
		Code   int64
		Reason string
	}
	Events []struct { // what was done to what, and what of it changed from what to what
		Type, To, Field, Old, New string
	}
}](rawIncidents)

// drawTrouble draws what went wrong with a call or message.
func drawTrouble(of *world.Kind, d *fake.Rng) incident {
	all := incidents().Calls
	if of == Messages {
		all = incidents().Messages
	}
	return all[d.IntBelow(len(all))]
}

// pairs writes names and values as a form does, in their order.
func pairs(namesAndValues ...string) string {
	var b strings.Builder
	for i := 0; i < len(namesAndValues); i += 2 {
		if i > 0 {
			b.WriteByte('&')
		}
		b.WriteString(namesAndValues[i] + "=" + url.QueryEscape(namesAndValues[i+1]))
	}
	return b.String()
}

// drawIncident draws what notifications and alerts say of a call or message that something went
// wrong with: how the webhook was asked, and what it answered. The webhook was not asked when a
// carrier did the wrong. One that is asked by GET has what it is told in its query. The text has
// Twilio's own way to say the sentence, a form of its own.
func drawIncident(w *world.World, s *world.Sequence, i int64, d fake.Rng) table.Values {
	trouble, of := drawTrouble(s.Kind, &d), s.Kind.Generate(w, s, i)
	from, to, status, body := text(of, "from"), text(of, "to"), text(of, "status"), text(of, "body")
	account, sid, code := w.AccountSID(s.Account), w.SID(s, i), strconv.FormatInt(trouble.Code, 10)
	hook, method, asked, headers := "https://hooks.example.com/voice", "", "", ""
	told := pairs("AccountSid", account, "CallSid", sid, "CallStatus", status, "Direction", text(of, "direction"), "Called", to,
		"Caller", from, "From", from, "To", to, "ApiVersion", format.ApiVersion)
	if s.Kind == Messages {
		hook = "https://hooks.example.com/sms"
		told = pairs("AccountSid", account, "MessageSid", sid, "SmsStatus", status, "Body", body, "From", from, "To", to,
			"ApiVersion", format.ApiVersion)
	}
	if trouble.Code < 20000 {
		method, asked = "POST", hook
		if d.IntBelow(3) == 0 {
			method, asked = "GET", hook+"?"+told
		}
		headers = pairs("Accept", "*/*", "User-Agent", "TwilioProxy/1.1", "X-Home-Region", "us1")
	}
	sentence := strings.NewReplacer("{to}", to, "{from}", from, "{body}", body, "{url}", asked).Replace(trouble.Says)
	level := strings.TrimSuffix(strings.ToUpper(trouble.Level), "ING")
	v := table.Values{
		"subject": sid, "code": code, "log_level": trouble.Level, "service": of["service"], "method": method, "url": asked,
		"request_headers": headers, "request_variables": told, "response_body": "", "response_headers": "", "sentence": sentence,
		"text": pairs("Msg", sentence, "ErrorCode", code, "LogLevel", level, "EmailNotification", "false", "url", asked),
	}
	if trouble.Status == 0 {
		return v
	}
	sort := "text/html; charset=UTF-8"
	page := "<html><head><title>" + strconv.Itoa(trouble.Status) + "</title></head><body>No answer for " + from + "</body></html>\n"
	if trouble.Status == http.StatusOK {
		page = "<?xml version=\"1.0\"?>\n<Response><Dail>" + to + "</Dail></Response>"
		if trouble.Code != 12300 {
			sort = "text/xml"
		}
	}
	v["response_body"] = page
	v["response_headers"] = pairs("Content-Type", sort, "Content-Length", strconv.Itoa(len(page)), "Connection", "close", "Server", "nginx")
	return v
}

// Notifications are what went wrong in calls.
var Notifications = &world.Kind{
	Name: "notifications", Prefix: "NO", Tag: 0x4e4f, Generate: drawNotification, Value: peekNotification,
	Shape: "notification",
	Count: countTroubles,
	// Each comes two seconds after its call.
	CreationTime: func(s *world.Sequence, i int64) int64 {
		calls := s.Siblings[Calls]
		return min(calls.CreationTime(notifiedCall(s.Seed, i))+2, calls.Newest)
	},
	Filters: append([]world.Filter{world.TextFilter("Log", "log")}, world.TimeFilters("MessageDate", false, "created")...),
}

// troubled is how many calls come to one notification, and to one alert.
const troubled = 50

func countTroubles(w *world.World) int64 { return w.Records / troubled }

// notifiedCall returns the call a notification is of: every fifty calls one of them has one. The last
// ten have none, so that the order of calls is that of their notifications.
func notifiedCall(seed uint64, i int64) int64 {
	d := fake.RngFor(seed, tagTroubles, i)
	return i*troubled + int64(d.IntBelow(troubled-10))
}

// NotificationsOf are those of one call: one or none.
func NotificationsOf(w *world.World, _ *world.Sequence, call int64) world.Condition {
	i := call / troubled
	if notifiedCall(w.Seed, i) != call {
		return nothing
	}
	return world.Condition{Lo: i, Hi: i}
}

// drawNotification draws a notification: alone it says more than in a list.
func drawNotification(w *world.World, s *world.Sequence, i int64) table.Values {
	v := drawIncident(w, s.Siblings[Calls], notifiedCall(s.Seed, i), s.Random(i))
	v["created"], v["log"] = peekNotification(w, s, i, "created"), peekNotification(w, s, i, "log")
	return v
}

// peekNotification returns what filters ask of a notification.
func peekNotification(_ *world.World, s *world.Sequence, i int64, name string) any {
	d := s.Random(i)
	switch {
	case name == "created":
		return s.CreationTime(i)
	case drawTrouble(Calls, &d).Level == "error":
		return "0"
	}
	return "1"
}
