// This file converts records to rows.

package tables

import (
	"strconv"

	"understudy/internal/access"
	"understudy/kit/jsonspan"
)

const null = "null"

// encoder converts views of records to one JSON array, and decides which columns are new or need a wider type.
type encoder struct {
	st      *state
	isShown func(field string) bool
	out     []byte
	changed bool // whether the columns of st have changed
	widened bool // whether a column has got another type since the first record
}

// columnKey returns the name under which a row has the value of a column.
func columnKey(i int) string { return "c" + strconv.Itoa(i) }

// encode encodes records with their ids, at least one. If a column gets another type on the way, it begins again.
func (e *encoder) encode(shown []*access.View, ids []string) {
	for begin := true; begin; begin = e.widened {
		e.out, e.widened = append(e.out[:0], '['), false
		for i, v := range shown {
			e.encodeRecord(v, ids[i])
		}
	}
	e.out[len(e.out)-1] = ']' // instead of the last comma
}

// encodeRecord appends the row of a record, and a comma.
func (e *encoder) encodeRecord(v *access.View, id string) {
	e.out = append(e.out, `{"`+columnKey(e.st.id().index)+`":`...)
	e.out = jsonspan.Quote(e.out, id)
	if doc, err := jsonspan.Parse(v.Body); err == nil && doc.Kind == jsonspan.Object {
		jsonspan.VisitMembers(v.Body, doc, func(name []byte, at jsonspan.Value) bool {
			e.encodeField(jsonspan.Name(name), v.Body, at)
			return true
		})
	}
	for _, f := range e.st.kind.Fields {
		if f.RootPath() == "" {
			continue
		}
		for _, row := range v.Rows() {
			if value := row.Field(f.Name); value.State == access.Seen {
				root := jsonspan.Quote(nil, value.Text)
				e.encodeField(f.Name, root, jsonspan.Value{Kind: jsonspan.String, End: len(root)})
			}
		}
	}
	e.out = append(e.out, "},"...)
}

// encodeField appends a value of a record.
func (e *encoder) encodeField(field string, body []byte, at jsonspan.Value) {
	if at.Kind == jsonspan.Null || field == idField(e.st.kind) || !e.isShown(field) {
		return
	}
	specType := ""
	if f := e.st.kind.Field(field); f != nil {
		specType = f.Type
	}
	c := e.st.byName[field]
	if c == nil {
		c, e.changed = e.st.add(&column{Field: field, Type: typeForValue(body, at)}), true
	}
	e.out = append(append(e.out, `,"`+columnKey(c.index)...), `":`...)
	start := len(e.out)
	out, fits := encodeValue(e.out, body, at, c.Type, specType)
	if !fits {
		typ := typeForValue(body, at)
		if c.Used {
			typ = joinTypes(c.Type, typ)
		}
		c.Type, e.changed, e.widened = typ, true, true
		out, _ = encodeValue(e.out, body, at, c.Type, specType)
	}
	if e.out = out; !c.Used && string(out[start:]) != null {
		c.Used, e.changed = true, true
	}
}
