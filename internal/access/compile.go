// Compile: a gate is made of options; roles and row rules become plans and filters.

package access

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"understudy"
	"understudy/internal/query"
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
	// Do is what people of the roles may do; a role it names must be among Roles.
	Do Doings
	// Users are the accounts that sources ask as: a path names one whatever it
	// is about.
	Users map[string]string
	// Own reports whether a number, in the form Number gives it, is one of a
	// source's own; nil: none is. Newest is the newest held version of a record.
	// For a record that is not held, or is gone, it is nil or another record: then a
	// hidden record cannot be told from it by time. nil: none is held. Both are asked
	// many times for one answer, from many goroutines, and must be quick.
	Own    func(source, number string) bool
	Newest func(source, kind, id string) *understudy.Record
	// Last is like Newest, of records that are gone the last version; a page
	// token may name one. nil: Newest.
	Last func(source, kind, id string) *understudy.Record
	// Addressed is the id of the held record whose own address a path is, "" when none
	// is; nil: none is.
	Addressed func(*spec.Target) string
	// Hasher makes what is shown as a hash: equal values of gates that share one have equal
	// hashes. nil: one of this gate alone.
	Hasher *Hasher
	Cache  int64            // bytes of views kept in memory; 0 = DefaultCache, less than 0 = none
	Now    func() time.Time // nil: time.Now
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
		users: maps.Clone(o.Users), held: held{own: o.Own, newest: o.Newest, last: o.Last, addressed: o.Addressed}}
	understudy.SetDefaults(nil, &g.now)
	if g.held.last == nil {
		g.held.last = g.held.newest
	}
	o.Cache = cmp.Or(o.Cache, DefaultCache)
	g.lookups.now, g.lookups.of = g.now, lru.New[askedKey, *sharedLookup](maxAsked)
	g.given = lru.New[givenKey, time.Time](maxGiven)
	g.lists = lru.New[listKey, foundList](maxLists)
	g.views = viewCache{lru.New[viewKey, *kept](max(o.Cache, 0)), map[*spec.Spec]errorShape{}}
	for _, s := range g.specs {
		g.views.errors[s] = newErrorShape(s)
	}
	if g.hash = o.Hasher; g.hash == nil {
		var err error
		if g.hash, err = NewHasher(); err != nil {
			return nil, err
		}
	}
	for _, role := range slices.Sorted(maps.Keys(o.Roles)) {
		if role == "" || role == understudy.RoleAll {
			return nil, fmt.Errorf("access: roles: %q: want a name of its own; %q is built in", role, understudy.RoleAll)
		}
		plans, err := compile(g.specs, g.hash, role, o.Roles[role])
		if err != nil {
			return nil, err
		}
		if err := g.addRows(role, plans, o.Rows[role]); err != nil {
			return nil, err
		}
		if err := addDoings(g.specs, role, plans, o.Do[role]); err != nil {
			return nil, err
		}
		g.roles[role] = plans
	}
	for role := range o.Rows {
		if _, ok := o.Roles[role]; !ok {
			return nil, fmt.Errorf("access: roles: %q has row rules and is no role", understudy.Clip(role))
		}
	}
	for role := range o.Do {
		if _, ok := o.Roles[role]; !ok {
			return nil, fmt.Errorf("access: roles: %q may do something and is no role", understudy.Clip(role))
		}
	}
	g.stated = Options{Specs: g.specs, Roles: maps.Clone(o.Roles), Rows: maps.Clone(o.Rows), Do: maps.Clone(o.Do)}
	g.policy = fingerprint(o)
	return g, nil
}

