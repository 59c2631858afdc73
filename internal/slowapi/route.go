// Routes: the paths of Twilio's API, and how the list or record of a request is found.
package slowapi

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/kinds"
	"understudy/internal/slowapi/table"
	"understudy/internal/slowapi/world"
)

// handler answers a request after its list or record has been found.
type handler func(t *twilio, x *world.Request) format.Answer

// methods has the handlers of a route by the HTTP method. The handler for GET also answers HEAD.
type methods map[string]handler

// route is one path below /2010-04-01 or /v1. Its pattern has a star in place of each SID. The first star is the
// account, and if the route is for a single record, the last star is the record.
type route struct {
	pattern  string
	kind     *world.Kind // the kind of the list or record; nil if the path is neither
	handlers methods
	instance bool // whether the path names a single record and not a list

	// parent is the kind of the record that the second SID names, which must exist. within returns the condition that selects
	// the rows of the list from all records of the kind. preset has fields that a POST to the list adds to the new record.
	parent *world.Kind
	within func(w *world.World, s *world.Sequence, parent int64) world.Condition
	preset map[string]string
	// key, filters and shape override those of the kind. key is the name of the JSON array in the list.
	key     string
	filters []world.Filter
	shape   string
	// monitor is true for a path of the Monitor API. Such a path contains no account, and its lists have another form.
	monitor bool
	// endings are the permitted endings of the path; nil means .json. Without an ending Twilio answers XML. This API
	// answers only JSON, so it answers 404 then.
	endings []string
}

// listFilters returns the filters of the list. These are the filters of the route, or if it has none, those of the kind.
func (r *route) listFilters() []world.Filter {
	if r.filters != nil || r.kind == nil {
		return r.filters
	}
	return r.kind.Filters
}

// allow returns the value of the Allow header for a route.
func (r *route) allow() string {
	var all []string
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
		if r.handlers[method] != nil {
			all = append(all, method)
		}
	}
	return strings.Replace(strings.Join(all, ", "), "GET", "GET, HEAD", 1)
}

// paths returns all routes with the version before and the ending after their pattern, in the form that the server
// uses to find them.
func (t *twilio) paths() (all table.Routes) {
	for _, r := range slices.Concat(routes, fileRoutes, monitorRoutes) {
		version, endings := format.Version, r.endings
		if r.monitor {
			version = format.MonitorVersion
		}
		if endings == nil {
			endings = []string{".json"}
		}
		for _, ending := range endings {
			all = append(all, table.Route{Pattern: version + "/" + r.pattern + ending, List: !r.instance, Handlers: map[string]table.Handler{
				anyMethod: func(q *table.Request) format.Answer { return t.dispatch(&r, q) }}})
		}
	}
	return all
}

// anyMethod registers a handler for all methods. Twilio checks that the record exists (404) before it checks the method (405).
const anyMethod = ""

// dispatch finds the list or record of a request, and calls the handler for its method.
func (t *twilio) dispatch(r *route, q *table.Request) format.Answer {
	x, there := t.resolve(r, q)
	if !there {
		return x.NewNotFound()
	}
	if do := r.handlers[q.Method]; do != nil {
		return do(t, x)
	}
	refused := format.Refuse(http.StatusMethodNotAllowed, 20405, "Method not allowed")
	refused.Header = map[string]string{"Allow": r.allow()}
	return *refused
}

