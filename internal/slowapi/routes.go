// The table of routes: every path and what it shows.
package slowapi

import (
	"slices"
	"strings"
	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/world"
)

var routes = slices.Concat([]route{
	{pattern: "Accounts", kind: accounts},
	{pattern: "Accounts/*", kind: accounts, instance: true},
	{pattern: "Accounts/*/Calls", kind: calls},
	{pattern: "Accounts/*/Calls/*", kind: calls, instance: true},
	{pattern: "Accounts/*/Messages", kind: messages},
	{pattern: "Accounts/*/Messages/*", kind: messages, instance: true},
	{pattern: "Accounts/*/IncomingPhoneNumbers", kind: numbers},
	numbersOf("Local", "local"),
	numbersOf("Mobile", "mobile"),
	numbersOf("TollFree", "toll-free"),
	{pattern: "Accounts/*/IncomingPhoneNumbers/*", kind: numbers, instance: true},
}, soundRoutes, notificationRoutes, callEventRoutes, queueRoutes, applicationRoutes, callerIDRoutes, keyRoutes, addressRoutes,
	usageRoutes, balanceRoutes, availableRoutes)

// numbersOf is the list of one sort of numbers.
func numbersOf(path, sort string) route {
	return route{
		pattern: "Accounts/*/IncomingPhoneNumbers/" + path, kind: numbers,
		narrow: func(r world.Row) bool { return r.(*tableRow).field("Type") == sort },
		preset: map[string]string{"Type": sort},
	}
}

var soundRoutes = []route{
	{pattern: "Accounts/*/Conferences", kind: conferences},
	{pattern: "Accounts/*/Conferences/*", kind: conferences, instance: true},
	{pattern: "Accounts/*/Conferences/*/Participants", kind: participants, parent: conferences, within: participantsOf},
	{pattern: "Accounts/*/Conferences/*/Participants/*", kind: participants, parent: conferences, within: participantsOf, instance: true},
	{pattern: "Accounts/*/Recordings", kind: recordings, dress: showRecording(recordingAlone)},
	{pattern: "Accounts/*/Recordings/*", kind: recordings, dress: showRecording(recordingAlone), instance: true},
	recordedIn("Calls", calls, recordingsOfCall, recordingOfCall, false),
	recordedIn("Calls", calls, recordingsOfCall, recordingOfCall, true),
	recordedIn("Conferences", conferences, recordingsOfConference, recordingOfConference, false),
	recordedIn("Conferences", conferences, recordingsOfConference, recordingOfConference, true),
	{pattern: "Accounts/*/Transcriptions", kind: transcriptions},
	{pattern: "Accounts/*/Transcriptions/*", kind: transcriptions, instance: true},
	{pattern: "Accounts/*/Recordings/*/Transcriptions", kind: transcriptions, parent: recordings, within: transcriptionsOf},
	{pattern: "Accounts/*/Recordings/*/Transcriptions/*", kind: transcriptions, parent: recordings, within: transcriptionsOf, instance: true},
	{pattern: "Accounts/*/Messages/*/Media", kind: media, parent: messages, within: mediaOf},
	{pattern: "Accounts/*/Messages/*/Media/*", kind: media, parent: messages, within: mediaOf, instance: true},
}

// recordedIn is the list of recordings of one call or conference, or one of them.
func recordedIn(path string, parent *world.Kind, within func(*world.World, *world.Sequence, int64) world.Condition, look recordingLook, instance bool) route {
	r := route{
		pattern: "Accounts/*/" + path + "/*/Recordings", kind: recordings, instance: instance,
		parent: parent, within: within, filters: recordingDates, dress: showRecording(look),
	}
	if instance {
		r.pattern += "/*"
	}
	return r
}

// fileRoutes are the paths of what is no JSON.
var fileRoutes = []route{
	audioAt("Accounts/*/Recordings/*", nil, nil),
	audioAt("Accounts/*/Calls/*/Recordings/*", calls, recordingsOfCall),
	audioAt("Accounts/*/Conferences/*/Recordings/*", conferences, recordingsOfConference),
	{
		pattern: "Accounts/*/Messages/*/Media/*", kind: media, parent: messages, within: mediaOf, instance: true,
		serve: (*Server).redirectMedium, methods: "GET, HEAD", endings: []string{""},
	},
}

// audioAt is where a recording can be heard.
func audioAt(pattern string, parent *world.Kind, within func(*world.World, *world.Sequence, int64) world.Condition) route {
	return route{
		pattern: pattern, kind: recordings, parent: parent, within: within, instance: true,
		serve: (*Server).serveAudio, methods: "GET, HEAD", endings: []string{"", ".wav", ".mp3"},
	}
}

// fileRouteOf finds the route of a path that does not end in .json.
func fileRouteOf(path string) (*route, []string) {
	name, ending := splitEnding(path)
	for i := range fileRoutes {
		r := &fileRoutes[i]
		if sids, ok := r.match(name); ok && slices.Contains(r.endings, ending) {
			return r, sids
		}
	}
	return nil, nil
}

