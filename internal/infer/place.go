// Place: where an answer has its rows, and the values beside them.

package infer

import (
	"cmp"
	"slices"
	"strings"

	"understudy/internal/openapi"
	"understudy/spec/paging"
)

// place is a value of an answer beside its rows.
type place struct {
	path   string // dotted
	schema openapi.Schema
	depth  int // how many objects are around it
}

// envelope is the answer of a list: where its rows are, and what stands beside them.
type envelope struct {
	key    string // dotted; "" = the answer is the array
	row    openapi.Schema
	beside []place // scalars and objects, in the document's order
	why    string
	unsure string // why the rows may be elsewhere; "" = sure
}

// maxBeside bounds what is looked at beside the rows.
const maxBeside = 200

// isRow reports whether a schema is that of a record: an object with members.
func isRow(s openapi.Schema) bool { return s.Type() == "object" && len(s.Properties()) > 0 }

// rowsOf finds the array of records in an answer; ok is false when it is none.
func rowsOf(op *openapi.Operation) (e envelope, ok bool) {
	answer := op.Answer
	if answer.Type() == "array" {
		e.row, e.why = answer.Items(), "the answer is the array"
		return e, isRow(e.row)
	}
	var arrays []place
	e.collect(&arrays, answer, "", 0)
	last := lastName(op.Path)
	rank := func(p place) int {
		name := plain(lastPart(p.path))
		switch i := slices.Index(rowNames, name); {
		case name == plain(last):
			return 0
		case i >= 0:
			return 1 + i
		}
		return len(rowNames) + 1
	}
	if len(arrays) == 0 {
		return e, false
	}
	slices.SortStableFunc(arrays, func(a, b place) int { return cmp.Or(rank(a)-rank(b), a.depth-b.depth) })
	first := arrays[0]
	if slices.ContainsFunc(arrays[1:], func(p place) bool { return p.path == first.path }) {
		e.unsure = "an array of objects has the name " + first.path + ", dots and all, and another one stands there inside an object"
	}
	arrays = slices.DeleteFunc(arrays, func(p place) bool { return p.depth > first.depth }) // they are parts of something else
	e.key, e.row = first.path, first.schema.Items()
	e.why = "the array of records"
	if len(arrays) > 1 && rank(first) > len(rowNames) {
		e.unsure = "there are several arrays of objects, " + first.path + " and " + arrays[1].path
	}
	return e, e.isList(op, len(arrays))
}

// isList tells a list from a record that has an array.
func (e *envelope) isList(op *openapi.Operation, arrays int) bool {
	record := false
	for _, p := range e.beside {
		record = record || !strings.Contains(p.path, ".") && slices.Contains(idFields, plain(p.path)) && p.schema.Type() != "object"
	}
	_, byID := lastVar(op.Path)
	name := plain(lastPart(e.key))
	named := name == plain(lastName(op.Path)) || slices.Contains(rowNames, name)
	switch {
	case record || byID:
		return sizeParam(op) != nil && (named || arrays == 1)
	case named:
		return true
	}
	return arrays == 1 && (sizeParam(op) != nil || len(e.beside) <= 4 || e.find("integer", totalNames...) != nil)
}

// collect looks through an answer's objects for arrays of records and for what is beside
// them.
func (e *envelope) collect(arrays *[]place, s openapi.Schema, prefix string, depth int) {
	for _, p := range s.Properties() {
		if len(e.beside) == maxBeside {
			return
		}
		at := place{prefix + p.Name, p.Schema, depth}
		switch typ := p.Schema.Type(); {
		case p.Name == "": // no name leads there
		case typ == "array":
			if isRow(p.Schema.Items()) && !is(p.Name, "errors", "warnings", "links", "included", "facets") {
				*arrays = append(*arrays, at)
			}
		case typ == "object" && depth < 2:
			e.beside = append(e.beside, at)
			if !strings.Contains(p.Name, ".") { // else no path leads into it
				e.collect(arrays, p.Schema, at.path+".", depth+1)
			}
		default:
			e.beside = append(e.beside, at)
		}
	}
}

