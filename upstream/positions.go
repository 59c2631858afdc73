// This file finds the positions of records in a body, by the plan of their kind.

package upstream

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"understudy"
	"understudy/kit/jsonspan"
	"understudy/spec"
)

// found is what readList and readRecord found in a body.
type found struct {
	rows  []understudy.Row
	count int            // the number of rows, including rows that are not records
	array jsonspan.Value // the array of the rows; None if the body is the array, or has no array
	next  jsonspan.Value // the value at the place paging.next of the spec; None if it is missing
	why   string         // why the records of the body cannot be stored, or ""
}

// defaultRows is the assumed number of rows of a page without a page size.
const defaultRows = 64

// readList finds the records of a list answer. doc is the outermost value of body. It reads the body once,
// except that a list key or next link inside an object is looked up in that object again.
func readList(p *plan, list *spec.List, paging *spec.Paging, body []byte, doc jsonspan.Value, size int) found {
	r := rowReader{plan: p, body: body}
	if size <= 0 || size > 1000 {
		size = defaultRows
	}
	r.found.rows = make([]understudy.Row, 0, min(size, 1+len(body)/64))
	if list.Key == "" {
		if doc.Kind != jsonspan.Array {
			if !paging.IsEmptyList("", body, doc) {
				r.found.why = "no records: the body is not an array"
			}
			return r.found
		}
		c := jsonspan.NewCursor(body, doc)
		r.readRows(&c)
		return r.result()
	}
	key, next := cutName(list.Key), cutName(paging.Next)
	var rows, link memberValue
	seen := false
	if doc.Kind == jsonspan.Object {
		c := jsonspan.NewCursor(body, doc)
		c.Enter()
		for c.Next() {
			name := c.Name()
			if jsonspan.MatchName(name, key.name) && c.Kind() == jsonspan.Array {
				seen, rows.whole = true, true
				r.found.array = jsonspan.Value{Kind: jsonspan.Array, Start: c.Pos()}
				r.readRows(&c)
				r.found.array.End = c.Pos()
				continue
			}
			v := c.Skip()
			link.read(body, name, v, &next)
			if rows.read(body, name, v, &key) && rows.value.Kind == jsonspan.Array {
				seen, r.found.array = true, rows.value
				inner := jsonspan.NewCursor(body, rows.value)
				r.readRows(&inner)
			}
		}
	}
	r.found.next = link.value
	if !seen && !paging.IsEmptyList(list.Key, body, doc) {
		r.found.why = fmt.Sprintf("%s%q", understudy.NotStoredNoRows, list.Key)
	}
	return r.result()
}

// readRecord finds the one record in an answer for a single record or to a write, under its key.
func readRecord(p *plan, key string, body []byte, doc jsonspan.Value) found {
	r := rowReader{plan: p, body: body}
	doc, _ = jsonspan.Find(body, doc, key)
	switch {
	case doc.Kind == jsonspan.Object:
	case key != "":
		r.found.why = fmt.Sprintf("no record under %q", key)
		return r.found
	default:
		r.found.why = "no record: the body is not an object"
		return r.found
	}
	if len(p.id) > 0 {
		r.found.rows = make([]understudy.Row, 0, 1)
		c := jsonspan.NewCursor(body, doc)
		r.readRow(&c)
	}
	return r.result()
}

// cutName divides a dotted name after its first part.
func cutName(dotted string) want {
	head, rest, _ := strings.Cut(dotted, ".")
	return want{dotted, head, rest}
}

// memberValue is the value of a dotted name, found while the members of its object are read one by one.
type memberValue struct {
	value jsonspan.Value
	whole bool // whether a member has the complete dotted name, so that the parts of the name are not searched
}

// read reads a member and reports whether it has the name, or may contain the name's value.
func (p *memberValue) read(body, member []byte, v jsonspan.Value, w *want) bool {
	switch {
	case jsonspan.MatchName(member, w.name):
		p.value, p.whole = v, true
	case w.rest != "" && !p.whole && jsonspan.MatchName(member, w.head):
		p.value, _ = jsonspan.Find(body, v, w.rest)
	default:
		return false
	}
	return true
}

// Limits of records. A page with more rows would delay every other save. A longer text is not accepted as an id.
const (
	maxRows = 50_000
	maxID   = 512 // the longest id of a record, in bytes
)

// rowReader reads rows. It reuses places for each row.
type rowReader struct {
	found       found
	plan        *plan
	body        []byte
	parentValue jsonspan.Value // the value of the parent field in the last row that had one
	parentText  string         // the text of parentValue
	places      [16]memberValue
}

