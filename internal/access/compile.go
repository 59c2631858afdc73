// This file builds a gate from options. It turns roles into plans, and row rules into filters.

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

// Options are the settings and data from which a Gate is built.
type Options struct {
	Specs map[string]*spec.Spec // the compiled specs, by the name of the source
	Roles Roles
	// Rows are the roles' row rules, by role and source. Each role must also be in Roles.
	Rows map[string]map[string]RowRules
	// Do are the permitted actions of each role. Each role must also be in Roles.
	Do Permissions
	// Users are the ids of the accounts with which the sources send requests. Such an id can be in any path and
	// names no record there.
	Users map[string]string
	// IsOwnNumber reports whether a phone number, in the form of Number, belongs to a source. If IsOwnNumber is nil, no number
	// belongs to any source.
	IsOwnNumber func(source, number string) bool
	// NewestVersion returns the newest stored version of a record. For a record that is not stored or is deleted, it returns nil
	// or any other record, because the duration of the call must not reveal a hidden record. If NewestVersion is nil, nothing is
	// stored. IsOwnNumber and NewestVersion are called many times for one response, from many goroutines, and must be quick.
	NewestVersion func(source, kind, id string) *understudy.Record
	// LastVersion returns what NewestVersion returns, and for a deleted record its last version: a page token may name such a
	// record. If LastVersion is nil, NewestVersion is used.
	LastVersion func(source, kind, id string) *understudy.Record
	// IDByAddress returns the id of the stored record whose own address is a path, or "". If IDByAddress is nil,
	// records have no address.
	IDByAddress func(*spec.Target) string
	// Hasher computes the hashes of values. Equal values have equal hashes in all gates that share a Hasher. If
	// Hasher is nil, the gate creates its own.
	Hasher *Hasher
	Cache  int64            // the maximum size of all cached views in bytes; 0 means DefaultCache, less than 0 means no cache
	Now    func() time.Time // the clock; nil means time.Now
}

// DefaultCache is the size of the views kept in memory, in bytes.
const DefaultCache = 16 << 20

// New creates a gate from compiled specs, by source name, and roles.
func New(specs map[string]*spec.Spec, roles Roles) (*Gate, error) {
	return NewWith(Options{Specs: specs, Roles: roles})
}

// NewWith creates a gate. An unknown role, source, subject or level is an error that names the most similar known word.
func NewWith(o Options) (*Gate, error) {
	g := &Gate{now: o.Now, specs: maps.Clone(o.Specs), roles: map[string]map[string]*grants{},
		users:   maps.Clone(o.Users),
		records: storedRecords{own: o.IsOwnNumber, newest: o.NewestVersion, last: o.LastVersion, addressed: o.IDByAddress}}
	understudy.SetDefaults(nil, &g.now)
	if g.records.last == nil {
		g.records.last = g.records.newest
	}
	o.Cache = cmp.Or(o.Cache, DefaultCache)
	g.lookups.now, g.lookups.requests = g.now, lru.New[lookupKey, *sharedLookup](maxLookups)
	g.sentTokens = lru.New[sentTokenKey, time.Time](maxSentTokens)
	g.lists = lru.New[listKey, cachedList](maxLists)
	g.views = viewCache{lru.New[viewKey, *cachedView](max(o.Cache, 0)), map[*spec.Spec]errorShape{}}
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
			return nil, fmt.Errorf("access: roles: a role cannot be called %q; %q is built in, and every role needs a name", role,
				understudy.RoleAll)
		}
		plans, err := compile(g.specs, g.hash, role, o.Roles[role])
		if err != nil {
			return nil, err
		}
		if err := g.addRows(role, plans, o.Rows[role]); err != nil {
			return nil, err
		}
		if err := addPermissions(g.specs, role, plans, o.Do[role]); err != nil {
			return nil, err
		}
		g.roles[role] = plans
	}
	for role := range o.Rows {
		if _, ok := o.Roles[role]; !ok {
			return nil, fmt.Errorf("access: roles: %q has row rules but is not a role", understudy.Clip(role))
		}
	}
	for role := range o.Do {
		if _, ok := o.Roles[role]; !ok {
			return nil, fmt.Errorf("access: roles: %q has a list of actions but is not a role", understudy.Clip(role))
		}
	}
	g.options = Options{Specs: g.specs, Roles: maps.Clone(o.Roles), Rows: maps.Clone(o.Rows), Do: maps.Clone(o.Do)}
	g.policy = fingerprint(o)
	return g, nil
}

// compile turns the levels of one role into a plan for each kind, by source.
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
		unnamed := &plan{spec: sp, record: &node{open: true, named: map[string]*node{}}} // shows the names of members and no value
		plans[source] = &grants{kinds: map[string]*plan{}, unnamed: unnamed, seesAll: true}
		for _, k := range sp.Kinds {
			plans[source].kinds[k.Name] = newPlan(sp, k, r)
			plans[source].kinds[k.Name].hash = hash
			plans[source].hashes = plans[source].hashes || plans[source].kinds[k.Name].hashes
			plans[source].seesAll = plans[source].seesAll && plans[source].kinds[k.Name].isFullyVisible()
		}
	}
	return plans, nil
}

