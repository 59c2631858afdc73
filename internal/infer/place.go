// Place: where an answer has its rows, and the values beside them.

package infer

import (
	"cmp"
	"slices"
	"strings"

	"understudy/internal/openapi"
	"understudy/spec/paging"
)

// envelopeMember is a value of an answer beside its rows.
type envelopeMember struct {
	path   string // dotted
	schema openapi.Schema
	depth  int // how many objects are around it
}

// envelope is the answer of a list: where its rows are, and what stands beside them.
type envelope struct {
	key     string // dotted; "" = the answer is the array
	row     openapi.Schema
	members []envelopeMember // scalars and objects, in the document's order
	why     string
	caveat  string // why the rows may be elsewhere; "" = sure
}

// maxMembers bounds what is looked at beside the rows.
const maxMembers = 200

// isRecord reports whether a schema is that of a record: an object with members.
func isRecord(s openapi.Schema) bool { return s.Type() == "object" && len(s.Properties()) > 0 }

// findRows finds the array of records in an answer; ok is false when it is none.
func findRows(op *openapi.Operation) (e envelope, ok bool) {
	answer := op.Answer
	if answer.Type() == "array" {
		e.row, e.why = answer.Items(), "the answer is the array"
		return e, isRecord(e.row)
	}
	var arrays []envelopeMember
	e.collectMembers(&arrays, answer, "", 0)
	last := lastWord(op.Path)
	rank := func(p envelopeMember) int {
		name := foldName(lastPart(p.path))
		switch i := slices.Index(rowNames, name); {
		case name == foldName(last):
			return 0
		case i >= 0:
			return 1 + i
		}
		return len(rowNames) + 1
	}
	if len(arrays) == 0 {
		return e, false
	}
	slices.SortStableFunc(arrays, func(a, b envelopeMember) int { return cmp.Or(rank(a)-rank(b), a.depth-b.depth) })
	first := arrays[0]
	if slices.ContainsFunc(arrays[1:], func(p envelopeMember) bool { return p.path == first.path }) {
		e.caveat = "an array of objects has the name " + first.path + ", dots and all, and another one stands there inside an object"
	}
	arrays = slices.DeleteFunc(arrays, func(p envelopeMember) bool { return p.depth > first.depth }) // they are parts of something else
	e.key, e.row = first.path, first.schema.Items()
	e.why = "the array of records"
	if len(arrays) > 1 && rank(first) > len(rowNames) {
		e.caveat = "there are several arrays of objects, " + first.path + " and " + arrays[1].path
	}
	return e, e.isList(op, len(arrays))
}

// isList tells a list from a record that has an array.
func (e *envelope) isList(op *openapi.Operation, arrays int) bool {
	record := false
	for _, p := range e.members {
		record = record || !strings.Contains(p.path, ".") && slices.Contains(idFields, foldName(p.path)) && p.schema.Type() != "object"
	}
	_, byID := lastVar(op.Path)
	name := foldName(lastPart(e.key))
	named := name == foldName(lastWord(op.Path)) || slices.Contains(rowNames, name)
	switch {
	case record || byID:
		return sizeParam(op) != nil && (named || arrays == 1)
	case named:
		return true
	}
	return arrays == 1 && (sizeParam(op) != nil || len(e.members) <= 4 || e.find("integer", totalNames...) != nil)
}

// collectMembers looks through an answer's objects for arrays of records and for what is beside
// them.
func (e *envelope) collectMembers(arrays *[]envelopeMember, s openapi.Schema, prefix string, depth int) {
	for _, p := range s.Properties() {
		if len(e.members) == maxMembers {
			return
		}
		at := envelopeMember{prefix + p.Name, p.Schema, depth}
		switch typ := p.Schema.Type(); {
		case p.Name == "": // no name leads there
		case typ == "array":
			if isRecord(p.Schema.Items()) && !isOneOf(p.Name, "errors", "warnings", "links", "included", "facets") {
				*arrays = append(*arrays, at)
			}
		case typ == "object" && depth < 2:
			e.members = append(e.members, at)
			if !strings.Contains(p.Name, ".") { // else no path leads into it
				e.collectMembers(arrays, p.Schema, at.path+".", depth+1)
			}
		default:
			e.members = append(e.members, at)
		}
	}
}

// find is the place beside the rows that has one of the names, the likely ones first, and
// the type.
func (e *envelope) find(typ string, names ...string) *envelopeMember {
	for _, name := range names {
		for i, p := range e.members {
			t := p.schema.Type()
			if (foldName(lastPart(p.path)) == name || foldName(p.path) == name) && (t == typ || t == "" || typ == "integer" && t == "number") {
				return &e.members[i]
			}
		}
	}
	return nil
}

// booleanWords are the ways in which APIs write a boolean that is none in JSON.
var booleanWords = []string{"0", "1", "true", "false", "y", "n", "yes", "no"}

