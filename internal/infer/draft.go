// This file drafts a spec from a document, with the reason for each setting and a list of caveats.

// Package infer drafts a spec from an API's OpenAPI document or from its responses. It finds kinds, lists, paging,
// ids, clocks, classes of fields and headers. It leaves out what it can't determine and reports each omission.
package infer

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"understudy/internal/openapi"
	"understudy/kit/suggest"
)

// Draft is a proposed spec.
type Draft struct {
	// YAML is the spec file. Its comments give the reasons.
	YAML []byte
	// Unsure has a sentence for each part of the spec that was left out or may be wrong.
	Unsure []string
	// Lists are the lists in the spec.
	Lists []List
}

// List is one list of a draft.
type List struct {
	Path  string
	Style string // the style of the list's paging
	Sure  bool   // whether the list's paging and the place of its rows are certain
}

// api collects what is known about an API while its spec is drafted.
type api struct {
	doc              *openapi.Document
	observed         bool // whether the document was built from responses of the API
	kinds            []*kind
	lists            []*list
	caveats          []caveat
	passThroughPaths []string // the paths whose responses have no records to store
	fieldLevels      int      // the maximum nesting of the fields in the spec
	fieldCache       fieldCache
	credentialParam  string   // the query parameter of reads that is a credential, or ""
	wantedPaths      []string // the lists at and below these paths are put into the spec; empty means all lists
}

// caveat is a sentence about an uncertain part of the draft, and the path, kind or field that it concerns.
type caveat struct{ where, text string }

func (a *api) addCaveat(where, format string, args ...any) {
	a.caveats = append(a.caveats, caveat{where, fmt.Sprintf(format, args...)})
}

// DrawFromDocument drafts a spec from a document. from names the document's source in the first line of the file. If
// paths are given, the spec has only the lists at and below these paths. It returns an error if no list is found.
func DrawFromDocument(doc *openapi.Document, from string, paths ...string) (*Draft, error) {
	return (&api{doc: doc, fieldLevels: maxLevels, wantedPaths: paths}).draw(from)
}

// draw drafts the spec. It drops the deepest fields until the file fits into the limits.
func (a *api) draw(from string) (*Draft, error) {
	doc := a.doc
	a.fieldCache = fieldCache{}
	for _, op := range doc.Reads {
		a.addList(op)
	}
	if len(a.lists) == 0 {
		return nil, fmt.Errorf("no GET returns a list, that is, an array of objects or an object with such an array")
	}
	applyConvention(a.lists)
	if err := a.keepPaths(); err != nil {
		return nil, err
	}
	if a.observed {
		applyLinkHeaders(a.lists)
	}
	a.kinds = groupLists(a.lists)
	a.addInstances()
	for _, k := range a.kinds {
		for _, l := range k.lists {
			l.paging.dropCursorWithoutID(k)
		}
	}
	a.describe()
	a.findAnswerTemplates()
	d := &Draft{}
	d.YAML = a.writeSpec(from)
	for (len(d.YAML) > maxYAMLBytes || a.estimateValues() > maxValues) && a.fieldLevels > 1 {
		a.fieldLevels--
		a.describe()
		d.YAML = a.writeSpec(from)
	}
	if a.fieldLevels < maxLevels {
		a.addCaveat("", "the spec names only the fields of %d levels of each kind, or it would be too large; roles do not see deeper fields",
			a.fieldLevels)
	}
	d.Unsure = a.sentences()
	for _, l := range a.lists {
		d.Lists = append(d.Lists, List{l.op.Path, l.paging.rules.Style, l.paging.caveat == "" && l.envelope.caveat == ""})
	}
	return d, nil
}

// keepPaths removes the lists outside the wanted paths, and the caveats about them. The wanted paths
// are written as in the document. It returns an error if a wanted path has no list.
func (a *api) keepPaths() error {
	lists := a.lists
	a.lists = nil
	for _, path := range a.wantedPaths {
		if !slices.ContainsFunc(lists, func(l *list) bool { return isWithin(l.op.Path, a.doc.Base+path) }) {
			return fmt.Errorf("no list at %q or below%s", path, suggest.Hint(path, a.listPaths(lists)))
		}
	}
	for _, l := range lists {
		if a.isWanted(l.op.Path) {
			a.lists = append(a.lists, l)
		}
	}
	a.caveats = slices.DeleteFunc(a.caveats, func(n caveat) bool { return strings.HasPrefix(n.where, "/") && !a.isWanted(n.where) })
	return nil
}

