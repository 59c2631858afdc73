// The table of routes: every path and what it shows.
package slowapi

import (
	"slices"
	"strings"

	"understudy/internal/slowapi/computed"
	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/kinds"
	"understudy/internal/slowapi/world"
)

var routes = slices.Concat([]route{
	{pattern: "Accounts", kind: kinds.Accounts},
	{pattern: "Accounts/*", kind: kinds.Accounts, instance: true},
	{pattern: "Accounts/*/Calls", kind: kinds.Calls},
	{pattern: "Accounts/*/Calls/*", kind: kinds.Calls, instance: true},
	{pattern: "Accounts/*/Messages", kind: kinds.Messages},
	{pattern: "Accounts/*/Messages/*", kind: kinds.Messages, instance: true},
	{pattern: "Accounts/*/IncomingPhoneNumbers", kind: kinds.Numbers},
	numbersOf("Local", "local"),
	numbersOf("Mobile", "mobile"),
	numbersOf("TollFree", "toll-free"),
	{pattern: "Accounts/*/IncomingPhoneNumbers/*", kind: kinds.Numbers, instance: true},
}, soundRoutes, notificationRoutes, callEventRoutes, queueRoutes, applicationRoutes, callerIDRoutes, keyRoutes, addressRoutes,
	usageRoutes, balanceRoutes, availableRoutes)

// numbersOf is the list of one sort of numbers.
func numbersOf(path, sort string) route {
	return route{
		pattern: "Accounts/*/IncomingPhoneNumbers/" + path, kind: kinds.Numbers,
		narrow: func(r world.Row) bool { return r.(*kinds.Setting).Field("Type") == sort },
		preset: map[string]string{"Type": sort},
	}
}

var soundRoutes = []route{
	{pattern: "Accounts/*/Conferences", kind: kinds.Conferences},
	{pattern: "Accounts/*/Conferences/*", kind: kinds.Conferences, instance: true},
	{pattern: "Accounts/*/Conferences/*/Participants", kind: kinds.Participants, parent: kinds.Conferences, within: kinds.ParticipantsOf},
	{pattern: "Accounts/*/Conferences/*/Participants/*", kind: kinds.Participants, parent: kinds.Conferences, within: kinds.ParticipantsOf,
		instance: true},
	{pattern: "Accounts/*/Recordings", kind: kinds.Recordings},
	{pattern: "Accounts/*/Recordings/*", kind: kinds.Recordings, instance: true},
	recordedIn("Calls", kinds.Calls, kinds.RecordingsOfCall, "recording_of_call", false),
	recordedIn("Calls", kinds.Calls, kinds.RecordingsOfCall, "recording_of_call", true),
	recordedIn("Conferences", kinds.Conferences, kinds.RecordingsOfConference, "recording_of_conference", false),
	recordedIn("Conferences", kinds.Conferences, kinds.RecordingsOfConference, "recording_of_conference", true),
	{pattern: "Accounts/*/Transcriptions", kind: kinds.Transcriptions},
	{pattern: "Accounts/*/Transcriptions/*", kind: kinds.Transcriptions, instance: true},
	{pattern: "Accounts/*/Recordings/*/Transcriptions", kind: kinds.Transcriptions, parent: kinds.Recordings, within: kinds.TranscriptionsOf},
	{pattern: "Accounts/*/Recordings/*/Transcriptions/*", kind: kinds.Transcriptions, parent: kinds.Recordings, within: kinds.TranscriptionsOf,
		instance: true},
	{pattern: "Accounts/*/Messages/*/Media", kind: kinds.Media, parent: kinds.Messages, within: kinds.MediaOf, key: "media_list"},
	{pattern: "Accounts/*/Messages/*/Media/*", kind: kinds.Media, parent: kinds.Messages, within: kinds.MediaOf, instance: true},
}

// recordedIn is the list of recordings of one call or conference, or one of them.
func recordedIn(path string, parent *world.Kind, within func(*world.World, *world.Sequence, int64) world.Condition,
	shape string, instance bool) route {
	r := route{
		pattern: "Accounts/*/" + path + "/*/Recordings", kind: kinds.Recordings, instance: instance,
		parent: parent, within: within, filters: kinds.RecordingDates, shape: shape,
	}
	if instance {
		r.pattern += "/*"
	}
	return r
}

// fileRoutes are the paths of what is no JSON.
var fileRoutes = []route{
	audioAt("Accounts/*/Recordings/*", nil, nil),
	audioAt("Accounts/*/Calls/*/Recordings/*", kinds.Calls, kinds.RecordingsOfCall),
	audioAt("Accounts/*/Conferences/*/Recordings/*", kinds.Conferences, kinds.RecordingsOfConference),
	{
		pattern: "Accounts/*/Messages/*/Media/*", kind: kinds.Media, parent: kinds.Messages, within: kinds.MediaOf, instance: true,
		serve: (*Server).redirectMedium, methods: "GET, HEAD", endings: []string{""},
	},
}

// audioAt is where a recording can be heard.
func audioAt(pattern string, parent *world.Kind, within func(*world.World, *world.Sequence, int64) world.Condition) route {
	return route{
		pattern: pattern, kind: kinds.Recordings, parent: parent, within: within, instance: true,
		serve: (*Server).serveAudio, methods: "GET, HEAD", endings: []string{"", ".wav", ".mp3"},
	}
}

