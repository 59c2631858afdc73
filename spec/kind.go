// Kind: a sort of record.

package spec

import (
	"strings"

	"understudy"
)

// Kind is a sort of record: calls, messages. Like its Spec it is never changed
// after Compile.
type Kind struct {
	Name      string            `yaml:"name"`     // its list key: calls
	Title     string            `yaml:"title"`    // Calls
	One       string            `yaml:"one"`      // call
	ID        []string          `yaml:"id"`       // the fields that name a record; several are joined by "~"; none: pages only
	Prefixes  []string          `yaml:"prefixes"` // what ids begin with: CA
	Clock     string            `yaml:"clock"`    // the field that orders records in time
	Order     string            `yaml:"order"`    // the field whose time orders a record without a clock in lists
	Final     []State           `yaml:"final"`    // a record is final when one of these holds
	Failed    []State           `yaml:"failed"`   // a record is marked as failed when one of these holds
	Own       string            `yaml:"own"`      // this field of every record is a number of our own (incoming numbers)
	Columns   []string          `yaml:"columns"`  // what a table of them shows
	Group     string            `yaml:"group"`    // the heading under which people find it; "": one of the API's main kinds
	Rollup    string            `yaml:"rollup"`   // a field by whose values the newest records are counted over time
	Parent    string            `yaml:"parent"`   // the field that names the record this one lies under, for kinds without a list of their own
	Retention UpstreamRetention `yaml:"forgets"`  // what upstream forgets by itself; a record that is missing for that reason was not deleted

	Lists     []*List     `yaml:"lists"`
	Instances []*Instance `yaml:"instances"`
	Media     []*Media    `yaml:"media"`
	Fields    []*Field    `yaml:"fields"`

	fields      map[string]*Field
	unscopedVar string
}

// UpstreamRetention says when upstream forgets records of a kind by itself.
type UpstreamRetention struct {
	Days       int  `yaml:"days"`        // those whose clock is older; 0 = never
	WithParent bool `yaml:"with_parent"` // those under a parent that is final
	Unlisted   bool `yaml:"unlisted"`    // by Days: lists no longer show them either
}

// State is a condition on a record: Field's value is among In (or, when In is
// empty, is not null or empty), and each field of Set is not null.
type State struct {
	Field string   `yaml:"field"`
	In    []string `yaml:"in"`
	Set   []string `yaml:"set"`
}

// IDSeparator joins the parts of a composite id.
const IDSeparator = "~"

// Field is the kind's field of that dotted name, nil when the spec does not
// name it.
func (k *Kind) Field(name string) *Field { return k.fields[name] }

// IDOf joins the parts of an id.
func (k *Kind) IDOf(parts []string) string { return strings.Join(parts, IDSeparator) }

// HasPrefix reports whether an id looks like one of this kind: it begins with
// one of the kind's prefixes.
func (k *Kind) HasPrefix(id string) bool {
	for _, p := range k.Prefixes {
		if len(id) > len(p) && strings.HasPrefix(id, p) {
			return true
		}
	}
	return false
}

// SpellID is an id of the kind, typed in any letter case, as records spell it: the
// prefix as in the spec and the 32 lower-case hex digits of an AnyID. ok is false for a
// text of another form.
func (k *Kind) SpellID(typed string) (id string, ok bool) {
	for _, p := range k.Prefixes {
		if len(typed) != understudy.AnyIDText || len(p) != len(understudy.AnyID{}.Prefix) || !strings.EqualFold(typed[:len(p)], p) {
			continue
		}
		id = p + strings.ToLower(typed[len(p):])
		if _, ok = understudy.ParseAnyID(id); ok {
			return id, true
		}
	}
	return "", false
}

// FieldName is the title of a field for people: the spec's, or the name with
// its underscores as spaces.
func (f *Field) FieldName() string {
	if f.Title != "" {
		return f.Title
	}
	return strings.ReplaceAll(strings.ReplaceAll(f.Name, "_", " "), ".", " ")
}

// HasID reports whether a text is an id of one of the kinds: a prefix of two letters
// and the rest of an AnyID, or a longer prefix and a rest without 7 digits in a row. So
// no phone number passes as an id.
func (s *Spec) HasID(text string) bool {
	for _, k := range s.Kinds {
		for _, p := range k.Prefixes {
			rest, ok := strings.CutPrefix(text, p)
			if !ok || rest == "" {
				continue
			}
			if _, any := understudy.ParseAnyID(text); any || len(p) > len(understudy.AnyID{}.Prefix) && longestRun(rest) < 7 {
				return true
			}
		}
	}
	return false
}

// longestRun is the largest number of digits in a row.
func longestRun(text string) (most int) {
	run := 0
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			run = 0
			continue
		}
		run++
		most = max(most, run)
	}
	return most
}
