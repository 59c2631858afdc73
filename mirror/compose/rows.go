// Rows: a list is composed from records that another list has shown in a different form.

package compose

import (
	"fmt"
	"slices"

	"understudy"
	"understudy/kit/jsonspan"
	"understudy/spec"
)

// rowMapping returns how the spec converts rows of another list to rows of this list. It returns nil if records are
// stored in the form of this list.
func (l *listRequest) rowMapping() *spec.RowMapping {
	if l.options.ListedOnly {
		return nil
	}
	return l.target.List.Rows
}

// shape returns the shape in which the records of this list are stored.
func (l *listRequest) shape() string {
	if f := l.rowMapping(); f != nil {
		return f.From
	}
	return l.target.List.Shape
}

// rewriteRows converts the rows of the page to the form of this list. It returns ErrNotMirrored if the form of a row
// in this list is not known.
func (l *List) rewriteRows() error {
	f := l.req.rowMapping()
	if f == nil || l.rewritten {
		return nil
	}
	for i := range l.rows {
		rec, err := l.req.rewriteRow(f, l.rows[i].Record)
		if err != nil {
			return err
		}
		l.bytes += int64(len(rec.Body) - len(l.rows[i].Record.Body))
		l.rows[i].Record = rec
	}
	l.rewritten = true
	return nil
}

// rewriteRow returns a record in the form of this list.
func (l *listRequest) rewriteRow(f *spec.RowMapping, rec *understudy.Record) (*understudy.Record, error) {
	if f.AsSeen {
		var own *understudy.Record
		if l.options.FindListed != nil {
			own = l.options.FindListed(rec)
		}
		if own == nil {
			return nil, fmt.Errorf("%w: this list has not shown the current state of %s yet", understudy.ErrNotMirrored, rec.ID)
		}
		return own, nil
	}
	body, ok := rewrite(f, rec.Body, l.placeholderValue(rec))
	if !ok {
		return nil, fmt.Errorf("%w: %s does not have the fields that the spec describes", understudy.ErrInvalid, rec.ID)
	}
	out := *rec
	out.Body, out.Shape = body, l.target.List.Shape
	return &out, nil
}

// placeholderValue returns a function that returns the value of a placeholder: that of a path variable, or of a field.
func (l *listRequest) placeholderValue(rec *understudy.Record) func(name string) (string, bool) {
	return func(name string) (string, bool) {
		for _, v := range l.target.Vars {
			if v.Name == name {
				return v.Value, true
			}
		}
		v := find(l.target.Kind, rec.Body, name)
		return v.Text(), v.IsStringOrNumber()
	}
}

// rewrite removes some members of a body and replaces the strings of others. All other bytes stay the same. ok is
// false if a member whose text must be replaced is not a string.
func rewrite(f *spec.RowMapping, body []byte, value func(string) (string, bool)) (out []byte, ok bool) {
	if len(f.Omit)+len(f.Replace) == 0 {
		return body, true
	}
	doc, err := jsonspan.Parse(body)
	if err != nil || doc.Kind != jsonspan.Object {
		return nil, false
	}
	out = make([]byte, 0, len(body)+64)
	c := jsonspan.NewCursor(body, doc)
	c.Enter()
	from, first, put := c.Pos(), true, 0
	out = append(out, body[:from]...)
	for c.Next() {
		name := jsonspan.Name(c.Name())
		v := c.Skip()
		start := from // the member is removed together with the comma and the space before it
		from = v.End
		if slices.Contains(f.Omit, name) {
			continue
		}
		lead := body[start:v.Start]
		if first {
			lead = trimComma(lead)
		}
		first = false
		out = append(out, lead...)
		text, there := f.Replace[name]
		if !there {
			out = append(out, v.Bytes(body)...)
			continue
		}
		filled, known := f.Fill(text, value)
		if !known || v.Kind != jsonspan.String {
			return nil, false
		}
		out = jsonspan.Quote(out, filled)
		put++
	}
	return append(out, body[from:]...), put == len(f.Replace)
}

// trimComma removes the comma that would stand before the first member. It keeps the space.
func trimComma(lead []byte) []byte {
	for i, b := range lead {
		switch b {
		case ' ', '\t', '\r', '\n':
		case ',':
			return lead[i+1:]
		default:
			return lead
		}
	}
	return lead
}
