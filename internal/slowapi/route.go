// Paths: which list or record a request names.
package slowapi

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"understudy/internal/slowapi/computed"
	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/kinds"
	"understudy/internal/slowapi/world"
)

// handler answers a request to what its path names.
type handler func(s *Server, r *http.Request, t target, form url.Values) (format.Answer, error)

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

// listKey returns the list's key.
func (r *route) listKey() string { return cmp.Or(r.key, r.kind.Name) }

// shown returns the name of the template of its records.
func (r *route) shown() string { return cmp.Or(r.shape, r.kind.Shape) }

// routeOf finds the route of a path and the SIDs in it; nil when there is none.
func routeOf(path string) (*route, []string) {
	name, ending := splitEnding(path)
	for _, all := range [][]route{routes, fileRoutes, monitorRoutes} {
		for i := range all {
			if sids, ok := all[i].match(name, ending); ok {
				return &all[i], sids
			}
		}
	}
	return nil, nil
}

// match tells whether a path and its ending are the route's, and which SIDs it names.
func (r *route) match(name, ending string) (sids []string, ok bool) {
	version, endings := format.Version, r.endings
	if r.monitor {
		version = format.MonitorVersion
	}
	if endings == nil {
		endings = []string{".json"}
	}
	rest, ok := strings.CutPrefix(name, version+"/")
	if !ok || !slices.Contains(endings, ending) {
		return nil, false
	}
	return format.Match(r.pattern, rest)
}

// allow returns what may be done at a route, as an Allow header has it.
func (r *route) allow() string {
	var all []string
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodDelete} {
		if r.handler(method) != nil {
			all = append(all, method)
		}
	}
	return strings.Join(all, ", ")
}

// handler returns what answers a method, nil when nothing does.
func (r *route) handler(method string) handler {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	return r.do[method]
}

// readOf returns the methods of what is computed and can only be read.
func readOf(f func(*computed.Request) format.Answer) methods {
	return methods{http.MethodGet: compute(f)}
}

// compute returns the handler of what the world alone decides.
func compute(f func(*computed.Request) format.Answer) handler {
	return func(s *Server, r *http.Request, t target, form url.Values) (format.Answer, error) {
		return f(&computed.Request{
			W: s.world, Quirks: s.quirks, Path: t.path, Sids: t.sids, Account: t.account, Parent: t.parent,
			Key: t.route.key, Filters: t.route.filters, Q: format.ReadQuery(r.URL.RawQuery), Form: form,
		}), nil
	}
}

// target is what a request asks about.
type target struct {
	route   *route
	path    string
	sids    []string
	account int
	seq     *world.Sequence // of the route's kind, nil when it has none
	parent  int64           // the record of the route's parent kind
	index   int64           // the record itself, of an instance
	narrow  *world.Condition
	here    string // where this server is, as http://127.0.0.1:4116
	buried  bool   // a record deleted lately is asked for too
}

// resolve finds the list or record a route's SIDs name; false when there is none.
func resolve(w *world.World, r *route, path string, sids []string, q format.Query) (target, bool) {
	w.Mu.RLock()
	defer w.Mu.RUnlock()
	t := target{route: r, path: path, sids: sids, seq: w.Top, buried: kinds.Buried(q)}
	if r.kind != kinds.Accounts {
		ok := true
		if !r.monitor {
			t.account, ok = w.AccountIndex(sids[0])
		}
		if !ok {
			return t, false
		}
		t.seq = w.Of(r.kind, t.account)
	}
	if !resolveParent(w, &t) {
		return t, false
	}
	if r.narrow != nil {
		c := world.Everywhere(r.narrow)
		t.narrow = &c
	}
	if !r.instance || r.kind == nil {
		return t, true
	}
	return t, resolveRecord(w, &t)
}

// shows reports whether the record is there for this request.
func shows(w *world.World, t *target) bool {
	return t.seq.Exists(t.index) || t.buried && t.seq.Buried(t.index, w.Now().Unix())
}

// resolveParent finds the record a list belongs to.
func resolveParent(w *world.World, t *target) bool {
	r := t.route
	if r.parent == nil {
		return true
	}
	s := w.Of(r.parent, t.account)
	index, ok := w.Find(s, t.sids[1])
	if !ok || !s.Exists(index) {
		return false
	}
	t.parent = index
	if r.within != nil {
		c := r.within(w, t.seq, index)
		t.narrow = &c
	}
	return true
}

// resolveRecord finds the record a path names.
func resolveRecord(w *world.World, t *target) bool {
	name, k, ok := t.sids[len(t.sids)-1], t.route.kind, false
	if k.Found != nil {
		t.index, ok = k.Found(w, t.seq, t.parent, name)
	} else {
		t.index, ok = w.Find(t.seq, name)
	}
	if !ok || !shows(w, t) || t.narrow == nil {
		return ok && shows(w, t)
	}
	one := k.Blank()
	one.Load(w, t.seq, t.index)
	return t.narrow.Test(one)
}

// splitEnding takes the last dot and what stands behind it off a path's last part.
func splitEnding(path string) (name, ending string) {
	dot := strings.LastIndexByte(path, '.')
	if dot < 0 || dot < strings.LastIndexByte(path, '/') {
		return path, ""
	}
	return path[:dot], path[dot:]
}
