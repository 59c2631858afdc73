// Kinds: lists grouped by what their rows are, and what names and orders a record.

package infer

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"understudy/internal/openapi"
	"understudy/spec"
)

// list is one path that lists records.
type list struct {
	op      *openapi.Operation
	env     envelope
	cut     *pagination
	paging  string // the name of its paging; "" = the spec's
	form    string // of its answer; "" = not known
	filters []*filter
}

// instance is one path that shows a record.
type instance struct {
	op     *openapi.Operation
	vars   []string
	record openapi.Schema
	key    string // the member that is the record; "" = the answer is
	answer string // with {record}; "" = the key alone is around it
	shape  string // "" = the kind's
}

// kind is a sort of record.
type kind struct {
	name      string
	ref       string // the name of its rows' schema; "" = none
	schema    string // the reference to it; "" = none
	lists     []*list
	instances []*instance
	fields    []*field
	id        []string
	clock     string
	columns   []string
	prefixes  []string
	why       map[string]string // by key of the spec
	seen      bool              // its rows are those of answers
}

// group sorts lists by what their rows are: by the reference to their schema, else by the last
// word of their path and the members they have.
func group(lists []*list) (kinds []*kind) {
	byRow := map[string]*kind{}
	for _, l := range lists {
		ref := l.env.row.Ref()
		key := "schema " + ref
		if ref == "" {
			key = "path " + lastWord(l.op.Path)
			for _, p := range l.env.row.Properties() {
				key += " " + p.Name
			}
		}
		k := byRow[key]
		if k == nil {
			k = &kind{ref: l.env.row.Name(), schema: ref, why: map[string]string{}}
			byRow[key] = k
			kinds = append(kinds, k)
		}
		k.lists = append(k.lists, l)
	}
	nameKinds(kinds)
	return kinds
}

// shortest is the list with the fewest path segments.
func (k *kind) shortest() *list {
	return slices.MinFunc(k.lists, func(a, b *list) int { return len(segments(a.op.Path)) - len(segments(b.op.Path)) })
}

// maxKindName bounds the name of a schema that becomes the name of a kind.
const maxKindName = 30

// nameKinds names each by the last word of its shortest list; where another has the name,
// by its schema or by the word before it.
func nameKinds(kinds []*kind) {
	order := slices.Clone(kinds)
	slices.SortStableFunc(order, func(a, b *kind) int { return len(segments(a.shortest().op.Path)) - len(segments(b.shortest().op.Path)) })
	taken := map[string]bool{"": true, "number": true, "search": true, "jobs": true}
	for _, k := range order {
		path := k.shortest().op.Path
		last := snakeCase(k.shortest().subject())
		wish := []string{last}
		if k.ref != "" && len(k.ref) <= maxKindName {
			wish = append(wish, plural(snakeCase(k.ref)), snakeCase(k.ref))
		}
		before := ""
		for _, s := range segments(path) {
			s, _, _ = strings.Cut(s, ".")
			if !strings.Contains(s, "{") && snakeCase(s) != last {
				before = snakeCase(s)
			}
		}
		wish = append(wish, before+"_"+last)
		if wish = slices.DeleteFunc(wish, func(name string) bool { return taken[name] }); len(wish) == 0 {
			wish = []string{numberedName(last, taken)}
		}
		k.name = wish[0]
		taken[k.name] = true
		k.why["name"] = "the last word of its shortest path"
		if k.name != last {
			k.why["name"] = "its path has no word"
			if last != "" {
				k.why["name"] = "another kind is called " + last
			}
		}
	}
}

// numberedName returns the first of name_2, name_3 and so on that is not taken.
func numberedName(name string, taken map[string]bool) string {
	for n := 2; ; n++ {
		if numbered := fmt.Sprintf("%s_%d", name, n); !taken[numbered] {
			return numbered
		}
	}
}

// row is the schema of a record in the kind's lists.
func (k *kind) row() openapi.Schema {
	if len(k.lists) == 0 {
		return k.instances[0].record
	}
	return k.lists[0].env.row
}

func isScalar(s openapi.Schema) bool {
	return slices.Contains([]string{"string", "integer", "number", ""}, s.Type())
}

