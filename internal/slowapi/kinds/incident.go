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
var incidents = format.Embedded[struct {
	Calls    []incident
	Messages []incident
	Failures []struct { // why messages do not arrive
		Code   int64
		Reason string
	}
}](rawIncidents)

// scene is the call or message an incident happened to.
type scene struct {
	account, sid, from, to, status, direction string
	message                                   bool
	body, service                             string
	trouble                                   incident
	d                                         fake.Rng // decides on the rest
}

// sceneOf reads the scene of an incident with a call or message.
func sceneOf(w *world.World, s *world.Sequence, i int64, d fake.Rng) scene {
	row, all, message := s.Kind.Row(), incidents().Calls, s.Kind.Tag == 'M'
	if message {
		all = incidents().Messages
	}
	row.Load(w, s, i)
	v := row.Values(w)
	return scene{
		account: w.AccountSID(s.Account), sid: w.SID(s, i), from: text(v, "from"), to: text(v, "to"), status: text(v, "status"),
		direction: text(v, "direction"), message: message, body: text(v, "body"), service: text(v, "service"),
		trouble: all[d.Below(len(all))], d: d,
	}
}

// asked tells whether a webhook of ours was asked, and how; those that were
// only called back about a carrier's doing were not.
func (c *scene) asked() bool { return c.trouble.Code < 20000 }

// method returns how the webhook was asked, or "" when none was.
func (c *scene) method() string {
	d := c.d
	switch {
	case !c.asked():
		return ""
	case d.Below(3) == 0:
		return "GET"
	}
	return "POST"
}

// url returns the webhook. One asked by GET carries the numbers, and a message's
// body, in its query.
func (c *scene) url() string {
	page := "https://hooks.example.com/voice"
	if c.message {
		page = "https://hooks.example.com/sms"
	}
	switch c.method() {
	case "":
		return ""
	case "GET":
		return page + "?" + c.variables()
	}
	return page
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

// variables are what the webhook was told.
func (c *scene) variables() string {
	if c.message {
		return pairs("AccountSid", c.account, "MessageSid", c.sid, "SmsStatus", c.status,
			"Body", c.body, "From", c.from, "To", c.to, "ApiVersion", format.ApiVersion)
	}
	return pairs("AccountSid", c.account, "CallSid", c.sid, "CallStatus", c.status, "Direction", c.direction,
		"Called", c.to, "Caller", c.from, "From", c.from, "To", c.to, "ApiVersion", format.ApiVersion)
}

// sentence is what happened, in words.
func (c *scene) sentence() string {
	return strings.NewReplacer("{to}", c.to, "{from}", c.from, "{body}", c.body, "{url}", c.url()).Replace(c.trouble.Says)
}

// text is what happened in Twilio's own way, a form of its own.
func (c *scene) text() string {
	level := map[string]string{"error": "ERROR", "warning": "WARN", "notice": "NOTICE", "debug": "DEBUG"}[c.trouble.Level]
	return pairs("Msg", c.sentence(), "ErrorCode", strconv.FormatInt(c.trouble.Code, 10), "LogLevel", level,
		"EmailNotification", "false", "url", c.url())
}

// values returns what notifications and alerts say of it: how the webhook was asked, and what it answered.
func (c *scene) values() table.Values {
	v := table.Values{
		"subject": c.sid, "code": strconv.FormatInt(c.trouble.Code, 10), "log_level": c.trouble.Level, "service": c.service,
		"method": c.method(), "url": c.url(), "request_headers": "", "request_variables": c.variables(), "response_body": "",
		"response_headers": "",
	}
	if c.asked() {
		v["request_headers"] = pairs("Accept", "*/*", "User-Agent", "TwilioProxy/1.1", "X-Home-Region", "us1")
	}
	if c.trouble.Status == 0 {
		return v
	}
	sort := "text/html; charset=UTF-8"
	body := "<html><head><title>" + strconv.Itoa(c.trouble.Status) + "</title></head><body>No answer for " + c.from + "</body></html>\n"
	if c.trouble.Status == http.StatusOK {
		body = "<?xml version=\"1.0\"?>\n<Response><Dail>" + c.to + "</Dail></Response>"
		if c.trouble.Code != 12300 {
			sort = "text/xml"
		}
	}
	v["response_body"] = body
	v["response_headers"] = pairs("Content-Type", sort, "Content-Length", strconv.Itoa(len(body)), "Connection", "close", "Server", "nginx")
	return v
}

// Notifications are what went wrong in calls.
var Notifications = &world.Kind{
	Name: "notifications", Prefix: "NO", Tag: 0x4e4f, Draw: drawNotification, Shape: "notification",
	Count: countTroubles,
	// Each comes two seconds after its call.
	At: func(s *world.Sequence, i int64) int64 {
		calls := s.Among[Calls]
		return min(calls.Created(notifiedCall(s.Seed, i))+2, calls.Newest)
	},
	Filters: append([]world.Filter{world.TextFilter("Log", "log")}, world.ClockFilters("MessageDate", false, "created")...),
}

// troubled is how many calls come to one notification, and to one alert.
const troubled = 50

func countTroubles(w *world.World) int64 { return w.Records / troubled }

// notifiedCall returns the call a notification is of: every fifty calls one of them has one. The last
// ten have none, so that the order of calls is that of their notifications.
func notifiedCall(seed uint64, i int64) int64 {
	d := fake.RngFor(seed, tagTroubles, i)
	return i*troubled + int64(d.Below(troubled-10))
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
	c := sceneOf(w, w.Below[s.Account][Calls], notifiedCall(s.Seed, i), s.Draw(i))
	v := c.values()
	v["created"], v["text"], v["log"] = s.Created(i), c.text(), "1"
	if c.trouble.Level == "error" {
		v["log"] = "0"
	}
	return v
}
