// Making a gate: roles and row rules are compiled, and marked with what they mean.

package access

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"understudy"
	"understudy/kit/lru"
	"understudy/kit/suggest"
	"understudy/spec"
)

// Options are what a Gate is made of.
type Options struct {
	Specs map[string]*spec.Spec // compiled, by source name
	Roles Roles
	// Rows are the roles' row rules, by role and source; a role they name must be
	// among Roles.
	Rows map[string]map[string]RowRules
	// Users are the accounts that sources ask as: a path names one whatever it
	// is about.
	Users map[string]string
	// Own reports whether a number, in the form Number gives it, is one of a
	// source's own; nil: none is. Newest is the newest held version of a record,
	// nil when it is not held or gone; nil: none is. Both are asked many times
	// for one answer, from many goroutines, and must be quick.
	Own    func(source, number string) bool
	Newest func(source, kind, id string) *understudy.Record
	// Last is like Newest, of records that are gone the last version; a page
	// token may name one. nil: Newest.
	Last  func(source, kind, id string) *understudy.Record
	Cache int64            // bytes of views kept in memory; 0 = DefaultCache, less than 0 = none
	Now   func() time.Time // nil: time.Now
}

// DefaultCache is how many bytes of views are kept in memory.
const DefaultCache = 16 << 20

// New is NewWith the given specs (by source name) and roles.
func New(specs map[string]*spec.Spec, roles Roles) (*Gate, error) {
	return NewWith(Options{Specs: specs, Roles: roles})
}

// NewWith makes a gate. A role, source, subject or level that is not known is
// an error naming the nearest one that is.
func NewWith(o Options) (*Gate, error) {
	g := &Gate{now: o.Now, specs: maps.Clone(o.Specs), roles: map[string]map[string]*grants{},
		users: maps.Clone(o.Users), held: held{own: o.Own, newest: o.Newest, last: o.Last}}
	if g.now == nil {
		g.now = time.Now
	}
	if g.last == nil {
		g.last = g.newest
	}
	if o.Cache == 0 {
		o.Cache = DefaultCache
	}
	g.lookups.now, g.lookups.of = g.now, lru.New[askedKey, *sharedLookup](maxAsked)
	g.given = lru.New[givenKey, time.Time](maxGiven)
	g.views = viewCache{lru.New[viewKey, *kept](max(o.Cache, 0)), map[*spec.Spec]errorShape{}}
	for _, s := range g.specs {
		g.views.errors[s] = newErrorShape(s)
	}
	for _, role := range slices.Sorted(maps.Keys(o.Roles)) {
		if role == "" || role == understudy.RoleAll {
			return nil, fmt.Errorf("access: roles: %q: want a name of its own; %q is built in", role, understudy.RoleAll)
		}
		plans, err := g.compile(role, o.Roles[role])
		if err != nil {
			return nil, err
		}
		if err := g.addRows(role, plans, o.Rows[role]); err != nil {
			return nil, err
		}
		g.roles[role] = plans
	}
	for role := range o.Rows {
		if _, ok := o.Roles[role]; !ok {
			return nil, fmt.Errorf("access: roles: %q has row rules and is no role", clip(role))
		}
	}
	g.stated = Options{Specs: g.specs, Roles: maps.Clone(o.Roles), Rows: maps.Clone(o.Rows)}
	g.policy = fingerprint(o)
	return g, nil
}

func (g *Gate) compile(role string, sources map[string]map[string]string) (map[string]*grants, error) {
	plans := map[string]*grants{}
	for _, source := range slices.Sorted(maps.Keys(sources)) {
		sp := g.specs[source]
		if sp == nil {
			return nil, fmt.Errorf("access: roles.%s: no source %q%s", role, clip(source),
				suggest.Hint(clip(source), slices.Sorted(maps.Keys(g.specs))))
		}
		r, err := readRules("roles."+role+"."+source, sp, sources[source])
		if err != nil {
			return nil, err
		}
		plans[source] = &grants{kinds: map[string]*plan{}, unnamed: nothing(sp)}
		for _, k := range sp.Kinds {
			plans[source].kinds[k.Name] = newPlan(sp, k, r)
		}
	}
	return plans, nil
}

// addRows adds a role's row rules to its plans. A kind of which it finds nothing
// is hidden whole.
func (g *Gate) addRows(role string, plans map[string]*grants, rows map[string]RowRules) error {
	for _, source := range slices.Sorted(maps.Keys(rows)) {
		r := plans[source]
		if r == nil {
			return fmt.Errorf("access: roles.%s.%s: it has row rules and nothing it may see", role, clip(source))
		}
		var err error
		if r.rows, err = g.compileRows("roles."+role+"."+source, source, g.specs[source], rows[source]); err != nil {
			return err
		}
		for kind, f := range r.rows {
			if f.never {
				r.kinds[kind] = &plan{spec: g.specs[source], kind: g.specs[source].Kind(kind), record: &node{}}
			}
		}
	}
	return nil
}

// fingerprint names a policy: equal roles over equal fields, equal names.
func fingerprint(o Options) string {
	type field struct{ Name, Class, From, Tells string }
	type kind struct {
		Name   string
		Fields []field
	}
	specs := map[string][]kind{}
	for source, s := range o.Specs {
		for _, k := range s.Kinds {
			entry := kind{Name: k.Name}
			for _, f := range k.Fields {
				entry.Fields = append(entry.Fields, field{f.Name, f.Class, f.From, f.Tells})
			}
			specs[source] = append(specs[source], entry)
		}
	}
	text, err := json.Marshal(struct {
		Roles Roles
		Rows  map[string]map[string]RowRules
		Specs map[string][]kind
	}{o.Roles, o.Rows, specs})
	if err != nil {
		panic("access: strings and maps of them always marshal: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}