func compile(specs map[string]*spec.Spec, hash *Hasher, role string, sources map[string]map[string]string) (map[string]*grants, error) {
	plans := map[string]*grants{}
	for _, source := range slices.Sorted(maps.Keys(sources)) {
		sp := specs[source]
		if sp == nil {
			return nil, fmt.Errorf("access: roles.%s: no source %q%s", role, understudy.Clip(source),
				suggest.Hint(understudy.Clip(source), slices.Sorted(maps.Keys(specs))))
		}
		r, err := readRules("roles."+role+"."+source, sp, sources[source])
		if err != nil {
			return nil, err
		}
		plans[source] = &grants{kinds: map[string]*plan{}, unnamed: nothing(sp), whole: true}
		for _, k := range sp.Kinds {
			plans[source].kinds[k.Name] = newPlan(sp, k, r)
			plans[source].kinds[k.Name].hash = hash
			plans[source].hashes = plans[source].hashes || plans[source].kinds[k.Name].hashes
			plans[source].whole = plans[source].whole && plans[source].kinds[k.Name].showsAll()
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
			return fmt.Errorf("access: roles.%s.%s: it has row rules and nothing it may see", role, understudy.Clip(source))
		}
		var err error
		if r.rows, err = compileRows("roles."+role+"."+source, source, g.specs[source], rows[source]); err != nil {
			return err
		}
		for kind, f := range r.rows {
			if f.gate = g; f.never {
				r.kinds[kind] = &plan{spec: g.specs[source], kind: g.specs[source].Kind(kind), record: &node{}}
			}
		}
	}
	return nil
}

// compileRows makes the finders of one role for one source; nil: it has no row
// rules there.
func compileRows(at, source string, s *spec.Spec, rules RowRules) (map[string]*rowFilter, error) {
	if len(rules) == 0 {
		return nil, nil
	}
	for _, subject := range slices.Sorted(maps.Keys(rules)) {
		if subject == Everything {
			if err := checkCommon(s, rules[subject]); err != nil {
				return nil, fmt.Errorf("access: %s.rows.*: %w", at, err)
			}
			continue
		}
		k := s.Kind(subject)
		if k == nil {
			return nil, fmt.Errorf("access: %s.rows: %s has no kind %q%s", at, s.Name, understudy.Clip(subject),
				suggest.Hint(understudy.Clip(subject), kindNames(s)))
		}
		if err := checkRule(s, k, rules[subject]); err != nil {
			return nil, fmt.Errorf("access: %s.rows.%s: %w", at, subject, err)
		}
	}
	rows := map[string]*rowFilter{}
	for _, name := range ruled(s, rules) {
		rows[name] = &rowFilter{source: source, kind: s.Kind(name), rows: rows}
	}
	for name, f := range rows {
		rule, own := rules[name]
		if !own {
			rule = rules[Everything]
		}
		_, common := rules[Everything]
		f.fill(s, rule, own || common)
	}
	return rows, nil
}

// ruled are the kinds not all of whose records are found: those with a rule,
// and those that lie under one of them.
func ruled(s *spec.Spec, rules RowRules) []string {
	_, common := rules[Everything]
	is := map[string]bool{}
	open := func(name string) bool {
		rule, own := rules[name]
		return own && rule.Word == FindAll || !own && common && rules[Everything].Word == FindAll
	}
	for _, k := range s.Kinds {
		_, own := rules[k.Name]
		is[k.Name] = (own || common) && !open(k.Name)
	}
	for more := true; more; {
		more = false
		for _, k := range s.Kinds {
			if is[k.Name] || open(k.Name) {
				continue
			}
			is[k.Name] = slices.ContainsFunc(ancestorsOf(s, k), func(a ancestor) bool {
				return a.kind != nil && is[a.kind.Name] || a.kind == nil && slices.ContainsFunc(s.Kinds, func(k *spec.Kind) bool { return is[k.Name] })
			}) || slices.ContainsFunc(pathsAbove(s, k), func(p *spec.Kind) bool { return is[p.Name] })
			more = more || is[k.Name]
		}
	}
	maps.DeleteFunc(is, func(_ string, ruled bool) bool { return !ruled })
	return slices.Sorted(maps.Keys(is))
}

