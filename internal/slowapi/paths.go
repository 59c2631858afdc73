// The table of routes: every path and what it shows.
package slowapi

import (
	"net/http"
	"slices"

	"understudy/internal/slowapi/computed"
	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/kinds"
	"understudy/internal/slowapi/world"
)

// routes are the paths of JSON below /2010-04-01/. The first that matches counts.
var routes = slices.Concat(
	records("Accounts", route{kind: kinds.Accounts}),
	records("Accounts/*/Calls", route{kind: kinds.Calls}),
	records("Accounts/*/Messages", route{kind: kinds.Messages}),
	records("Accounts/*/Messages/*/Media", mediaOfMessage),
	[]route{numbersOf("Local", "local"), numbersOf("Mobile", "mobile"), numbersOf("TollFree", "toll-free")},
	records("Accounts/*/IncomingPhoneNumbers", route{kind: kinds.Numbers}),
	records("Accounts/*/Conferences", route{kind: kinds.Conferences}),
	records("Accounts/*/Conferences/*/Participants", route{kind: kinds.Participants, parent: kinds.Conferences, within: kinds.ParticipantsOf}),
	records("Accounts/*/Recordings", route{kind: kinds.Recordings}),
	records("Accounts/*/Calls/*/Recordings", recordingsOfCall),
	records("Accounts/*/Conferences/*/Recordings", recordingsOfConference),
	records("Accounts/*/Transcriptions", route{kind: kinds.Transcriptions}),
	records("Accounts/*/Recordings/*/Transcriptions",
		route{kind: kinds.Transcriptions, parent: kinds.Recordings, within: kinds.TranscriptionsOf}),
	records("Accounts/*/Notifications", route{kind: kinds.Notifications, whole: "whole_notification"}),
	records("Accounts/*/Calls/*/Notifications", route{kind: kinds.Notifications, parent: kinds.Calls, within: kinds.NotificationsOf,
		shape: "notification_of_call", whole: "whole_notification_of_call"}),
	records("Accounts/*/Queues", route{kind: kinds.Queues}),
	membersOfQueue(),
	records("Accounts/*/Applications", route{kind: kinds.Applications}),
	records("Accounts/*/OutgoingCallerIds", route{kind: kinds.CallerIDs}),
	records("Accounts/*/Keys", route{kind: kinds.ApiKeys}),
	records("Accounts/*/SigningKeys", route{kind: kinds.SigningKeys}),
	records("Accounts/*/Addresses", route{kind: kinds.Addresses}),
	[]route{
		{pattern: "Accounts/*/Addresses/*/DependentPhoneNumbers", kind: kinds.Numbers, parent: kinds.Addresses, within: kinds.DependOn,
			key: "dependent_phone_numbers", filters: []world.Filter{}, shape: "dependent_number", do: methods{http.MethodGet: (*twilio).page}},
		{pattern: "Accounts/*/Calls/*/Events", parent: kinds.Calls, key: "events", do: readOf(computed.CallEvents)},
		{pattern: "Accounts/*/Balance", instance: true, do: readOf(computed.Balance)},
		{pattern: "Accounts/*/Tokens", instance: true, do: methods{http.MethodPost: compute(computed.NewToken)}},
	},
	usageRoutes(), availableRoutes(),
)

// fileRoutes are the paths of what is no JSON.
var fileRoutes = []route{
	audioAt("Accounts/*/Recordings/*", route{kind: kinds.Recordings}),
	audioAt("Accounts/*/Calls/*/Recordings/*", recordingsOfCall),
	audioAt("Accounts/*/Conferences/*/Recordings/*", recordingsOfConference),
	fileAt("Accounts/*/Messages/*/Media/*", mediaOfMessage, (*twilio).redirectMedium, ""),
}

// monitorRoutes are the paths of the Monitor API, below /v1/. They show the main account.
var monitorRoutes = slices.Concat(
	records("Alerts", route{kind: kinds.Alerts, monitor: true, whole: "whole_alert", endings: []string{""}}),
	records("Events", route{kind: kinds.Events, monitor: true, key: "events", endings: []string{""}}),
)