// isWithin reports whether path equals top or is below it. Names of variables may differ.
func isWithin(path, top string) bool {
	have, want := segments(path), segments(top)
	return len(have) >= len(want) && slices.EqualFunc(have[:len(want)], want, func(x, y string) bool {
		return x == y || strings.HasPrefix(x, "{") && strings.HasPrefix(y, "{")
	})
}

// listPaths returns the paths of lists as the document writes them.
func (a *api) listPaths(lists []*list) (paths []string) {
	for _, l := range lists {
		paths = append(paths, strings.TrimPrefix(l.op.Path, a.doc.Base))
	}
	return paths
}

// Limits of a drafted file, in bytes and in YAML values. They are below the limits of a spec, so that people can
// add to the file.
const (
	maxYAMLBytes = 900 << 10
	maxValues    = 80_000
)

// estimateValues returns the approximate number of values in the file.
func (a *api) estimateValues() (n int) {
	for _, k := range a.kinds {
		n += 10 + 4*len(k.fields) + 4*len(k.lists)
		for _, l := range k.lists {
			n += 8 * len(l.filters)
		}
	}
	return n
}

// addList adds the operation to the API's lists if it lists records.
func (a *api) addList(op *openapi.Operation) {
	if i := slices.IndexFunc(op.Params, isCredential); i >= 0 {
		a.credentialParam = op.Params[i].Name
		a.addCaveat(op.Path, "the parameter %s is a credential, so it is left out", a.credentialParam)
		rest := *op
		rest.Params = slices.DeleteFunc(slices.Clone(op.Params), isCredential)
		op = &rest
	}
	env, ok := findRows(op)
	if !ok {
		return
	}
	if why := pathProblem(op.Path); why != "" {
		a.addCaveat(op.Path, "%s, so it is left out", why)
		return
	}
	if env.caveat != "" {
		a.addCaveat(op.Path, "%s; the spec uses the first", env.caveat)
	}
	a.lists = append(a.lists, &list{op: op, envelope: env, paging: findPaging(op, &env)})
}

// pathProblem returns why a spec can't contain the path, or "" if a spec can.
func pathProblem(path string) string {
	switch {
	case strings.ContainsAny(path, "?#*"):
		return "the path contains a query, # or *"
	case slices.ContainsFunc(segments(path), func(s string) bool { return strings.Count(s, "{") > 1 }):
		return "a segment of the path has more than one variable"
	}
	return ""
}

// isCredential reports whether a query parameter is a credential, judged by its name. A parameter named "token" may
// also belong to paging, so it must be required, or its description must mention credentials.
func isCredential(p openapi.Param) bool {
	text := regexp.MustCompile(`(?i)\b(auth\w*|credentials?|api[ -]key|bearer|scopes?)\b`)
	return p.In == "query" && (isOneOf(p.Name, "apikey", "accesstoken", "authtoken", "oauthtoken") ||
		foldName(p.Name) == "token" && (p.Required || text.MatchString(p.Description+" "+p.Schema.Description())))
}

// trimExtension returns a list's path without an extension such as .json, to find paths below it.
func trimExtension(path string) string {
	if i := strings.LastIndexByte(path, '.'); i > strings.LastIndexAny(path, "/}") {
		return path[:i]
	}
	return strings.TrimSuffix(path, "/")
}

// addInstances finds the paths that return a single record of a kind. Before that, it chooses the id of each kind.
func (a *api) addInstances() {
	byPath, byRef := map[string]*kind{}, map[string]*kind{}
	isListPath := map[string]bool{}
	for _, k := range a.kinds {
		for _, l := range k.lists {
			isListPath[l.op.Path] = true
			byPath[trimExtension(l.op.Path)] = k
		}
		if k.schemaRef != "" {
			byRef[k.schemaRef] = k
		}
	}
	found, seen := map[*kind][]*openapi.Operation{}, map[string]bool{}
	for _, n := range a.caveats {
		seen[n.where] = true // the path was left out with a caveat
	}
	for _, op := range a.doc.Reads {
		seen[op.Path] = seen[op.Path] || isListPath[op.Path]
		if _, ok := lastVar(op.Path); !ok || isListPath[op.Path] || op.Answer.Type() != "object" || pathProblem(op.Path) != "" {
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
		k.observed = a.observed
		if unsure := k.findID(found[k]); unsure != "" {
			a.addCaveat("kind "+k.name, "%s", unsure)
		}
		if len(k.id) == 0 {
			continue
		}
		for _, op := range found[k] {
			if unsure := a.addInstance(k, op); unsure != "" {
				a.addCaveat(op.Path, "%s; it is never answered from a row of a list", unsure)
			} else {
				seen[op.Path] = true
			}
		}
	}
	a.addSingleObjects(seen)
}

// addInstance adds a path to the kind if the response contains a record. Otherwise unsure says why it doesn't.
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
	if !known || ref != k.schemaRef || ref == "" && !hasSameMembers(in.record, k.rowSchema()) {
		if in.shape = snakeCase(in.record.Name()); in.shape == "" || in.shape == k.name {
			in.shape = k.name + "_alone"
		}
	}
	k.instances = append(k.instances, in)
	return ""
}