// fill takes a rule over. said is false where none speaks of the kind, and only
// what it lies under bounds it. What a common rule asks for and the kind does
// not have, the record above must have.
func (f *rowFilter) fill(s *spec.Spec, rule RowRule, said bool) {
	k := f.kind
	f.above = ancestorsOf(s, k)
	f.need = rule.Word == FindParent || !said && slices.ContainsFunc(f.above, func(a ancestor) bool { return a.kind != nil })
	f.never = rule.Word == FindNone
	if rule.Age > 0 {
		if k.Clock == "" || len(k.ID) == 0 {
			f.need = true
		} else {
			f.age, f.clocks = rule.Age, append(f.clocks, f.look(k.Clock))
			if k.Order != "" {
				f.clocks = append(f.clocks, f.look(k.Order))
			}
		}
	}
	if len(rule.Numbers) > 0 {
		for _, name := range phoneFields(k) {
			f.phones = append(f.phones, f.look(name))
		}
		f.need = f.need || len(f.phones) == 0
		f.nums = map[string]bool{}
		for _, n := range rule.Numbers {
			if n == OwnNumbers {
				f.own = true
			} else {
				f.nums[number(n)] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(rule.Where)) {
		of := fieldFor(s, k, name)
		if of == "" {
			f.need = true
			continue
		}
		f.where = append(f.where, condition{f.look(of), rule.Where[name], rule.Where[name].test()})
	}
	for i := range f.above {
		f.above[i].at = f.look(f.above[i].field)
	}
	under := len(f.above) > 0
	if len(k.ID) == 0 { // whole pages: of a record above, or not at all
		f.need, under = true, len(pathsAbove(s, k)) > 0
	}
	f.never = f.never || f.need && !under
	f.named = k.Name == s.Roots.Kind && len(f.where) > 0 && f.byRoot() && !f.never && !f.need && len(f.above) == 0
}

// byRoot reports whether a rule asks for nothing but the root, beside what lies above.
func (f *rowFilter) byRoot() bool {
	return f.age == 0 && len(f.phones) == 0 && !slices.ContainsFunc(f.where, func(c condition) bool {
		return f.kind.Field(f.fields[c.field].Name).RootPath() == ""
	})
}

// fieldFor is the field of a kind that a condition looks at: the one named or,
// where that names a record of the kind itself (account_sid of an account), its
// id; "" when it has neither.
func fieldFor(s *spec.Spec, k *spec.Kind, name string) string {
	if len(k.ID) == 0 {
		return ""
	}
	if k.Field(name) != nil {
		return name
	}
	for _, other := range s.Kinds {
		if f := other.Field(name); f != nil && f.Link == k.Name && len(k.ID) == 1 {
			return k.ID[0]
		}
	}
	return ""
}

// look is the place of a field among those looked at.
func (f *rowFilter) look(name string) int {
	of := query.Field{Name: name}
	if field := f.kind.Field(name); field != nil {
		of = query.FieldOf(field)
	}
	return f.fields.Add(of)
}

// test is the condition on a value. A prefix takes the place of the values.
func (m Match) test() query.Test {
	if m.Prefix != "" {
		return query.OneOf{Prefixes: []string{m.Prefix}}
	}
	return query.OneOf{Texts: m.In}
}

// phoneFields are a kind's fields that hold numbers as they are. Of a kind
// that is kept as whole pages there are none to look at.
func phoneFields(k *spec.Kind) (all []string) {
	for _, f := range k.Fields {
		if f.Class == spec.ClassPhone && f.DerivedFrom == "" && f.Type != spec.TypeMap && f.Type != spec.TypeMedia && len(k.ID) > 0 {
			all = append(all, f.Name)
		}
	}
	return all
}

func kindNames(s *spec.Spec) (names []string) {
	for _, k := range s.Kinds {
		names = append(names, k.Name)
	}
	return names
}
