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
	"understudy/internal/query"
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
	Says  string // what a screen reader says of the link, when the text does not
	Stamp string // a moment for machines
	Unit  string
	Note  string   // what the text means, in few words
	Copy  string   // what the copy button takes
	Own   bool     // one of our own numbers
	Marks [][2]int // places in Text that stand out
	Hint  string   // the exact value, on hover
	Prose bool     // words of people, in any direction
	Wide  bool     // longer than one line
	Play  *playing
	Tags  []string // shown one by one in place of the text
}

// clipped is the longest text a table shows, in runes.
const Clipped = 160

// Cell draws the value of one column. row gives the other values of the
// record. list says that it is for a table, where long text is cut.
func (s *CellContext) Cell(c *plan.Column, row access.Row, list bool) Cell {
	val := row.Field(c.Spec.Name)
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
		if list && c.Spec.Name == s.Kind.Spec.Clock { // it begins the row and leads to the record
			s.drawOtherTime(row, &out)
		}
		return out
	}
	if val.Text == "" {
		out.Text, out.Tone = "—", "none"
		if c.Spec.SMS {
			out.Text = "no text"
		}
		return out
	}
	out.Text = val.Text
	s.draw(c, row, list, &out)
	if list {
		out.Text = understudy.ClipTo(out.Text, Clipped)
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
		out.Text, out.Copy, out.Own = plan.GroupPhone(raw), raw, s.Own[raw] && c.Spec.Name != s.Kind.Spec.Own
		out.Href = s.phoneLink(c, raw)
	case plan.Pill:
		out.Tone, out.Text = s.Tone(c.Spec.Name, raw), strings.ReplaceAll(raw, "-", "\u2011") // no break inside a state
	case plan.Number:
		s.drawNumber(c, row, out)
	case plan.YesNo:
		if raw == "true" {
			out.Text, out.Tone = "yes", "yes"
		} else if raw == "false" {
			out.Text, out.Tone = "no", "no"
		}
	case plan.Prose:
		out.Prose = true
		if c.Spec.Show == spec.ShowForm {
			out.Text = plan.ReadForm(raw, formApart[list])
		}
	case plan.ErrorCode:
		why := s.Kind.Source.Reason(raw)
		out.Note, out.Href, out.Hint = why.Meaning, why.Docs, ""
	default:
		if c.Spec.Show == spec.ShowDirection {
			out.Class = directionClass(raw)
		}
		if tags, ok := plan.Tags(raw); ok && c.Shape == plan.Plain {
			out.DrawTags(tags)
			return
		}
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
	if c.Spec.Link != "" || c.IsID {
		out.Copy = raw
	}
}

// formApart is what stands between the values of a form, by whether it is in a list.
var formApart = map[bool]string{true: " · ", false: "\n"}

// drawDate puts a moment into words. The whole date and the zone are shown on hover.
func (s *CellContext) drawDate(c *plan.Column, out *Cell, list bool) {
	t, dateOnly, ok := ParseDate(c.Spec.Type, out.Text)
	if !ok {
		return
	}
	var w When
	switch {
	case dateOnly:
		w = sayDate(t, s.q.Clock.Start, s.q.Clock.Zone)
	case s.narrow:
		w = s.q.Clock.sayShort(t, s.Seconds)
	default:
		w = s.q.Clock.Say(t, s.Seconds || list)
	}
	out.Text, out.Stamp = w.Text, w.Stamp
	if !s.narrow { // there the script says it
		out.Hint = w.Exact
	}
	if at := strings.LastIndex(w.Text, " "); at >= 0 && !dateOnly { // a line may end before the time of day, not within the day
		out.Text = strings.ReplaceAll(w.Text[:at], " ", "\u00a0") + w.Text[at:]
	}
}

// drawOtherTime shows another time of a record whose clock has none.
func (s *CellContext) drawOtherTime(row access.Row, out *Cell) {
	out.Text = "no time"
	if f, _ := ShownTime(s.Kind, row); f != nil {
		at := Cell{Text: row.Field(f.Name).Text}
		s.drawDate(s.Kind.ByField[f.Name], &at, true)
		out.Text, out.Stamp, out.Hint = plan.TitleOf(f)+"\u00a0"+at.Text, at.Stamp, at.Hint
	}
}

