// Records: finding them in a body, as byte ranges, by the plan of their kind.

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

// found is what the record reader found in a body.
type found struct {
	rows  []understudy.Row
	count int            // of rows, also of such as are no records
	array jsonspan.Value // that holds the rows; None when the body is it, and when nothing is found
	next  jsonspan.Value // the value at the spec's paging.next; None when absent
	why   string         // why the body holds no records we can keep; "" when it does
}

// rowsBefore is how many rows a page is expected to have when nothing is known.
const rowsBefore = 64

// readList finds the records of a list answer. body is whole, doc its
// outermost value. It goes over the body once, except that a list key or next
// link inside an object is looked up in that object again.
func readList(p *plan, list *spec.List, paging *spec.Paging, body []byte, doc jsonspan.Value, size int) found {
	r := rowReader{plan: p, body: body}
	if size <= 0 || size > 1000 {
		size = rowsBefore
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
		r.rows(&c)
		return r.result()
	}
	key, next := cutName(list.Key), cutName(paging.Next)
	var rows, link place
	seen := false
	if doc.Kind == jsonspan.Object {
		c := jsonspan.NewCursor(body, doc)
		c.Enter()
		for c.Next() {
			name := c.Name()
			if jsonspan.MatchName(name, key.name) && c.Kind() == jsonspan.Array {
				seen, rows.whole = true, true
				r.found.array = jsonspan.Value{Kind: jsonspan.Array, Start: c.Pos()}
				r.rows(&c)
				r.found.array.End = c.Pos()
				continue
			}
			v := c.Skip()
			link.note(body, name, v, &next)
			if rows.note(body, name, v, &key) && rows.value.Kind == jsonspan.Array {
				seen, r.found.array = true, rows.value
				inner := jsonspan.NewCursor(body, rows.value)
				r.rows(&inner)
			}
		}
	}
	r.found.next = link.value
	if !seen && !paging.IsEmptyList(list.Key, body, doc) {
		r.found.why = fmt.Sprintf("%s%q", understudy.NotStoredNoRows, list.Key)
	}
	return r.result()
}

// readOne finds the one record of an instance answer, or of a write's, under its key.
func readOne(p *plan, key string, body []byte, doc jsonspan.Value) found {
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
		r.row(&c)
	}
	return r.result()
}

func cutName(dotted string) want {
	head, rest, _ := strings.Cut(dotted, ".")
	return want{dotted, head, rest}
}

// place is the value of a dotted name while the members of its object are read one by one.
type place struct {
	value jsonspan.Value
	whole bool // a member has the whole name: none of its parts counts
}

// note reads a member and reports whether it has the name, or may hold what has it.
func (p *place) note(body, member []byte, v jsonspan.Value, w *want) bool {
	switch {
	case jsonspan.MatchName(member, w.name):
		p.value, p.whole = v, true
	case w.rest != "" && !p.whole && jsonspan.MatchName(member, w.head):
		p.value = inside(body, v, w.rest)
	default:
		return false
	}
	return true
}

// inside follows a dotted rest into v; a missing value has no kind.
func inside(body []byte, v jsonspan.Value, rest string) jsonspan.Value {
	if rest == "" {
		return v
	}
	v, _ = jsonspan.Find(body, v, rest)
	return v
}

// The bounds of what is kept as records. A page of more rows would delay every other
// save; a longer text is no id.
const (
	maxRows = 50_000
	maxID   = 512 // bytes
)

// rowReader reads rows; places is used again for each.
type rowReader struct {
	found  found
	plan   *plan
	body   []byte
	under  jsonspan.Value // what the last row that said so lies under
	parent string         // the same as text
	places [16]place
}

// result leaves out the rows of a page that cannot be kept as records: either all rows
// of a page are kept or none.
func (r *rowReader) result() found {
	if r.found.why != "" {
		r.found.rows = nil
	}
	return r.found
}

// rows reads the array that c stands before. When a list key comes twice the last
// counts.
func (r *rowReader) rows(c *jsonspan.Cursor) {
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
		r.row(c)
	}
}

// row reads the object c stands before.
func (r *rowReader) row(c *jsonspan.Cursor) {
	p := r.plan
	values := r.places[:0]
	if len(p.wants) > len(r.places) {
		values = make([]place, 0, len(p.wants))
	}
	values = values[:len(p.wants)]
	clear(values)
	row := understudy.Row{Start: c.Pos()}
	c.Enter()
	for c.Next() {
		name := c.Name()
		v := c.Skip()
		if !mayEnd(p.lengths, name) {
			continue
		}
		for i := range p.wants {
			values[i].note(r.body, name, v, &p.wants[i])
		}
	}
	row.End = c.Pos()
	row.ID, row.Final = r.id(values), p.isFinal(r.body, values)
	if p.clock >= 0 {
		row.Clock = unix(r.body, values[p.clock].value, p.typ)
	}
	if p.parent >= 0 {
		row.Parent = r.parentOf(values[p.parent].value)
	}
	r.found.rows = append(r.found.rows, row)
}

