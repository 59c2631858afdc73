// Routes: the paths of Twilio's API, and which list or record a request names.
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

// handler answers a request to what its path names.
type handler func(t *twilio, x *world.Request) format.Answer

// methods are the handlers of a route. That of GET answers HEAD too.
type methods map[string]handler

// route is one path below /2010-04-01 or /v1, a star for each SID in it. The last
// star of an instance names a record of the kind, the first one the account.
type route struct {
	pattern  string
	kind     *world.Kind // nil for what is neither a list nor a record of a kind
	do       methods
	instance bool

	// parent is the kind of the record named by the SID behind the account's, which must
	// exist. A list of a part of the kind has within: which records belong to the parent, or
	// to the part; preset is what POST to such a list adds to the fields.
	parent *world.Kind
	within func(w *world.World, s *world.Sequence, parent int64) world.Condition
	preset map[string]string
	// key, filters and shape stand in place of the kind's.
	key     string
	filters []world.Filter
	shape   string
	// monitor is a path of the Monitor API: no account, another envelope.
	monitor bool
	// endings are what may stand behind the path; nil means .json. JSON is all this API
	// speaks: a path without an ending is not found, where Twilio would answer XML.
	endings []string
}

// listFilters are what narrows the list.
func (r *route) listFilters() []world.Filter {
	if r.filters != nil || r.kind == nil {
		return r.filters
	}
	return r.kind.Filters
}

// allow returns what may be done at a route, as an Allow header has it.
func (r *route) allow() string {
	var all []string
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
		if r.do[method] != nil {
			all = append(all, method)
		}
	}
	return strings.Replace(strings.Join(all, ", "), "GET", "GET, HEAD", 1)
}

// paths returns the routes as a server finds them.
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
			all = append(all, table.Route{Pattern: version + "/" + r.pattern + ending, List: !r.instance, Do: map[string]table.Handler{
				anyMethod: func(q *table.Request) format.Answer { return t.do(&r, q) }}})
		}
	}
	return all
}

// anyMethod stands for all methods: what a path names must be there before a method is refused.
const anyMethod = ""

// do does what the method says to what the path names.
func (t *twilio) do(r *route, q *table.Request) format.Answer {
	x, there := t.resolve(r, q)
	if !there {
		return x.NotFound()
	}
	if do := r.do[q.Method]; do != nil {
		return do(t, x)
	}
	refused := format.Refuse(http.StatusMethodNotAllowed, 20405, "Method not allowed")
	refused.Header = map[string]string{"Allow": r.allow()}
	return *refused
}

// resolve finds the list or record that a request names; false when there is none.
func (t *twilio) resolve(r *route, q *table.Request) (x *world.Request, there bool) {
	w := t.world
	w.Mu.RLock()
	defer w.Mu.RUnlock()
	x = &world.Request{In: q, W: w, Quirks: t.quirks, Q: format.ReadQuery(q.Raw), S: w.Top, Filters: r.listFilters(), Key: r.key,
		Shape: r.shape, Preset: r.preset}
	x.Buried = kinds.Buried(x.Q)
	if r.kind != nil {
		x.Key, x.Shape = cmp.Or(r.key, r.kind.Name), cmp.Or(r.shape, r.kind.Shape)
	}
	if r.kind != kinds.Accounts {
		if !r.monitor {
			account, ok := w.Find(w.Top, q.Vars[0])
			if !ok {
				return x, false
			}
			x.Account = int(account)
		}
		x.S = w.Of(r.kind, x.Account)
	}
	if r.parent != nil {
		of, ok := w.Of(r.parent, x.Account), false
		if x.Parent, ok = w.Find(of, q.Vars[1]); !ok || !of.Exists(x.Parent) {
			return x, false
		}
	}
	if r.within != nil {
		x.Narrow = new(r.within(w, x.S, x.Parent))
	}
	return x, !r.instance || r.kind == nil || findRecord(x)
}