// findID finds the field that names a record. paths are the paths below the kind's lists
// that show one record.
func (k *kind) findID(paths []*openapi.Operation) (unsure string) {
	props := slices.DeleteFunc(k.row().Properties(), func(p openapi.Property) bool { return !isScalar(p.Schema) })
	sure := 0
	for _, p := range props {
		if !p.Schema.Nullable() {
			sure++
		}
	}
	refused, parent, mayBeNull := "", "", false
	pick := func(above bool, names ...string) string {
		for _, name := range names {
			for _, p := range props {
				switch {
				case foldName(p.Name) != foldName(name):
				case !above && k.isParentID(p.Name):
					parent = p.Name
				case p.Schema.Nullable() && !mayBeNull || !k.tellsApart(p.Name):
					refused = p.Name
				default:
					return p.Name
				}
			}
		}
		return ""
	}
	if k.pickID(paths, pick) {
		return ""
	}
	// Where most fields may be null, that says little of one.
	if mayBeNull = 2*sure <= len(props); mayBeNull && k.pickID(paths, pick) {
		return strings.Join(k.id, " and ") + " may be null by the document, and is taken for the id: where it is null, a list is not complete; " +
			"check it, or give another"
	}
	if refused != "" {
		return refused + " may be null or repeats within a page, so that it names no record: it is kept as whole pages; give it an id"
	}
	if parent != "" {
		return parent + " names the record above its lists, and no field surely names a record: it is kept as whole pages; give it an id"
	}
	return "no field surely names a record, so that it is kept as whole pages; give it an id"
}

// pickID finds the id among the fields that pick returns, which may be those of records above the lists; false where none is one.
func (k *kind) pickID(paths []*openapi.Operation, pick func(bool, ...string) string) bool {
	one := foldName(singular(k.name))
	if name := pick(false, idFields...); name != "" {
		k.id, k.why["id"] = []string{name}, "the field is called so"
		return true
	}
	if name := pick(false, one+"id", foldName(singular(k.ref))+"id", one+"uuid", one+"sid"); name != "" {
		k.id, k.why["id"] = []string{name}, "the kind's name with id"
		return true
	}
	for _, op := range paths {
		v, _ := lastVar(op.Path)
		rest, _ := strings.CutPrefix(foldName(v), one)
		name := pick(false, v, rest)
		if name == "" && foldName(v) == one {
			name = pick(false, "name", "code", "slug", "number")
		}
		if name != "" && k.idUnder(op.Path, name, pick) {
			return true
		}
	}
	return false
}

// tellsApart reports whether a field has a value of its own in each row of the pages that were
// seen. The examples of a document often repeat one row.
func (k *kind) tellsApart(name string) bool {
	for _, l := range k.lists {
		if !k.seen {
			return true
		}
		seen := map[string]bool{}
		for _, row := range l.exampleRows() {
			if v := row.Get(name); v == nil || v.Text == "" || seen[v.Text] {
				return false
			}
			seen[row.Of(name)] = true
		}
	}
	return true
}

// idUnder makes an id of a field that a path's last variable names. It is a name below the
// records that the path's other variables name, so these are part of the id. It returns false where
// no field shows one of them.
func (k *kind) idUnder(path, name string, pick func(bool, ...string) string) bool {
	vars := pathVars(path)
	var id []string
	for _, v := range vars[:len(vars)-1] {
		field := pick(true, v, nameStem(v))
		if field == "" || field == name {
			return false
		}
		id = append(id, field)
	}
	k.id = append(id, name)
	k.why["id"] = "{" + vars[len(vars)-1] + "} of " + path
	return true
}

// idVars are the variables of an instance's path that name the record; the unsure says why
// none do.
func (k *kind) idVars(path string) (vars []string, unsure string) {
	all := pathVars(path)
	one := foldName(singular(k.name))
	last := all[len(all)-1]
	if len(k.id) == 1 {
		name, ends := foldName(last), splitWords(last)
		id := foldName(k.id[0])
		other := k.row().Property(ends[len(ends)-1])
		switch {
		case strings.HasSuffix(foldName(singular(lastWord(path))), name) && k.listed(lastWord(path)):
		case name == id, name == one, name == one+id, name == foldName(singular(k.ref)), name == foldName(singular(k.ref))+id:
		case slices.Contains(idFields, id) && (slices.Contains(idFields, name) || slices.Contains(idFields, foldName(ends[len(ends)-1]))):
		case !other.Known() && (name == "id" || name == one+"id"):
		case other.Known() && isScalar(other):
			return nil, "{" + last + "} is the record's " + ends[len(ends)-1] + " and not its " + k.id[0]
		default:
			return nil, "nothing says that {" + last + "} is the record's " + k.id[0]
		}
		return []string{last}, ""
	}
	for i, field := range k.id {
		at := slices.IndexFunc(all, func(v string) bool {
			return foldName(v) == foldName(field) || strings.TrimSuffix(foldName(v), "id") == foldName(field)
		})
		if i == len(k.id)-1 {
			at = len(all) - 1
		}
		if at < 0 {
			return nil, "no variable is the record's " + field
		}
		vars = append(vars, all[at])
	}
	return vars, ""
}