// Records that belong to another, without their patterns.
var (
	mediaOfMessage   = route{kind: kinds.Media, parent: kinds.Messages, within: kinds.MediaOf, key: "media_list"}
	recordingsOfCall = route{
		kind: kinds.Recordings, parent: kinds.Calls, within: kinds.RecordingsOfCall, filters: kinds.RecordingDates, shape: "recording_of_call",
	}
	recordingsOfConference = route{
		kind: kinds.Recordings, parent: kinds.Conferences, within: kinds.RecordingsOfConference, filters: kinds.RecordingDates,
		shape: "recording_of_conference",
	}
)

// records returns the routes of a list and of each of its records, with what may be
// done to them.
func records(pattern string, list route) []route {
	list.pattern, list.do = pattern, methods{http.MethodGet: (*twilio).page}
	if list.kind.Create != nil {
		list.do[http.MethodPost] = (*twilio).create
	}
	one := list
	one.pattern, one.instance, one.do = pattern+"/*", true, methods{http.MethodGet: (*twilio).instance}
	if list.whole != "" {
		one.shape = list.whole
	}
	if list.kind.Update != nil {
		one.do[http.MethodPost] = (*twilio).update
	}
	if list.kind.Remove {
		one.do[http.MethodDelete] = (*twilio).remove
	}
	return []route{list, one}
}

// numbersOf returns the list of one sort of numbers.
func numbersOf(path, sort string) route {
	return route{
		pattern: "Accounts/*/IncomingPhoneNumbers/" + path, kind: kinds.Numbers,
		narrow: func(r world.Row) bool { return r.Value("Type") == sort },
		preset: map[string]string{"Type": sort}, do: methods{http.MethodGet: (*twilio).page, http.MethodPost: (*twilio).create},
	}
}

// membersOfQueue returns the routes of the calls that wait in a queue.
func membersOfQueue() []route {
	all := records("Accounts/*/Queues/*/Members", route{kind: kinds.Members, parent: kinds.Queues, within: kinds.MembersOf})
	all[1].do[http.MethodPost] = (*twilio).dequeue
	return all
}

// audioAt returns where a recording can be heard.
func audioAt(pattern string, r route) route {
	return fileAt(pattern, r, (*twilio).serveAudio, ".wav", ".mp3", "")
}

// fileAt returns where the content of a record is.
func fileAt(pattern string, r route, do handler, endings ...string) route {
	r.pattern, r.instance, r.endings, r.do = pattern, true, endings, methods{http.MethodGet: do}
	return r
}

// usageRoutes returns the lists of usage: one row a category over the whole time,
// and by day, month and year, and those of one certain time.
func usageRoutes() (all []route) {
	for _, name := range []string{"", "AllTime", "Daily", "LastMonth", "Monthly", "ThisMonth", "Today", "Yearly", "Yesterday"} {
		path := "Accounts/*/Usage/Records"
		if name != "" {
			path += "/" + name
		}
		all = append(all, route{pattern: path, key: "usage_records", filters: computed.UsageFilters,
			do: readOf(func(x *world.Request) format.Answer { return computed.Usage(x, name) })})
	}
	return all
}

// availableRoutes returns the countries, one of them, and each sort of number in one.
func availableRoutes() []route {
	all := []route{
		{pattern: "Accounts/*/AvailablePhoneNumbers", do: readOf(computed.CountryList)},
		{pattern: "Accounts/*/AvailablePhoneNumbers/*", instance: true, do: readOf(computed.CountryList)},
	}
	for path := range computed.OfferNames {
		all = append(all, route{pattern: "Accounts/*/AvailablePhoneNumbers/*/" + path, key: "available_phone_numbers",
			filters: computed.AvailableFilters, do: readOf(computed.AvailableNumbers)})
	}
	return all
}

// readOf returns the methods of what is computed and can only be read.
func readOf(f func(*world.Request) format.Answer) methods {
	return methods{http.MethodGet: compute(f)}
}

// compute returns the handler of what the world alone decides.
func compute(f func(*world.Request) format.Answer) handler {
	return func(_ *twilio, x *world.Request) format.Answer { return f(x) }
}
