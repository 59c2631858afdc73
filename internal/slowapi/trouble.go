// Troubles: what went wrong with somebody's call or message, as alerts and notifications tell it.
package slowapi

import (
	"net/url"
	"strconv"
	"strings"
)

// trouble is one way for things to go wrong. In what it says {to}, {from},
// {body} and {url} stand for those of the call or message.
type trouble struct {
	code   int64
	level  string // error, warning, notice or debug
	says   string
	status int // what the webhook answered, 0 when it was not asked or was silent
}

// callTroubles and messageTroubles bear the codes of Twilio's dictionary of
// errors (twilio.com/docs/api/errors).
var callTroubles = []trouble{
	{11200, "error", "Got HTTP 502 response to {url}", 502},
	{11205, "error", "HTTP connection failure to {url}", 0},
	{12100, "error", "Document parse failure: content is not allowed in prolog", 200},
	{12200, "warning", "Schema validation warning: <Dail> is no verb", 200},
	{12300, "error", "Invalid Content-Type text/html from {url}", 200},
	{13224, "error", "Dial: {to} is no number that can be called", 200},
	{13227, "error", "Geo permissions do not permit a call to {to}", 200},
	{15003, "warning", "Got HTTP 404 response to the status callback for {from}", 404},
	{13214, "warning", "Dial: the caller id {from} is not verified", 200},
}

var messageTroubles = []trouble{
	{30003, "error", "Unreachable destination handset {to}", 0},
	{30006, "error", "{to} is a landline or its carrier is unreachable", 0},
	{30007, "warning", "Filtered by the carrier: \"{body}\"", 0},
	{21610, "notice", "{to} has replied STOP and is not written to", 0},
	{11200, "error", "Got HTTP 500 response to {url}", 500},
	{12200, "debug", "Schema validation warning in the answer to \"{body}\" from {from}", 200},
	{14107, "warning", "Reply rate limit hit replying to {from}", 200},
}

// scene is the call or message a trouble happened to.
type scene struct {
	account, sid, from, to, status, direction string
	message                                   bool
	body, service                             string
	trouble                                   trouble
	d                                         draw // decides on the rest
}

// callScene reads the scene of a trouble with a call.
func (w *world) callScene(s *sequence, i int64, d draw) scene {
	var c call
	c.load(w, s, i)
	return scene{
		account: w.accountSID(s.account), sid: string(w.appendSID(nil, s, i)),
		from: string(c.from.appendTo(nil, w)), to: string(c.to.appendTo(nil, w)),
		status: c.progress.status(), direction: c.direction,
		trouble: callTroubles[d.below(len(callTroubles))], d: d,
	}
}

// messageScene reads the scene of a trouble with a message.
func (w *world) messageScene(s *sequence, i int64, d draw) scene {
	var m message
	m.load(w, s, i)
	rest := m.rest
	m.failure(&rest)
	service := m.serviceSID(w, &rest)
	return scene{
		account: w.accountSID(s.account), sid: string(w.appendSID(nil, s, i)),
		from: string(m.from.appendTo(nil, w)), to: string(m.to.appendTo(nil, w)),
		status: m.progress.status(), direction: m.direction,
		message: true, body: m.say(rest), service: service,
		trouble: messageTroubles[d.below(len(messageTroubles))], d: d,
	}
}

// asked tells whether a webhook of ours was asked, and how; those that were
// only called back about a carrier's doing were not.
func (c *scene) asked() bool { return c.trouble.code < 20000 }

// method is how the webhook was asked, empty when none was.
func (c *scene) method() string {
	switch {
	case !c.asked():
		return ""
	case c.byGet():
		return "GET"
	}
	return "POST"
}

func (c *scene) byGet() bool { d := c.d; return d.below(3) == 0 }

// url is the webhook. One asked by GET carries the numbers, and a message's
// body, in its query.
func (c *scene) url() string {
	if !c.asked() {
		return ""
	}
	page := "https://hooks.example.com/voice"
	if c.message {
		page = "https://hooks.example.com/sms"
	}
	if c.byGet() {
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
			"Body", c.body, "From", c.from, "To", c.to, "ApiVersion", apiVersion)
	}
	return pairs("AccountSid", c.account, "CallSid", c.sid, "CallStatus", c.status, "Direction", c.direction,
		"Called", c.to, "Caller", c.from, "From", c.from, "To", c.to, "ApiVersion", apiVersion)
}

// sentence is what happened, in words.
func (c *scene) sentence() string {
	return strings.NewReplacer("{to}", c.to, "{from}", c.from, "{body}", c.body, "{url}", c.url()).Replace(c.trouble.says)
}

// text is what happened in Twilio's own way, a form of its own.
func (c *scene) text() string {
	level := map[string]string{"error": "ERROR", "warning": "WARN", "notice": "NOTICE", "debug": "DEBUG"}[c.trouble.level]
	return pairs("Msg", c.sentence(), "ErrorCode", strconv.FormatInt(c.trouble.code, 10), "LogLevel", level,
		"EmailNotification", "false", "url", c.url())
}

// moreInfo is where the code is explained.
func (c *scene) moreInfo() string {
	return "https://www.twilio.com/docs/errors/" + strconv.FormatInt(c.trouble.code, 10)
}

// responseBody is what the webhook answered.
func (c *scene) responseBody() string {
	switch c.trouble.status {
	case 0:
		return ""
	case 200:
		return "<?xml version=\"1.0\"?>\n<Response><Dail>" + c.to + "</Dail></Response>"
	}
	return "<html><head><title>" + strconv.Itoa(c.trouble.status) + "</title></head><body>No answer for " + c.from + "</body></html>\n"
}

// responseHeaders are what stood above it.
func (c *scene) responseHeaders() string {
	if c.trouble.status == 0 {
		return ""
	}
	kind := "text/html; charset=UTF-8"
	if c.trouble.status == 200 && c.trouble.code != 12300 {
		kind = "text/xml"
	}
	return pairs("Content-Type", kind, "Content-Length", strconv.Itoa(len(c.responseBody())), "Connection", "close", "Server", "nginx")
}

// requestHeaders are what the webhook was asked with.
func (c *scene) requestHeaders() string {
	if !c.asked() {
		return ""
	}
	return pairs("Accept", "*/*", "User-Agent", "TwilioProxy/1.1", "X-Home-Region", "us1")
}
