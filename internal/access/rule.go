// Rule: which records a role may find, as the config says it, and made ready.

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
	root  bool       // the field has the name of a root
	only  bool       // with root: no field names the record, a list's path alone
	at    int        // the field's place among those a finder looks at
}

// rowFilter is a role's row rule for one kind, ready to use. nil: every record.
type rowFilter struct {
	gate   *Gate
	source string
	kind   *spec.Kind
	rows   map[string]*rowFilter // of the role, by kind

	fields query.Fields // the fields that the rule reads

	// How young a record must be:
	age    time.Duration // 0: any age
	clocks []int         // of fields: the clock, then the field in place of a null clock

	// Which phone numbers it must have:
	own    bool            // our own numbers are among them
	nums   map[string]bool // numbers by their digits, else as they are written
	phones []int           // of fields; empty: any number

	where []condition
	above []ancestor
	need  bool // it must lie under a record, not only under none that is hidden
	never bool
	named bool // of the roots' kind: its name tells whether a record is found
}

type condition struct {
	field int
	match Match
	test  query.Test
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
			return fmt.Errorf("where: no kind of %s has a field %q to look at%s", s.Name, understudy.Clip(name),
				suggest.Hint(understudy.Clip(name), known))
		}
	}
	return nil
}

func hasOwn(s *spec.Spec) bool {
	return slices.ContainsFunc(s.Kinds, func(k *spec.Kind) bool { return k.OwnNumber != "" })
}

// check looks at what needs no spec.
func (r RowRule) check() error {
	parts := r.Age != 0 || len(r.Numbers) > 0 || len(r.Where) > 0
	switch {
	case r.Word != "" && !slices.Contains(ruleWords, r.Word):
		return fmt.Errorf("unknown word %q, want all, none, parent or a block%s", understudy.Clip(r.Word),
			suggest.Hint(understudy.Clip(r.Word), ruleWords))
	case r.Word != "" && parts:
		return fmt.Errorf("%s is a whole rule; it takes no conditions", r.Word)
	case r.Word == "" && !parts:
		return fmt.Errorf("an empty rule; want all, none, parent, or age, number or where")
	case r.Age < 0:
		return fmt.Errorf("age: want a time like 30d")
	}
	for _, n := range r.Numbers {
		if n != OwnNumbers && !strings.ContainsAny(n, "0123456789") {
			return fmt.Errorf("number: %q is none, want own or a number like +15551234567%s", understudy.Clip(n),
				suggest.Hint(understudy.Clip(n), []string{OwnNumbers}))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Where)) {
		switch m := r.Where[name]; {
		case m.Prefix == "" && len(m.In) == 0:
			return fmt.Errorf("where.%s: want a value, a list of values, or {prefix: TEXT}", understudy.Clip(name))
		case m.Prefix != "" && len(m.In) > 0, slices.Contains(m.In, ""):
			return fmt.Errorf("where.%s: want values that are not empty, or a prefix", understudy.Clip(name))
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
		return fmt.Errorf("unknown field %q of %s%s", understudy.Clip(name), k.Name, suggest.Hint(understudy.Clip(name), known))
	case f.Class == spec.ClassSecret || f.Type == spec.TypeMedia || f.Type == spec.TypeMap:
		return fmt.Errorf("%s of %s has no value that is kept", name, k.Name)
	}
	return nil
}
