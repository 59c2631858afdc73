// Incidents: errors and warnings that occur during calls and messages, and the notifications about them.
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

// incident is one error or warning that a call or message can cause.
type incident struct {
	Code   int64
	Level  string // the log level: error, warning, notice or debug
	Says   string // the message, in which {to}, {from}, {body} and {url} are placeholders
	Status int    // the HTTP status with which the webhook answered; 0 if it was not called or did not answer
}

//go:embed incidents.json
var rawIncidents []byte

// incidents are the possible incidents, failures and events. Their codes are from Twilio's dictionary
// of errors (twilio.com/docs/api/errors).
var incidents = format.DecodeEmbedded[struct {
	Calls    []incident
	Messages []incident
	Failures []struct { // why messages may not be delivered
		Code   int64
		Reason string
	}
	Events []struct { // the type of an event, the type of its resource, and the field that changed, with its value before and after
		Type, To, Field, Old, New string
	}
}](rawIncidents)

// chooseIncident returns a random incident of a call or message.
func chooseIncident(of *world.Kind, d *fake.Rng) incident {
	all := incidents().Calls
	if of == Messages {
		all = incidents().Messages
	}
	return all[d.IntBelow(len(all))]
}

// encodeForm encodes pairs of a name and a value as a URL-encoded form. It keeps their order.
func encodeForm(namesAndValues ...string) string {
	var b strings.Builder
	for i := 0; i < len(namesAndValues); i += 2 {
		if i > 0 {
			b.WriteByte('&')
		}
		b.WriteString(namesAndValues[i] + "=" + url.QueryEscape(namesAndValues[i+1]))
	}
	return b.String()
}

// generateIncident computes the values of a notification or alert about a call or message: the request to a webhook,
// and its response. An error of a carrier has no webhook request. If the webhook is called by GET, its variables are
// in the query. Like Twilio, it writes the message as a form into the value text.
func generateIncident(w *world.World, s *world.Sequence, i int64, d fake.Rng) table.Values {
	trouble, of := chooseIncident(s.Kind, &d), s.Kind.Generate(w, s, i)
	from, to, status, body := text(of, "from"), text(of, "to"), text(of, "status"), text(of, "body")
	account, sid, code := w.AccountSID(s.Account), w.SID(s, i), strconv.FormatInt(trouble.Code, 10)
	hook, method, asked, headers := "https://hooks.example.com/voice", "", "", ""
	told := encodeForm("AccountSid", account, "CallSid", sid, "CallStatus", status, "Direction", text(of, "direction"), "Called", to,
		"Caller", from, "From", from, "To", to, "ApiVersion", format.ApiVersion)
	if s.Kind == Messages {
		hook = "https://hooks.example.com/sms"
		told = encodeForm("AccountSid", account, "MessageSid", sid, "SmsStatus", status, "Body", body, "From", from, "To", to,
			"ApiVersion", format.ApiVersion)
	}
	if trouble.Code < 20000 {
		method, asked = "POST", hook
		if d.IntBelow(3) == 0 {
			method, asked = "GET", hook+"?"+told
		}
		headers = encodeForm("Accept", "*/*", "User-Agent", "TwilioProxy/1.1", "X-Home-Region", "us1")
	}
	sentence := strings.NewReplacer("{to}", to, "{from}", from, "{body}", body, "{url}", asked).Replace(trouble.Says)
	level := strings.TrimSuffix(strings.ToUpper(trouble.Level), "ING")
	v := table.Values{
		"subject": sid, "code": code, "log_level": trouble.Level, "service": of["service"], "method": method, "url": asked,
		"request_headers": headers, "request_variables": told, "response_body": "", "response_headers": "", "sentence": sentence,
		"text": encodeForm("Msg", sentence, "ErrorCode", code, "LogLevel", level, "EmailNotification", "false", "url", asked),
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
	length := strconv.Itoa(len(page))
	v["response_headers"] = encodeForm("Content-Type", sort, "Content-Length", length, "Connection", "close", "Server", "nginx")
	return v
}

// Notifications are what went wrong in calls.
var Notifications = &world.Kind{
	Name: "notifications", Prefix: "NO", Tag: 0x4e4f, Generate: generateNotification, Value: notificationValue,
	Shape: "notification",
	Count: countIncidents,
	// A notification is created two seconds after the call it is about.
	CreationTime: func(s *world.Sequence, i int64) int64 {
		calls := s.Siblings[Calls]
		return min(calls.CreationTime(notifiedCall(s.Seed, i))+2, calls.Newest)
	},
	Filters: append([]world.Filter{world.TextFilter("Log", "log")}, world.TimeFilters("MessageDate", false, "created")...),
}

// callsPerIncident says that there is one notification, and one alert, for this many calls.
const callsPerIncident = 50

func countIncidents(w *world.World) int64 { return w.Records / callsPerIncident }

// notifiedCall returns the index of the call that a notification is about. Of every 50 calls, one has a notification.
// It is never among the last 10 of them, so that notifications have the same order as their calls.
func notifiedCall(seed uint64, i int64) int64 {
	d := fake.RngFor(seed, tagIncidents, i)
	return i*callsPerIncident + int64(d.IntBelow(callsPerIncident-10))
}

// NotificationsOf returns the condition for the notifications of a call. There is at most one.
func NotificationsOf(w *world.World, _ *world.Sequence, call int64) world.Condition {
	i := call / callsPerIncident
	if notifiedCall(w.Seed, i) != call {
		return matchNone
	}
	return world.Condition{Lo: i, Hi: i}
}

// generateNotification computes the values of a notification. A single notification has more of them than a
// notification in a list.
func generateNotification(w *world.World, s *world.Sequence, i int64) table.Values {
	v := generateIncident(w, s.Siblings[Calls], notifiedCall(s.Seed, i), s.Random(i))
	v["created"], v["log"] = notificationValue(w, s, i, "created"), notificationValue(w, s, i, "log")
	return v
}

// notificationValue returns the creation time or the log level of a notification. Filters need no other values.
func notificationValue(_ *world.World, s *world.Sequence, i int64, name string) any {
	d := s.Random(i)
	switch {
	case name == "created":
		return s.CreationTime(i)
	case chooseIncident(Calls, &d).Level == "error":
		return "0"
	}
	return "1"
}
