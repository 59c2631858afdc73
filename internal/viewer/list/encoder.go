// Encoders that write exported records as CSV, JSON or JSON lines.

package list

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"understudy/internal/access"
	"understudy/internal/query"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/plan"
	"understudy/kit/csvline"
	"understudy/kit/jsonspan"
)

// csvEncoder writes CSV (RFC 4180) whose first line has the field names. Times are written in RFC 3339 in the
// reader's time zone. Other values are written as the caller sees them.
type csvEncoder struct {
	q         *page.Exchange
	columns   []*plan.Column
	withKinds bool     // whether each row begins with the source and the kind of the record
	fields    []string // the fields to write if the rows have several kinds; a kind may lack some of them
}

func (w *csvEncoder) begin(dst []byte) []byte {
	var names []string
	if w.withKinds {
		names = slices.Concat(foundColumns, w.fields)
	}
	for _, c := range w.columns {
		names = append(names, c.Spec.Name)
	}
	return csvline.Append(dst, names)
}

// row appends a record as one line of CSV.
func (w *csvEncoder) row(dst []byte, one exported) []byte {
	cells := make([]string, 0, len(w.columns)+5)
	if w.withKinds {
		cells = append(cells, one.kind.Source.Name, one.kind.Spec.Name, csvline.EscapeFormulas(one.row.ID))
		at := cmp.Or(w.field(one, one.kind.Spec.Clock), w.field(one, one.kind.Spec.Order))
		cells = append(cells, at, csvline.EscapeFormulas(foundText(one.hit)), csvline.EscapeFormulas(errorMeaning(one)))
		for _, name := range w.fields {
			cells = append(cells, w.field(one, name))
		}
	}
	for _, c := range w.columns {
		cells = append(cells, w.text(c, one.row.Field(c.Spec.Name)))
	}
	return csvline.Append(dst, cells)
}

// field returns the value of a field in a row, or "" if the row's kind does not have the field.
func (w *csvEncoder) field(one exported, name string) string {
	if c := one.kind.ByField[name]; c != nil {
		return w.text(c, one.row.Field(name))
	}
	return ""
}

// errorMeaning returns what the error code of a record means. It returns "" if there is no code or the role may not see it.
func errorMeaning(one exported) string {
	for _, c := range one.kind.AllColumns {
		if c.Shape != plan.ErrorCode {
			continue
		}
		if v := one.row.Field(c.Spec.Name); v.State == access.Seen && v.Text != "" {
			return one.kind.Source.Reason(v.Text).Meaning
		}
	}
	return ""
}

// foundText returns the parts of a record in which the search found its words.
func foundText(h *query.SearchHit) string {
	var all []string
	if h != nil {
		for _, s := range h.Snippets {
			all = append(all, s.Text)
		}
	}
	return strings.Join(all, " … ")
}

func (w *csvEncoder) text(c *plan.Column, v access.Value) string {
	if v.State != access.Seen && v.State != access.Masked {
		return ""
	}
	if c.Shape == plan.Moment && v.State == access.Seen {
		if t, dateOnly, ok := page.ParseDate(c.Spec.Type, v.Text); ok && !dateOnly {
			return t.In(w.q.Clock.Zone).Format(time.RFC3339)
		}
	}
	return csvline.EscapeFormulas(v.Text)
}

func (w *csvEncoder) end(dst []byte, rows int, rest string) []byte {
	if rest == "" {
		return dst
	}
	return csvline.Append(dst, []string{"# not complete after " + strconv.Itoa(rows) + " rows: " + rest})
}

// linesEncoder writes each record as a JSON object on a line of its own. The object has a member for each column,
// with the value that the caller sees.
type linesEncoder struct {
	columns   []*plan.Column
	withKinds bool
}

func (w *linesEncoder) begin(dst []byte) []byte { return dst }

func (w *linesEncoder) row(dst []byte, one exported) []byte {
	return append(w.object(dst, one.kind, one.row), '\n')
}

