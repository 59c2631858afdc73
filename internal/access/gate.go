// Gate: which requests are permitted, and which part of a response is shown.

package access

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"understudy"
	"understudy/kit/lru"
	"understudy/kit/suggest"
	"understudy/spec"
)

// Gate decides by one policy, which never changes. A new policy needs a new Gate,
// and the views of the old Gate are dropped with it. It is safe for concurrent use.
type Gate struct {
	now    func() time.Time
	specs  map[string]*spec.Spec
	roles  map[string]map[string]*grants // by role and source; a missing one sees nothing
	policy string
	stated Options // what the policy was made of: specs, roles and rows
	views  viewCache
	hash   *Hasher
	users  map[string]string
	held   held
	given  *lru.Cache[givenKey, time.Time] // when a caller was last given a token
	lists  *lru.Cache[listKey, foundList]  // as row rules leave them

	lookups lookups
}

// held is what row rules ask of the records that are held (see Options).
type held struct {
	own          func(source, number string) bool
	newest, last func(source, kind, id string) *understudy.Record
	addressed    func(*spec.Target) string
}

// grants are a role's plans for one source, by kind, and for unnamed paths.
type grants struct {
	kinds   map[string]*plan
	unnamed *plan
	hashes  bool                  // a field is shown as a hash
	whole   bool                  // every field that the spec names is seen
	rows    map[string]*rowFilter // the row rules; nil: every record is found
	does    map[string]bool       // what people may do, by the words of Doings
}

// Policy is the policy's version: it changes with the roles and with what the
// specs say of their fields.
func (g *Gate) Policy() string { return g.policy }

// Known returns nil if the policy has the role, else an error that names the
// most similar role. The role all is built in; the role "" does not exist.
func (g *Gate) Known(role string) error {
	if g.roles[role] != nil || role == understudy.RoleAll || role == "" {
		return nil
	}
	known := append(slices.Sorted(maps.Keys(g.roles)), understudy.RoleAll)
	return fmt.Errorf("access: no role %q%s", understudy.Clip(role), suggest.Hint(understudy.Clip(role), known))
}

// Narrowest returns the role that sees the least, but sees something; "" if
// there is no such role. It compares fully and partly shown fields, then names.
func (g *Gate) Narrowest() (role string) {
	least := 0
	for _, name := range slices.Sorted(maps.Keys(g.roles)) {
		c := understudy.Caller{Name: name, Grant: &understudy.Grant{Role: name}}
		shown := 0
		for source, sp := range g.specs {
			for _, k := range sp.Kinds {
				for _, f := range k.Fields {
					shown += int(g.Level(c, source, k.Name, f.Name))
				}
			}
		}
		if shown > 0 && (role == "" || shown < least) {
			role, least = name, shown
		}
	}
	return role
}

// plan finds what a caller may see of a kind of a source. all is true for the
// built-in role; else p is nil when nothing may be seen, the error says why.
func (g *Gate) plan(c understudy.Caller, source, kind string) (p *plan, all bool, err error) {
	sp := g.specs[source]
	switch {
	case sp == nil || c.Source != "" && c.Source != source:
		return nil, false, refuse("%s may not ask source %s", c.Name, source)
	case c.Role() == "":
		return nil, false, refuse("%s has no role", c.Name)
	case !c.Grant.IsActive(g.now()):
		return nil, false, refuse("the grant of %s has ended", c.Name)
	case c.Grant.Role == understudy.RoleAll:
		return nil, true, nil
	}
	role := g.roles[c.Grant.Role][source]
	switch {
	case role == nil:
		return nil, false, refuse("role %s may see nothing of %s", c.Grant.Role, source)
	case kind == "":
		return role.unnamed, false, nil
	case !role.kinds[kind].sees():
		return nil, false, refuse("role %s may not see %s", c.Grant.Role, kind)
	}
	return role.kinds[kind], false, nil
}

// Level returns how much of a field of a kind a caller sees. It is Hide for a
// secret, and for a field the spec does not name unless the role is all.
func (g *Gate) Level(c understudy.Caller, source, kind, field string) Level {
	p, all, err := g.plan(c, source, kind)
	if err != nil {
		return Hide
	}
	if all {
		if k := g.specs[source].Kind(kind); k != nil && k.Field(field) != nil && k.Field(field).Class == spec.ClassSecret {
			return Hide
		}
		return See
	}
	return p.level(field)
}

// Named reports whether a caller sees the ids of a kind's records. It does if it
// fully sees every field that the id is made of.
func (g *Gate) Named(c understudy.Caller, source string, k *spec.Kind) bool {
	return !slices.ContainsFunc(k.ID, func(field string) bool { return g.Level(c, source, k.Name, field) < See })
}

