// This file groups lists into kinds, and finds the id, clock, columns and id prefixes of each kind.

package infer

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"understudy/internal/openapi"
	"understudy/spec"
)

// list is a path that lists records.
type list struct {
	op             *openapi.Operation
	envelope       envelope
	paging         *pagination
	pagingName     string // the name of the list's paging entry; "" means the spec's default paging
	answerTemplate string // the template of the list's response; "" if unknown
	filters        []*filter
}

// instance is a path that returns a single record.
type instance struct {
	op             *openapi.Operation
	vars           []string
	record         openapi.Schema
	recordKey      string // the member of the response that is the record; "" if the response itself is the record
	answerTemplate string // the template of the response, with {record}; "" if recordKey is its only member
	shape          string // the name of the record's shape; "" means the kind's own shape
}

// kind is a type of record, with its lists and fields.
type kind struct {
	name       string
	schemaName string // the name of the schema of the kind's rows, or ""
	schemaRef  string // the reference to the schema of the kind's rows, or ""
	lists      []*list
	instances  []*instance
	fields     []*field
	id         []string
	clock      string
	columns    []string
	prefixes   []string
	why        map[string]string // the reason for each setting, by the setting's key in the spec
	observed   bool              // whether the kind's rows come from real responses and not from examples
}

// groupLists groups lists into kinds. The lists of a kind refer to the same row schema. Without a reference to a
// schema, they have the same last word in the path and the same members.
func groupLists(lists []*list) (kinds []*kind) {
	byRow := map[string]*kind{}
	for _, l := range lists {
		ref := l.envelope.row.Ref()
		key := "schema " + ref
		if ref == "" {
			key = "path " + lastWord(l.op.Path)
			for _, p := range l.envelope.row.Properties() {
				key += " " + p.Name
			}
		}
		k := byRow[key]
		if k == nil {
			k = &kind{schemaName: l.envelope.row.Name(), schemaRef: ref, why: map[string]string{}}
			byRow[key] = k
			kinds = append(kinds, k)
		}
		k.lists = append(k.lists, l)
	}
	nameKinds(kinds)
	return kinds
}

// topList returns the list with the fewest path segments.
func (k *kind) topList() *list {
	return slices.MinFunc(k.lists, func(a, b *list) int { return len(segments(a.op.Path)) - len(segments(b.op.Path)) })
}

// maxKindNameBytes is the maximum length of a schema name that becomes the name of a kind.
const maxKindNameBytes = 30