// fileRouteOf finds the route of a path that does not end in .json.
func fileRouteOf(path string) (*route, []string) {
	name, ending := splitEnding(path)
	for i := range fileRoutes {
		r := &fileRoutes[i]
		if sids, ok := format.Match(r.pattern, name); ok && slices.Contains(r.endings, ending) {
			return r, sids
		}
	}
	return nil, nil
}

// Their paths; a list's rows say less than an instance.
var notificationRoutes = []route{
	{pattern: "Accounts/*/Notifications", kind: kinds.Notifications},
	{pattern: "Accounts/*/Notifications/*", kind: kinds.Notifications, instance: true, shape: "whole_notification"},
	{pattern: "Accounts/*/Calls/*/Notifications", kind: kinds.Notifications, parent: kinds.Calls, within: kinds.NotificationsOf,
		shape: "notification_of_call"},
	{pattern: "Accounts/*/Calls/*/Notifications/*", kind: kinds.Notifications, instance: true, parent: kinds.Calls,
		within: kinds.NotificationsOf, shape: "whole_notification_of_call"},
}

var callEventRoutes = []route{
	{pattern: "Accounts/*/Calls/*/Events", parent: kinds.Calls, key: "events", compute: computed.CallEvents, methods: "GET, HEAD"},
}

var queueRoutes = []route{
	{pattern: "Accounts/*/Queues", kind: kinds.Queues},
	{pattern: "Accounts/*/Queues/*", kind: kinds.Queues, instance: true},
	{pattern: "Accounts/*/Queues/*/Members", kind: kinds.Members, parent: kinds.Queues, within: kinds.MembersOf},
	{pattern: "Accounts/*/Queues/*/Members/*", kind: kinds.Members, parent: kinds.Queues, within: kinds.MembersOf, instance: true,
		serve: (*Server).member, methods: "GET, HEAD, POST"},
}

var applicationRoutes = []route{
	{pattern: "Accounts/*/Applications", kind: kinds.Applications},
	{pattern: "Accounts/*/Applications/*", kind: kinds.Applications, instance: true},
}

var callerIDRoutes = []route{
	{pattern: "Accounts/*/OutgoingCallerIds", kind: kinds.CallerIDs},
	{pattern: "Accounts/*/OutgoingCallerIds/*", kind: kinds.CallerIDs, instance: true},
}

var keyRoutes = []route{
	{pattern: "Accounts/*/Keys", kind: kinds.ApiKeys},
	{pattern: "Accounts/*/Keys/*", kind: kinds.ApiKeys, instance: true},
	{pattern: "Accounts/*/SigningKeys", kind: kinds.SigningKeys},
	{pattern: "Accounts/*/SigningKeys/*", kind: kinds.SigningKeys, instance: true},
}

var addressRoutes = []route{
	{pattern: "Accounts/*/Addresses", kind: kinds.Addresses},
	{pattern: "Accounts/*/Addresses/*", kind: kinds.Addresses, instance: true},
	{pattern: "Accounts/*/Addresses/*/DependentPhoneNumbers", kind: kinds.Numbers, parent: kinds.Addresses, within: kinds.DependOn,
		key: "dependent_phone_numbers", filters: []world.Filter{}, readOnly: true,
		shape: "dependent_number"},
}

// usageRoutes are the lists: one row a category over the whole time, and by day,
// month and year, and those of one certain time.
var usageRoutes = func() (all []route) {
	for _, name := range []string{"", "/AllTime", "/Daily", "/LastMonth", "/Monthly", "/ThisMonth", "/Today", "/Yearly", "/Yesterday"} {
		all = append(all, route{
			pattern: "Accounts/*/Usage/Records" + name, key: "usage_records", filters: computed.UsageFilters, methods: "GET, HEAD",
			compute: func(r *computed.Request) format.Answer {
				return computed.Usage(r, strings.TrimPrefix(name, "/"))
			},
		})
	}
	return all
}()

var balanceRoutes = []route{
	{pattern: "Accounts/*/Balance", instance: true, compute: computed.Balance, methods: "GET, HEAD"},
	{pattern: "Accounts/*/Tokens", instance: true, compute: computed.NewToken, methods: "POST"},
}

// availableRoutes are the countries, one of them, and each sort of number in one.
var availableRoutes = func() []route {
	all := []route{
		{pattern: "Accounts/*/AvailablePhoneNumbers", compute: computed.CountryList, methods: "GET, HEAD"},
		{pattern: "Accounts/*/AvailablePhoneNumbers/*", instance: true, compute: computed.CountryList, methods: "GET, HEAD"},
	}
	for path := range computed.OfferNames {
		all = append(all, route{
			pattern: "Accounts/*/AvailablePhoneNumbers/*/" + path, key: "available_phone_numbers", filters: computed.AvailableFilters,
			compute: computed.AvailableNumbers, methods: "GET, HEAD",
		})
	}
	return all
}()

// monitorRoutes are the paths below it. They show the main account.
var monitorRoutes = []route{
	{pattern: "Alerts", kind: kinds.Alerts, monitor: true},
	{pattern: "Alerts/*", kind: kinds.Alerts, monitor: true, instance: true, shape: "whole_alert"},
	{pattern: "Events", kind: kinds.Events, monitor: true, key: "events"},
	{pattern: "Events/*", kind: kinds.Events, monitor: true, instance: true},
}
