// Cells: one value of a view as a page shows it.

package page

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/viewer/plan"
	"understudy/kit/charset"
	"understudy/spec"
)

// Cell is a value ready for the template. Every text in it is shown to the
// caller and comes from the gate's view.
type Cell struct {
	Label string // the field's title
	Class string // of the cell
	Text  string
	Tone  string // class of the text: "pill bad", "masked", "none"; "" = plain
	Href  string // where it leads; "" = nowhere
	Annotation
	Hint  string // the exact value, on hover
	Prose bool   // words of people, in any direction
	Wide  bool   // longer than one line
	Play  *playing
}

// Annotation is what a cell shows beside its text.
type Annotation struct {
	Says  string // what a screen reader says of the link, when the text does not
	Stamp string // a moment for machines
	Unit  string
	Note  string   // what the text means, in few words
	Copy  string   // what the copy button takes
	Own   bool     // one of our own numbers
	Marks [][2]int // places in Text that stand out
}

// clipped is the longest text a table shows, in runes.
const Clipped = 160

// Cell draws the value of one column. row gives the other values of the
// record. list says that it is for a table, where long text is cut.
func (s *CellContext) Cell(c *plan.Column, row access.Row, list bool) Cell {
	val := row.Field(c.Name)
	out := Cell{Label: c.Heading, Class: c.CellClass}
	switch val.State {
	case access.Hidden:
		out.Text, out.Tone, out.Hint = "hidden", "hidden", "Your role does not show this"
		return out
	case access.Masked:
		s.drawMasked(c, val, &out)
		return out
	case access.Null, access.Absent:
		out.Text, out.Tone = "—", "none"
		if list && c.Name == s.Kind.Clock {
			out.Text = "no time" // it begins the row and leads to the record
		}
		return out
	}
	if val.Text == "" {
		out.Text, out.Tone = "—", "none"
		return out
	}
	out.Text = val.Text
	s.draw(c, row, list, &out)
	if list {
		out.Text = ClipTo(out.Text, Clipped)
	}
	out.Wide = !list && utf8.RuneCountInString(out.Text) > 50
	return out
}

// draw fills in what the shape of a column adds to the text of a seen value.
func (s *CellContext) draw(c *plan.Column, row access.Row, list bool, out *Cell) {
	raw := out.Text
	switch c.Shape {
	case plan.Moment:
		s.drawDate(c, out, list)
	case plan.Phone:
		out.Text, out.Copy, out.Own = plan.GroupPhone(raw), raw, s.Own[raw] && c.Name != s.Kind.Own
		out.Href = s.phoneLink(c, raw)
	case plan.Pill:
		out.Tone, out.Text = s.Tone(c.Name, raw), strings.ReplaceAll(raw, "-", "\u2011") // no break inside a state
	case plan.Number:
		if c.Unit != "" {
			if u := row.Field(c.Unit); u.State == access.Seen {
				out.Unit = u.Text
			}
		}
		if strings.HasPrefix(raw, "-") {
			out.Text = "\u2212" + raw[1:]
		}
	case plan.YesNo:
		if raw == "true" {
			out.Text, out.Tone = "yes", "yes"
		} else if raw == "false" {
			out.Text, out.Tone = "no", "no"
		}
	case plan.Prose:
		out.Prose = true
	case plan.ErrorCode:
		why := s.Kind.Source.Reason(raw)
		out.Note, out.Href, out.Hint = why.Meaning, why.Docs, ""
	default:
		if href := s.recordLink(c, row, raw); href != "" {
			out.Href = href
		}
		if c.Shape == plan.Plain && (strings.HasPrefix(raw, "/") || strings.HasPrefix(raw, "https://")) {
			out.Class = "address"
		}
		if c.Shape == plan.Code || out.Href != "" {
			out.Copy = raw
			if out.Class == "" {
				out.Class = "code"
			}
		}
	}
	if c.Link != "" || c.IsID {
		out.Copy = raw
	}
}

// drawDate puts a moment into words. In a table they have the seconds and nothing
// besides: what a moment says twice more in each row is the better part of it.
func (s *CellContext) drawDate(c *plan.Column, out *Cell, list bool) {
	t, dateOnly, ok := ParseDate(c.Type, out.Text)
	if !ok {
		return
	}
	w := When{}
	if dateOnly {
		w = sayDate(t, s.q.Start, s.q.Zone)
	} else {
		w = Say(t, s.q.Start, s.q.Zone, s.Seconds || list)
	}
	out.Text = w.Text
	if !list || dateOnly {
		out.Stamp, out.Hint = w.Stamp, w.Exact
	}
	if day, clock, ok := cutLast(w.Text, " "); ok && !dateOnly { // a line may end before the time of day, not within the day
		out.Text = strings.ReplaceAll(day, " ", "\u00a0") + " " + clock
	}
}