// findRecord finds the record that a path names.
func findRecord(x *world.Request) (ok bool) {
	w, k, name := x.W, x.S.Kind, x.In.Vars[len(x.In.Vars)-1]
	if k.Found != nil {
		x.Index, ok = k.Found(w, x.S, x.Parent, name)
	} else {
		x.Index, ok = w.Find(x.S, name)
	}
	return ok && x.Shows(x.Index) && (x.Narrow == nil || x.Narrow.Meets(&world.Row{W: w, S: x.S, I: x.Index}))
}

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
		{pattern: "Accounts/*/Addresses/*/DependentPhoneNumbers", kind: kinds.Numbers, parent: kinds.Addresses, within: kinds.DependOn,
			key: "dependent_phone_numbers", filters: []world.Filter{}, shape: "dependent_number", do: methods{http.MethodGet: (*twilio).page}},
		{pattern: "Accounts/*/Calls/*/Events", parent: kinds.Calls, key: "events", do: readOf(kinds.CallEvents)},
		{pattern: "Accounts/*/Balance", instance: true, do: readOf(kinds.Balance)},
		{pattern: "Accounts/*/Tokens", instance: true, do: methods{http.MethodPost: compute(kinds.NewToken)}},
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
	records("Alerts", route{kind: kinds.Alerts, monitor: true, endings: []string{""}}),
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
	if list.kind.Writes.Create != nil {
		list.do[http.MethodPost] = writing((*twilio).create)
	}
	one := list
	one.pattern, one.instance, one.do = pattern+"/*", true, methods{http.MethodGet: (*twilio).instance}
	if list.kind.Writes.Update != nil {
		one.do[http.MethodPost] = writing((*twilio).update)
	}
	if list.kind.Writes.Remove {
		one.do[http.MethodDelete] = writing((*twilio).remove)
	}
	return []route{list, one}
}

// numbersOf returns the list of one sort of numbers.
func numbersOf(path, sort string) route {
	return route{
		pattern: "Accounts/*/IncomingPhoneNumbers/" + path, kind: kinds.Numbers,
		within: func(*world.World, *world.Sequence, int64) world.Condition {
			return world.Everywhere(func(r *world.Row) bool { return r.Value("Type") == sort })
		},
		preset: map[string]string{"Type": sort}, do: methods{http.MethodGet: (*twilio).page, http.MethodPost: writing((*twilio).create)},
	}
}

// membersOfQueue returns the routes of the calls that wait in a queue.
func membersOfQueue() []route {
	all := records("Accounts/*/Queues/*/Members", route{kind: kinds.Members, parent: kinds.Queues, within: kinds.MembersOf})
	all[1].do[http.MethodPost] = writing((*twilio).dequeue)
	return all
}

// audioAt returns where a recording can be heard.
func audioAt(pattern string, r route) route {
	return fileAt(pattern, r, compute(serveAudio), ".wav", ".mp3", "")
}

// fileAt returns where the content of a record is.
func fileAt(pattern string, r route, do handler, endings ...string) route {
	r.pattern, r.instance, r.endings, r.do = pattern, true, endings, methods{http.MethodGet: do}
	return r
}

// usageRoutes returns the lists of usage: one row a category over the whole time,
// and by day, month and year, and those of one certain time.
func usageRoutes() (all []route) {
	for name := range kinds.UsageLists {
		path := "Accounts/*/Usage/Records"
		if name != "" {
			path += "/" + name
		}
		all = append(all, route{pattern: path, key: "usage_records", filters: kinds.UsageFilters,
			do: readOf(func(x *world.Request) format.Answer { return kinds.Usage(x, name) })})
	}
	return all
}

// availableRoutes returns the countries, one of them, and each sort of number in one.
func availableRoutes() []route {
	all := []route{
		{pattern: "Accounts/*/AvailablePhoneNumbers", do: readOf(kinds.CountryList)},
		{pattern: "Accounts/*/AvailablePhoneNumbers/*", instance: true, do: readOf(kinds.CountryList)},
	}
	for path := range kinds.OfferNames {
		all = append(all, route{pattern: "Accounts/*/AvailablePhoneNumbers/*/" + path, key: "available_phone_numbers",
			filters: kinds.AvailableFilters, do: readOf(kinds.AvailableNumbers)})
	}
	return all
}

// readOf returns the methods of what is computed and can only be read.
func readOf(f func(*world.Request) format.Answer) methods {
	return methods{http.MethodGet: compute(f)}
}

// compute returns the handler of what the world alone decides. It holds the world for reading.
func compute(f func(*world.Request) format.Answer) handler {
	return func(_ *twilio, x *world.Request) format.Answer {
		x.W.Mu.RLock()
		defer x.W.Mu.RUnlock()
		return f(x)
	}
}