// findRecord finds the record in the response: the response itself, a member with the kind's name, or the only
// object with the kind's id. Otherwise unsure says what is missing or ambiguous.
func (in *instance) findRecord(k *kind) (unsure string) {
	has := func(s openapi.Schema) bool {
		return !slices.ContainsFunc(k.id, func(name string) bool { return !s.Property(name).IsKnown() })
	}
	if in.record = in.op.Answer; has(in.record) {
		return ""
	}
	var found []openapi.Property
	for _, p := range in.op.Answer.Properties() {
		if named := foldName(p.Name) == foldName(singular(k.name)) || foldName(p.Name) == foldName(k.schemaName); named && has(p.Schema) {
			found = []openapi.Property{p}
			break
		}
		if has(p.Schema) && p.Schema.Type() == "object" {
			found = append(found, p)
		}
	}
	switch len(found) {
	case 0:
		return "its answer has no " + k.id[0] + " at the place where a row of the list has it"
	case 1:
		in.recordKey, in.record = found[0].Name, found[0].Schema
		return ""
	}
	return "its answer has several objects with " + k.id[0]
}

func hasSameMembers(a, b openapi.Schema) bool {
	x, y := a.Properties(), b.Properties()
	return len(x) == len(y) && !slices.ContainsFunc(x, func(p openapi.Property) bool { return !b.Property(p.Name).IsKnown() })
}

// defaultCaveat is part of the caveat about a filter whose default only the document states.
const defaultCaveat = "as the document says"

// describe finds fields, clocks, columns and filters down to a.fieldLevels. It replaces what an earlier call found.
func (a *api) describe() {
	a.caveats = slices.DeleteFunc(a.caveats, func(d caveat) bool {
		return strings.Contains(d.text, "orders its records") || strings.Contains(d.text, defaultCaveat)
	})
	for _, k := range a.kinds {
		schemas := []openapi.Schema{k.rowSchema()}
		for i, l := range k.lists {
			if i > 0 && l.envelope.row.Ref() == "" {
				schemas = append(schemas, l.envelope.row)
			}
		}
		for _, in := range k.instances {
			if in.shape != "" {
				schemas = append(schemas, in.record)
			}
		}
		levels := a.fieldLevels
		if len(k.lists) == 0 {
			levels = max(levels-1, 1)
		}
		fields, twice, isWhole := a.fieldCache.listFields(schemas, levels)
		for _, name := range twice {
			a.noteOnce("kind "+k.name+", field "+name, "one member has this name with its dots, and another is inside objects at the "+
				"same path; if a record has both, only the first is read")
		}
		k.fields = fields
		if k.columns, k.clock = nil, ""; !isWhole {
			a.noteOnce("kind "+k.name, "it has too many fields to check all of them; a secret among the rest is not hidden")
		}
		k.keepID()
		if unsure := k.findClock(); unsure != "" {
			a.addCaveat("kind "+k.name, "%s", unsure)
		}
		k.findColumns()
		k.findPrefixes()
		for _, l := range k.lists {
			l.filters = nil
			findFilters(l, k)
			for _, f := range l.filters {
				if f.spec.Field != "" && f.spec.Meaning.Default != "" && len(f.spec.Meaning.SelectAll) == 0 {
					a.addCaveat(l.op.Path, "without %s it shows only %s, %s, and no value shows all records; it never counts as complete; "+
						"remove the default if it is wrong",
						f.spec.Name, f.spec.Meaning.Default, defaultCaveat)
				}
			}
		}
	}
	a.checkSecrets()
}

// keepID adds the fields of the id if the limit on fields excluded them. It removes their class, so that ids are
// never hidden.
func (k *kind) keepID() {
	for _, name := range k.id {
		if !slices.ContainsFunc(k.fields, func(f *field) bool { return f.spec.Name == name }) {
			f := &field{schema: k.rowSchema().Property(name)}
			f.spec.Name, f.ownName = name, name
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

// sentences returns the caveats as text. Caveats with the same text become one sentence with several places.
func (a *api) sentences() (all []string) {
	const shown = 3
	where := map[string][]string{}
	var order []string
	for _, d := range a.caveats {
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
