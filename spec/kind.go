// Kind: a type of record, the values that are summed up for it, and a spec's predefined searches.

package spec

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"understudy"
	"understudy/kit/suggest"
)

// Kind is a type of record, such as calls or messages. Like its Spec it never changes after Compile.
type Kind struct {
	Name      string     `yaml:"name"`     // the name of the kind in keys, roles and paths, such as calls
	Title     string     `yaml:"title"`    // the kind's name on pages, such as Calls
	Singular  string     `yaml:"one"`      // the name of one record on pages, such as call
	ID        []string   `yaml:"id"`       // fields that form a record's id, joined by "~"; without an id only pages are stored
	Prefixes  []string   `yaml:"prefixes"` // the prefixes with which ids of the kind begin, such as CA
	Clock     string     `yaml:"clock"`    // the field with the time of a record, by which records are ordered
	Order     string     `yaml:"order"`    // the field with the time by which lists order records, if there is no clock
	Final     []State    `yaml:"final"`    // conditions; a record that fulfils one of them is final
	Failed    []State    `yaml:"failed"`   // conditions; a record that fulfils one of them is marked as failed
	OwnNumber string     `yaml:"own"`      // the field that contains a phone number of the account itself (for incoming numbers)
	UsedIn    []string   `yaml:"used"`     // the kinds whose records show that such a phone number is in use; requires OwnNumber
	Elapsed   []*Elapsed `yaml:"elapsed"`  // the times between two clocks of a record
	Columns   []string   `yaml:"columns"`  // the fields that a table of the kind shows
	Group     string     `yaml:"group"`    // the heading under which people find the kind, or "" for a main kind of the API
	Rollup    string     `yaml:"rollup"`   // the field by whose values the newest records are counted over time
	// The field with the id of the record above this record, for kinds without a list of their own
	Parent string `yaml:"parent"`
	// The field with the record's URL, from which the name of the root is read; used if no other field has the name
	Root string `yaml:"root"`
	// When the upstream forgets records by itself; a record that is missing for this reason was not deleted
	Retention UpstreamRetention `yaml:"forgets"`

	Lists          []*List     `yaml:"lists"`
	Instances      []*Instance `yaml:"instances"`
	Media          []*Media    `yaml:"media"`
	Fields         []*Field    `yaml:"fields"`
	Actions        []*Action   `yaml:"actions"` // the actions that people can perform on the records
	Deleted        string      `yaml:"deleted"` // the field that is true in the upstream's answer for a deleted record
	ChangingWrites `yaml:",inline"`

	fields      map[string]*Field
	unscopedVar string
	rootPath    string // the path of a root's record, with variables; set if Root is set
	rootField   string // the field with the root's id, if the root takes the place of a parent (Spec.SplitByRoot)
}

// ChangingWrites are writes that change records of a kind in addition to writes to the paths of its lists and
// instances.
type ChangingWrites struct {
	Writes    []string `yaml:"writes"`    // the path templates of the writes, with {Variables}
	Mutations []string `yaml:"mutations"` // the names of GraphQL mutations

	writes []Template
}

// compile parses the paths of Writes.
func (c *ChangingWrites) compile() error {
	c.writes = nil
	for _, path := range c.Writes {
		t, err := ParseTemplate(path)
		if err != nil {
			return err
		}
		c.writes = append(c.writes, t)
	}
	return nil
}

// ChangedTargets returns targets whose records a write changes although its path belongs to no list or instance
// of their kind. If the path's variables name a record, the target is its instance. Otherwise the target has
// only a kind. For a GraphQL request, the fields of the mutation in the body decide.
func (s *Spec) ChangedTargets(key understudy.Key, body []byte) (all []*Target) {
	source, path := key.Source, key.Path()
	if s.IsGraphQLPath(path) {
		for _, k := range mutatedKinds(s, body, key.Query() != "") {
			all = append(all, &Target{Spec: s, Kind: k, Key: understudy.Key{Source: source}})
		}
	}
	segments, err := understudy.SplitPath(path)
	if err != nil {
		return nil
	}
	for _, k := range s.Kinds {
		for _, written := range k.writes {
			vars, ok := written.match(segments)
			if !ok {
				continue
			}
			all = append(all, s.recordTarget(source, k, vars))
			break
		}
	}
	return all
}

