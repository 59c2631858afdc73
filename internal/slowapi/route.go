// Paths: which list or record a request names.
package slowapi

import (
	"cmp"
	"net/http"
	"net/url"
	"strings"

	"understudy/internal/slowapi/computed"
	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/kinds"
	"understudy/internal/slowapi/world"
)

// route is one path below /2010-04-01, a star for each SID in it. The last star
// of an instance names a record of the kind, the first one the account.
type route struct {
	pattern  string
	kind     *world.Kind
	instance bool
	narrow   func(world.Row) bool // a list that shows a part of the kind
	preset   map[string]string    // what POST to such a list adds to the fields

	// parent is the kind of the record named by the SID behind the account's,
	// which must exist, and within which records of the kind belong to it.
	parent *world.Kind
	within func(w *world.World, s *world.Sequence, parent int64) world.Condition
	// key and filters stand in place of the kind's.
	key     string
	filters []world.Filter
	shape   string // the template of its records in place of the kind's
	// monitor is a path of the Monitor API: no account, no .json, another envelope.
	monitor bool
	// readOnly is a list whose records are made elsewhere.
	readOnly bool
	// serve answers what is neither a list nor a record of a kind; methods are
	// what it takes, as an Allow header has them.
	serve   func(s *Server, r *http.Request, t target, form url.Values) (format.Answer, error)
	compute func(*computed.Request) format.Answer // in its place where the world alone decides
	methods string
	// endings are what may stand behind the path in place of .json, as ".wav"; "" is
	// nothing at all.
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
// JSON is all this API speaks: a path without .json is not found, where Twilio
// would answer XML. The paths of the Monitor API have no ending.
func routeOf(path string) (*route, []string) {
	all := routes
	rest, versioned := strings.CutPrefix(path, format.Version+"/")
	rest, json := strings.CutSuffix(rest, ".json")
	if after, monitor := strings.CutPrefix(path, format.MonitorVersion+"/"); monitor {
		all, rest, versioned, json = monitorRoutes, after, true, true
	}
	if versioned && !json {
		return fileRouteOf(rest)
	}
	if !versioned || !json {
		return nil, nil
	}
	for i := range all {
		if sids, ok := format.Match(all[i].pattern, rest); ok {
			return &all[i], sids
		}
	}
	return nil, nil
}

// allow is what may be done at a route, as an Allow header has it.
func (r *route) allow() string {
	if r.serve != nil || r.compute != nil {
		return r.methods
	}
	allow := "GET, HEAD"
	if !r.instance && !r.readOnly && r.kind.Create != nil || r.instance && r.kind.Update != nil {
		allow += ", POST"
	}
	if r.instance && r.kind.Remove {
		allow += ", DELETE"
	}
	return allow
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