// nameKinds names each kind by the last word of its shortest path. If that name is taken, it uses the name
// of the schema, the last two words of the path, or a number.
func nameKinds(kinds []*kind) {
	order := slices.Clone(kinds)
	slices.SortStableFunc(order, func(a, b *kind) int { return len(segments(a.topList().op.Path)) - len(segments(b.topList().op.Path)) })
	taken := map[string]bool{"": true, "number": true, "search": true, "jobs": true}
	for _, k := range order {
		path := k.topList().op.Path
		last := snakeCase(k.topList().subject())
		wish := []string{last}
		if k.schemaName != "" && len(k.schemaName) <= maxKindNameBytes {
			wish = append(wish, plural(snakeCase(k.schemaName)), snakeCase(k.schemaName))
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

// numberedName returns the first free name of name_2, name_3 and so on.
func numberedName(name string, taken map[string]bool) string {
	for n := 2; ; n++ {
		if numbered := fmt.Sprintf("%s_%d", name, n); !taken[numbered] {
			return numbered
		}
	}
}

// rowSchema returns the schema of a record in the kind's first list, or in its first instance if the kind has no list.
func (k *kind) rowSchema() openapi.Schema {
	if len(k.lists) == 0 {
		return k.instances[0].record
	}
	return k.lists[0].envelope.row
}

func isScalar(s openapi.Schema) bool {
	return slices.Contains([]string{"string", "integer", "number", ""}, s.Type())
}

// findID sets the kind's id. paths are the operations that return a single record. findID returns a caveat if no
// field is certainly the id.
func (k *kind) findID(paths []*openapi.Operation) (unsure string) {
	props := slices.DeleteFunc(k.rowSchema().Properties(), func(p openapi.Property) bool { return !isScalar(p.Schema) })
	sure := 0
	for _, p := range props {
		if !p.Schema.IsNullable() {
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
				case p.Schema.IsNullable() && !mayBeNull || !k.hasUniqueValues(p.Name):
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
	// If the document allows null for most fields, a nullable field can be the id too.
	if mayBeNull = 2*sure <= len(props); mayBeNull && k.pickID(paths, pick) {
		return strings.Join(k.id, " and ") + " may be null according to the document, but is used as the id; a list with a null id " +
			"is not complete; check it, or choose another id"
	}
	if refused != "" {
		return refused + " may be null or repeats within a page, so it cannot be the id; the kind is stored as whole pages until " +
			"you give it an id"
	}
	if parent != "" {
		return parent + " is the id of the record above its lists, and no field is certainly its own id; it is stored as whole " +
			"pages until you give it an id"
	}
	return "no field is certainly the id; the kind is stored as whole pages until you give it an id"
}

// pickID sets the kind's id from the fields that pick accepts. It returns false if no field is an id.
func (k *kind) pickID(paths []*openapi.Operation, pick func(bool, ...string) string) bool {
	one := foldName(singular(k.name))
	if name := pick(false, idFields...); name != "" {
		k.id, k.why["id"] = []string{name}, "a usual name of an id"
		return true
	}
	if name := pick(false, one+"id", foldName(singular(k.schemaName))+"id", one+"uuid", one+"sid"); name != "" {
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
		if name != "" && k.pickNestedID(op.Path, name, pick) {
			return true
		}
	}
	return false
}

// hasUniqueValues reports whether a field has a different value in each row of the observed pages. It returns true
// for examples of a document, because these often repeat a row.
func (k *kind) hasUniqueValues(name string) bool {
	for _, l := range k.lists {
		if !k.observed {
			return true
		}
		seen := map[string]bool{}
		for _, row := range l.exampleRows() {
			if v := row.Get(name); v == nil || v.Text == "" || seen[v.Text] {
				return false
			}
			seen[row.TextOf(name)] = true
		}
	}
	return true
}

// pickNestedID sets an id of several fields, one field for each variable of the path, because name is unique only
// below the parent records. name is the field of the last variable. It returns false if a variable has no field.
func (k *kind) pickNestedID(path, name string, pick func(bool, ...string) string) bool {
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

// idVars returns the variables of an instance's path that are the record's id. If there are none, unsure says why.
func (k *kind) idVars(path string) (vars []string, unsure string) {
	all := pathVars(path)
	one := foldName(singular(k.name))
	last := all[len(all)-1]
	if len(k.id) == 1 {
		name, ends := foldName(last), splitWords(last)
		id := foldName(k.id[0])
		other := k.rowSchema().Property(ends[len(ends)-1])
		switch {
		case strings.HasSuffix(foldName(singular(lastWord(path))), name) && k.hasListEnding(lastWord(path)):
		case name == id, name == one, name == one+id, name == foldName(singular(k.schemaName)), name == foldName(singular(k.schemaName))+id:
		case slices.Contains(idFields, id) && (slices.Contains(idFields, name) || slices.Contains(idFields, foldName(ends[len(ends)-1]))):
		case !other.IsKnown() && (name == "id" || name == one+"id"):
		case other.IsKnown() && isScalar(other):
			return nil, "{" + last + "} is the record's " + ends[len(ends)-1] + " and not its " + k.id[0]
		default:
			return nil, "it is not certain that {" + last + "} is the record's " + k.id[0]
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

func (l *list) exampleRows() []*openapi.Value {
	if rows := memberAt(l.op.Example, l.envelope.key); rows != nil && rows.Kind == openapi.Array {
		return rows.Items
	}
	return nil
}

// hasListEnding reports whether the path of a list of the kind ends with the name.
func (k *kind) hasListEnding(name string) bool {
	return slices.ContainsFunc(k.lists, func(l *list) bool { return lastWord(l.op.Path) == name })
}

// findClock sets the kind's clock, the field that orders records in time. It returns a caveat if several fields
// could be the clock.
func (k *kind) findClock() (unsure string) {
	if len(k.lists) == 0 {
		return ""
	}
	var times []*field
	for _, f := range k.fields {
		outer, _, _ := strings.Cut(f.spec.Name, ".")
		if f.isTime() && (f.ownName == f.spec.Name || isOneOf(outer, timeObjects...)) {
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
	const byName = "the time of creation, by its name"
	for _, name := range clockFields {
		if find(byName, func(f *field) bool { return foldName(f.ownName) == name }) {
			return ""
		}
	}
	one := foldName(singular(k.name))
	switch {
	case find("a time with the kind's name", func(f *field) bool { return isOneOf(f.spec.Name, one+"date", one+"time", one+"at") }):
	case find(byName, func(f *field) bool { return hasWord(f.spec.Name, "created", "creation") }):
	case len(times) > 0:
		var names []string
		for _, f := range times[:min(3, len(times))] {
			names = append(names, f.spec.Name)
		}
		return "it is not clear which time orders its records: " + strings.Join(names, ", ")
	}
	return ""
}

const maxColumns = 6

// findColumns chooses the fields that the kind's table shows.
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

// Patterns that find the prefix of ids in example ids and in a schema's pattern.
var (
	idExample = regexp.MustCompile(`^([A-Za-z]{1,12}[_-])[A-Za-z0-9]{4,}$|^([A-Z]{2})[0-9a-z]{32}$`)
	idPattern = regexp.MustCompile(`^\^?([A-Z]{2})\[0-9a-fA-F\]\{32\}\$?$`)
)

// findPrefixes sets the prefix that all example ids of the kind share, or the prefix in the id's pattern.
func (k *kind) findPrefixes() {
	if len(k.id) != 1 {
		return
	}
	s := k.rowSchema().Property(k.id[0])
	var examples []string
	if x := s.Example(); x != nil {
		examples = append(examples, x.Text)
	}
	for _, l := range k.lists {
		for _, row := range l.exampleRows() {
			examples = append(examples, row.TextOf(k.id[0]))
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
	k.why["prefixes"] = "from ids in examples"
	if m := idPattern.FindStringSubmatch(s.Pattern()); m != nil {
		prefix, k.why["prefixes"] = m[1], "its id's pattern"
	}
	if prefix != "" {
		k.prefixes = []string{prefix}
	}
}
