// This file contains row rules: which records a role may find, as written in the settings and as a prepared filter.

package access

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"understudy"
	"understudy/internal/query"
	"understudy/kit/suggest"
	"understudy/spec"
)

// RowRules are one role's row rules for one source, by kind. Everything is the key for kinds without a rule of their own.
type RowRules map[string]RowRule

// RowRule says which records of a kind a role may find. A record must fulfil all its conditions.
type RowRule struct {
	// Word, if set, is the whole rule: "all", "none", or "parent" for records below a record that the role may find.
	Word string
	// Age is the maximum age of a record by its clock; 0 means any age.
	Age time.Duration
	// Numbers are phone numbers in any form. A phone field of the record must contain one of them. "own" stands
	// for all our own numbers.
	Numbers []string
	// Where are the required values, by field.
	Where map[string]Match
}

// Match is a condition on a field: its value is one of In, or begins with Prefix if that is set. A null or
// missing value fulfils no condition.
type Match struct {
	In     []string
	Prefix string
}

// The words that a row rule can contain.
const (
	FindAll    = "all"
	FindNone   = "none"
	FindParent = "parent"
	OwnNumbers = "own"
)

var ruleWords = []string{FindAll, FindNone, FindParent}

// ancestor is a field of a record that names a parent record.
type ancestor struct {
	field      string
	kind       *spec.Kind // the kind of the parent record; nil if the prefix of the id decides the kind
	root       bool       // whether the value is the name of a root
	byPathOnly bool       // whether the parent is named only by the path of a list and by no field; only if root is true
	at         int        // the index of the field in rowFilter.fields
}

// rowFilter is a role's row rule for one kind, prepared for use. A nil rowFilter finds every record.
type rowFilter struct {
	gate   *Gate
	source string
	kind   *spec.Kind
	rows   map[string]*rowFilter // the row rules of the role, by kind

	fields query.Fields // the fields that the rule reads

	age    time.Duration // the maximum age of a record that the role may find; 0 means any age
	clocks []int         // the indexes of the clock field, and of the order field that replaces a null clock

	ownNumbers bool            // whether the account's own numbers are among the required phone numbers
	wanted     map[string]bool // the required phone numbers as digits, or as written if they have other characters
	phones     []int           // the indexes of the phone fields; empty if the rule requires no phone number

	where       []condition
	parents     []ancestor
	needsParent bool // whether the record must have a parent; without this, the rule only requires that no existing parent is hidden
	// whether the role finds no record of the kind
	findsNone     bool
	decidedByName bool // whether the name of a root decides if the root is found; only for the kind of the roots
}

// condition is a condition on a field's value, with the index of the field.
type condition struct {
	field int
	match Match
	test  query.Test
}

// checkRule returns an error if no record can fulfil the rule of a kind.
func checkRule(s *spec.Spec, k *spec.Kind, r RowRule) error {
	if err := r.check(); err != nil {
		return err
	}
	under := len(ancestorsOf(s, k)) > 0 || len(k.ID) == 0 && len(parentKinds(s, k)) > 0
	switch {
	case r.Word == FindParent && !under:
		return fmt.Errorf("%s have no parent record; write all or none", k.Name)
	case r.Word != "":
		return nil
	case len(k.ID) == 0:
		return fmt.Errorf("%s are stored as whole pages, not as records; write all, none or parent", k.Name)
	case r.Age > 0 && k.Clock == "":
		return fmt.Errorf("age: the spec file has no clock for %s, so their age is not known", k.Name)
	case len(r.Numbers) > 0 && len(phoneFields(k)) == 0:
		return fmt.Errorf("number: %s have no field of class phone", k.Name)
	case slices.Contains(r.Numbers, OwnNumbers) && !hasOwnNumbers(s):
		return fmt.Errorf("number: %s has no kind that lists the account's own numbers; write each number", s.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Where)) {
		if err := checkField(k, name); err != nil {
			return fmt.Errorf("where: %w", err)
		}
	}
	return nil
}

// checkCommon returns an error if no kind can fulfil the rule for all kinds.
func checkCommon(s *spec.Spec, r RowRule) error {
	if err := r.check(); err != nil {
		return err
	}
	if slices.Contains(r.Numbers, OwnNumbers) && !hasOwnNumbers(s) {
		return fmt.Errorf("number: %s has no kind that lists the account's own numbers; write each number", s.Name)
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
			return fmt.Errorf("where: no kind of %s has a stored field %q%s", s.Name, understudy.Clip(name),
				suggest.Hint(understudy.Clip(name), known))
		}
	}
	return nil
}

// hasOwnNumbers reports whether a spec has a kind that lists our own numbers.
func hasOwnNumbers(s *spec.Spec) bool {
	return slices.ContainsFunc(s.Kinds, func(k *spec.Kind) bool { return k.OwnNumber != "" })
}

// check returns the errors of a rule that are visible without a spec.
func (r RowRule) check() error {
	parts := r.Age != 0 || len(r.Numbers) > 0 || len(r.Where) > 0
	switch {
	case r.Word != "" && !slices.Contains(ruleWords, r.Word):
		return fmt.Errorf("the word %q is not known; write all, none, parent or a block of conditions%s", understudy.Clip(r.Word),
			suggest.Hint(understudy.Clip(r.Word), ruleWords))
	case r.Word != "" && parts:
		return fmt.Errorf("%s cannot have conditions; remove the word or the conditions", r.Word)
	case r.Word == "" && !parts:
		return fmt.Errorf("the rule is empty; write all, none, parent, or age, number or where")
	case r.Age < 0:
		return fmt.Errorf("age is negative; write a time such as 30d")
	}
	for _, n := range r.Numbers {
		if n != OwnNumbers && !strings.ContainsAny(n, "0123456789") {
			return fmt.Errorf("number: %q is not a phone number; write own or a number such as +15551234567%s", understudy.Clip(n),
				suggest.Hint(understudy.Clip(n), []string{OwnNumbers}))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Where)) {
		switch m := r.Where[name]; {
		case m.Prefix == "" && len(m.In) == 0:
			return fmt.Errorf("where.%s is empty; write a value, a list of values, or {prefix: TEXT}", understudy.Clip(name))
		case m.Prefix != "" && len(m.In) > 0, slices.Contains(m.In, ""):
			return fmt.Errorf("where.%s has an empty value, or both values and a prefix; write values or a prefix", understudy.Clip(name))
		}
	}
	return nil
}

// checkField returns an error if a kind has no such field or does not store its value.
func checkField(k *spec.Kind, name string) error {
	f := k.Field(name)
	switch {
	case f == nil:
		known := make([]string, len(k.Fields))
		for i, f := range k.Fields {
			known[i] = f.Name
		}
		return fmt.Errorf("unknown field %q of %s%s", understudy.Clip(name), k.Name, suggest.Hint(understudy.Clip(name), known))
	case f.Class == spec.ClassSecret || f.Type == spec.TypeMedia || f.Type == spec.TypeMap:
		return fmt.Errorf("%s of %s has no value that is kept", name, k.Name)
	}
	return nil
}