// recordTarget returns the target of the record that path variables name, or a target with only the kind.
func (s *Spec) recordTarget(source string, k *Kind, vars []understudy.Param) *Target {
	for _, in := range k.Instances {
		path, ok := in.template.Fill(understudy.Query(vars).Get)
		if !ok || in.Post != "" {
			continue
		}
		if t, err := s.Resolve(source, path, ""); err == nil && t.Kind == k && t.Instance != nil {
			return t
		}
	}
	return &Target{Spec: s, Kind: k, Key: understudy.Key{Source: source}}
}

// UpstreamRetention says when the upstream forgets records of a kind by itself.
type UpstreamRetention struct {
	Days       int  `yaml:"days"`        // the age of a record's clock, in days, after which the upstream forgets the record; 0 means never
	WithParent bool `yaml:"with_parent"` // whether the upstream forgets the records below a parent that is final
	Unlisted   bool `yaml:"unlisted"`    // whether records older than Days also disappear from lists
}

// State is a condition on a record. The value of Field must be in In; if In is empty, it must not be null or
// empty. Each field of Set must not be null.
type State struct {
	Field string   `yaml:"field"`
	In    []string `yaml:"in"`
	Set   []string `yaml:"set"`
}

// IDSeparator joins the parts of a composite id.
const IDSeparator = "~"

// Field returns the kind's field with that dotted name, or nil if the spec does not name it.
func (k *Kind) Field(name string) *Field { return k.fields[name] }

// Coordinates returns the names of the first field with a latitude and of the field with a longitude in the same object. Both are
// "" if the records have no coordinates.
func (k *Kind) Coordinates() (lat, lon string) {
	for _, f := range k.Fields {
		object := f.Name[:strings.LastIndexByte(f.Name, '.')+1]
		for _, g := range k.Fields {
			if f.Type == TypeLatitude && g.Type == TypeLongitude && g.Name[:strings.LastIndexByte(g.Name, '.')+1] == object {
				return f.Name, g.Name
			}
		}
	}
	return "", ""
}

// HasOtherOrders reports whether a list of the kind may return records in another order than newest first.
func (k *Kind) HasOtherOrders() bool {
	return slices.ContainsFunc(k.Lists, func(l *List) bool {
		return l.Unordered || slices.ContainsFunc(l.Filters, func(f *Filter) bool { return f.NewestFirst != "" })
	})
}

// JoinID joins the parts of an id.
func (k *Kind) JoinID(parts []string) string { return strings.Join(parts, IDSeparator) }

// HasIDPrefix reports whether an id begins with one of the kind's prefixes.
func (k *Kind) HasIDPrefix(id string) bool {
	return slices.ContainsFunc(k.Prefixes, func(p string) bool { return len(id) > len(p) && strings.HasPrefix(id, p) })
}