// resolve finds the list or record of a request. there is false if there is none.
func (t *twilio) resolve(r *route, q *table.Request) (x *world.Request, there bool) {
	w := t.world
	w.Mu.RLock()
	defer w.Mu.RUnlock()
	x = &world.Request{Incoming: q, World: w, Quirks: t.quirks, Query: format.ReadQuery(q.RawQuery), Sequence: w.AccountSequence,
		Filters: r.listFilters(), Key: r.key, Shape: r.shape, Preset: r.preset}
	x.IncludeDeleted = kinds.AddDeleted(x.Query)
	if r.kind != nil {
		x.Key, x.Shape = cmp.Or(r.key, r.kind.Name), cmp.Or(r.shape, r.kind.Shape)
	}
	if r.kind != kinds.Accounts {
		if !r.monitor {
			account, ok := w.Find(w.AccountSequence, q.Vars[0])
			if !ok {
				return x, false
			}
			x.Account = int(account)
		}
		x.Sequence = w.Sequence(r.kind, x.Account)
	}
	if r.parent != nil {
		of, ok := w.Sequence(r.parent, x.Account), false
		if x.Parent, ok = w.Find(of, q.Vars[1]); !ok || !of.HasRecord(x.Parent) {
			return x, false
		}
	}
	if r.within != nil {
		x.ListCondition = new(r.within(w, x.Sequence, x.Parent))
	}
	return x, !r.instance || r.kind == nil || findRecord(x)
}

// findRecord sets x.Index to the record that the path names. It returns false if there is none.
func findRecord(x *world.Request) (ok bool) {
	w, k, name := x.World, x.Sequence.Kind, x.Incoming.Vars[len(x.Incoming.Vars)-1]
	if k.Find != nil {
		x.Index, ok = k.Find(w, x.Sequence, x.Parent, name)
	} else {
		x.Index, ok = w.Find(x.Sequence, name)
	}
	row := &world.Row{World: w, Sequence: x.Sequence, Index: x.Index}
	return ok && x.IsVisible(x.Index) && (x.ListCondition == nil || x.ListCondition.Match(row))
}

// routes are the paths below /2010-04-01/ that answer with JSON. The first that matches is used.
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
	records("Accounts/*/Notifications", route{kind: kinds.Notifications}),
	records("Accounts/*/Calls/*/Notifications", route{kind: kinds.Notifications, parent: kinds.Calls, within: kinds.NotificationsOf,
		shape: "notification_of_call"}),
	records("Accounts/*/Queues", route{kind: kinds.Queues}),
	membersOfQueue(),
	records("Accounts/*/Applications", route{kind: kinds.Applications}),
	records("Accounts/*/OutgoingCallerIds", route{kind: kinds.CallerIDs}),
	records("Accounts/*/Keys", route{kind: kinds.ApiKeys}),
	records("Accounts/*/SigningKeys", route{kind: kinds.SigningKeys}),
	records("Accounts/*/Addresses", route{kind: kinds.Addresses}),
	[]route{
		{pattern: "Accounts/*/Addresses/*/DependentPhoneNumbers", kind: kinds.Numbers, parent: kinds.Addresses, within: kinds.DependentNumbersOf,
			key: "dependent_phone_numbers", filters: []world.Filter{}, shape: "dependent_number",
			handlers: methods{http.MethodGet: (*twilio).listRecords}},
		{pattern: "Accounts/*/Calls/*/Events", parent: kinds.Calls, key: "events", handlers: readOf(kinds.CallEvents)},
		{pattern: "Accounts/*/Balance", instance: true, handlers: readOf(kinds.Balance)},
		{pattern: "Accounts/*/Tokens", instance: true, handlers: methods{http.MethodPost: compute(kinds.NewToken)}},
	},
	usageRoutes(), availableRoutes(),
)

// fileRoutes are the paths that answer with audio, or redirect to a picture.
var fileRoutes = []route{
	audioAt("Accounts/*/Recordings/*", route{kind: kinds.Recordings}),
	audioAt("Accounts/*/Calls/*/Recordings/*", recordingsOfCall),
	audioAt("Accounts/*/Conferences/*/Recordings/*", recordingsOfConference),
	fileAt("Accounts/*/Messages/*/Media/*", mediaOfMessage, (*twilio).redirectMedium, ""),
}

// monitorRoutes are the paths of the Monitor API below /v1/. They show the main account.
var monitorRoutes = slices.Concat(
	records("Alerts", route{kind: kinds.Alerts, monitor: true, endings: []string{""}}),
	records("Events", route{kind: kinds.Events, monitor: true, key: "events", endings: []string{""}}),
)

