// Draft: a spec drawn from a document, with its reasons and what is not sure.

// Package infer draws a spec from what an API's document, or its answers, show: kinds,
// lists, paging, ids, clocks, classes of fields, headers. What it cannot tell it leaves out
// and says so.
package infer

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"understudy/internal/openapi"
	"understudy/kit/suggest"
)

// Draft is a spec drawn from a document.
type Draft struct {
	// YAML is the spec file, its reasons as comments.
	YAML []byte
	// Unsure are sentences: what was left out, and what may be otherwise.
	Unsure []string
	// Lists are the lists that were found.
	Lists []List
}

// List is one list of a draft.
type List struct {
	Path  string
	Style string // of its paging
	Sure  bool   // nothing is unsure about its paging and its rows
}

// api is what was found out of an API.
type api struct {
	doc    *openapi.Document
	seen   bool // the document was made of answers
	kinds  []*kind
	lists  []*list
	notes  []unsure
	passes []string // paths whose answers say nothing that could be kept
	levels int      // of fields
	fields described
	key    string   // a parameter of reads that is a credential
	paths  []string // where the lists are that are drawn; none: anywhere
}

// unsure is one sentence about one place, what is not sure there.
type unsure struct{ where, text string }

func (a *api) unsure(where, format string, args ...any) {
	a.notes = append(a.notes, unsure{where, fmt.Sprintf(format, args...)})
}

// FromDocument draws a spec from a document. from is where it is from, for the file's first
// line; with paths only the lists at these and below are drawn. The error says why there is
// nothing to draw.
func FromDocument(doc *openapi.Document, from string, paths ...string) (*Draft, error) {
	return (&api{doc: doc, levels: maxLevels, paths: paths}).draw(from)
}

// draw draws the spec.
func (a *api) draw(from string) (*Draft, error) {
	doc := a.doc
	a.fields = described{}
	for _, op := range doc.Reads {
		a.addList(op)
	}
	if len(a.lists) == 0 {
		return nil, fmt.Errorf("no GET answers with a list: want an array of objects, or an object with one")
	}
	byConvention(a.lists)
	if err := a.keepPaths(); err != nil {
		return nil, err
	}
	if a.seen {
		likeOthers(a.lists)
	}
	a.kinds = group(a.lists)
	a.addInstances()
	for _, k := range a.kinds {
		for _, l := range k.lists {
			l.cut.dropCursorWithoutID(k)
		}
	}
	a.describe()
	a.answers()
	d := &Draft{}
	for d.YAML = a.writeSpec(from); (len(d.YAML) > mostYAML || a.values() > mostValues) && a.levels > 1; d.YAML = a.writeSpec(from) {
		a.levels--
		a.describe()
	}
	if a.levels < maxLevels {
		a.unsure("", "of each kind the fields of %d levels alone are named, or the file would be too large: roles do not see what is deeper",
			a.levels)
	}
	d.Unsure = a.sentences()
	for _, l := range a.lists {
		d.Lists = append(d.Lists, List{l.op.Path, l.cut.rules.Style, l.cut.caveat == "" && l.env.caveat == ""})
	}
	return d, nil
}

// keepPaths leaves out lists that nobody asked for, with what is not sure of them. Paths
// are written as in the document.
func (a *api) keepPaths() error {
	lists := a.lists
	a.lists = nil
	for _, path := range a.paths {
		if !slices.ContainsFunc(lists, func(l *list) bool { return within(l.op.Path, a.doc.Base+path) }) {
			return fmt.Errorf("no list at %q or below%s", path, suggest.Hint(path, a.pathsOf(lists)))
		}
	}
	for _, l := range lists {
		if a.isWanted(l.op.Path) {
			a.lists = append(a.lists, l)
		}
	}
	a.notes = slices.DeleteFunc(a.notes, func(n unsure) bool { return strings.HasPrefix(n.where, "/") && !a.isWanted(n.where) })
	return nil
}

// within reports whether a path is another, or below it. What a variable is called is no matter.
func within(path, top string) bool {
	have, want := segments(path), segments(top)
	return len(have) >= len(want) && slices.EqualFunc(have[:len(want)], want, func(x, y string) bool {
		return x == y || strings.HasPrefix(x, "{") && strings.HasPrefix(y, "{")
	})
}

// pathsOf are the paths of lists as the document writes them.
func (a *api) pathsOf(lists []*list) (paths []string) {
	for _, l := range lists {
		paths = append(paths, strings.TrimPrefix(l.op.Path, a.doc.Base))
	}
	return paths
}

// The bounds of a spec file, with room to add to it.
const (
	mostYAML   = 900 << 10
	mostValues = 80_000
)

