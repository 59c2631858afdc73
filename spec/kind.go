// Kind: a sort of record, what is summed up of it, and the searches a spec brings along.

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
	Used      []string          `yaml:"used"`     // the kinds whose records show that such a number is in use; with Own
	Elapsed   []*Elapsed        `yaml:"elapsed"`  // times that pass between two clocks of a record
	Columns   []string          `yaml:"columns"`  // what a table of them shows
	Group     string            `yaml:"group"`    // the heading under which people find it; "": one of the API's main kinds
	Rollup    string            `yaml:"rollup"`   // a field by whose values the newest records are counted over time
	Parent    string            `yaml:"parent"`   // the field that names the record this one lies under, for kinds without a list of their own
	Root      string            `yaml:"root"`     // the field with the record's address, which names the root, where no other field does
	Retention UpstreamRetention `yaml:"forgets"`  // what upstream forgets by itself; a record that is missing for that reason was not deleted

	Lists     []*List     `yaml:"lists"`
	Instances []*Instance `yaml:"instances"`
	Media     []*Media    `yaml:"media"`
	Fields    []*Field    `yaml:"fields"`
	Actions   []*Action   `yaml:"actions"` // what people do with them
	Deleted   string      `yaml:"deleted"` // a field that is true in what upstream shows of a deleted record
	Changed   `yaml:",inline"`

	fields      map[string]*Field
	unscopedVar string
	rootPath    string // the path of a root's record, with variables; with Root
	rootField   string // the field that shows the root, where it stands for a parent (Spec.Cover)
}

// Changed are the writes that change records of a kind, beside those to the paths of its
// lists and instances.
type Changed struct {
	Writes    []string `yaml:"writes"`    // paths, with {Variables}
	Mutations []string `yaml:"mutations"` // fields of GraphQL mutations

	writes []Template
}

