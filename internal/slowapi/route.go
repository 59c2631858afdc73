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
	narrow   func(world.Row) bool // a list that shows a part of the kind
	preset   map[string]string    // what POST to such a list adds to the fields

	// parent is the kind of the record named by the SID behind the account's,
	// which must exist, and within which records of the kind belong to it.
	parent *world.Kind
	within func(w *world.World, s *world.Sequence, parent int64) world.Condition
	// key, filters and shape stand in place of the kind's, and whole in place of the
	// shape where a record stands alone.
	key          string
	filters      []world.Filter
	shape, whole string
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
	return refused.Answer()
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
		ok := true
		if !r.monitor {
			x.Account, ok = w.AccountIndex(q.Vars[0])
		}
		if !ok {
			return x, false
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
		c := r.within(w, x.S, x.Parent)
		x.Narrow = &c
	}
	if r.narrow != nil {
		c := world.Everywhere(r.narrow)
		x.Narrow = &c
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
	if !ok || !x.Shows() || x.Narrow == nil {
		return ok && x.Shows()
	}
	one := k.Row()
	one.Load(w, x.S, x.Index)
	return x.Narrow.Meets(one, x.Index)
}