// values is about how many values the file has.
func (a *api) values() (n int) {
	for _, k := range a.kinds {
		n += 10 + 4*len(k.fields) + 4*len(k.lists)
		for _, l := range k.lists {
			n += 8 * len(l.filters)
		}
	}
	return n
}

// addList adds an operation that lists records.
func (a *api) addList(op *openapi.Operation) {
	if i := slices.IndexFunc(op.Params, isCredential); i >= 0 {
		a.key = op.Params[i].Name
		a.unsure(op.Path, "the parameter %s is a credential: left out", a.key)
		rest := *op
		rest.Params = slices.DeleteFunc(slices.Clone(op.Params), isCredential)
		op = &rest
	}
	env, ok := findRows(op)
	if !ok {
		return
	}
	if why := oddPath(op.Path); why != "" {
		a.unsure(op.Path, "%s: left out", why)
		return
	}
	if env.caveat != "" {
		a.unsure(op.Path, "%s: the first is taken", env.caveat)
	}
	a.lists = append(a.lists, &list{op: op, env: env, cut: findPaging(op, &env)})
}

// oddPath says why no spec can have a path; "" = one can.
func oddPath(path string) string {
	switch {
	case strings.ContainsAny(path, "?#*"):
		return "the path has more than segments: a query, or what stands for any text"
	case slices.ContainsFunc(segments(path), func(s string) bool { return strings.Count(s, "{") > 1 }):
		return "a segment of the path has more than one variable"
	}
	return ""
}

// isCredential reports whether a parameter names the caller: it has the name of a key, and where
// that may be one of paging a list cannot be asked without it, or its description says so.
func isCredential(p openapi.Param) bool {
	text := regexp.MustCompile(`(?i)\b(auth\w*|credentials?|api[ -]key|bearer|scopes?)\b`)
	return p.In == "query" && (isOneOf(p.Name, "apikey", "accesstoken", "authtoken", "oauthtoken") ||
		foldName(p.Name) == "token" && (p.Required || text.MatchString(p.Description+" "+p.Schema.Description())))
}

// below is a list's path without its ending, to find what lies below it.
func below(path string) string {
	if i := strings.LastIndexByte(path, '.'); i > strings.LastIndexAny(path, "/}") {
		return path[:i]
	}
	return strings.TrimSuffix(path, "/")
}

// addInstances finds the paths that show one record of a kind.
func (a *api) addInstances() {
	byPath, byRef := map[string]*kind{}, map[string]*kind{}
	isListPath := map[string]bool{}
	for _, k := range a.kinds {
		for _, l := range k.lists {
			isListPath[l.op.Path] = true
			byPath[below(l.op.Path)] = k
		}
		if k.schema != "" {
			byRef[k.schema] = k
		}
	}
	found, seen := map[*kind][]*openapi.Operation{}, map[string]bool{}
	for _, n := range a.notes {
		seen[n.where] = true // it is left out already
	}
	for _, op := range a.doc.Reads {
		seen[op.Path] = seen[op.Path] || isListPath[op.Path]
		if _, ok := lastVar(op.Path); !ok || isListPath[op.Path] || op.Answer.Type() != "object" || oddPath(op.Path) != "" {
			continue
		}
		k := byPath[op.Path[:strings.LastIndexByte(strings.TrimSuffix(op.Path, "/"), '/')]]
		for _, record := range append([]openapi.Property{{Schema: op.Answer}}, op.Answer.Properties()...) {
			if k == nil && record.Schema.Ref() != "" {
				k = byRef[record.Schema.Ref()]
			}
		}
		if k == nil {
			k = findKindByName(a.kinds, strings.TrimPrefix(op.Path, a.doc.Base))
		}
		if k != nil {
			found[k] = append(found[k], op)
		}
	}
	for _, k := range a.kinds {
		k.seen = a.seen
		if unsure := k.findID(found[k]); unsure != "" {
			a.unsure("kind "+k.name, "%s", unsure)
		}
		if len(k.id) == 0 {
			continue
		}
		for _, op := range found[k] {
			if unsure := a.addInstance(k, op); unsure != "" {
				a.unsure(op.Path, "%s: no row of a list answers for it", unsure)
			} else {
				seen[op.Path] = true
			}
		}
	}
	a.addSingleObjects(seen)
}

// addInstance adds a path that shows a record, if its answer is the record.
func (a *api) addInstance(k *kind, op *openapi.Operation) (unsure string) {
	in := &instance{op: op}
	if unsure := in.findRecord(k); unsure != "" {
		return unsure
	}
	vars, unsure := k.idVars(op.Path)
	if unsure != "" {
		return unsure
	}
	in.vars = vars
	known, ref := in.wrap(), in.record.Ref()
	if !known || ref != k.schema || ref == "" && !sameMembers(in.record, k.row()) {
		if in.shape = snakeCase(in.record.Name()); in.shape == "" || in.shape == k.name {
			in.shape = k.name + "_alone"
		}
	}
	k.instances = append(k.instances, in)
	return ""
}