// compile reads the paths.
func (c *Changed) compile() error {
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

// Changes returns the targets of the kinds whose records a write changes, where its path is
// none of their lists and instances. A target has the record's instance where the variables
// of the path name it; without, it is not known which record it is. Of a GraphQL request the
// fields of the body's mutation say it.
func (s *Spec) Changes(key understudy.Key, body []byte) (all []*Target) {
	source, path := key.Source, key.Path()
	if s.GraphQLAt(path) {
		for _, k := range mutated(s, body, key.Query() != "") {
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
			all = append(all, s.named(source, k, vars))
			break
		}
	}
	return all
}

// named is the record of a kind that path variables name.
func (s *Spec) named(source string, k *Kind, vars []understudy.Param) *Target {
	for _, in := range k.Instances {
		path, ok := in.template.Fill(understudy.Query(vars).Get)
		if !ok || in.Post != "" {
			continue
		}
		if t, err := s.Target(source, path, ""); err == nil && t.Kind == k && t.Instance != nil {
			return t
		}
	}
	return &Target{Spec: s, Kind: k, Key: understudy.Key{Source: source}}
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

// Orders reports whether a list of the kind may show records in another order than the
// newest first.
func (k *Kind) Orders() bool {
	return slices.ContainsFunc(k.Lists, func(l *List) bool {
		return l.Unordered || slices.ContainsFunc(l.Filters, func(f *Filter) bool { return f.Newest != "" })
	})
}

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

// Search is a search that people find ready.
type Search struct {
	Name  string   `yaml:"name"`
	Title string   `yaml:"title"` // for people; default: the name
	About string   `yaml:"about"` // what it shows, a sentence
	Kinds []string `yaml:"kinds"`
	Query string   `yaml:"q"`   // in the grammar of docs/reference/search.md
	Sum   string   `yaml:"sum"` // what is summed up; "": the records are listed
	By    []string `yaml:"by"`  // what it is summed up by
}

// Elapsed is the time that passes between two clocks of a record.
type Elapsed struct {
	Name  string `yaml:"name"`  // what a sum calls it: delivery
	Title string `yaml:"title"` // for people; default: the name
	From  string `yaml:"from"`  // the field that tells its beginning
	To    string `yaml:"to"`    // the field that tells its end
	When  *State `yaml:"when"`  // only in records of which this holds; nil: in all
}

// ElapsedNamed is the elapsed time of a name; nil when the kind has none.
func (k *Kind) ElapsedNamed(name string) *Elapsed {
	for _, e := range k.Elapsed {
		if e.Name == name {
			return e
		}
	}
	return nil
}

// IsUnit reports whether a field says in what unit another one is.
func (k *Kind) IsUnit(name string) bool {
	return slices.ContainsFunc(k.Fields, func(f *Field) bool { return f.Unit == name })
}

// use is a place of a kind that names one of its fields.
type use struct {
	name string
	at   []any
}

// uses are the places that name fields.
func (k *Kind) uses() []use {
	all := []use{
		{k.Clock, []any{"clock"}}, {k.Order, []any{"order"}}, {k.Own, []any{"own"}}, {k.Rollup, []any{"rollup"}}, {k.Parent, []any{"parent"}},
		{k.Deleted, []any{"deleted"}},
	}
	for i, name := range k.ID {
		all = append(all, use{name, []any{"id", i}})
	}
	for i, name := range k.Columns {
		all = append(all, use{name, []any{"columns", i}})
	}
	for _, of := range []struct {
		key    string
		states []State
	}{{"final", k.Final}, {"failed", k.Failed}} {
		for i, st := range of.states {
			all = append(all, use{st.Field, []any{of.key, i, "field"}})
			for j, name := range st.Set {
				all = append(all, use{name, []any{of.key, i, "set", j}})
			}
		}
	}
	for i, l := range k.Lists {
		for j, f := range l.Filters {
			all = append(all, use{f.Field, []any{"lists", i, "filters", j, "field"}})
		}
		for _, name := range slices.Sorted(maps.Keys(l.Only)) {
			all = append(all, use{name, []any{"lists", i, "only", name}})
		}
	}
	return all
}

// checkNames makes sure that a kind names only fields that it has.
func (k *Kind) checkNames() error {
	for i, l := range k.Lists {
		for j, f := range l.Filters {
			f.Type = cmp.Or(f.Type, TypeText)
			f.Op = cmp.Or(f.Op, "is")
			if err := f.check(); err != nil {
				return in(err, "lists", i, "filters", j)
			}
		}
	}
	for _, u := range k.uses() {
		if u.name != "" && k.fields[u.name] == nil {
			return in(fmt.Errorf("%s: %w", u.at[0], none(u.name, "among its fields", k.fieldNames())), u.at...)
		}
	}
	for i, f := range k.Fields {
		if f.Redacts && (f.Class == ClassSecret || f.Type == TypeMedia || f.Name == k.Clock || slices.Contains(k.ID, f.Name)) {
			return in(fmt.Errorf("field %s: redacts: it is never emptied to take back what it said", f.Name), "fields", i, "redacts")
		}
	}
	if err := k.checkSums(); err != nil {
		return err
	}
	return k.checkForgets()
}

// fieldNames are the names of its fields, sorted.
func (k *Kind) fieldNames() []string { return slices.Sorted(maps.Keys(k.fields)) }

// kindNames are the names of the spec's kinds, sorted.
func (s *Spec) kindNames() []string { return slices.Sorted(maps.Keys(s.kinds)) }

// checkSums checks what is summed up: units and elapsed times.
func (k *Kind) checkSums() error {
	for i, f := range k.Fields {
		if f.Unit != "" && k.fields[f.Unit] == nil {
			return in(fmt.Errorf("field %s: unit %w", f.Name, none(f.Unit, "a field", k.fieldNames())), "fields", i, "unit")
		}
	}
	for i, e := range k.Elapsed {
		for _, name := range []string{e.From, e.To} {
			if f := k.fields[name]; f == nil || !IsTime(f.Type) {
				return in(fmt.Errorf("elapsed[%d]: %w", i, none(name, "a field that tells a time", k.fieldNames())), "elapsed", i)
			}
		}
		e.Title = cmp.Or(e.Title, e.Name)
		switch {
		case e.Name == "" || k.fields[e.Name] != nil || k.ElapsedNamed(e.Name) != e:
			return fmt.Errorf("elapsed[%d]: name %q: want one that no field and no other elapsed time has", i, e.Name)
		case e.When != nil && (k.fields[e.When.Field] == nil || len(e.When.In) == 0 || len(e.When.Set) > 0):
			return fmt.Errorf("elapsed[%d]: when: want a field and the values it has", i)
		}
	}
	return nil
}

// checkSearches checks the kinds that ready searches and own numbers name.
func (s *Spec) checkSearches() error {
	for i, k := range s.Kinds {
		for j, name := range k.Used {
			switch other := s.kinds[name]; {
			case k.Own == "":
				return in(fmt.Errorf("kind %s: used: the kind has no numbers of our own (own)", k.Name), "kinds", i, "used")
			case other == nil || other.Clock == "" || !slices.ContainsFunc(other.Fields, func(f *Field) bool { return f.Class == ClassPhone }):
				return in(fmt.Errorf("kind %s: used: %w", k.Name, none(name, "a kind with a clock and phone numbers", s.kindNames())),
					"kinds", i, "used", j)
			}
		}
	}
	for i, one := range s.Searches {
		one.Title = cmp.Or(one.Title, one.Name)
		if one.Name == "" || slices.ContainsFunc(s.Searches[:i], func(o *Search) bool { return o.Name == one.Name }) {
			return fmt.Errorf("searches[%d]: name %q: want one that no other has", i, one.Name)
		}
		for _, name := range one.Kinds {
			if s.kinds[name] == nil {
				return in(fmt.Errorf("search %s: there is no kind %q%s", one.Name, name, suggest.Hint(name, s.kindNames())), "searches", i, "kinds")
			}
		}
		if one.Sum == "" && len(one.By) > 0 {
			return fmt.Errorf("search %s: by without sum", one.Name)
		}
	}
	return nil
}
