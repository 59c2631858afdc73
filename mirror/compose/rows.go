// Rows: the rows of a list, made of records seen in another shape.

package compose

import (
	"fmt"
	"slices"

	"understudy"
	"understudy/kit/jsonspan"
	"understudy/spec"
)

// rowForm is what the spec says of the list's rows; nil: records are held as the
// list shows them.
func (l *listRequest) rowForm() *spec.RowMapping {
	if l.o.AsShown {
		return nil
	}
	return l.target.List.Rows
}

// shape is the shape in which the list's records are looked for.
func (l *listRequest) shape() string {
	if f := l.rowForm(); f != nil {
		return f.From
	}
	return l.target.List.Shape
}

// retell makes the rows that are on the page what the list shows of them.
// ErrNotMirrored: of one that is not known.
func (l *List) retell() error {
	f := l.req.rowForm()
	if f == nil || l.told {
		return nil
	}
	for i := range l.rows {
		rec, err := l.req.retold(f, l.rows[i].Record)
		if err != nil {
			return err
		}
		l.bytes += int64(len(rec.Body) - len(l.rows[i].Record.Body))
		l.rows[i].Record = rec
	}
	l.told = true
	return nil
}

func (l *listRequest) retold(f *spec.RowMapping, rec *understudy.Record) (*understudy.Record, error) {
	if f.Own {
		var own *understudy.Record
		if l.o.Own != nil {
			own = l.o.Own(rec)
		}
		if own == nil {
			return nil, fmt.Errorf("%w: %s was not seen in this list as it is now", understudy.ErrNotMirrored, rec.ID)
		}
		return own, nil
	}
	body, ok := rewrite(f, rec.Body, l.value(rec))
	if !ok {
		return nil, fmt.Errorf("%w: %s does not look as the spec says", understudy.ErrInvalid, rec.ID)
	}
	out := *rec
	out.Body, out.Shape = body, l.target.List.Shape
	return &out, nil
}

// value finds what stands in braces: a variable of the path, or a field.
func (l *listRequest) value(rec *understudy.Record) func(name string) (string, bool) {
	return func(name string) (string, bool) {
		for _, v := range l.target.Vars {
			if v.Name == name {
				return v.Value, true
			}
		}
		v := find(l.target.Kind, rec.Body, name)
		return v.Text(), v.Written()
	}
}

// rewrite is a body without some members and with other texts in some. What is
// around them stays as upstream wrote it. ok is false when a text is to stand
// where there is none.
func rewrite(f *spec.RowMapping, body []byte, value func(string) (string, bool)) (out []byte, ok bool) {
	if len(f.Without)+len(f.With) == 0 {
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
		start := from // with the comma and the space before it
		from = v.End
		if slices.Contains(f.Without, name) {
			continue
		}
		lead := body[start:v.Start]
		if first {
			lead = trimComma(lead)
		}
		first = false
		out = append(out, lead...)
		text, there := f.With[name]
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
	return append(out, body[from:]...), put == len(f.With)
}

// trimComma takes away the comma in front of a member that comes first now; the
// space before it stays.
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