// CanSee reports whether a caller sees anything of a kind. If it does not, it may
// not learn the number of records either.
func (g *Gate) CanSee(c understudy.Caller, source, kind string) bool {
	p, all, err := g.plan(c, source, kind)
	return err == nil && (all || p.kind != nil)
}

// Sight is what a policy lets a caller see of a target. It belongs to one request, and is
// not safe for concurrent use.
type Sight struct {
	// Whole: the caller sees every record of the source and every field that the spec names.
	Whole bool

	gate   *Gate
	caller understudy.Caller
	source string
	kind   string
	spec   *spec.Spec // nil: there is no such source
	plan   *plan      // nil: all, or an error
	all    bool       // the built-in role
	ruled  *grants    // nil: no row rules bind the caller in this source
	err    error      // nothing of the kind may be seen
}

// Sight looks up what a caller may see of a target.
func (g *Gate) Sight(c understudy.Caller, t *spec.Target) (s Sight) {
	s = Sight{gate: g, caller: c, source: t.Key.Source, spec: g.specs[t.Key.Source]}
	if t.Kind != nil {
		s.kind = t.Kind.Name
	}
	s.plan, s.all, s.err = g.plan(c, s.source, s.kind)
	s.ruled = g.ruled(c, s.source)
	s.Whole = s.err == nil && (s.all || s.ruled == nil && g.roles[c.Role()][s.source].whole)
	return s
}

// Read returns nil if the caller may request a target by GET or HEAD, else
// ErrForbidden with a reason. The result does not depend on whether the record
// exists. There are three reasons: the kind is hidden, a parameter reads a field
// the caller does not fully see, or the spec does not name the path and the
// grant does not allow it. Where upstream answers each time (spec.PassesTo), the role all
// needs no permission. For a media path, Media decides.
func (s *Sight) Read(t *spec.Target) error {
	kind, c := s.kind, s.caller
	switch {
	case t.Media != nil:
		return s.gate.Media(c, t)
	case s.spec != nil && s.spec.IsGeneric():
		return exchange(s.gate, c, t, "GET")
	case t.Slashed && !s.Whole:
		return slashed()
	case s.err != nil:
		return s.err
	case kind == "" && s.all && t.Spec != nil && t.Spec.IsPassThrough(t.Key.Path()):
		return nil
	case kind == "" && !s.all && t.Spec != nil && t.Spec.IsGraphQLPath(t.Key.Path()):
		return refuseGraphQL(c)
	case kind == "" && !allowed(c, "GET", t):
		return refuse("credential %s may not ask for this path", c.Name)
	case kind == "" && s.ruled != nil:
		return refuse("role %s finds some records alone, and what this path shows is not known", c.Grant.Role)
	case kind == "" || s.all:
		return nil
	}
	for _, param := range t.Query {
		if err := s.plan.param(t, param); err != nil {
			return refuse("role %s may not use the parameter %s: %w", c.Grant.Role, understudy.Clip(param.Name), err)
		}
	}
	return nil
}

// Read returns nil if a caller may request a target by GET or HEAD, as Sight.Read does, for callers that ask nothing else.
func (g *Gate) Read(c understudy.Caller, t *spec.Target) error {
	p := g.Sight(c, t)
	return p.Read(t)
}

// Media returns nil if a caller may read the content of a record, else
// ErrForbidden with a reason. The caller must see the kind, and must fully see
// the field of the media path. The words play and see are one level; content has
// no last four digits. The result does not depend on whether the record exists.
func (g *Gate) Media(c understudy.Caller, t *spec.Target) error {
	if t.Kind == nil || t.Media == nil {
		return refuse("the path is none of a content")
	}
	p, all, err := g.plan(c, t.Key.Source, t.Kind.Name)
	switch {
	case err != nil:
		return err
	case all:
		return nil
	case p.apart[t.Media.Field] < See:
		return refuse("role %s may not have %s.%s", c.Grant.Role, t.Kind.Name, t.Media.Field)
	case len(t.Query) > 0:
		return refuse("role %s may not use the parameter %s: it is not known to be safe", c.Grant.Role, understudy.Clip(t.Query[0].Name))
	}
	return nil
}