// The routes of records that belong to another record. Their patterns are added where they are used.
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

// records returns the routes for a list and for its records. They have the methods that the kind permits.
func records(pattern string, list route) []route {
	list.pattern, list.handlers = pattern, methods{http.MethodGet: (*twilio).listRecords}
	if list.kind.Writes.Create != nil {
		list.handlers[http.MethodPost] = withWriteLock((*twilio).create)
	}
	one := list
	one.pattern, one.instance, one.handlers = pattern+"/*", true, methods{http.MethodGet: (*twilio).showRecord}
	if list.kind.Writes.Update != nil {
		one.handlers[http.MethodPost] = withWriteLock((*twilio).update)
	}
	if list.kind.Writes.CanDelete {
		one.handlers[http.MethodDelete] = withWriteLock((*twilio).remove)
	}
	return []route{list, one}
}

// numbersOf returns the route for phone numbers of one type, such as "local".
func numbersOf(path, sort string) route {
	return route{
		pattern: "Accounts/*/IncomingPhoneNumbers/" + path, kind: kinds.Numbers,
		within: func(*world.World, *world.Sequence, int64) world.Condition {
			return world.NewCondition(func(r *world.Row) bool { return r.Value("Type") == sort })
		},
		preset:   map[string]string{"Type": sort},
		handlers: methods{http.MethodGet: (*twilio).listRecords, http.MethodPost: withWriteLock((*twilio).create)},
	}
}

// membersOfQueue returns the routes for the calls that wait in a queue.
func membersOfQueue() []route {
	all := records("Accounts/*/Queues/*/Members", route{kind: kinds.Members, parent: kinds.Queues, within: kinds.MembersOf})
	all[1].handlers[http.MethodPost] = withWriteLock((*twilio).dequeue)
	return all
}

// audioAt returns the route for the audio of a recording.
func audioAt(pattern string, r route) route {
	return fileAt(pattern, r, compute(serveAudio), ".wav", ".mp3", "")
}

// fileAt returns the route for the audio or picture of a record.
func fileAt(pattern string, r route, do handler, endings ...string) route {
	r.pattern, r.instance, r.endings, r.handlers = pattern, true, endings, methods{http.MethodGet: do}
	return r
}

// usageRoutes returns the routes for usage records: for all time, by day, month or year, and for one time span such
// as yesterday.
func usageRoutes() (all []route) {
	for name := range kinds.UsageLists {
		path := "Accounts/*/Usage/Records"
		if name != "" {
			path += "/" + name
		}
		all = append(all, route{pattern: path, key: "usage_records", filters: kinds.UsageFilters,
			handlers: readOf(func(x *world.Request) format.Answer { return kinds.Usage(x, name) })})
	}
	return all
}

// availableRoutes returns the routes for the list of countries, for one country, and for each type of number that is for sale.
func availableRoutes() []route {
	all := []route{
		{pattern: "Accounts/*/AvailablePhoneNumbers", handlers: readOf(kinds.CountryList)},
		{pattern: "Accounts/*/AvailablePhoneNumbers/*", instance: true, handlers: readOf(kinds.CountryList)},
	}
	for path := range kinds.OfferNames {
		all = append(all, route{pattern: "Accounts/*/AvailablePhoneNumbers/*/" + path, key: "available_phone_numbers",
			filters: kinds.AvailableFilters, handlers: readOf(kinds.AvailableNumbers)})
	}
	return all
}

// readOf returns the methods of a path whose response is computed by f. Only GET is permitted.
func readOf(f func(*world.Request) format.Answer) methods {
	return methods{http.MethodGet: compute(f)}
}

// compute returns a handler that calls f while it holds the lock Mu of the simulated world for reading.
func compute(f func(*world.Request) format.Answer) handler {
	return func(_ *twilio, x *world.Request) format.Answer {
		x.World.Mu.RLock()
		defer x.World.Mu.RUnlock()
		return f(x)
	}
}
