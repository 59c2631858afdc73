// HTML of cells and tables, written without templates, because a template takes four times as long for each cell and
// a table has hundreds. Every text is escaped. Links lead only to this viewer or to upstream's documentation.

package page

import (
	"html/template"
	"math"
	"strings"
)

// escape writes a text escaped for use between tags and in quoted attributes.
func escape(b *strings.Builder, text string) {
	if strings.ContainsAny(text, "&<>\"'\x00") {
		template.HTMLEscape(&builderWriter{b}, []byte(text))
		return
	}
	b.WriteString(text)
}

// builderWriter is an io.Writer that appends to a strings.Builder.
type builderWriter struct{ b *strings.Builder }

// Write appends p to the text.
func (w *builderWriter) Write(p []byte) (int, error) { return w.b.Write(p) }

// writeAttribute writes name="value", or nothing if the value is empty.
func writeAttribute(b *strings.Builder, name, value string) {
	if value == "" {
		return
	}
	b.WriteString(" " + name + `="`)
	escape(b, value)
	b.WriteByte('"')
}

// Value returns the HTML of the cell's text, with its link, unit and note.
func (c Cell) Value() template.HTML {
	var b strings.Builder
	c.draw(&b)
	return template.HTML(b.String()) // this is safe HTML, because draw escapes all texts
}

// draw writes the HTML of the cell: its content with a link, then its unit and note.
func (c *Cell) draw(b *strings.Builder) {
	if c.Play != nil {
		c.Play.draw(b)
		return
	}
	away := strings.HasPrefix(c.Href, "https://")
	linked := away || strings.HasPrefix(c.Href, "/")
	if linked {
		b.WriteString("<a")
		writeAttribute(b, "href", c.Href)
		if away {
			b.WriteString(` rel="noopener noreferrer external"`)
		}
		if c.Stamp == "" && !(c.Hint == c.Copy && c.isCopyInLink()) {
			writeAttribute(b, "title", c.Hint)
		}
		writeAttribute(b, "aria-label", c.LinkLabel)
		b.WriteByte('>')
	}
	for i, tag := range c.Tags {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(`<span class="pill">`)
		escape(b, tag)
		b.WriteString("</span>")
	}
	if len(c.Tags) == 0 {
		c.drawText(b, linked)
	}
	if linked {
		b.WriteString("</a>")
	}
	if c.Unit != "" {
		b.WriteString(" <small>")
		escape(b, c.Unit)
		b.WriteString("</small>")
	}
	if c.Note != "" {
		b.WriteString(` <span class="note">`)
		escape(b, c.Note)
		b.WriteString("</span>")
	}
	if c.Own {
		b.WriteString(` <span class="own">own</span>`)
	}
}

// drawText writes the text of the cell in the element that its type requires, such as <time>.
func (c *Cell) drawText(b *strings.Builder, linked bool) {
	tag := ""
	switch {
	case c.Stamp != "":
		tag = "time"
		b.WriteString("<time")
		writeAttribute(b, "datetime", c.Stamp)
		writeAttribute(b, "title", c.Hint)
		b.WriteByte('>')
	case c.Tone != "":
		tag = "span"
		b.WriteString("<span")
		writeAttribute(b, "class", c.Tone)
		if !linked {
			writeAttribute(b, "title", c.Hint)
		}
		b.WriteByte('>')
	case c.Prose:
		tag = "bdi"
		b.WriteString("<bdi>")
	case c.Hint != "" && !linked && c.Copy == "":
		tag = "span"
		b.WriteString("<span")
		writeAttribute(b, "title", c.Hint)
		b.WriteByte('>')
	}
	EscapeMarked(b, c.Text, c.Marks)
	if tag != "" {
		b.WriteString("</" + tag + ">")
	}
}

// EscapeMarked writes a text as HTML. It encloses the byte ranges in marks, which must be in order, by <mark> tags.
func EscapeMarked(b *strings.Builder, text string, marks [][2]int) {
	from := 0
	for _, m := range marks {
		if m[0] < from || m[1] < m[0] || m[1] > len(text) {
			continue
		}
		escape(b, text[from:m[0]])
		b.WriteString("<mark>")
		escape(b, text[m[0]:m[1]])
		b.WriteString("</mark>")
		from = m[1]
	}
	escape(b, text[from:])
}

// isCopyInLink reports whether the text for the copy button is the end of the cell's link. The script of the page
// then takes the text from the link.
func (c *Cell) isCopyInLink() bool {
	before, ok := strings.CutSuffix(c.Href, c.Copy)
	return ok && c.Copy != "" && strings.HasSuffix(before, "/") && (c.Class == "tel" || c.Class == "code")
}

// isSelfExplanatory reports whether cells of a CSS class are understood without a label. On small screens each row is
// a card, and such cells have no label.
func isSelfExplanatory(class string) bool {
	return class == "state" || class == "code" || strings.HasPrefix(class, "dir")
}

// Body returns the HTML of the table's rows.
func (p *Table) Body() template.HTML {
	var b strings.Builder
	b.Grow(len(p.Rows) * (len(p.Heads)*110 + 64))
	for i := range p.Rows {
		if p.Rows[i].Failed {
			b.WriteString(`<tr class="failed">`)
		} else {
			b.WriteString("<tr>")
		}
		if p.HasSelection {
			b.WriteString(`<td class="choose">`)
			if r := &p.Rows[i]; r.SelectName != "" && len(r.Cells) > 0 {
				b.WriteString(string(SelectBox(r.SelectName, r.Cells[0].Text)))
			}
			b.WriteString("</td>")
		}
		for j := range p.Rows[i].Cells {
			c := &p.Rows[i].Cells[j]
			b.WriteString("<td")
			writeAttribute(&b, "class", c.Class)
			if j > 0 && !isSelfExplanatory(c.Class) {
				writeAttribute(&b, "data-t", c.Label)
			}
			if !c.isCopyInLink() {
				writeAttribute(&b, "data-copy", c.Copy)
			}
			b.WriteByte('>')
			c.draw(&b)
			for w := range p.Rows[i].NoteTags {
				if j == 0 {
					b.WriteByte(' ')
					p.Rows[i].NoteTags[w].draw(&b)
				}
			}
			b.WriteString("</td>")
		}
		b.WriteString("</tr>\n")
	}
	return template.HTML(b.String()) // this is safe HTML, because draw and writeAttribute escape all texts
}

// SelectBox returns the check box that selects the record pick. Screen readers call the record what.
func SelectBox(pick, what string) template.HTML {
	var b strings.Builder
	b.WriteString(`<input type="checkbox" name="record" form="` + SelectForm + `"`)
	writeAttribute(&b, "value", pick)
	writeAttribute(&b, "aria-label", "Select "+what)
	b.WriteByte('>')
	return template.HTML(b.String()) // this is safe HTML, because writeAttribute escapes the texts
}

// GridLine is a horizontal line with its number, in a chart of 100 by 100 units.
type GridLine struct {
	Y    float64
	Text string
}

// Mark is the label of a time below a chart. Anchor says whether the text begins, ends or has its middle at X.
type Mark struct {
	X            float64
	Text, Anchor string
}

// RoundCoordinate rounds a coordinate of a chart to two decimal places.
func RoundCoordinate(x float64) float64 { return math.Round(x*100) / 100 }