// addRows adds a role's row rules to its plans. A kind in which the role may find no record is hidden completely.
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
			if f.gate = g; f.findsNone {
				r.kinds[kind] = &plan{spec: g.specs[source], kind: g.specs[source].Kind(kind), record: &node{}}
			}
		}
	}
	return nil
}

// compileRows returns the row filters of a role for a source, by kind. It returns nil if the role has no row rules
// there. Its errors begin with the text at ("roles.support.twilio").
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
				suggest.Hint(understudy.Clip(subject), s.KindNames()))
		}
		if err := checkRule(s, k, rules[subject]); err != nil {
			return nil, fmt.Errorf("access: %s.rows.%s: %w", at, subject, err)
		}
	}
	rows := map[string]*rowFilter{}
	for _, name := range ruledKinds(s, rules) {
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

// ruledKinds returns the kinds in which a role may find only some records: kinds with a row rule, and all kinds
// below such a kind.
func ruledKinds(s *spec.Spec, rules RowRules) []string {
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
			}) || slices.ContainsFunc(parentKinds(s, k), func(p *spec.Kind) bool { return is[p.Name] })
			more = more || is[k.Name]
		}
	}
	maps.DeleteFunc(is, func(_ string, ruled bool) bool { return !ruled })
	return slices.Sorted(maps.Keys(is))
}

// fill sets the filter from a rule. said is false if no rule names the kind, so that only the rules of its parent
// records limit it. If the kind lacks a field that a common rule requires, the parent record must fulfil the rule.
func (f *rowFilter) fill(s *spec.Spec, rule RowRule, said bool) {
	k := f.kind
	f.parents = ancestorsOf(s, k)
	f.needsParent = rule.Word == FindParent || !said && slices.ContainsFunc(f.parents, func(a ancestor) bool { return a.kind != nil })
	f.findsNone = rule.Word == FindNone
	if rule.Age > 0 {
		if k.Clock == "" || len(k.ID) == 0 {
			f.needsParent = true
		} else {
			f.age, f.clocks = rule.Age, append(f.clocks, f.addField(k.Clock))
			if k.Order != "" {
				f.clocks = append(f.clocks, f.addField(k.Order))
			}
		}
	}
	if len(rule.Numbers) > 0 {
		for _, name := range phoneFields(k) {
			f.phones = append(f.phones, f.addField(name))
		}
		f.needsParent = f.needsParent || len(f.phones) == 0
		f.wanted = map[string]bool{}
		for _, n := range rule.Numbers {
			if n == OwnNumbers {
				f.ownNumbers = true
			} else {
				f.wanted[Number(n)] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(rule.Where)) {
		of := fieldFor(s, k, name)
		if of == "" {
			f.needsParent = true
			continue
		}
		f.where = append(f.where, condition{f.addField(of), rule.Where[name], rule.Where[name].test()})
	}
	for i := range f.parents {
		f.parents[i].at = f.addField(f.parents[i].field)
	}
	under := len(f.parents) > 0
	if len(k.ID) == 0 { // the records of this kind have no id and are stored as complete pages: without a parent record they are not shown
		f.needsParent, under = true, len(parentKinds(s, k)) > 0
	}
	f.findsNone = f.findsNone || f.needsParent && !under
	f.decidedByName = k.Name == s.Roots.Kind && len(f.where) > 0 && f.isRootOnly() && !f.findsNone && !f.needsParent && len(f.parents) == 0
}

// isRootOnly reports whether a rule requires nothing but a root. The rules of the parent records do not count.
func (f *rowFilter) isRootOnly() bool {
	return f.age == 0 && len(f.phones) == 0 && !slices.ContainsFunc(f.where, func(c condition) bool {
		return f.kind.Field(f.fields[c.field].Name).RootPath() == ""
	})
}

// fieldFor returns the field of a kind that a condition checks. It is the named field, or the id if the name is
// another kind's link to this kind (account_sid for an account). It returns "" if the kind has neither.
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

// addField adds a field to the fields that the filter reads, and returns its index among them.
func (f *rowFilter) addField(name string) int {
	of := query.Field{Name: name}
	if field := f.kind.Field(name); field != nil {
		of = query.FieldOf(field)
	}
	return f.fields.Add(of)
}

// test returns the condition as a test of values. If Prefix is set, In is not used.
func (m Match) test() query.Test {
	if m.Prefix != "" {
		return query.OneOf{Prefixes: []string{m.Prefix}}
	}
	return query.OneOf{Texts: m.In}
}

// phoneFields returns the fields of a kind that contain phone numbers unchanged. It returns none for a kind
// stored as complete pages.
func phoneFields(k *spec.Kind) (all []string) {
	for _, f := range k.Fields {
		if f.Class == spec.ClassPhone && f.DerivedFrom == "" && f.Type != spec.TypeMap && f.Type != spec.TypeMedia && len(k.ID) > 0 {
			all = append(all, f.Name)
		}
	}
	return all
}
