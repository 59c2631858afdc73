// Notifications: what went wrong during calls.
package slowapi

import (
	"slices"
	"strconv"
)

var notifications = &kind{
	name: "notifications", prefix: "NO", tag: 0x4e4f,
	blank: func() row { return new(notification) },
	seed:  seedNotifications,
	filters: slices.Concat(
		[]filter{{"Log", textFilter(func(r row) string { return r.(*notification).log() })}},
		clockFilters("MessageDate", false, func(r row) int64 { return r.(*notification).at }),
	),
}

// troubled is how many calls come to one notification, and to one alert.
const troubled = 50

// notification is one notification. Every fifty calls one of them has one.
type notification struct {
	s     *sequence
	i     int64
	call  int64
	at    int64
	d     draw
	whole bool // an instance, with what was asked and answered
	below bool // named by its call's path
}

// seedNotifications dates each notification two seconds after its call.
func seedNotifications(w *world, k *kind) *sequence {
	s, over := w.sequence(k, 0, w.records/troubled, w.epoch.Unix(), 0), w.below[0][calls]
	s.at = func(i int64) int64 { return min(over.created(notifiedCall(w.seed, i))+2, over.newest) }
	return s
}

// notifiedCall is the call a notification is of. The last ten of fifty have
// none, so that the order of calls is that of their notifications.
func notifiedCall(seed uint64, i int64) int64 {
	d := drawFor(seed, tagTroubles, i)
	return i*troubled + int64(d.below(troubled-10))
}

// notificationsOf are those of one call: one or none.
func notificationsOf(_ *world, _ *sequence, call int64) condition {
	i := call / troubled
	return condition{func(r row) bool { return r.(*notification).call == call }, i, i}
}

// load reads the notification with an index.
func (n *notification) load(w *world, s *sequence, i int64) {
	*n = notification{s: s, i: i, call: notifiedCall(s.seed, i), at: s.created(i), d: drawFor(s.seed, s.kind.tag, i)}
}

// trouble is what it is about.
func (n *notification) trouble() trouble {
	d := n.d
	return callTroubles[d.below(len(callTroubles))]
}

// log is 0 for an error and 1 for a warning.
func (n *notification) log() string {
	if n.trouble().level == "error" {
		return "0"
	}
	return "1"
}

// append writes the notification's row, or its instance, which says more.
func (n *notification) append(dst []byte, w *world) []byte {
	c := w.callScene(w.below[n.s.account][calls], n.call, n.d)
	sid := string(w.appendSID(nil, n.s, n.i))
	base := version + "/Accounts/" + c.account
	if n.below {
		base += "/Calls/" + c.sid
	}

	o := object{b: dst}
	o.open()
	o.text("account_sid", c.account)
	o.text("api_version", apiVersion)
	o.text("call_sid", c.sid)
	o.date("date_created", n.at)
	o.date("date_updated", n.at)
	o.text("error_code", strconv.FormatInt(c.trouble.code, 10))
	o.text("log", n.log())
	o.date("message_date", n.at)
	o.text("message_text", c.text())
	o.text("more_info", c.moreInfo())
	o.textOrNull("request_method", c.method())
	o.text("request_url", c.url())
	if n.whole {
		o.text("request_variables", c.variables())
		o.text("response_body", c.responseBody())
		o.text("response_headers", c.responseHeaders())
	}
	o.text("sid", sid)
	o.text("uri", base+"/Notifications/"+sid+".json")
	o.close()
	return o.b
}

// Their paths; a list's rows say less than an instance.
var notificationRoutes = []route{
	{pattern: "Accounts/*/Notifications", kind: notifications},
	{pattern: "Accounts/*/Notifications/*", kind: notifications, instance: true, dress: wholeNotification},
	{pattern: "Accounts/*/Calls/*/Notifications", kind: notifications, parent: calls, within: notificationsOf, dress: notificationBelow},
	{pattern: "Accounts/*/Calls/*/Notifications/*", kind: notifications, instance: true, parent: calls, within: notificationsOf,
		dress: func(r row, here string) { notificationBelow(r, here); wholeNotification(r, here) }},
}

func wholeNotification(r row, _ string) { r.(*notification).whole = true }
func notificationBelow(r row, _ string) { r.(*notification).below = true }
