// This file decides which requests are permitted, and which part of a response a caller sees.

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
	now        func() time.Time
	specs      map[string]*spec.Spec
	roles      map[string]map[string]*grants // the grants by role and source; a role without an entry sees nothing
	policy     string
	options    Options   // the options for the policy: specs, roles, row rules and permissions
	views      viewCache // the cached rewritten bodies of pages
	hash       *Hasher
	users      map[string]string
	records    storedRecords                       // reads the stored records that row rules need
	sentTokens *lru.Cache[sentTokenKey, time.Time] // the time when a caller last received the page token of a record
	lists      *lru.Cache[listKey, cachedList]     // the cached lists of the records that a row rule allows

	lookups lookups
}

// storedRecords are the functions by which row rules read stored records (see Options).
type storedRecords struct {
	own          func(source, number string) bool
	newest, last func(source, kind, id string) *understudy.Record
	addressed    func(*spec.Target) string
}

// grants are a role's plans for one source: a plan for each kind, and plans for paths that the spec does not name.
type grants struct {
	kinds     map[string]*plan
	unnamed   *plan
	hashes    bool                  // whether any field is shown as a hash
	seesAll   bool                  // whether the role sees every field that the spec names
	rows      map[string]*rowFilter // the row rules by kind; nil if the role finds every record
	permitted map[string]bool       // the permissions of the role (see permissionNames)
}

// Policy returns the version of the policy. It changes with the roles and with what the specs say about their fields.
func (g *Gate) Policy() string { return g.policy }

// CheckRole returns nil if the policy has the role, else an error that names the most similar role. The role
// all is built in; the role "" does not exist.
func (g *Gate) CheckRole(role string) error {
	if g.roles[role] != nil || role == understudy.RoleAll || role == "" {
		return nil
	}
	known := append(slices.Sorted(maps.Keys(g.roles)), understudy.RoleAll)
	return fmt.Errorf("access: no role %q%s", understudy.Clip(role), suggest.Hint(understudy.Clip(role), known))
}

