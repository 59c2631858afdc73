// This file reads the records of a view for display.

package access

import (
	"fmt"
	"strings"

	"understudy"
	"understudy/kit/jsonspan"
	"understudy/spec"
)

// State says whether a value of a row is absent, null, hidden, masked or fully shown.
type State uint8

// The states of a value.
const (
	Absent State = iota // the row has no such field
	Null
	Hidden
	Masked // the value is a mask, possibly with the last four digits or the country, or a hash
	Seen
)

// Value is a value of a row, as the caller sees it.
type Value struct {
	Name  string // the dotted name of the field
	Text  string // the decoded text of the value, or its JSON for arrays and objects; "" unless State is Masked or Seen
	State State
	Level Level       // the level at which a Masked value is shown
	Field *spec.Field // the field in the spec; nil if the spec does not name the field
}

// Row is one record of a view. All its data comes from the view's body, so it contains nothing hidden.
type Row struct {
	ID         string // the id of the record; "" if the role does not see the fields of the id
	Start, End int    // the position of the row in View.Body, in bytes

	view *View
}

// IsReadable reports whether the body is a JSON document that Rows can read. A body in an unknown encoding is not readable.
func (v *View) IsReadable() bool {
	_, err := jsonspan.Parse(v.Body)
	return err == nil
}

// Rows returns the records of a list, or the record of an instance. It returns none for an error or a body that
// is not JSON.
func (v *View) Rows() []Row {
	doc, err := jsonspan.Parse(v.Body)
	if err != nil || v.kind == nil {
		return nil
	}
	if !v.list {
		if doc, ok := jsonspan.Find(v.Body, doc, v.key); ok {
			return []Row{v.row(doc)}
		}
		return nil
	}
	for _, l := range v.kind.Lists {
		rows, ok := jsonspan.Find(v.Body, doc, l.Key)
		if !ok || rows.Kind != jsonspan.Array {
			continue
		}
		var all []Row
		jsonspan.VisitElements(v.Body, rows, func(e jsonspan.Value) bool {
			all = append(all, v.row(e))
			return true
		})
		return all
	}
	return nil
}

// row returns the row for the record at a position of the body.
func (v *View) row(at jsonspan.Value) Row {
	r := Row{Start: at.Start, End: at.End, view: v}
	parts := make([]string, len(v.kind.ID))
	for i, name := range v.kind.ID {
		part := r.Field(name)
		if part.State != Seen {
			return r
		}
		parts[i] = part.Text
	}
	r.ID = v.kind.JoinID(parts)
	return r
}

// JSON returns the record's JSON as the role sees it. Callers must not change it.
func (r Row) JSON() []byte { return r.view.Body[r.Start:r.End] }

// span returns the position of the row's object in the body.
func (r Row) span() jsonspan.Value {
	span := jsonspan.Value{Kind: jsonspan.Object, Start: r.Start, End: r.End}
	if r.view.Body[r.Start] != '{' {
		span.Kind = jsonspan.None
	}
	return span
}

// Field returns the value of a field by its dotted name.
func (r Row) Field(name string) Value {
	v := Value{Name: name, Field: r.view.kind.Field(name)}
	if v.Field != nil && v.Field.RootPath() != "" {
		return r.root(v)
	}
	at, ok := jsonspan.Find(r.view.Body, r.span(), name)
	if !ok {
		// If an object is hidden completely, so are the fields that the spec names in it.
		if outer, _, dotted := cutLast(name); dotted && v.Field != nil && r.Field(outer).State == Hidden {
			v.State = Hidden
		}
		return v
	}
	r.read(&v, at)
	return v
}

// root sets the value of the root above the record, if the address from which it is computed is shown.
func (r Row) root(v Value) Value {
	if p := r.view.plan; p != nil && p.level(v.Name) < See {
		v.State = Hidden
		return v
	}
	switch of := r.Field(v.Field.DerivedFrom); of.State {
	case Seen:
		if v.Text = spec.RootFromURL(v.Field.RootPath(), of.Text); v.Text != "" {
			v.State = Seen
		}
	case Masked:
		v.State = Hidden
	default:
		v.State = of.State
	}
	return v
}