// Their paths; a list's rows say less than an instance.
var notificationRoutes = []route{
	{pattern: "Accounts/*/Notifications", kind: notifications},
	{pattern: "Accounts/*/Notifications/*", kind: notifications, instance: true, dress: wholeNotification},
	{pattern: "Accounts/*/Calls/*/Notifications", kind: notifications, parent: calls, within: notificationsOf, dress: notificationBelow},
	{pattern: "Accounts/*/Calls/*/Notifications/*", kind: notifications, instance: true, parent: calls, within: notificationsOf,
		dress: func(r world.Row, here string) { notificationBelow(r, here); wholeNotification(r, here) }},
}

var callEventRoutes = []route{
	{pattern: "Accounts/*/Calls/*/Events", parent: calls, key: "events", compute: callEvents, methods: "GET, HEAD"},
}

var queueRoutes = []route{
	{pattern: "Accounts/*/Queues", kind: queues},
	{pattern: "Accounts/*/Queues/*", kind: queues, instance: true},
	{pattern: "Accounts/*/Queues/*/Members", kind: members, parent: queues, within: membersOf},
	{pattern: "Accounts/*/Queues/*/Members/*", kind: members, parent: queues, within: membersOf, instance: true,
		serve: (*Server).member, methods: "GET, HEAD, POST"},
}

var applicationRoutes = []route{
	{pattern: "Accounts/*/Applications", kind: applications},
	{pattern: "Accounts/*/Applications/*", kind: applications, instance: true},
}

var callerIDRoutes = []route{
	{pattern: "Accounts/*/OutgoingCallerIds", kind: callerIDs},
	{pattern: "Accounts/*/OutgoingCallerIds/*", kind: callerIDs, instance: true},
}

var keyRoutes = []route{
	{pattern: "Accounts/*/Keys", kind: apiKeys},
	{pattern: "Accounts/*/Keys/*", kind: apiKeys, instance: true},
	{pattern: "Accounts/*/SigningKeys", kind: signingKeys},
	{pattern: "Accounts/*/SigningKeys/*", kind: signingKeys, instance: true},
}

var addressRoutes = []route{
	{pattern: "Accounts/*/Addresses", kind: addresses},
	{pattern: "Accounts/*/Addresses/*", kind: addresses, instance: true},
	{pattern: "Accounts/*/Addresses/*/DependentPhoneNumbers", kind: numbers, parent: addresses, within: dependOn,
		key: "dependent_phone_numbers", filters: []world.Filter{}, readOnly: true,
		dress: func(r world.Row, _ string) { r.(*tableRow).shown = dependentColumns }},
}

// usageRoutes are the lists: one row a category over the whole time, and by day,
// month and year, and those of one certain time.
var usageRoutes = func() (all []route) {
	for _, name := range []string{"", "/AllTime", "/Daily", "/LastMonth", "/Monthly", "/ThisMonth", "/Today", "/Yearly", "/Yesterday"} {
		all = append(all, route{
			pattern: "Accounts/*/Usage/Records" + name, key: "usage_records", filters: usageFilters, methods: "GET, HEAD",
			compute: func(r *computedRequest) format.Answer { return usage(r, strings.TrimPrefix(name, "/")) },
		})
	}
	return all
}()

var balanceRoutes = []route{
	{pattern: "Accounts/*/Balance", instance: true, compute: balance, methods: "GET, HEAD"},
	{pattern: "Accounts/*/Tokens", instance: true, compute: newToken, methods: "POST"},
}

// availableRoutes are the countries, one of them, and each sort of number in one.
var availableRoutes = func() []route {
	all := []route{
		{pattern: "Accounts/*/AvailablePhoneNumbers", compute: countryList, methods: "GET, HEAD"},
		{pattern: "Accounts/*/AvailablePhoneNumbers/*", instance: true, compute: countryList, methods: "GET, HEAD"},
	}
	for path := range offerNames {
		all = append(all, route{
			pattern: "Accounts/*/AvailablePhoneNumbers/*/" + path, key: "available_phone_numbers", filters: availableFilters,
			compute: availableNumbers, methods: "GET, HEAD",
		})
	}
	return all
}()

// monitorRoutes are the paths below it. They show the main account.
var monitorRoutes = []route{
	{pattern: "Alerts", kind: alerts, monitor: true, dress: func(r world.Row, here string) { r.(*alert).here = here }},
	{pattern: "Alerts/*", kind: alerts, monitor: true, instance: true,
		dress: func(r world.Row, here string) { a := r.(*alert); a.here, a.whole = here, true }},
	{pattern: "Events", kind: events, monitor: true, dress: eventHere},
	{pattern: "Events/*", kind: events, monitor: true, instance: true, dress: eventHere},
}