// result returns what was found. If one row cannot be stored as a record, no row of the page is stored as one.
func (r *rowReader) result() found {
	if r.found.why != "" {
		r.found.rows = nil
	}
	return r.found
}

// readRows reads the array at the cursor. If the list key appears twice, the last array counts.
func (r *rowReader) readRows(c *jsonspan.Cursor) {
	r.found.rows, r.found.count = r.found.rows[:0], 0
	c.Enter()
	for c.Next() {
		r.found.count++
		if len(r.plan.id) == 0 {
			c.Skip()
			continue
		}
		if c.Kind() != jsonspan.Object {
			c.Skip()
			r.found.why = "a record is not an object"
			continue
		}
		if len(r.found.rows) == maxRows {
			c.Skip()
			r.found.why = fmt.Sprintf("more than %d records in one page", maxRows)
			continue
		}
		r.readRow(c)
	}
}

// readRow reads the object at the cursor.
func (r *rowReader) readRow(c *jsonspan.Cursor) {
	p := r.plan
	values := r.places[:0]
	if len(p.wants) > len(r.places) {
		values = make([]memberValue, 0, len(p.wants))
	}
	values = values[:len(p.wants)]
	clear(values)
	row := understudy.Row{Start: c.Pos()}
	c.Enter()
	for c.Next() {
		name := c.Name()
		v := c.Skip()
		if !canEnd(p.lengths, name) {
			continue
		}
		for i := range p.wants {
			values[i].read(r.body, name, v, &p.wants[i])
		}
	}
	row.End = c.Pos()
	row.ID, row.Final = r.id(values), p.isFinal(r.body, values)
	if p.clock >= 0 {
		row.Clock = unixTime(r.body, values[p.clock].value, p.typ)
	}
	if p.parent >= 0 {
		row.Parent = r.parentOf(values[p.parent].value)
	}
	r.found.rows = append(r.found.rows, row)
}

// parentOf returns the id of the record above a row, or "" if the row does not name it. Most rows of a page
// have the same parent and share the text.
func (r *rowReader) parentOf(v jsonspan.Value) string {
	if v.Kind != jsonspan.String && v.Kind != jsonspan.Number {
		return ""
	}
	if r.parentValue.Kind == jsonspan.None || !bytes.Equal(v.Bytes(r.body), r.parentValue.Bytes(r.body)) {
		r.parentValue, r.parentText = v, jsonspan.Text(r.body, v)
	}
	return r.parentText
}

// id returns the joined parts of a record's id. It records an error if a part is missing or the id is too long.
func (r *rowReader) id(values []memberValue) string {
	p := r.plan
	id := r.joinedID(values)
	if len(id) > maxID {
		r.found.why = fmt.Sprintf("a record whose %s is longer than %d bytes", strings.Join(p.kind.ID, " and "), maxID)
	}
	return id
}

// joinedID returns the joined parts of a record's id.
func (r *rowReader) joinedID(values []memberValue) string {
	p := r.plan
	if len(p.id) == 1 {
		return r.idPart(values, 0)
	}
	parts := make([]string, len(p.id))
	for i := range p.id {
		if parts[i] = r.idPart(values, i); strings.Contains(parts[i], spec.IDSeparator) {
			r.found.why = fmt.Sprintf("a record whose %s contains %q", p.kind.ID[i], spec.IDSeparator)
		}
	}
	return p.kind.JoinID(parts)
}

// idPart returns a part of the id, and records an error if it is missing.
func (r *rowReader) idPart(values []memberValue, i int) string {
	v := values[r.plan.id[i]].value
	if (v.Kind == jsonspan.String || v.Kind == jsonspan.Number) && isFilled(v) {
		text := jsonspan.Text(r.body, v)
		if path := r.plan.roots[i]; path != "" {
			text = spec.RootFromURL(path, text)
		}
		if text != "" {
			return text
		}
	}
	r.found.why = "a record without " + r.plan.kind.ID[i]
	return ""
}

// unixTime returns the time of a value, 0 if it is null, absent or not a time.
func unixTime(body []byte, v jsonspan.Value, typ string) int64 {
	text := v.Bytes(body)
	switch {
	case v.Kind == jsonspan.String:
		text = text[1 : len(text)-1]
	case v.Kind != jsonspan.Number || !spec.IsNumericTime(typ):
		return 0
	}
	return spec.Unix(typ, text)
}

