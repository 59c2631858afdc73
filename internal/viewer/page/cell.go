// Cells: single values of records as pages show them.

package page

import (
	"cmp"
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

// Cell is a value for a template. Every text in it comes from the gate's view, so the caller may see it.
type Cell struct {
	Label     string // the title of the field
	Class     string // the CSS class of the table cell
	Text      string
	Tone      string // the CSS classes of the text, such as "pill bad", "masked" or "none"; empty for plain text
	Href      string // the address that the value links to; empty if it is no link
	LinkLabel string // the link's text for screen readers, if Text alone would not be clear
	Stamp     string // the moment that Text shows, in RFC 3339 for programs
	Unit      string
	Note      string   // a short explanation shown after the text
	Copy      string   // the text that the copy button puts on the clipboard
	Own       bool     // whether the value is one of our own phone numbers
	Marks     [][2]int // the byte ranges of Text to highlight
	Hint      string   // the exact value, shown when the pointer is over the text
	Prose     bool     // whether people wrote the text, so that it may run from right to left
	Wide      bool     // whether the text is longer than one line
	Play      *player
	Tags      []string // the values of an array, shown as separate labels instead of Text
}

// MaxCellRunes is the longest text of a table cell, in runes.
const MaxCellRunes = 160

// Cell draws the value of one column. It may use other fields of the row, such as the currency of a price. list is
// true if the cell is for a table, where long text is cut.
func (s *CellContext) Cell(c *plan.Column, row access.Row, list bool) Cell {
	val := row.Field(c.Spec.Name)
	out := Cell{Label: c.Heading, Class: c.CellClass}
	switch val.State {
	case access.Hidden:
		out.Text, out.Tone, out.Hint = "hidden", "hidden", "Your role can't see this"
		return out
	case access.Masked:
		s.drawMasked(c, val, &out)
		return out
	case access.Null, access.Absent:
		out.Text, out.Tone = "—", "none"
		if list && c.Spec.Name == s.Kind.Spec.Clock { // in a table, the time of the record begins the row and links to the record
			out.Text = "no time" // show another time of the record
			if f, _ := ShownTime(s.Kind, row); f != nil {
				at := Cell{Text: row.Field(f.Name).Text}
				s.drawDate(s.Kind.ByField[f.Name], &at, true)
				out.Text, out.Stamp, out.Hint = plan.TitleOf(f)+"\u00a0"+at.Text, at.Stamp, at.Hint
			}
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
		out.Text = understudy.ClipTo(out.Text, MaxCellRunes)
	}
	out.Wide = !list && utf8.RuneCountInString(out.Text) > 50
	return out
}

// draw completes the cell of a visible value in the form of its column, such as a date or a number.
func (s *CellContext) draw(c *plan.Column, row access.Row, list bool, out *Cell) {
	raw := out.Text
	switch c.Shape {
	case plan.Moment:
		s.drawDate(c, out, list)
	case plan.Phone:
		out.Text, out.Copy, out.Own = plan.GroupPhone(raw), raw, s.Own[raw] && c.Spec.Name != s.Kind.Spec.OwnNumber
		out.Href = s.phoneLink(c, raw)
	case plan.Pill:
		// non-breaking hyphens keep a state such as "in-progress" on one line
		out.Tone, out.Text = s.Tone(c.Spec.Name, raw), strings.ReplaceAll(raw, "-", "\u2011")
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
			out.Text = plan.DecodeForm(raw, formSeparators[list])
		}
	case plan.ErrorCode:
		why := s.Kind.Source.Reason(raw)
		out.Note, out.Href, out.Hint = why.Meaning, why.Docs, ""
	default:
		if c.Spec.Show == spec.ShowDirection {
			out.Class = "dir" // the style sheet draws an arrow for each direction
			if strings.HasPrefix(raw, "in") {
				out.Class = "dir in"
			} else if strings.HasPrefix(raw, "out") {
				out.Class = "dir out"
			}
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
			out.Class = cmp.Or(out.Class, "code")
		}
	}
	if c.Spec.Link != "" || c.IsID {
		out.Copy = raw
	}
}

// formSeparators is the separator between the values of a form: the key is true in a list, and false on a record's page.
var formSeparators = map[bool]string{true: " · ", false: "\n"}

// drawDate writes a moment in words. The complete date and the time zone are shown on hover.
func (s *CellContext) drawDate(c *plan.Column, out *Cell, list bool) {
	t, dateOnly, ok := ParseDate(c.Spec.Type, out.Text)
	if !ok {
		return
	}
	var w When
	switch {
	case dateOnly:
		w = formatDate(t, s.q.Clock.Start, s.q.Clock.Zone)
	case s.inTable:
		w = s.q.Clock.formatShort(t, s.Seconds)
	default:
		w = s.q.Clock.FormatMoment(t, s.Seconds || list)
	}
	out.Text, out.Stamp = w.Text, w.Stamp
	if !s.inTable { // in a table, the script of the page adds this title
		out.Hint = w.Exact
	}
	// the line may break between the date and the time of day, but not within the date
	if at := strings.LastIndex(w.Text, " "); at >= 0 && !dateOnly {
		out.Text = strings.ReplaceAll(w.Text[:at], " ", "\u00a0") + w.Text[at:]
	}
}

// drawNumber shows a number with its unit, in the format that the spec defines.
func (s *CellContext) drawNumber(c *plan.Column, row access.Row, out *Cell) {
	raw, unit := out.Text, ""
	if c.Unit != "" {
		if u := row.Field(c.Unit); u.State == access.Seen {
			unit = u.Text
		}
	}
	shown := unit
	if s.units[c.Spec.Name] != "" { // the heading of the column already has the unit
		shown = ""
	}
	if text, exact, ok := plan.Figure(c.Spec, raw, unit); ok {
		out.Text, out.Hint = text, exact
		if s.inTable { // in a table, the script of the page adds the exact value of a duration
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
		out.Text = plan.MinusSign + raw[1:]
	}
}

// DrawTags shows the values of an array one by one.
func (c *Cell) DrawTags(tags []string) {
	c.Tags = tags
	if len(tags) == 0 {
		c.Text, c.Tone = "none", "none"
	}
}

// CellContext has the data that all cells of one page need, such as which pages the caller may open.
type CellContext struct {
	q       *Exchange
	Kind    *plan.Kind
	linked  []*plan.Kind    // the kinds whose records the caller may open
	Own     map[string]bool // the set of our own phone numbers that the caller may know
	Filters map[string]string
	Vars    understudy.Query // the values of the path variables in the address of the page
	asOf    AsOf             // the moment that the current page shows
	numbers bool             // whether the caller may open the pages of phone numbers
	notes   bool             // whether the caller may see the notes on records
	Seconds bool
	inTable bool              // whether the cells are in a table, where times are short and the script adds titles
	units   map[string]string // the unit that all rows of a table share, by column
}

// phoneLink returns the address of the number's page. If the text is no phone number, it returns the kind's list
// filtered by the text. It returns "" if the caller may open neither.
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
	return s.asOf.AddTo(s.Kind.Href + plan.WithQuery(append(plan.OwnVars(s.Vars), understudy.Param{Name: name, Value: raw})))
}

// recordLink returns the address of the record whose id the value is. The kind of that record comes from the field's
// link, or from the id's prefix if only one kind uses the prefix.
func (s *CellContext) recordLink(c *plan.Column, row access.Row, raw string) string {
	var found *plan.Kind
	for _, k := range s.linked {
		if c.Spec.RootPath() != "" && c.Spec.Link == k.Spec.Name {
			return s.asOf.AddTo(k.Href + "/" + url.PathEscape(spec.ParseRoot(raw)))
		}
		if len(k.Spec.ID) != 1 {
			continue
		}
		switch {
		case c.IsID && k == s.Kind:
			return s.asOf.AddTo(recordHref(k, row, raw, s.Vars))
		case c.Spec.Link == k.Spec.Name && len(k.PlannedInstances[0].Needs) == 0:
			return s.asOf.AddTo(recordHref(k, row, raw, s.Vars))
		case (c.Spec.Link == "" || c.Spec.Link == spec.AnyKind) && !c.IsID && k.Spec.HasIDPrefix(raw) && plan.IsFormedID(raw):
			if found != nil {
				return SearchAddress("/search", query.SearchRequest{Text: raw})
			}
			found = k
		}
	}
	if found == nil || len(found.PlannedInstances[0].Needs) > 0 {
		return ""
	}
	return s.asOf.AddTo(found.Href + "/" + url.PathEscape(raw))
}

// Tone returns the CSS class for a state. The classes distinguish failed records and records still in progress from others.
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

// Shorten shows only the beginning and the end of an id.
func (c *Cell) Shorten(of *plan.Column) {
	if short := ShortID(c.Text); c.Hint == "" && short != c.Text && (of.Shape == plan.Code || plan.IsFormedID(c.Text)) {
		c.Hint, c.Text, c.Class = c.Text, short, "code"
	}
}

// ShortID returns the beginning and the end of a long id. It returns a short id unchanged.
func ShortID(id string) string {
	r := []rune(id)
	if len(r) <= 16 {
		return id
	}
	return string(r[:6]) + "…" + string(r[len(r)-4:])
}

// DrawSegments notes how many segments an SMS has. It highlights the characters that force the SMS into UCS-2, where
// a segment holds less than half as many characters.
func DrawSegments(out *Cell) {
	s := charset.CountSMS(out.Text)
	out.Note = Thousands(int64(s.Segments)) + " segments, "
	if s.Segments == 1 {
		out.Note = "1 segment, "
	}
	if !s.UCS2 {
		out.Note += Thousands(int64(s.Units)) + " characters (GSM-7)"
		return
	}
	out.Note += Thousands(int64(s.Units)) + " characters (UCS-2), because of "
	for i, o := range s.NonGSM7 {
		if last := len(out.Marks) - 1; last >= 0 && out.Marks[last][1] == o.Start {
			out.Marks[last][1] = o.End // adjacent characters are highlighted together
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
		out.Marks = nil // a text that is mainly in another script would be highlighted as a whole, so nothing is
	}
}