// param returns nil if a parameter may be used, else the reason. A parameter
// that the spec does not describe could be a filter. A filter on a field that is shown as
// a hash may be given a hash.
func (p *plan) param(t *spec.Target, given understudy.Param) error {
	name := given.Name
	if t.List == nil {
		return fmt.Errorf("it is not known to be safe")
	}
	paging := t.Spec.PagingOf(t.List)
	if name != "" && (name == paging.Size || paging.IsPosition(name)) {
		return nil
	}
	f := t.List.Filter(name)
	switch {
	case f == nil:
		return fmt.Errorf("it is not known to be safe")
	case f.Field == "" && !p.whole:
		return fmt.Errorf("it may look at fields the role does not see")
	case f.Field == "":
		return nil
	}
	switch n := p.record.at(f.Field); {
	case n != nil && n.level == See, n != nil && n.level == Hash && f.Op == "is" && isHash(given.Value):
		return nil
	case n != nil && n.level == Hash && f.Op == "is":
		return &UnseenError{t.Kind.Name, f.Field, true}
	}
	return &UnseenError{t.Kind.Name, f.Field, false}
}

// UnseenError is why a role may not ask: a field it does not fully see. Hash: it may ask
// for the hash of a value.
type UnseenError struct {
	Kind, Field string
	Hash        bool
}

// Error names the field.
func (e *UnseenError) Error() string {
	if e.Hash {
		return "it looks at " + e.Field + ", of which the role sees the hash; give a hash, like h:" + strings.Repeat("x", textHash)
	}
	return "it looks at " + e.Field + ", which the role does not fully see"
}

// Write returns nil if a caller may send a request with this method to a target.
// An allow entry of its grant has to name the request. GraphQL also needs the role all: a
// document can give a hidden field another name. GET and HEAD are also
// permitted if Read permits them. For a generic source exchange decides of every method.
func (g *Gate) Write(c understudy.Caller, t *spec.Target, method string) error {
	if sp := g.specs[t.Key.Source]; sp != nil && sp.IsGeneric() {
		return exchange(g, c, t, method)
	}
	if method == "GET" || method == "HEAD" {
		return g.Read(c, t)
	}
	if t.Slashed {
		return slashed()
	}
	_, all, err := g.plan(c, t.Key.Source, "")
	switch {
	case err != nil:
		return err
	case !all && t.Spec != nil && t.Spec.IsGraphQLPath(t.Key.Path()):
		return refuseGraphQL(c)
	case !allowed(c, method, t):
		return refuse("credential %s may not %s here; its allow list would have to name the method and path", c.Name, understudy.Clip(method))
	}
	return nil
}

// slashed returns the error for an escaped slash in a path. An API that takes it for a plain one shows
// another kind there, of which nothing would be hidden, and writes to what no allow entry names.
func slashed() error {
	return fmt.Errorf("access: %w: %w", understudy.ErrInvalid, ErrNoPath)
}

// ErrNoPath is the error of a path that is refused whatever is held: it tells nothing about a record.
var ErrNoPath = fmt.Errorf("%w: Understudy knows no such path of this API; "+
	"check its letters, their case, its slashes and its escapes", understudy.ErrNotFound)

func refuseGraphQL(c understudy.Caller) error {
	return refuse("role %s can't use GraphQL, because it does not see everything and a query can give a hidden field another name; "+
		"use the REST paths, or ask an administrator for the role all", c.Grant.Role)
}

// exchange returns nil if a caller may send a request with this method to a generic source.
// Nothing is known of what its answers show: the caller needs the role all, and for a method
// that may change something an allow entry of its grant.
func exchange(g *Gate, c understudy.Caller, t *spec.Target, method string) error {
	_, all, err := g.plan(c, t.Key.Source, "")
	switch {
	case err != nil:
		return err
	case !all:
		return refuse("role %s does not see all, and what %s shows is not known", c.Grant.Role, t.Key.Source)
	case method == "GET" || method == "HEAD" || method == "OPTIONS":
		return nil
	}
	if _, err := understudy.SplitPath(t.Key.Path()); err != nil { // upstream may read another path in it
		if !slices.Contains(c.Grant.Allow, understudy.Allow{Method: "*", Path: "/**"}) {
			return refuse("credential %s may not %s a path that can be read in two ways", c.Name, understudy.Clip(method))
		}
		return nil
	}
	if !allowed(c, method, t) {
		return refuse("credential %s may not %s here; its allow list would have to name the method and path", c.Name, understudy.Clip(method))
	}
	return nil
}

// allowed reports whether the grant's allow list names the method and path.
func allowed(c understudy.Caller, method string, t *spec.Target) bool {
	if c.Grant == nil || len(c.Grant.Allow) == 0 {
		return false
	}
	segments := strings.Split(t.Key.Path(), "/")
	for i, s := range segments {
		text, err := url.PathUnescape(s)
		if err != nil {
			return false
		}
		segments[i] = text
	}
	path := strings.Join(segments, "/")
	return slices.ContainsFunc(c.Grant.Allow, func(a understudy.Allow) bool { return a.Match(method, path) })
}

func refuse(format string, args ...any) error {
	return fmt.Errorf("access: %w: %w", understudy.ErrForbidden, fmt.Errorf(format, args...))
}
