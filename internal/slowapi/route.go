// Paths: which list or record a request names.
package slowapi

import "strings"

// route is one path below /2010-04-01, a star for each SID in it. The last star
// of an instance names a record of the kind, the first one the account.
type route struct {
	pattern  string
	kind     *kind
	instance bool
	narrow   func(row) bool    // a list that shows a part of the kind
	preset   map[string]string // what POST to such a list adds to the fields
}

var routes = []route{
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
}

// numbersOf is the list of one sort of numbers.
func numbersOf(path, sort string) route {
	return route{
		pattern: "Accounts/*/IncomingPhoneNumbers/" + path, kind: numbers,
		narrow: func(r row) bool { return r.(*number).sort == sort },
		preset: map[string]string{"Type": sort},
	}
}

// routeOf finds the route of a path and the SIDs in it; nil when there is none.
// JSON is all this API speaks: a path without .json is not found, where Twilio
// would answer XML.
func routeOf(path string) (*route, []string) {
	rest, versioned := strings.CutPrefix(path, version+"/")
	rest, json := strings.CutSuffix(rest, ".json")
	if !versioned || !json {
		return nil, nil
	}
	for i := range routes {
		if sids, ok := routes[i].match(rest); ok {
			return &routes[i], sids
		}
	}
	return nil, nil
}

// match compares a path with the pattern, part by part.
func (r *route) match(path string) ([]string, bool) {
	var sids []string
	pattern := r.pattern
	for {
		want, laterWant, moreWant := strings.Cut(pattern, "/")
		have, laterHave, moreHave := strings.Cut(path, "/")
		if want == "*" && have != "" {
			sids = append(sids, have)
		} else if want != have {
			return nil, false
		}
		if moreWant != moreHave {
			return nil, false
		}
		if !moreWant {
			return sids, true
		}
		pattern, path = laterWant, laterHave
	}
}

// allow is what may be done at a route, as an Allow header has it.
func (r *route) allow() string {
	allow := "GET, HEAD"
	if !r.instance && r.kind.create != nil || r.instance && r.kind.update != nil {
		allow += ", POST"
	}
	if r.instance && r.kind.remove {
		allow += ", DELETE"
	}
	return allow
}

// target is what a request asks about.
type target struct {
	route  *route
	path   string
	seq    *sequence
	index  int64
	narrow *condition
}

// resolve finds the list or record a route's SIDs name; false when there is none.
func (w *world) resolve(r *route, path string, sids []string) (target, bool) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	t := target{route: r, path: path, seq: w.top}
	if r.kind != accounts {
		account, ok := w.accountIndex(sids[0])
		if !ok {
			return t, false
		}
		t.seq = w.of(r.kind, account)
	}
	if r.narrow != nil {
		c := everywhere(r.narrow)
		t.narrow = &c
	}
	if !r.instance {
		return t, true
	}
	index, ok := w.find(t.seq, sids[len(sids)-1])
	t.index = index
	return t, ok && t.seq.exists(index)
}