// plan says which fields of a kind's records are read. It does not change after newPlan.
type plan struct {
	kind    *spec.Kind
	wants   []want   // the needed fields, without duplicates
	lengths uint64   // a bit set of the lengths of the names in wants, and of their first parts, for canEnd
	id      []int    // the id fields as indexes into wants, in the kind's order
	roots   []string // the path (Field.RootPath) of each id part that is a root's name
	clock   int      // the index of the clock field in wants, or -1 if there is none
	parent  int      // the index of the parent field in wants, or -1 if there is none
	typ     string   // the type of the clock field
	final   []state  // the states that make a record final; one of them suffices
	secrets []secret // the secrets to empty in pages of this kind

	absolute map[*spec.List][]fieldPath // for each list, the paths of absolute URLs in its bodies
	one      map[string][]fieldPath     // the paths of absolute URLs in bodies with a single record, by the key of the record
	next     map[*spec.List][]fieldPath // for each list, the path of the link to the next page in its bodies
}

// want is a field that is read, by its dotted name. head is the first part of the name, rest the other parts.
type want struct{ name, head, rest string }

// state is a spec.State whose fields are indexes into wants.
type state struct {
	field int // the index of the field in wants, or -1
	in    []string
	set   []int
}

// newPlan returns the plan of a kind.
func newPlan(s *spec.Spec, k *spec.Kind) *plan {
	p := &plan{kind: k, clock: -1, parent: -1, secrets: secretsFor(s, k), absolute: map[*spec.List][]fieldPath{},
		one: map[string][]fieldPath{"": absoluteIn(k, "", nil)}, next: map[*spec.List][]fieldPath{}}
	for _, in := range k.Instances {
		if in.Key != "" {
			p.one[in.Key] = absoluteIn(k, in.Key, s.Paging.Envelope)
		}
	}
	for _, l := range k.Lists {
		p.absolute[l] = absoluteIn(k, l.Key, s.PagingOf(l).Envelope)
		if way := s.PagingOf(l); way.Style == "body" {
			p.next[l] = []fieldPath{fieldPath(way.Next)}
		}
	}
	for _, name := range k.ID {
		path := k.Field(name).RootPath()
		if p.roots = append(p.roots, path); path != "" {
			name = k.Field(name).DerivedFrom
		}
		p.id = append(p.id, p.addWant(name))
	}
	if k.Clock != "" {
		p.clock, p.typ = p.addWant(k.Clock), k.Field(k.Clock).Type
	}
	if k.Parent != "" {
		p.parent = p.addWant(k.Parent)
	}
	for _, st := range k.Final {
		out := state{field: -1, in: st.In}
		if st.Field != "" {
			out.field = p.addWant(st.Field)
		}
		for _, name := range st.Set {
			out.set = append(out.set, p.addWant(name))
		}
		p.final = append(p.final, out)
	}
	return p
}

// addWant returns the index of a field in wants, and adds it if needed.
func (p *plan) addWant(name string) int {
	w := cutName(name)
	if i := slices.Index(p.wants, w); i >= 0 {
		return i
	}
	p.wants = append(p.wants, w)
	p.lengths |= 1<<min(len(w.name), 63) | 1<<min(len(w.head), 63)
	return len(p.wants) - 1
}

// isFinal reports whether a record with these values is final.
func (p *plan) isFinal(body []byte, values []memberValue) bool {
	return slices.ContainsFunc(p.final, func(st state) bool { return st.isFulfilled(body, values) })
}

// isFulfilled reports whether the values of a record fulfil the state.
func (st *state) isFulfilled(body []byte, values []memberValue) bool {
	for _, i := range st.set {
		if k := values[i].value.Kind; k == jsonspan.None || k == jsonspan.Null {
			return false
		}
	}
	if st.field < 0 {
		return true
	}
	v := values[st.field].value
	if len(st.in) == 0 {
		return isFilled(v)
	}
	return slices.ContainsFunc(st.in, func(text string) bool { return isText(body, v, text) })
}

// isFilled reports whether a value exists and is neither null nor empty.
func isFilled(v jsonspan.Value) bool {
	switch v.Kind {
	case jsonspan.None, jsonspan.Null:
		return false
	case jsonspan.String:
		return v.End-v.Start > 2
	}
	return true
}

// isText reports whether the decoded value is equal to text.
func isText(body []byte, v jsonspan.Value, text string) bool {
	switch v.Kind {
	case jsonspan.String:
		return jsonspan.MatchName(body[v.Start+1:v.End-1], text)
	case jsonspan.Number, jsonspan.Bool:
		return string(v.Bytes(body)) == text
	}
	return false
}