// NarrowestRole returns the role that sees the least, but sees something. It returns "" if there is no such
// role. It compares the number of fully and partly shown fields, then names.
func (g *Gate) NarrowestRole() (role string) {
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

// plan returns what a caller may see of a kind. all is true for the built-in role all, which has no plan. An error
// says why the caller may see nothing.
func (g *Gate) plan(c understudy.Caller, source, kind string) (p *plan, all bool, err error) {
	sp := g.specs[source]
	switch {
	case sp == nil || c.Source != "" && c.Source != source:
		return nil, false, refuse("%s can't use the source %s", c.Name, source)
	case c.Role() == "":
		return nil, false, refuse("%s has no role", c.Name)
	case !c.Grant.IsActive(g.now()):
		return nil, false, refuse("the access of %s has ended", c.Name)
	case c.Grant.Role == understudy.RoleAll:
		return nil, true, nil
	}
	role := g.roles[c.Grant.Role][source]
	switch {
	case role == nil:
		return nil, false, refuse("your role (%s) can't see anything of %s", c.Grant.Role, source)
	case kind == "":
		return role.unnamed, false, nil
	case !role.kinds[kind].isVisible():
		return nil, false, refuse("your role (%s) can't see %s", c.Grant.Role, kind)
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

// CanSeeIDs reports whether a caller sees the ids of a kind's records, because its role fully sees every field of the id.
func (g *Gate) CanSeeIDs(c understudy.Caller, source string, k *spec.Kind) bool {
	return !slices.ContainsFunc(k.ID, func(field string) bool { return g.Level(c, source, k.Name, field) < See })
}

// CanSee reports whether a caller sees any field of a kind. If the caller sees none, it may not learn the number of
// records either.
func (g *Gate) CanSee(c understudy.Caller, source, kind string) bool {
	p, all, err := g.plan(c, source, kind)
	return err == nil && (all || p.kind != nil)
}

// Visibility is what a policy lets a caller see of a target. It is made for one request, and is not safe for
// concurrent use.
type Visibility struct {
	// SeesAll is whether the caller sees every record of the source and every field that the spec names.
	SeesAll bool

	gate     *Gate
	caller   understudy.Caller
	source   string
	kind     string
	spec     *spec.Spec // the source's spec; nil if the source does not exist
	plan     *plan      // how fields are hidden; nil if the caller sees everything, or if err is set
	all      bool       // whether the caller has the built-in role all
	rowRules *grants    // the row rules; nil if no row rules limit the caller in this source
	err      error      // why the caller may see nothing of the kind
}

// Visibility returns what a caller may see of a target.
func (g *Gate) Visibility(c understudy.Caller, t *spec.Target) (s Visibility) {
	s = Visibility{gate: g, caller: c, source: t.Key.Source, spec: g.specs[t.Key.Source]}
	if t.Kind != nil {
		s.kind = t.Kind.Name
	}
	s.plan, s.all, s.err = g.plan(c, s.source, s.kind)
	s.rowRules = g.limitedGrants(c, s.source)
	s.SeesAll = s.err == nil && (s.all || s.rowRules == nil && g.roles[c.Role()][s.source].seesAll)
	return s
}

// CheckRead returns nil if the caller may request a target by GET or HEAD, else ErrForbidden with a reason. The result
// does not depend on whether the record exists. There are three reasons: the kind is hidden, a parameter reads a field
// that the caller does not fully see, or the spec does not name the path and the grant does not allow it. The role all
// needs no permission for a path that upstream always answers (spec.PassesTo). CheckMedia decides on media paths.
func (s *Visibility) CheckRead(t *spec.Target) error {
	kind, c := s.kind, s.caller
	switch {
	case t.Media != nil:
		return s.gate.CheckMedia(c, t)
	case s.spec != nil && s.spec.IsGeneric():
		return checkGeneric(s.gate, c, t, "GET")
	case t.Slashed && !s.SeesAll:
		return refuseSlash()
	case s.err != nil:
		return s.err
	case kind == "" && s.all && t.Spec != nil && t.Spec.IsPassThrough(t.Key.Path()):
		return nil
	case kind == "" && !s.all && t.Spec != nil && t.Spec.IsGraphQLPath(t.Key.Path()):
		return refuseGraphQL(c)
	case kind == "" && !isAllowed(c, "GET", t):
		return refuse("credential %s can't read this path", c.Name)
	case kind == "" && s.rowRules != nil:
		return refuse("your role (%s) can see only some records, and Understudy doesn't know what this path shows", c.Grant.Role)
	case kind == "" || s.all:
		return nil
	}
	for _, param := range t.Query {
		if err := s.plan.checkParam(t, param); err != nil {
			return refuse("your role (%s) can't use the parameter %s: %w", c.Grant.Role, understudy.Clip(param.Name), err)
		}
	}
	return nil
}

// CheckRead returns nil if a caller may request a target by GET or HEAD, as Visibility.CheckRead does.
func (g *Gate) CheckRead(c understudy.Caller, t *spec.Target) error {
	p := g.Visibility(c, t)
	return p.CheckRead(t)
}

// CheckMedia returns nil if a caller may read the media content of a record, else ErrForbidden with a reason. The
// caller must see the kind, and must fully see the field of the media path. The levels play and see mean the same
// there, and no other level shows any content. The result does not depend on whether the record exists.
func (g *Gate) CheckMedia(c understudy.Caller, t *spec.Target) error {
	if t.Kind == nil || t.Media == nil {
		return refuse("this is not the path of a file")
	}
	p, all, err := g.plan(c, t.Key.Source, t.Kind.Name)
	switch {
	case err != nil:
		return err
	case all:
		return nil
	case p.outsideBody[t.Media.Field] < See:
		return refuse("your role (%s) can't open %s.%s", c.Grant.Role, t.Kind.Name, t.Media.Field)
	case len(t.Query) > 0:
		return refuse("your role (%s) can't use the parameter %s: it could reveal hidden fields", c.Grant.Role, understudy.Clip(t.Query[0].Name))
	}
	return nil
}

// checkParam returns nil if a request may have a parameter, else the reason. A parameter that the spec does not
// describe could be a filter. A filter on a field that is shown as a hash may compare with a hash.
func (p *plan) checkParam(t *spec.Target, given understudy.Param) error {
	name := given.Name
	if t.List == nil {
		return fmt.Errorf("it could reveal hidden fields")
	}
	paging := t.Spec.PagingOf(t.List)
	if name != "" && (name == paging.Size || paging.IsPosition(name)) {
		return nil
	}
	f := t.List.Filter(name)
	switch {
	case f == nil:
		return fmt.Errorf("it could reveal hidden fields")
	case f.Field == "" && !p.seesAll:
		return fmt.Errorf("it reads fields that the role can't see")
	case f.Field == "":
		return nil
	}
	switch n := p.record.find(f.Field); {
	case n != nil && n.level == See, n != nil && n.level == Hash && f.Op == "is" && isHash(given.Value):
		return nil
	case n != nil && n.level == Hash && f.Op == "is":
		return &UnseenError{t.Kind.Name, f.Field, true}
	}
	return &UnseenError{t.Kind.Name, f.Field, false}
}

// UnseenError says that a request reads a field that the role does not fully see. If Hash is set, the role may
// filter by the hash of a value.
type UnseenError struct {
	Kind, Field string
	Hash        bool
}

// Error returns a sentence that names the field.
func (e *UnseenError) Error() string {
	if e.Hash {
		return "it reads " + e.Field + ", which the role sees only as a hash; write a hash, like h:" + strings.Repeat("x", textHash)
	}
	return "it reads " + e.Field + ", which the role can't see in full"
}

// CheckWrite returns nil if a caller may send a request with this method to a target. An allow entry of its grant must
// name the request. GraphQL also needs the role all, because a query can give a hidden field another name. GET and HEAD
// are also permitted if CheckRead permits them. For a generic source checkGeneric decides about every method.
func (g *Gate) CheckWrite(c understudy.Caller, t *spec.Target, method string) error {
	if sp := g.specs[t.Key.Source]; sp != nil && sp.IsGeneric() {
		return checkGeneric(g, c, t, method)
	}
	if method == "GET" || method == "HEAD" {
		return g.CheckRead(c, t)
	}
	if t.Slashed {
		return refuseSlash()
	}
	_, all, err := g.plan(c, t.Key.Source, "")
	switch {
	case err != nil:
		return err
	case !all && t.Spec != nil && t.Spec.IsGraphQLPath(t.Key.Path()):
		return refuseGraphQL(c)
	case !isAllowed(c, method, t):
		return refuseMethod(c, method)
	}
	return nil
}

// refuseMethod returns the error for a request that no allow entry of a credential names.
func refuseMethod(c understudy.Caller, method string) error {
	return refuse("credential %s can't %s here; an administrator can add the method and path to its allow list", c.Name,
		understudy.Clip(method))
}

// refuseSlash returns the error for a path with an escaped slash (%2F). An API that decodes it would return another
// kind, of which nothing is hidden, or write to a path that no allow entry names.
func refuseSlash() error {
	return fmt.Errorf("access: %w: %w", understudy.ErrInvalid, ErrNoPath)
}

// ErrNoPath is the error for a path of the API that Understudy always refuses. It reveals nothing about a record.
var ErrNoPath = fmt.Errorf("%w: Understudy does not know this path of the API; "+
	"check its spelling, case, slashes and escapes", understudy.ErrNotFound)

// refuseGraphQL returns the error for a GraphQL request of a role other than all.
func refuseGraphQL(c understudy.Caller) error {
	return refuse("your role (%s) can't use GraphQL, because it does not see everything and a query can give a hidden field another name; "+
		"use the REST paths, or ask an administrator for the role all", c.Grant.Role)
}

// checkGeneric returns nil if a caller may send a request with this method to a generic source. The content of
// its responses is unknown, so the caller needs the role all. A method that can change data also needs an allow
// entry of its grant.
func checkGeneric(g *Gate, c understudy.Caller, t *spec.Target, method string) error {
	_, all, err := g.plan(c, t.Key.Source, "")
	switch {
	case err != nil:
		return err
	case !all:
		return refuse("your role (%s) can't see everything, and Understudy doesn't know what %s shows", c.Grant.Role, t.Key.Source)
	case method == "GET" || method == "HEAD" || method == "OPTIONS":
		return nil
	}
	if _, err := understudy.SplitPath(t.Key.Path()); err != nil { // the upstream may normalise this path to another one
		if !slices.Contains(c.Grant.Allow, understudy.Allow{Method: "*", Path: "/**"}) {
			return refuse("credential %s can't %s a path that can be read in two ways", c.Name, understudy.Clip(method))
		}
		return nil
	}
	if !isAllowed(c, method, t) {
		return refuseMethod(c, method)
	}
	return nil
}

// isAllowed reports whether the grant's allow list names the method and path.
func isAllowed(c understudy.Caller, method string, t *spec.Target) bool {
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

// refuse returns ErrForbidden with a reason.
func refuse(format string, args ...any) error {
	return fmt.Errorf("access: %w: %w", understudy.ErrForbidden, fmt.Errorf(format, args...))
}