// What other pages show of a place, as its description.
const (
	contradictedText = "said that there is no more on a page that another one followed"
	countsAllText    = "is the same on two pages, and more than the rows of one"
)

// findMore returns the place that says whether there is more: a boolean, or a number or text that
// stands for one. One that was contradicted says nothing.
func (e *envelope) findMore() *envelopeMember {
	for _, typ := range []string{"boolean", "string", "integer"} {
		p := e.find(typ, paging.MoreNames...)
		if p != nil && p.schema.Description() != contradictedText &&
			(typ == "boolean" || p.hasOnly(booleanWords) || hasWord(p.path, "has", "is")) {
			return p
		}
	}
	return nil
}

// findTotal returns the place that says how many rows all pages have.
func (e *envelope) findTotal() *envelopeMember {
	if p := e.find("integer", "count"); p != nil && p.schema.Description() == countsAllText {
		return p
	}
	return e.find("integer", totalNames...)
}

// findMoreHint returns a place that tells of other pages; nil: none does.
func (e *envelope) findMoreHint() *envelopeMember {
	return cmp.Or(e.findMore(), e.find("integer", totalNames...), e.find("string", slices.Concat(numericTokenNames, nextLinkNames)...))
}

// hasOnly reports whether a place holds nothing but some words, by its values or its example.
func (p *envelopeMember) hasOnly(words []string) bool {
	said := p.schema.Enum()
	if x := p.schema.Example(); len(said) == 0 && x != nil {
		said = []string{x.Text}
	}
	return len(said) > 0 && !slices.ContainsFunc(said, func(text string) bool { return !slices.Contains(words, strings.ToLower(text)) })
}

// pathVars are the variables of a path, in order.
func pathVars(path string) (vars []string) {
	for _, s := range segments(path) {
		if _, rest, ok := strings.Cut(s, "{"); ok {
			name, _, _ := strings.Cut(rest, "}")
			vars = append(vars, name)
		}
	}
	return vars
}

// segments are the parts of a path.
func segments(path string) []string { return strings.Split(strings.Trim(path, "/"), "/") }

// lastVar is the variable in a path's last segment.
func lastVar(path string) (name string, ok bool) {
	all := segments(path)
	_, rest, _ := strings.Cut(all[len(all)-1], "{")
	name, _, ok = strings.Cut(rest, "}")
	return name, ok
}

// lastWord is the last segment without a variable, without its ending.
func lastWord(path string) string {
	all := segments(path)
	for _, segment := range slices.Backward(all) {
		if !strings.Contains(segment, "{") {
			name, _, _ := strings.Cut(segment, ".")
			name, _, _ = strings.Cut(name, ":")
			return name
		}
	}
	return "records"
}

// isParentID reports whether a field has the name of a variable in the path of each of the kind's lists: all rows of an
// answer have the same value, that of the record above them. Variables such as {id} say nothing of a field, nor does
// {folder_id} of the rows of /folders/{folder_id}/folders.
func (k *kind) isParentID(field string) bool {
	return len(k.lists) > 0 && !slices.ContainsFunc(k.lists, func(l *list) bool {
		_, ends := lastVar(l.op.Path)
		return !slices.ContainsFunc(pathVars(l.op.Path), func(v string) bool {
			return nameStem(v) == nameStem(field) && !slices.Contains(commonVars, foldName(v)) &&
				(ends || foldName(singular(lastWord(l.op.Path))) != nameStem(v))
		})
	})
}

// subject returns the word of the list's path that says what it lists: the last one that does not name the record above its
// rows, as stop does in /departures/stop/{stop_id} where rows have stop_id.
func (l *list) subject() string {
	last := lastWord(l.op.Path)
	v, ends := lastVar(l.op.Path)
	if !ends || !slices.ContainsFunc(l.env.row.Properties(), func(p openapi.Property) bool { return nameStem(p.Name) == nameStem(v) }) {
		return last
	}
	all := segments(l.op.Path)
	for len(all) > 1 {
		word := lastWord(all[len(all)-2])
		if v, ok := lastVar(all[len(all)-1]); !ok || nameStem(v) != foldName(word) {
			break
		}
		all = all[:len(all)-2]
	}
	if rest := lastWord(strings.Join(all, "/")); !versionSegment.MatchString(rest) && !isOneOf(rest, "api", "rest", "records") {
		return rest
	}
	return last
}

// queryParam is the query parameter that has one of the names, the likely ones first.
func queryParam(op *openapi.Operation, names []string, types ...string) *openapi.Param {
	for _, name := range names {
		for i, p := range op.Params {
			if p.In == "query" && foldName(p.Name) == name && (len(types) == 0 || slices.Contains(types, p.Schema.Type())) {
				return &op.Params[i]
			}
		}
	}
	return nil
}

func sizeParam(op *openapi.Operation) *openapi.Param {
	return queryParam(op, sizeNames, "integer", "number", "string", "")
}