// object appends a record as a JSON object.
func (w *linesEncoder) object(dst []byte, k *plan.Kind, row access.Row) []byte {
	dst = append(dst, '{')
	if w.withKinds {
		dst = jsonspan.Quote(append(dst, `"understudy.source":`...), k.Source.Name)
		dst = jsonspan.Quote(append(dst, `,"understudy.kind":`...), k.Spec.Name)
	}
	columns := w.columns
	if w.withKinds {
		columns = k.AllColumns
	}
	raw := row.JSON()
	doc, err := jsonspan.Parse(raw)
	for _, c := range columns {
		value := []byte("null")
		if c.Spec.RootPath() != "" {
			if v := row.Field(c.Spec.Name); v.State == access.Seen {
				value = jsonspan.Quote(nil, v.Text)
			}
		} else if v, ok := jsonspan.Find(raw, doc, c.Spec.Name); err == nil && ok {
			value = singleLine(raw[v.Start:v.End])
		} else if w.withKinds {
			continue
		}
		if dst[len(dst)-1] != '{' {
			dst = append(dst, ',')
		}
		dst = append(jsonspan.Quote(dst, c.Spec.Name), ':')
		dst = append(dst, value...)
	}
	return append(dst, '}')
}

// end writes a last line, if rows are missing, which says why.
func (w *linesEncoder) end(dst []byte, rows int, rest string) []byte {
	if rest == "" {
		return dst
	}
	dst = jsonspan.Quote(append(dst, `{"understudy.incomplete":`...), rest)
	dst = strconv.AppendInt(append(dst, `,"understudy.rows":`...), int64(rows), 10)
	return append(dst, "}\n"...)
}

// jsonEncoder writes one JSON object with the records, their number, and whether these are all records.
type jsonEncoder struct {
	linesEncoder linesEncoder
	hasRows      bool // whether at least one row has been written
}

func (w *jsonEncoder) begin(dst []byte) []byte {
	if w.linesEncoder.withKinds { // a search that may name pages always has this member, empty here
		return append(dst, `{"matches":[],"rows":[`...)
	}
	return append(dst, `{"rows":[`...)
}

func (w *jsonEncoder) row(dst []byte, one exported) []byte {
	if w.hasRows {
		dst = append(dst, ',')
	}
	w.hasRows = true
	return w.linesEncoder.object(append(dst, '\n'), one.kind, one.row)
}

func (w *jsonEncoder) end(dst []byte, rows int, rest string) []byte {
	dst = strconv.AppendInt(append(dst, "\n],\"count\":"...), int64(rows), 10)
	dst = strconv.AppendBool(append(dst, `,"complete":`...), rest == "")
	if rest != "" {
		dst = jsonspan.Quote(append(dst, `,"why":`...), rest)
	}
	return append(dst, "}\n"...)
}

// singleLine returns a JSON value without line breaks. A line break is never part of a JSON string, so none of the
// data changes.
func singleLine(value []byte) []byte {
	if !slices.ContainsFunc(value, func(c byte) bool { return c == '\n' || c == '\r' }) {
		return value
	}
	return slices.DeleteFunc(slices.Clone(value), func(c byte) bool { return c == '\n' || c == '\r' })
}

// idSearchPattern matches the text of a search for ids only, as page.IDCondition writes it.
var idSearchPattern = regexp.MustCompile(`^id:[^ ]+(?: OR id:[^ ]+)*$`)

// searchedIDs returns the ids in the text of a search. It returns nil if the text has any other condition.
func searchedIDs(text string) []string {
	if !idSearchPattern.MatchString(text) {
		return nil
	}
	return strings.Split(strings.NewReplacer(" OR id:", ",", `"`, "").Replace(strings.TrimPrefix(text, "id:")), ",")
}

// foundColumns are the first columns of an export with the matches of a search in several kinds.
var foundColumns = []string{"source", "kind", "id", "time", "found", "meaning"}

// foundFields returns the fields of the searched kinds, each once. If the search names no kinds, it returns the
// fields with error codes, and fields that at least two main kinds show in their lists.
func foundFields(q *page.Exchange, source string, in []string) (names []string) {
	kinds := map[string]int{}
	for _, s := range q.V.Planned {
		if source != "" && s.Name != source {
			continue
		}
		for _, k := range q.Rights.ReadableKinds(s) {
			if asked := slices.Contains(in, k.Spec.Name); !asked && (len(in) > 0 || k.Spec.Group != "") {
				continue
			}
			shown := q.Rights.ColumnsOf(k)
			for _, c := range q.Rights.VisibleColumns(k, k.AllColumns) {
				switch {
				case len(in) > 0, c.Shape == plan.ErrorCode:
					kinds[c.Spec.Name] = 2
				case slices.Contains(shown, c):
					kinds[c.Spec.Name]++
				}
				if kinds[c.Spec.Name] >= 2 && c.Spec.Name != k.Spec.Clock && !slices.Contains(slices.Concat(foundColumns, names),
					c.Spec.Name) {
					names = append(names, c.Spec.Name)
				}
			}
		}
	}
	return names[:min(len(names), maxColumns)]
}