// cutLast divides a dotted name before its last part.
func cutLast(dotted string) (outer, name string, ok bool) {
	i := strings.LastIndexByte(dotted, '.')
	if i < 0 {
		return "", dotted, false
	}
	return dotted[:i], dotted[i+1:], true
}

// Fields returns all values of the row in the order of its body, and the root above the record. Fields inside
// objects have dotted names.
func (r Row) Fields() []Value {
	all := r.fields(make([]Value, 0, len(r.view.kind.Fields)), r.span(), "")
	for _, f := range r.view.kind.Fields {
		if f.RootPath() != "" {
			all = append(all, r.Field(f.Name))
		}
	}
	return all
}

// fields appends the values of an object; prefix begins their names.
func (r Row) fields(all []Value, object jsonspan.Value, prefix string) []Value {
	jsonspan.VisitMembers(r.view.Body, object, func(raw []byte, at jsonspan.Value) bool {
		name := prefix + strings.ToValidUTF8(jsonspan.Name(raw), "\ufffd")
		before := len(all)
		if at.Kind == jsonspan.Object {
			all = r.fields(all, at, name+".")
		}
		if len(all) == before {
			v := Value{Name: name, Field: r.view.kind.Field(name)}
			r.read(&v, at)
			all = append(all, v)
		}
		return true
	})
	return all
}

// read sets the state and text of a value.
func (r Row) read(v *Value, at jsonspan.Value) {
	level := See
	partly := Last4
	if p := r.view.plan; p != nil {
		level = Hide
		if n := p.record.find(v.Name); n != nil {
			partly = n.level
			if level = n.level; n.open && level < See {
				level = Last4 // Last4 stands for Hash and Country here: all three show only texts
			}
		}
	}
	switch {
	case at.Kind == jsonspan.Null && level == See:
		v.State = Null
	case at.Kind == jsonspan.Null && level == Last4 && v.Field != nil && isTextual(v.Field.Type):
		v.State = Null // Redaction writes null only for values that are not texts, so upstream sent this null of a text field.
	case at.Kind == jsonspan.Null || level == Hide:
		v.State = Hidden
	default:
		// A body in an unknown encoding is shown as far as it is valid UTF-8.
		v.State, v.Text = Seen, strings.ToValidUTF8(jsonspan.Text(r.view.Body, at), "\ufffd")
		if level == Last4 && at.Kind == jsonspan.String {
			v.State, v.Level = Masked, partly
		}
	}
}

// isTextual reports whether values of a type are JSON strings.
func isTextual(kind string) bool {
	switch kind {
	case spec.TypeInt, spec.TypeDecimal, spec.TypeBool, spec.TypeEpoch, spec.TypeMillis, spec.TypeMap, spec.TypeCode,
		spec.TypeLatitude, spec.TypeLongitude:
		return false
	}
	return true
}

// ParseShownRow reads a record's body from which hidden values are already removed, such as a search hit. It does
// not mask the body again, because masking a mask would lose its last digits. It returns ErrForbidden if the caller
// sees nothing of the kind, and ErrInvalid if the body is no JSON object.
func (g *Gate) ParseShownRow(c understudy.Caller, source, kind string, body []byte) (Row, error) {
	plan, all, err := g.plan(c, source, kind)
	if err != nil {
		return Row{}, err
	}
	if all {
		plan = nil
	}
	k := g.specs[source].Kind(kind)
	doc, err := jsonspan.Parse(body)
	if err != nil || k == nil || doc.Kind != jsonspan.Object {
		return Row{}, fmt.Errorf("access: %w: a record of %s is not a JSON object", understudy.ErrInvalid, understudy.Clip(kind))
	}
	v := &View{Body: body, plan: plan, kind: k}
	return v.row(doc), nil
}
