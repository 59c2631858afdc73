// Rows: a view's records for people.

package access

import (
	"fmt"
	"strings"

	"understudy"
	"understudy/kit/jsonspan"
	"understudy/spec"
)

// State says what a value of a row is.
type State uint8

// The states.
const (
	Absent State = iota // the row has no such field
	Null
	Hidden
	Masked // Text is a mask, maybe with the last four digits or the country, or a hash
	Seen
)

// Value is one value of a row, as far as it is shown.
type Value struct {
	Name  string // dotted
	Text  string // decoded; arrays and objects as JSON; "" unless Masked or Seen
	State State
	Level Level       // of what is Masked
	Field *spec.Field // nil: the spec does not name it
}

// Row is one record of a view. Everything it says comes from the view's body,
// so what is hidden is not in it.
type Row struct {
	ID         string // "" when the role does not see the fields it is made of
	Start, End int    // in View.Body

	view *View
}

// Readable tells whether the body is a JSON document that Rows can look into. A
// body in an encoding that is not known is not.
func (v *View) Readable() bool {
	_, err := jsonspan.Parse(v.Body)
	return err == nil
}

// Rows are the records of a list, or the one of an instance; none when the
// answer is an error or not JSON.
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

// Raw is the record's JSON as the role sees it. It must not be changed.
func (r Row) Raw() []byte { return r.view.Body[r.Start:r.End] }

func (r Row) span() jsonspan.Value {
	span := jsonspan.Value{Kind: jsonspan.Object, Start: r.Start, End: r.End}
	if r.view.Body[r.Start] != '{' {
		span.Kind = jsonspan.None
	}
	return span
}

// Field is the value of a field by its dotted name.
func (r Row) Field(name string) Value {
	v := Value{Name: name, Field: r.view.kind.Field(name)}
	if v.Field != nil && v.Field.RootPath() != "" {
		return r.root(v)
	}
	at, ok := jsonspan.Find(r.view.Body, r.span(), name)
	if !ok {
		// An object that is hidden whole hides what the spec names in it.
		if outer, _, dotted := cutLast(name); dotted && v.Field != nil && r.Field(outer).State == Hidden {
			v.State = Hidden
		}
		return v
	}
	r.read(&v, at)
	return v
}

// root fills in the root that the record lies under, as far as its address is shown.
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

func cutLast(dotted string) (outer, name string, ok bool) {
	i := strings.LastIndexByte(dotted, '.')
	if i < 0 {
		return "", dotted, false
	}
	return dotted[:i], dotted[i+1:], true
}

// Fields are all values of the row in the order of its body, those inside
// objects under dotted names, and the root it lies under.
func (r Row) Fields() []Value {
	all := r.fields(make([]Value, 0, len(r.view.kind.Fields)), r.span(), "")
	for _, f := range r.view.kind.Fields {
		if f.RootPath() != "" {
			all = append(all, r.Field(f.Name))
		}
	}
	return all
}

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

// read fills in state and text.
func (r Row) read(v *Value, at jsonspan.Value) {
	level := See
	partly := Last4
	if p := r.view.plan; p != nil {
		level = Hide
		if n := p.record.at(v.Name); n != nil {
			partly = n.level
			if level = n.level; n.open && level < See {
				level = Last4 // or another level that shows texts alone
			}
		}
	}
	switch {
	case at.Kind == jsonspan.Null && level == See:
		v.State = Null
	case at.Kind == jsonspan.Null && level == Last4 && v.Field != nil && textual(v.Field.Type):
		v.State = Null // only what is not text becomes null at this level
	case at.Kind == jsonspan.Null || level == Hide:
		v.State = Hidden
	default:
		// What a page that could not be decoded says is shown as far as it is text.
		v.State, v.Text = Seen, strings.ToValidUTF8(jsonspan.Text(r.view.Body, at), "\ufffd")
		if level == Last4 && at.Kind == jsonspan.String {
			v.State, v.Level = Masked, partly
		}
	}
}

// textual reports types whose values come as JSON strings.
func textual(kind string) bool {
	switch kind {
	case spec.TypeInt, spec.TypeDecimal, spec.TypeBool, spec.TypeEpoch, spec.TypeMillis, spec.TypeMap, spec.TypeCode:
		return false
	}
	return true
}

// Seen reads a record's body that is already as the caller sees it, such as a
// hit of a search. Nothing is hidden anew: a mask that was masked again would
// lose its last digits. The error is ErrForbidden when the caller sees nothing of
// the kind, ErrInvalid when the body is no JSON object.
func (g *Gate) Seen(c understudy.Caller, source, kind string, body []byte) (Row, error) {
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
		return Row{}, fmt.Errorf("access: %w: a record of %s that is no object", understudy.ErrInvalid, understudy.Clip(kind))
	}
	v := &View{Body: body, plan: plan, kind: k}
	return v.row(doc), nil
}