// NormalizeID converts an id of the kind, typed in any letter case, to the spelling in records. That is the
// prefix as in the spec and the 32 lower-case hex digits of an AnyID. ok is false for any other text.
func (k *Kind) NormalizeID(typed string) (id string, ok bool) {
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

// DisplayName returns the title of a field for people. Without a title it is the name with spaces for underscores.
func (f *Field) DisplayName() string {
	return cmp.Or(f.Title, strings.ReplaceAll(strings.ReplaceAll(f.Name, "_", " "), ".", " "))
}

// HasID reports whether a text looks like an id of one of the kinds. After a prefix of two letters it must be an AnyID.
// After a longer prefix, the rest must not have 7 digits in a row, so that no phone number is taken for an id.
func (s *Spec) HasID(text string) bool {
	for _, k := range s.Kinds {
		for _, p := range k.Prefixes {
			rest, ok := strings.CutPrefix(text, p)
			if !ok || rest == "" {
				continue
			}
			if _, any := understudy.ParseAnyID(text); any || len(p) > len(understudy.AnyID{}.Prefix) && longestDigitRun(rest) < 7 {
				return true
			}
		}
	}
	return false
}

// longestDigitRun returns the largest number of consecutive digits.
func longestDigitRun(text string) (most int) {
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

// Search is a predefined search for people.
type Search struct {
	Name  string   `yaml:"name"`
	Title string   `yaml:"title"` // the title of the search for people; default: its name
	About string   `yaml:"about"` // one sentence that says what the search shows
	Kinds []string `yaml:"kinds"`
	Query string   `yaml:"q"`   // the search, in the grammar of docs/reference/search.md
	Sum   string   `yaml:"sum"` // the value to add up, or "" to list the records
	By    []string `yaml:"by"`  // the fields by which the sum is grouped
}

// Elapsed is the time between two clocks of a record.
type Elapsed struct {
	Name  string `yaml:"name"`  // the name of the elapsed time in sums, such as delivery
	Title string `yaml:"title"` // the title of the elapsed time for people; default: its name
	From  string `yaml:"from"`  // the field with the start time
	To    string `yaml:"to"`    // the field with the end time
	When  *State `yaml:"when"`  // the condition that a record must fulfil; nil means every record
}

// ElapsedTime returns the elapsed time with that name, or nil.
func (k *Kind) ElapsedTime(name string) *Elapsed {
	for _, e := range k.Elapsed {
		if e.Name == name {
			return e
		}
	}
	return nil
}

// IsUnit reports whether the field contains the unit of another field.
func (k *Kind) IsUnit(name string) bool {
	return slices.ContainsFunc(k.Fields, func(f *Field) bool { return f.Unit == name })
}

// fieldRef is a place in a kind's spec that names one of its fields.
type fieldRef struct {
	name string
	at   []any
}

// fieldRefs returns the places that name fields.
func (k *Kind) fieldRefs() []fieldRef {
	all := []fieldRef{
		{k.Clock, []any{"clock"}}, {k.Order, []any{"order"}}, {k.OwnNumber, []any{"own"}}, {k.Rollup, []any{"rollup"}},
		{k.Parent, []any{"parent"}},
		{k.Deleted, []any{"deleted"}},
	}
	for i, name := range k.ID {
		all = append(all, fieldRef{name, []any{"id", i}})
	}
	for i, name := range k.Columns {
		all = append(all, fieldRef{name, []any{"columns", i}})
	}
	for _, of := range []struct {
		key    string
		states []State
	}{{"final", k.Final}, {"failed", k.Failed}} {
		for i, st := range of.states {
			all = append(all, fieldRef{st.Field, []any{of.key, i, "field"}})
			for j, name := range st.Set {
				all = append(all, fieldRef{name, []any{of.key, i, "set", j}})
			}
		}
	}
	for i, l := range k.Lists {
		for j, f := range l.Filters {
			all = append(all, fieldRef{f.Field, []any{"lists", i, "filters", j, "field"}})
		}
		for _, name := range slices.Sorted(maps.Keys(l.FixedValues)) {
			all = append(all, fieldRef{name, []any{"lists", i, "only", name}})
		}
	}
	return all
}

// checkNames checks that a kind names only fields that it has.
func (k *Kind) checkNames() error {
	for i, l := range k.Lists {
		for j, f := range l.Filters {
			f.Type = cmp.Or(f.Type, TypeText)
			f.Op = cmp.Or(f.Op, "is")
			if err := f.check(); err != nil {
				return addPath(err, "lists", i, "filters", j)
			}
		}
	}
	for _, u := range k.fieldRefs() {
		if u.name != "" && k.fields[u.name] == nil {
			return addPath(fmt.Errorf("%s: %w", u.at[0], describeUnknown(u.name, "among its fields", k.fieldNames())), u.at...)
		}
	}
	for i, f := range k.Fields {
		if f.Redacts && (f.Class == ClassSecret || f.Type == TypeMedia || f.Name == k.Clock || slices.Contains(k.ID, f.Name)) {
			return addPath(fmt.Errorf("field %s: redacts is not for ids, the clock, secrets and media, because the API never empties them; "+
				"remove it", f.Name), "fields", i, "redacts")
		}
	}
	if err := k.checkSums(); err != nil {
		return err
	}
	return k.checkRetention()
}

// fieldNames returns the names of the kind's fields, sorted.
func (k *Kind) fieldNames() []string { return slices.Sorted(maps.Keys(k.fields)) }

// KindNames returns the names of the spec's kinds, sorted.
func (s *Spec) KindNames() []string { return slices.Sorted(maps.Keys(s.kinds)) }

// checkSums checks the units and elapsed times, which sums use.
func (k *Kind) checkSums() error {
	for i, f := range k.Fields {
		if f.Unit != "" && k.fields[f.Unit] == nil {
			return addPath(fmt.Errorf("field %s: unit %w", f.Name, describeUnknown(f.Unit, "a field", k.fieldNames())), "fields", i, "unit")
		}
	}
	for i, e := range k.Elapsed {
		for _, name := range []string{e.From, e.To} {
			if f := k.fields[name]; f == nil || !IsTimeType(f.Type) {
				return addPath(fmt.Errorf("elapsed[%d]: %w", i, describeUnknown(name, "a field that tells a time", k.fieldNames())), "elapsed", i)
			}
		}
		e.Title = cmp.Or(e.Title, e.Name)
		switch {
		case e.Name == "" || k.fields[e.Name] != nil || k.ElapsedTime(e.Name) != e:
			return fmt.Errorf("elapsed[%d]: the name %q is empty, or a field or another elapsed time has it", i, e.Name)
		case e.When != nil && (k.fields[e.When.Field] == nil || len(e.When.In) == 0 || len(e.When.Set) > 0):
			return fmt.Errorf("elapsed[%d]: when: write a field of the kind, and its values under in", i)
		}
	}
	return nil
}

// checkSearches checks the kinds named by predefined searches and by UsedIn.
func (s *Spec) checkSearches() error {
	for i, k := range s.Kinds {
		for j, name := range k.UsedIn {
			switch other := s.kinds[name]; {
			case k.OwnNumber == "":
				return addPath(fmt.Errorf("kind %s: used: the kind does not list the account's own numbers; add own, or remove used", k.Name),
					"kinds", i, "used")
			case other == nil || other.Clock == "" || !slices.ContainsFunc(other.Fields, func(f *Field) bool { return f.Class == ClassPhone }):
				return addPath(fmt.Errorf("kind %s: used: %w", k.Name, describeUnknown(name, "a kind with a clock and phone numbers", s.KindNames())),
					"kinds", i, "used", j)
			}
		}
	}
	for i, one := range s.Searches {
		one.Title = cmp.Or(one.Title, one.Name)
		if one.Name == "" || slices.ContainsFunc(s.Searches[:i], func(o *Search) bool { return o.Name == one.Name }) {
			return fmt.Errorf("searches[%d]: the name %q is empty, or another search has it", i, one.Name)
		}
		for _, name := range one.Kinds {
			if s.kinds[name] == nil {
				return addPath(fmt.Errorf("search %s: there is no kind %q%s", one.Name, name, suggest.Hint(name, s.KindNames())),
					"searches", i, "kinds")
			}
		}
		if one.Sum == "" && len(one.By) > 0 {
			return fmt.Errorf("search %s: by has no effect without sum; add sum or remove by", one.Name)
		}
	}
	return nil
}
