// Encoder: records as CSV, JSON and JSON lines.

package list

import (
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

// csvEncoder writes RFC 4180 with a header of field names. Moments are RFC 3339
// in the reader's timezone, everything else is as the view has it.
type csvEncoder struct {
	q       *page.Exchange
	columns []*plan.Column
	kinds   bool     // rows say their source and kind
	fields  []string // of rows of several kinds; a kind has some of them
}

func (w *csvEncoder) begin(dst []byte) []byte {
	var names []string
	if w.kinds {
		names = slices.Concat(foundColumns, w.fields)
	}
	for _, c := range w.columns {
		names = append(names, c.Spec.Name)
	}
	return csvline.Append(dst, names)
}

func (w *csvEncoder) row(dst []byte, one exported) []byte {
	cells := make([]string, 0, len(w.columns)+5)
	if w.kinds {
		cells = append(cells, one.kind.Source.Name, one.kind.Spec.Name, csvline.EscapeFormulas(one.row.ID))
		at := w.field(one, one.kind.Spec.Clock)
		if at == "" {
			at = w.field(one, one.kind.Spec.Order)
		}
		cells = append(cells, at, csvline.EscapeFormulas(foundText(one.hit)), csvline.EscapeFormulas(meaning(one)))
		for _, name := range w.fields {
			cells = append(cells, w.field(one, name))
		}
	}
	for _, c := range w.columns {
		cells = append(cells, w.text(c, one.row.Field(c.Spec.Name)))
	}
	return csvline.Append(dst, cells)
}

// field returns what a row has in a field, "" where its kind has none of the name.
func (w *csvEncoder) field(one exported, name string) string {
	if c := one.kind.ByField[name]; c != nil {
		return w.text(c, one.row.Field(name))
	}
	return ""
}

// meaning returns what the error code of a record means, "" where it has none that the role sees.
func meaning(one exported) string {
	for _, c := range one.kind.Every {
		if c.Shape != plan.ErrorCode {
			continue
		}
		if v := one.row.Field(c.Spec.Name); v.State == access.Seen && v.Text != "" {
			return one.kind.Source.Reason(v.Text).Meaning
		}
	}
	return ""
}

// foundText is where the words of a search were found.
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

// linesEncoder writes each record as one JSON object on a line of its own: the
// columns under the names of their fields, each value as the view has it.
type linesEncoder struct {
	columns []*plan.Column
	kinds   bool
}

func (w *linesEncoder) begin(dst []byte) []byte { return dst }

func (w *linesEncoder) row(dst []byte, one exported) []byte {
	return append(w.object(dst, one.kind, one.row), '\n')
}

func (w *linesEncoder) object(dst []byte, k *plan.Kind, row access.Row) []byte {
	dst = append(dst, '{')
	if w.kinds {
		dst = jsonspan.Quote(append(dst, `"understudy.source":`...), k.Source.Name)
		dst = jsonspan.Quote(append(dst, `,"understudy.kind":`...), k.Spec.Name)
	}
	columns := w.columns
	if w.kinds {
		columns = k.Every
	}
	raw := row.Raw()
	doc, err := jsonspan.Parse(raw)
	for _, c := range columns {
		value := []byte("null")
		if c.Spec.RootPath() != "" {
			if v := row.Field(c.Spec.Name); v.State == access.Seen {
				value = jsonspan.Quote(nil, v.Text)
			}
		} else if v, ok := jsonspan.Find(raw, doc, c.Spec.Name); err == nil && ok {
			value = flat(raw[v.Start:v.End])
		} else if w.kinds {
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

// end says in a last line of its own that rows are missing.
func (w *linesEncoder) end(dst []byte, rows int, rest string) []byte {
	if rest == "" {
		return dst
	}
	dst = jsonspan.Quote(append(dst, `{"understudy.incomplete":`...), rest)
	dst = strconv.AppendInt(append(dst, `,"understudy.rows":`...), int64(rows), 10)
	return append(dst, "}\n"...)
}

// jsonEncoder writes one object: the records, how many they are, and whether
// they are all.
type jsonEncoder struct {
	linesEncoder linesEncoder
	some         bool // a record is written
}

func (w *jsonEncoder) begin(dst []byte) []byte {
	if w.linesEncoder.kinds { // programs that open pages look here
		return append(dst, `{"matches":[],"rows":[`...)
	}
	return append(dst, `{"rows":[`...)
}

func (w *jsonEncoder) row(dst []byte, one exported) []byte {
	if w.some {
		dst = append(dst, ',')
	}
	w.some = true
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

// flat is a JSON value on one line: white space between its parts may hold line
// ends, a string cannot.
func flat(value []byte) []byte {
	if !slices.ContainsFunc(value, func(c byte) bool { return c == '\n' || c == '\r' }) {
		return value
	}
	return slices.DeleteFunc(slices.Clone(value), func(c byte) bool { return c == '\n' || c == '\r' })
}

// ofIDs matches a search for ids alone, as page.AnyID writes it of ids without blanks.
var ofIDs = regexp.MustCompile(`^id:[^ ]+(?: OR id:[^ ]+)*$`)

// pickedIDs returns the ids that a search is for, none where it is for anything else.
func pickedIDs(text string) []string {
	if !ofIDs.MatchString(text) {
		return nil
	}
	return strings.Split(strings.NewReplacer(" OR id:", ",", `"`, "").Replace(strings.TrimPrefix(text, "id:")), ",")
}

// foundColumns begin the rows of what was found in several kinds.
var foundColumns = []string{"source", "kind", "id", "time", "found", "meaning"}

// foundFields returns the fields of the kinds that a search looks in, each once; without kinds those that lists of at least
// two of the main kinds show, and error codes.
func foundFields(q *page.Exchange, source string, in []string) (names []string) {
	kinds := map[string]int{}
	for _, s := range q.V.Planned {
		if source != "" && s.Name != source {
			continue
		}
		for _, k := range q.Rights.Readable(s) {
			if asked := slices.Contains(in, k.Spec.Name); !asked && (len(in) > 0 || k.Spec.Group != "") {
				continue
			}
			shown := q.Rights.ColumnsOf(k)
			for _, c := range q.Rights.Visible(k, k.Every) {
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
	return names[:min(len(names), mostColumns)]
}
