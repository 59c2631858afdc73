// Rule: which records a role may find, as the config says it, and made ready.

package access

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"understudy/internal/query"
	"understudy/kit/suggest"
	"understudy/spec"
)

// RowRules are one role's row rules for one source, by kind; Everything stands
// for kinds without a rule of their own.
type RowRules map[string]RowRule

// RowRule says which records of a kind a role may find. All it says must hold.
type RowRule struct {
	// Word, when it is set, is the whole rule: "all", "none", or "parent": those
	// under a record that may be found.
	Word string
	// Age wants records whose clock is younger; 0: any.
	Age time.Duration
	// Numbers wants records one of whose phone fields is one of these numbers,
	// in any form; "own" stands for every number of our own.
	Numbers []string
	// Where wants values, by field.
	Where map[string]Match
}

// Match is a condition on a field: its value is one of In, or begins with
// Prefix when that is set. What is null or not there fulfils none.
type Match struct {
	In     []string
	Prefix string
}

// The words of row rules.
const (
	FindAll    = "all"
	FindNone   = "none"
	FindParent = "parent"
	OwnNumbers = "own"
)

var ruleWords = []string{FindAll, FindNone, FindParent}

// ancestor names the record another lies under.
type ancestor struct {
	field string
	kind  *spec.Kind // nil: any, told by the id's prefix
	at    int        // the field's place among those a finder looks at
}

// rowFilter is a role's row rule for one kind, ready to use. nil: every record.
type rowFilter struct {
	gate   *Gate
	source string
	kind   *spec.Kind
	rows   map[string]*rowFilter // of the role, by kind

	fields query.Fields // the fields that the rule reads
	ageRule
	numberRule
	where []condition
	above []ancestor
	need  bool // it must lie under a record, not only under none that is hidden
	never bool
}

// ageRule is how young a record must be.
type ageRule struct {
	age    time.Duration // 0: any age
	clocks []int         // of fields: the clock, then the field in place of a null clock
}

// numberRule is which phone numbers a record must have.
type numberRule struct {
	own    bool            // our own numbers are among them
	nums   map[string]bool // numbers by their digits, else as they are written
	phones []int           // of fields; empty: any number
}

type condition struct {
	field int
	Match
	test query.Test
}

// compileRows makes the finders of one role for one source; nil: it has no row
// rules there.
func (g *Gate) compileRows(at, source string, s *spec.Spec, rules RowRules) (map[string]*rowFilter, error) {
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
			return nil, fmt.Errorf("access: %s.rows: %s has no kind %q%s", at, s.Name, clip(subject), suggest.Hint(clip(subject), kindNames(s)))
		}
		if err := checkRule(s, k, rules[subject]); err != nil {
			return nil, fmt.Errorf("access: %s.rows.%s: %w", at, subject, err)
		}
	}
	rows := map[string]*rowFilter{}
	for _, name := range ruled(s, rules) {
		rows[name] = &rowFilter{gate: g, source: source, kind: s.Kind(name), rows: rows}
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
		of.Type = field.Type
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
		if f.Class == spec.ClassPhone && f.From == "" && f.Type != spec.TypeMap && f.Type != spec.TypeMedia && len(k.ID) > 0 {
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

// checkRule refuses a kind's own rule that could never hold.
func checkRule(s *spec.Spec, k *spec.Kind, r RowRule) error {
	if err := r.check(); err != nil {
		return err
	}
	under := len(ancestorsOf(s, k)) > 0 || len(k.ID) == 0 && len(pathsAbove(s, k)) > 0
	switch {
	case r.Word == FindParent && !under:
		return fmt.Errorf("%s lie under no other record; want all or none", k.Name)
	case r.Word != "":
		return nil
	case len(k.ID) == 0:
		return fmt.Errorf("%s are kept as whole pages, not as records; want all, none or parent", k.Name)
	case r.Age > 0 && k.Clock == "":
		return fmt.Errorf("age: the spec names no clock of %s", k.Name)
	case len(r.Numbers) > 0 && len(phoneFields(k)) == 0:
		return fmt.Errorf("number: %s have no field of class phone", k.Name)
	case slices.Contains(r.Numbers, OwnNumbers) && !hasOwn(s):
		return fmt.Errorf("number: %s has no kind that lists numbers of our own; write them out", s.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Where)) {
		if err := checkField(k, name); err != nil {
			return fmt.Errorf("where: %w", err)
		}
	}
	return nil
}

// checkCommon refuses a rule for every kind that no kind could fulfil.
func checkCommon(s *spec.Spec, r RowRule) error {
	if err := r.check(); err != nil {
		return err
	}
	if slices.Contains(r.Numbers, OwnNumbers) && !hasOwn(s) {
		return fmt.Errorf("number: %s has no kind that lists numbers of our own; write them out", s.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Where)) {
		var known []string
		some := false
		for _, k := range s.Kinds {
			for _, f := range k.Fields {
				known = append(known, f.Name)
			}
			some = some || checkField(k, name) == nil
		}
		if !some {
			return fmt.Errorf("where: no kind of %s has a field %q to look at%s", s.Name, clip(name), suggest.Hint(clip(name), known))
		}
	}
	return nil
}

func hasOwn(s *spec.Spec) bool {
	return slices.ContainsFunc(s.Kinds, func(k *spec.Kind) bool { return k.Own != "" })
}

// check looks at what needs no spec.
func (r RowRule) check() error {
	parts := r.Age != 0 || len(r.Numbers) > 0 || len(r.Where) > 0
	switch {
	case r.Word != "" && !slices.Contains(ruleWords, r.Word):
		return fmt.Errorf("unknown word %q, want all, none, parent or a block%s", clip(r.Word), suggest.Hint(clip(r.Word), ruleWords))
	case r.Word != "" && parts:
		return fmt.Errorf("%s is a whole rule; it takes no conditions", r.Word)
	case r.Word == "" && !parts:
		return fmt.Errorf("an empty rule; want all, none, parent, or age, number or where")
	case r.Age < 0:
		return fmt.Errorf("age: want a time like 30d")
	}
	for _, n := range r.Numbers {
		if n != OwnNumbers && !strings.ContainsAny(n, "0123456789") {
			return fmt.Errorf("number: %q is none, want own or a number like +15551234567%s", clip(n), suggest.Hint(clip(n), []string{OwnNumbers}))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Where)) {
		switch m := r.Where[name]; {
		case m.Prefix == "" && len(m.In) == 0:
			return fmt.Errorf("where.%s: want a value, a list of values, or {prefix: TEXT}", clip(name))
		case m.Prefix != "" && len(m.In) > 0, slices.Contains(m.In, ""):
			return fmt.Errorf("where.%s: want values that are not empty, or a prefix", clip(name))
		}
	}
	return nil
}

// checkField refuses what is no field of the kind that has a value to look at.
func checkField(k *spec.Kind, name string) error {
	f := k.Field(name)
	switch {
	case f == nil:
		known := make([]string, len(k.Fields))
		for i, f := range k.Fields {
			known[i] = f.Name
		}
		return fmt.Errorf("unknown field %q of %s%s", clip(name), k.Name, suggest.Hint(clip(name), known))
	case f.Class == spec.ClassSecret || f.Type == spec.TypeMedia || f.Type == spec.TypeMap:
		return fmt.Errorf("%s of %s has no value that is kept", name, k.Name)
	}
	return nil
}