// exampleRows returns the rows of the list's example.
func (l *list) exampleRows() []*openapi.Value {
	if rows := memberAt(l.op.Example, l.env.key); rows != nil && rows.Kind == openapi.Array {
		return rows.Items
	}
	return nil
}

// listed reports whether one of the kind's lists has a path that ends with the name.
func (k *kind) listed(name string) bool {
	return slices.ContainsFunc(k.lists, func(l *list) bool { return lastWord(l.op.Path) == name })
}

// findClock finds the field that orders records in time.
func (k *kind) findClock() (unsure string) {
	if len(k.lists) == 0 {
		return ""
	}
	var times []*field
	for _, f := range k.fields {
		outer, _, _ := strings.Cut(f.spec.Name, ".")
		if f.isTime() && (f.own == f.spec.Name || isOneOf(outer, timeObjects...)) {
			times = append(times, f)
		}
	}
	find := func(why string, fits func(f *field) bool) bool {
		i := slices.IndexFunc(times, fits)
		if i >= 0 {
			k.clock, k.why["clock"] = times[i].spec.Name, why
		}
		return i >= 0
	}
	const byName = "a time, by its name that of creation"
	for _, name := range clockFields {
		if find(byName, func(f *field) bool { return foldName(f.own) == name }) {
			return ""
		}
	}
	one := foldName(singular(k.name))
	switch {
	case find("a time, with the kind's name", func(f *field) bool { return isOneOf(f.spec.Name, one+"date", one+"time", one+"at") }):
	case find(byName, func(f *field) bool { return hasWord(f.spec.Name, "created", "creation") }):
	case len(times) > 0:
		var names []string
		for _, f := range times[:min(3, len(times))] {
			names = append(names, f.spec.Name)
		}
		return "which of the times orders its records is not clear: " + strings.Join(names, ", ")
	}
	return ""
}

// maxColumns bounds the columns of a table.
const maxColumns = 6

// findColumns chooses what a table of the kind shows.
func (k *kind) findColumns() {
	add := func(name string) {
		if name != "" && len(k.columns) < maxColumns && !slices.Contains(k.columns, name) {
			k.columns = append(k.columns, name)
		}
	}
	for _, name := range k.id {
		add(name)
	}
	for _, likely := range []string{"number", "name", "title", "fullname", "email", "description", "status", "state", "type", "from", "to",
		"amount", "currency"} {
		for _, f := range k.fields {
			if foldName(f.spec.Name) == likely && isScalar(f.schema) && f.spec.Class != spec.ClassSecret {
				add(f.spec.Name)
			}
		}
	}
	for _, f := range k.fields {
		if len(k.columns) < 4 && isScalar(f.schema) && f.spec.Class == "" && f.spec.Name != k.clock && !strings.Contains(f.spec.Name, ".") {
			add(f.spec.Name)
		}
	}
	if k.clock != "" && len(k.columns) == maxColumns {
		k.columns = k.columns[:maxColumns-1]
	}
	add(k.clock)
}

// What ids begin with, as examples and patterns show it.
var (
	idExample = regexp.MustCompile(`^([A-Za-z]{1,12}[_-])[A-Za-z0-9]{4,}$|^([A-Z]{2})[0-9a-z]{32}$`)
	idPattern = regexp.MustCompile(`^\^?([A-Z]{2})\[0-9a-fA-F\]\{32\}\$?$`)
)

// findPrefixes finds what the kind's ids begin with.
func (k *kind) findPrefixes() {
	if len(k.id) != 1 {
		return
	}
	s := k.row().Property(k.id[0])
	var examples []string
	if x := s.Example(); x != nil {
		examples = append(examples, x.Text)
	}
	for _, l := range k.lists {
		for _, row := range l.exampleRows() {
			examples = append(examples, row.Of(k.id[0]))
		}
	}
	prefix := ""
	for i, text := range examples {
		m := idExample.FindStringSubmatch(text)
		if m == nil || i > 0 && m[1]+m[2] != prefix {
			prefix = ""
			break
		}
		prefix = m[1] + m[2]
	}
	k.why["prefixes"] = "its ids in examples"
	if m := idPattern.FindStringSubmatch(s.Pattern()); m != nil {
		prefix, k.why["prefixes"] = m[1], "its id's pattern"
	}
	if prefix != "" {
		k.prefixes = []string{prefix}
	}
}