// drawNumber shows a number with its unit, as the spec says that people read it.
func (s *CellContext) drawNumber(c *plan.Column, row access.Row, out *Cell) {
	raw, unit := out.Text, ""
	if c.Unit != "" {
		if u := row.Field(c.Unit); u.State == access.Seen {
			unit = u.Text
		}
	}
	shown := unit
	if s.units[c.Spec.Name] != "" { // the head of the column says it
		shown = ""
	}
	if text, exact, ok := plan.Figure(c.Spec, raw, unit); ok {
		out.Text, out.Hint = text, exact
		if s.narrow { // the script says it of a length of time
			out.Hint = ""
		}
		if shown != unit {
			out.Text = strings.Trim(strings.Replace(text, plan.Symbol(unit), "", 1), "\u00a0")
		}
		return
	}
	if whole, _, _ := strings.Cut(raw, "."); unit != "" && strings.Trim(whole, "0123456789") == "" {
		out.Text = plan.GroupDigits(whole) + raw[len(whole):]
	}
	out.Unit = shown
	if strings.HasPrefix(raw, "-") {
		out.Text = plan.Minus + raw[1:]
	}
}

// directionClass is the class of a word such as outbound-api: the style draws an arrow in its place.
func directionClass(word string) string {
	switch {
	case strings.HasPrefix(word, "in"):
		return "dir in"
	case strings.HasPrefix(word, "out"):
		return "dir out"
	}
	return "dir"
}

// DrawTags shows the values of an array one by one.
func (c *Cell) DrawTags(tags []string) {
	c.Tags = tags
	if len(tags) == 0 {
		c.Text, c.Tone = "none", "none"
	}
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
	narrow  bool              // a table: times are short, and the script adds titles
	units   map[string]string // the unit that all rows of a table have, by column
}

// phoneLink is the number's page, or for what is no number the kind's list
// picked by it, where the caller may ask for either.
func (s *CellContext) phoneLink(c *plan.Column, raw string) string {
	if s.numbers {
		if href := s.Kind.Source.NumberHref(raw); href != "" {
			return href
		}
	}
	name := s.Filters[c.Spec.Name]
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
		if c.Spec.RootPath() != "" && c.Spec.Link == k.Spec.Name {
			return s.asOf.Keep(k.Href + "/" + url.PathEscape(spec.ParseRoot(raw)))
		}
		if len(k.Spec.ID) != 1 {
			continue
		}
		switch {
		case c.IsID && k == s.Kind:
			return s.asOf.Keep(recordHref(k, row, raw, s.Vars))
		case c.Spec.Link == k.Spec.Name && len(k.PlannedInstances[0].Needs) == 0:
			return s.asOf.Keep(recordHref(k, row, raw, s.Vars))
		case (c.Spec.Link == "" || c.Spec.Link == spec.AnyKind) && !c.IsID && k.Spec.HasPrefix(raw) && plan.FormedID(raw):
			if found != nil {
				return SearchAddress("/search", query.SearchRequest{Text: raw})
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
	case about(s.Kind.Spec.Failed, within):
		return "pill bad"
	case about(s.Kind.Spec.Final, func(st spec.State) bool { return len(st.In) > 0 }) && !about(s.Kind.Spec.Final, within):
		return "pill busy"
	}
	return "pill"
}

// Shorten leaves the two ends of an id.
func (c *Cell) Shorten(of *plan.Column) {
	if short := ShortID(c.Text); c.Hint == "" && short != c.Text && (of.Shape == plan.Code || plan.FormedID(c.Text)) {
		c.Hint, c.Text, c.Class = c.Text, short, "code"
	}
}

// ShortID is the two ends of a long id.
func ShortID(id string) string {
	r := []rune(id)
	if len(r) <= 16 {
		return id
	}
	return string(r[:6]) + "…" + string(r[len(r)-4:])
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
	for i, o := range s.NonGSM7 {
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
	if len(s.NonGSM7) == charset.MaxNonGSM7 {
		out.Marks = nil // another script: nothing stands out
	}
}