// find is the place beside the rows that has one of the names, the likely ones first, and
// the type.
func (e *envelope) find(typ string, names ...string) *place {
	for _, name := range names {
		for i, p := range e.beside {
			t := p.schema.Type()
			if (plain(lastPart(p.path)) == name || plain(p.path) == name) && (t == typ || t == "" || typ == "integer" && t == "number") {
				return &e.beside[i]
			}
		}
	}
	return nil
}

// yesOrNo are the ways in which APIs write a boolean that is none in JSON.
var yesOrNo = []string{"0", "1", "true", "false", "y", "n", "yes", "no"}

// What other pages show of a place, as its description.
const (
	contradicted = "said that there is no more on a page that another one followed"
	countsAll    = "is the same on two pages, and more than the rows of one"
)

// findMore returns the place that says whether there is more: a boolean, or a number or text that
// stands for one. One that was contradicted says nothing.
func (e *envelope) findMore() *place {
	for _, typ := range []string{"boolean", "string", "integer"} {
		p := e.find(typ, paging.MoreNames...)
		if p != nil && p.schema.Description() != contradicted && (typ == "boolean" || p.means(yesOrNo) || has(p.path, "has", "is")) {
			return p
		}
	}
	return nil
}

// findTotal returns the place that says how many rows all pages have.
func (e *envelope) findTotal() *place {
	if p := e.find("integer", "count"); p != nil && p.schema.Description() == countsAll {
		return p
	}
	return e.find("integer", totalNames...)
}

// saysMore returns a place that tells of other pages; nil: none does.
func (e *envelope) saysMore() *place {
	return cmp.Or(e.findMore(), e.find("integer", totalNames...), e.find("string", slices.Concat(digitNames, linkNames)...))
}

// means reports whether a place holds nothing but some words, by its values or its example.
func (p *place) means(words []string) bool {
	said := p.schema.Enum()
	if x := p.schema.Example(); len(said) == 0 && x != nil {
		said = []string{x.Text}
	}
	return len(said) > 0 && !slices.ContainsFunc(said, func(text string) bool { return !slices.Contains(words, strings.ToLower(text)) })
}

// varsOf are the variables of a path, in order.
func varsOf(path string) (vars []string) {
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

// lastName is the last segment without a variable, without its ending.
func lastName(path string) string {
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

// namesParent reports whether a field has the name of a variable in the path of each of the kind's lists: all rows of an
// answer have the same value, that of the record above them. Variables such as {id} say nothing of a field, nor does
// {folder_id} of the rows of /folders/{folder_id}/folders.
func (k *kind) namesParent(field string) bool {
	return len(k.lists) > 0 && !slices.ContainsFunc(k.lists, func(l *list) bool {
		_, ends := lastVar(l.op.Path)
		return !slices.ContainsFunc(varsOf(l.op.Path), func(v string) bool {
			return stem(v) == stem(field) && !slices.Contains(usualVars, plain(v)) && (ends || plain(singular(lastName(l.op.Path))) != stem(v))
		})
	})
}

// subject returns the word of the list's path that says what it lists: the last one that does not name the record above its
// rows, as stop does in /departures/stop/{stop_id} where rows have stop_id.
func (l *list) subject() string {
	last := lastName(l.op.Path)
	v, ends := lastVar(l.op.Path)
	if !ends || !slices.ContainsFunc(l.env.row.Properties(), func(p openapi.Property) bool { return stem(p.Name) == stem(v) }) {
		return last
	}
	all := segments(l.op.Path)
	for len(all) > 1 {
		word := lastName(all[len(all)-2])
		if v, ok := lastVar(all[len(all)-1]); !ok || stem(v) != plain(word) {
			break
		}
		all = all[:len(all)-2]
	}
	if rest := lastName(strings.Join(all, "/")); !isVersion.MatchString(rest) && !is(rest, "api", "rest", "records") {
		return rest
	}
	return last
}

// param is the query parameter that has one of the names, the likely ones first.
func param(op *openapi.Operation, names []string, types ...string) *openapi.Param {
	for _, name := range names {
		for i, p := range op.Params {
			if p.In == "query" && plain(p.Name) == name && (len(types) == 0 || slices.Contains(types, p.Schema.Type())) {
				return &op.Params[i]
			}
		}
	}
	return nil
}

func sizeParam(op *openapi.Operation) *openapi.Param {
	return param(op, sizeNames, "integer", "number", "string", "")
}