// parentOf is the record a row lies under, "" when the row does not name it. Most rows
// of a page lie under the same record and share its name.
func (r *rowReader) parentOf(v jsonspan.Value) string {
	if v.Kind != jsonspan.String && v.Kind != jsonspan.Number {
		return ""
	}
	if r.under.Kind == jsonspan.None || !bytes.Equal(v.Bytes(r.body), r.under.Bytes(r.body)) {
		r.under, r.parent = v, jsonspan.Text(r.body, v)
	}
	return r.parent
}

// id joins the parts of a record's id and notes when one is missing, or too long.
func (r *rowReader) id(values []place) string {
	p := r.plan
	id := r.joined(values)
	if len(id) > maxID {
		r.found.why = fmt.Sprintf("a record whose %s is longer than %d bytes", strings.Join(p.kind.ID, " and "), maxID)
	}
	return id
}

func (r *rowReader) joined(values []place) string {
	p := r.plan
	if len(p.id) == 1 {
		return r.part(values, 0)
	}
	parts := make([]string, len(p.id))
	for i := range p.id {
		if parts[i] = r.part(values, i); strings.Contains(parts[i], spec.IDSeparator) {
			r.found.why = fmt.Sprintf("a record whose %s holds %q", p.kind.ID[i], spec.IDSeparator)
		}
	}
	return p.kind.JoinID(parts)
}

func (r *rowReader) part(values []place, i int) string {
	v := values[r.plan.id[i]].value
	if (v.Kind == jsonspan.String || v.Kind == jsonspan.Number) && filled(v) {
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

// unix is the time a value tells, 0 when it is null, absent or not a time.
func unix(body []byte, v jsonspan.Value, typ string) int64 {
	text := v.Bytes(body)
	switch {
	case v.Kind == jsonspan.String:
		text = text[1 : len(text)-1]
	case v.Kind != jsonspan.Number || !spec.IsNumericTime(typ):
		return 0
	}
	return spec.Unix(typ, text)
}

// plan says which fields of a kind's records the reader needs. It is never
// changed after newPlan.
type plan struct {
	kind    *spec.Kind
	wants   []want   // the fields, each once
	lengths uint64   // of their names and of what stands before the first dot, for mayEnd
	id      []int    // into wants, in the kind's order
	roots   []string // of each part of the id, where the root's name is one: its path (Field.RootPath)
	clock   int      // into wants, -1 = none
	parent  int      // into wants, -1 = none
	typ     string   // of the clock field
	final   []state  // any of them makes a record final
	secrets []secret // what to empty in pages of this kind

	absolute map[*spec.List][]fieldPath // where absolute URLs stand in lists
	one      map[string][]fieldPath     // where they stand in answers with one record, by its key
	next     map[*spec.List][]fieldPath // where the link to the next page stands in the body
}

// want is a field by its dotted name, and that name cut at the first dot.
type want struct{ name, head, rest string }

// state is a spec.State with its fields as indexes into wants.
type state struct {
	field int // -1 = none
	in    []string
	set   []int
}

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
		p.id = append(p.id, p.want(name))
	}
	if k.Clock != "" {
		p.clock, p.typ = p.want(k.Clock), k.Field(k.Clock).Type
	}
	if k.Parent != "" {
		p.parent = p.want(k.Parent)
	}
	for _, st := range k.Final {
		out := state{field: -1, in: st.In}
		if st.Field != "" {
			out.field = p.want(st.Field)
		}
		for _, name := range st.Set {
			out.set = append(out.set, p.want(name))
		}
		p.final = append(p.final, out)
	}
	return p
}

// want is the index of a field in wants; it is added when it is not there.
func (p *plan) want(name string) int {
	w := cutName(name)
	if i := slices.Index(p.wants, w); i >= 0 {
		return i
	}
	p.wants = append(p.wants, w)
	p.lengths |= 1<<min(len(w.name), 63) | 1<<min(len(w.head), 63)
	return len(p.wants) - 1
}

// isFinal reports whether a record whose wanted values are given is final.
func (p *plan) isFinal(body []byte, values []place) bool {
	return slices.ContainsFunc(p.final, func(st state) bool { return st.holds(body, values) })
}

func (st *state) holds(body []byte, values []place) bool {
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
		return filled(v)
	}
	return slices.ContainsFunc(st.in, func(text string) bool { return is(body, v, text) })
}

// filled reports whether a value is there and neither null nor empty.
func filled(v jsonspan.Value) bool {
	switch v.Kind {
	case jsonspan.None, jsonspan.Null:
		return false
	case jsonspan.String:
		return v.End-v.Start > 2
	}
	return true
}

// is reports whether a value, as a person would read it, is text.
func is(body []byte, v jsonspan.Value, text string) bool {
	switch v.Kind {
	case jsonspan.String:
		return jsonspan.MatchName(body[v.Start+1:v.End-1], text)
	case jsonspan.Number, jsonspan.Bool:
		return string(v.Bytes(body)) == text
	}
	return false
}