// cutLast cuts a text at the last of its separators.
func cutLast(text, sep string) (before, after string, ok bool) {
	i := strings.LastIndex(text, sep)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+len(sep):], true
}

// CellContext is what the cells of one page share: what the caller may follow.
type CellContext struct {
	q       *Exchange
	Kind    *plan.Kind
	linked  []*plan.Kind    // kinds whose records the caller may open
	Own     map[string]bool // numbers of our own, if the caller may know them
	Filters map[string]string
	Vars    understudy.Query // path variables of the page at hand
	asOf    AsOf             // the moment of the page at hand
	numbers bool             // the caller may open the pages of numbers
	notes   bool             // the caller sees what people wrote on the records
	Seconds bool
}

// phoneLink is the number's page, or for what is no number the kind's list
// picked by it, where the caller may ask for either.
func (s *CellContext) phoneLink(c *plan.Column, raw string) string {
	if s.numbers {
		if href := s.Kind.Source.NumberHref(raw); href != "" {
			return href
		}
	}
	name := s.Filters[c.Name]
	if name == "" {
		return ""
	}
	return s.asOf.Keep(s.Kind.Href + plan.WithQuery(append(plan.OwnVars(s.Vars), understudy.Param{Name: name, Value: raw})))
}

// recordLink is the page of the record a value names: by the field's link, or
// by the prefix of the id when only one kind has it.
func (s *CellContext) recordLink(c *plan.Column, row access.Row, raw string) string {
	var found *plan.Kind
	for _, k := range s.linked {
		if c.RootPath() != "" && c.Link == k.Name {
			return s.asOf.Keep(k.Href + "/" + url.PathEscape(spec.ParseRoot(raw)))
		}
		if len(k.ID) != 1 {
			continue
		}
		switch {
		case c.IsID && k == s.Kind:
			return s.asOf.Keep(recordHref(k, row, raw, s.Vars))
		case c.Link == k.Name && len(k.PlannedInstances[0].Needs) == 0:
			return s.asOf.Keep(recordHref(k, row, raw, s.Vars))
		case (c.Link == "" || c.Link == spec.AnyKind) && !c.IsID && k.HasPrefix(raw) && plan.FormedID(raw):
			if found != nil {
				return SearchHref(raw)
			}
			found = k
		}
	}
	if found == nil || len(found.PlannedInstances[0].Needs) > 0 {
		return ""
	}
	return s.asOf.Keep(found.Href + "/" + url.PathEscape(raw))
}

// Tone is the look of a state: failed ones stand out, running ones are marked,
// the rest is calm.
func (s *CellContext) Tone(field, value string) string {
	about := func(states []spec.State, in func(spec.State) bool) bool {
		return slices.ContainsFunc(states, func(st spec.State) bool { return st.Field == field && in(st) })
	}
	within := func(st spec.State) bool { return slices.Contains(st.In, value) }
	switch {
	case about(s.Kind.Failed, within):
		return "pill bad"
	case about(s.Kind.Final, func(st spec.State) bool { return len(st.In) > 0 }) && !about(s.Kind.Final, within):
		return "pill busy"
	}
	return "pill"
}

// ShortID is the two ends of a long id.
func ShortID(id string) string {
	r := []rune(id)
	if len(r) <= 16 {
		return id
	}
	return string(r[:6]) + "…" + string(r[len(r)-4:])
}

// Clip keeps foreign text in a message short.
func Clip(s string) string { return ClipTo(s, 60) }

// ClipTo is a text of at most n runes; of a longer one its beginning.
func ClipTo(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n]) + "…"
	}
	return s
}

// DrawSegments says in how many parts a short message is sent, and marks what
// forces it into UCS-2, where a part holds less than half as many characters.
func DrawSegments(out *Cell) {
	s := charset.CountSMS(out.Text)
	out.Note = Thousands(int64(s.Segments)) + " segments, "
	if s.Segments == 1 {
		out.Note = "1 segment, "
	}
	if !s.UCS2 {
		out.Note += Thousands(int64(s.Units)) + " of GSM-7’s septets"
		return
	}
	out.Note += Thousands(int64(s.Units)) + " code units of UCS-2, because of "
	for i, o := range s.Outside {
		if last := len(out.Marks) - 1; last >= 0 && out.Marks[last][1] == o.Start {
			out.Marks[last][1] = o.End // letters that are joined stay so
		} else {
			out.Marks = append(out.Marks, [2]int{o.Start, o.End})
		}
		switch {
		case i < 3:
			if unicode.IsGraphic(o.Char) {
				out.Note += string(o.Char) + " "
			}
			out.Note += fmt.Sprintf("(%U) at %d, ", o.Char, o.At)
		case i == 3:
			out.Note += "and more, "
		}
	}
	out.Note = strings.TrimSuffix(out.Note, ", ")
	if len(s.Outside) == charset.MaxOutside {
		out.Marks = nil // another script: nothing stands out
	}
}
