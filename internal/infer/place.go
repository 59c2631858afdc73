// This file finds the rows in the response of a list, and the members around the rows.

package infer

import (
	"cmp"
	"slices"
	"strings"

	"understudy/internal/openapi"
	"understudy/spec/paging"
)

// envelopeMember is a member of a list's response that lies outside the rows.
type envelopeMember struct {
	path   string // the names of the member and the objects around it, from the root of the response, joined by dots
	schema openapi.Schema
	depth  int // the number of objects that enclose the member
}

// envelope describes the response of a list: where its rows are, and which members surround them.
type envelope struct {
	key     string // the dotted name of the array of rows, or "" if the response itself is the array
	row     openapi.Schema
	members []envelopeMember // the scalars and objects outside the rows, in the order of the document
	why     string
	caveat  string // why the rows may be at another place, or "" if their place is certain
}

// maxMembers is the maximum number of members outside the rows that are examined.
const maxMembers = 200

// isRecord reports whether a schema describes a record: an object with members.
func isRecord(s openapi.Schema) bool { return s.Type() == "object" && len(s.Properties()) > 0 }

// findRows finds the array of records in a response. ok is false if the response is not a list.
func findRows(op *openapi.Operation) (e envelope, ok bool) {
	answer := op.Answer
	if answer.Type() == "array" {
		e.row, e.why = answer.Items(), "the answer itself is the array"
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
	arrays = slices.DeleteFunc(arrays, func(p envelopeMember) bool { return p.depth > first.depth }) // deeper arrays are parts of records
	e.key, e.row = first.path, first.schema.Items()
	e.why = "the array of records"
	if len(arrays) > 1 && rank(first) > len(rowNames) {
		e.caveat = "there are several arrays of objects, " + first.path + " and " + arrays[1].path
	}
	return e, e.isList(op, len(arrays))
}

// isList reports whether the response is a list, and not a record that contains an array.
func (e *envelope) isList(op *openapi.Operation, arrays int) bool {
	hasID := false
	for _, p := range e.members {
		hasID = hasID || !strings.Contains(p.path, ".") && slices.Contains(idFields, foldName(p.path)) && p.schema.Type() != "object"
	}
	_, byID := lastVar(op.Path)
	name := foldName(lastPart(e.key))
	named := name == foldName(lastWord(op.Path)) || slices.Contains(rowNames, name)
	switch {
	case hasID || byID:
		return sizeParam(op) != nil && (named || arrays == 1)
	case named:
		return true
	}
	return arrays == 1 && (sizeParam(op) != nil || len(e.members) <= 4 || e.find("integer", totalNames...) != nil)
}

// collectMembers collects the arrays of records inside a response, and its members outside these arrays.
func (e *envelope) collectMembers(arrays *[]envelopeMember, s openapi.Schema, prefix string, depth int) {
	for _, p := range s.Properties() {
		if len(e.members) == maxMembers {
			return
		}
		at := envelopeMember{prefix + p.Name, p.Schema, depth}
		switch typ := p.Schema.Type(); {
		case p.Name == "": // a path cannot address an empty name
		case typ == "array":
			if isRecord(p.Schema.Items()) && !isOneOf(p.Name, "errors", "warnings", "links", "included", "facets") {
				*arrays = append(*arrays, at)
			}
		case typ == "object" && depth < 2:
			e.members = append(e.members, at)
			if !strings.Contains(p.Name, ".") { // a path cannot address the members inside a name with dots
				e.collectMembers(arrays, p.Schema, at.path+".", depth+1)
			}
		default:
			e.members = append(e.members, at)
		}
	}
}

// find returns the first member outside the rows that has the given type and one of the names. It tries the names in order.
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

// booleanWords are the strings and numbers that APIs use in place of a JSON boolean.
var booleanWords = []string{"0", "1", "true", "false", "y", "n", "yes", "no"}

// Descriptions given to a member after two pages of the list have proven something about it.
const (
	contradictedText = "said that no more pages exist, although another page followed"
	countsAllText    = "is the same on two pages, and more than the rows of one"
)

// findMore returns the member that says whether more pages follow: a boolean, or a number or string used as one. It
// skips a member that another page has contradicted.
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

// hasOnly reports whether the enum values or the example of a member contain nothing but the given words.
func (p *envelopeMember) hasOnly(words []string) bool {
	said := p.schema.Enum()
	if x := p.schema.Example(); len(said) == 0 && x != nil {
		said = []string{x.Text}
	}
	return len(said) > 0 && !slices.ContainsFunc(said, func(text string) bool { return !slices.Contains(words, strings.ToLower(text)) })
}

// pathVars returns the variables of a path, in order.
func pathVars(path string) (vars []string) {
	for _, s := range segments(path) {
		if _, rest, ok := strings.Cut(s, "{"); ok {
			name, _, _ := strings.Cut(rest, "}")
			vars = append(vars, name)
		}
	}
	return vars
}

func segments(path string) []string { return strings.Split(strings.Trim(path, "/"), "/") }

// lastVar returns the variable in the last segment of a path. ok is false if that segment has no variable.
func lastVar(path string) (name string, ok bool) {
	all := segments(path)
	_, rest, _ := strings.Cut(all[len(all)-1], "{")
	name, _, ok = strings.Cut(rest, "}")
	return name, ok
}

// lastWord returns the last segment of a path that is not a variable, without a suffix such as .json.
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

// isParentID reports whether a field has the name of a variable in the path of each list of the kind. All rows of a
// response then have the same value in it, the id of their parent record. General variables such as {id} do not
// count. Nor does {folder_id} in /folders/{folder_id}/folders.
func (k *kind) isParentID(field string) bool {
	return len(k.lists) > 0 && !slices.ContainsFunc(k.lists, func(l *list) bool {
		_, ends := lastVar(l.op.Path)
		return !slices.ContainsFunc(pathVars(l.op.Path), func(v string) bool {
			return nameStem(v) == nameStem(field) && !slices.Contains(commonVars, foldName(v)) &&
				(ends || foldName(singular(lastWord(l.op.Path))) != nameStem(v))
		})
	})
}

// subject returns the word of the list's path that says what the list contains. This is the last word that does not
// name the parent record: departures in /departures/stop/{stop_id}, if the rows have stop_id.
func (l *list) subject() string {
	last := lastWord(l.op.Path)
	v, ends := lastVar(l.op.Path)
	if !ends || !slices.ContainsFunc(l.envelope.row.Properties(), func(p openapi.Property) bool { return nameStem(p.Name) == nameStem(v) }) {
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

// queryParam returns the first query parameter that has one of the types and one of the names. It tries the names in order.
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