// findRecord finds the record in the answer: the answer itself, or the one member that is an object
// with the kind's id.
func (in *instance) findRecord(k *kind) (unsure string) {
	has := func(s openapi.Schema) bool {
		return !slices.ContainsFunc(k.id, func(name string) bool { return !s.Property(name).Known() })
	}
	if in.record = in.op.Answer; has(in.record) {
		return ""
	}
	var found []openapi.Property
	for _, p := range in.op.Answer.Properties() {
		if named := foldName(p.Name) == foldName(singular(k.name)) || foldName(p.Name) == foldName(k.ref); named && has(p.Schema) {
			found = []openapi.Property{p}
			break
		}
		if has(p.Schema) && p.Schema.Type() == "object" {
			found = append(found, p)
		}
	}
	switch len(found) {
	case 0:
		return "its answer has no " + k.id[0] + " where a row of the list has it"
	case 1:
		in.key, in.record = found[0].Name, found[0].Schema
		return ""
	}
	return "its answer has several objects with " + k.id[0]
}

// sameMembers reports whether two objects have the same members.
func sameMembers(a, b openapi.Schema) bool {
	x, y := a.Properties(), b.Properties()
	return len(x) == len(y) && !slices.ContainsFunc(x, func(p openapi.Property) bool { return !b.Property(p.Name).Known() })
}

// defaultDoubt is in what is said of a filter whose default nothing proves.
const defaultDoubt = "as the document says"

// describe finds fields, clocks, columns and filters, as deep as a.levels says.
func (a *api) describe() {
	a.notes = slices.DeleteFunc(a.notes, func(d unsure) bool {
		return strings.Contains(d.text, "orders its records") || strings.Contains(d.text, defaultDoubt)
	})
	for _, k := range a.kinds {
		schemas := []openapi.Schema{k.row()}
		for i, l := range k.lists {
			if i > 0 && l.env.row.Ref() == "" {
				schemas = append(schemas, l.env.row)
			}
		}
		for _, in := range k.instances {
			if in.shape != "" {
				schemas = append(schemas, in.record)
			}
		}
		levels := a.levels
		if len(k.lists) == 0 {
			levels = max(levels-1, 1)
		}
		fields, twice, isWhole := a.fields.fieldsOf(schemas, levels)
		for _, name := range twice {
			a.noteOnce("kind "+k.name+", field "+name, "a member has the name, dots and all, and another one stands there inside an object: where "+
				"both are, the first alone is read")
		}
		k.fields = fields
		if k.columns, k.clock = nil, ""; !isWhole {
			a.noteOnce("kind "+k.name, "it has more fields than are looked at: a secret among the others is not hidden")
		}
		k.keepID()
		if unsure := k.findClock(); unsure != "" {
			a.unsure("kind "+k.name, "%s", unsure)
		}
		k.findColumns()
		k.findPrefixes()
		for _, l := range k.lists {
			l.filters = nil
			filtersOf(l, k)
			for _, f := range l.filters {
				if f.spec.Field != "" && f.spec.Meaning.Default != "" && len(f.spec.Meaning.SelectAll) == 0 {
					a.unsure(l.op.Path, "without %s it shows %s alone, %s, and no value shows all: never taken as whole; take a wrong default out",
						f.spec.Name, f.spec.Meaning.Default, defaultDoubt)
				}
			}
		}
	}
	a.checkSecrets()
}

// keepID makes sure that what names a record is a field, also where there are too many, and no secret.
func (k *kind) keepID() {
	for _, name := range k.id {
		if !slices.ContainsFunc(k.fields, func(f *field) bool { return f.spec.Name == name }) {
			f := &field{schema: k.row().Property(name)}
			f.spec.Name, f.own = name, name
			f.describe(name)
			k.fields = append(k.fields, f)
		}
	}
	for _, f := range k.fields {
		if slices.Contains(k.id, f.spec.Name) {
			f.spec.Class, f.why = "", ""
		}
	}
}

// sentences are what is not sure, the same text about several places as one.
func (a *api) sentences() (all []string) {
	const shown = 3
	where := map[string][]string{}
	var order []string
	for _, d := range a.notes {
		if where[d.text] == nil {
			order = append(order, d.text)
		}
		where[d.text] = append(where[d.text], d.where)
	}
	for _, text := range order {
		paths := where[text]
		if paths[0] == "" {
			all = append(all, text)
			continue
		}
		head := strings.Join(paths[:min(shown, len(paths))], ", ")
		if len(paths) > shown {
			head += fmt.Sprintf(" and %d more", len(paths)-shown)
		}
		all = append(all, head+": "+text)
	}
	return all
}
