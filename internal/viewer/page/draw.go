// Draw: cells as HTML, the one place that writes it without a template: a table
// has hundreds of cells, and a template spends four times as long on each. Every
// text goes through escape; links lead to this viewer, or to upstream's documents.

package page

import (
	"html/template"
	"math"
	"strings"
)

// escape writes text so that it stays text, between tags and in quotes.
func escape(b *strings.Builder, text string) {
	if strings.ContainsAny(text, "&<>\"'\x00") {
		template.HTMLEscape(&writer{b}, []byte(text))
		return
	}
	b.WriteString(text)
}

// writer makes an io.Writer of a builder kept by pointer.
type writer struct{ b *strings.Builder }

// Write adds to the text.
func (w *writer) Write(p []byte) (int, error) { return w.b.Write(p) }

// attribute writes name="value", nothing for an empty value.
func attribute(b *strings.Builder, name, value string) {
	if value == "" {
		return
	}
	b.WriteString(" " + name + `="`)
	escape(b, value)
	b.WriteByte('"')
}

// Value is the cell's text with what it leads to and what it says of itself.
func (c Cell) Value() template.HTML {
	var b strings.Builder
	c.draw(&b)
	return template.HTML(b.String()) // escaped by draw
}

func (c *Cell) draw(b *strings.Builder) {
	if c.Play != nil {
		c.Play.draw(b)
		return
	}
	away := strings.HasPrefix(c.Href, "https://")
	linked := away || strings.HasPrefix(c.Href, "/")
	if linked {
		b.WriteString("<a")
		attribute(b, "href", c.Href)
		if away {
			b.WriteString(` rel="noopener noreferrer external"`)
		}
		if c.Stamp == "" && !(c.Hint == c.Copy && c.copiesLink()) {
			attribute(b, "title", c.Hint)
		}
		attribute(b, "aria-label", c.Says)
		b.WriteByte('>')
	}
	if len(c.Tags) > 0 {
		c.listTags(b)
	} else {
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

func (c *Cell) drawText(b *strings.Builder, linked bool) {
	tag := ""
	switch {
	case c.Stamp != "":
		tag = "time"
		b.WriteString("<time")
		attribute(b, "datetime", c.Stamp)
		attribute(b, "title", c.Hint)
		b.WriteByte('>')
	case c.Tone != "":
		tag = "span"
		b.WriteString("<span")
		attribute(b, "class", c.Tone)
		if !linked {
			attribute(b, "title", c.Hint)
		}
		b.WriteByte('>')
	case c.Prose:
		tag = "bdi"
		b.WriteString("<bdi>")
	case c.Hint != "" && !linked && c.Copy == "":
		tag = "span"
		b.WriteString("<span")
		attribute(b, "title", c.Hint)
		b.WriteByte('>')
	}
	EscapeMarked(b, c.Text, c.Marks)
	if tag != "" {
		b.WriteString("</" + tag + ">")
	}
}

// listTags writes the values of an array, one behind the other.
func (c *Cell) listTags(b *strings.Builder) {
	for i, tag := range c.Tags {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(`<span class="pill">`)
		escape(b, tag)
		b.WriteString("</span>")
	}
}

// EscapeMarked writes a text as HTML with places of it, in order, between <mark>.
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

// copiesLink reports whether what the copy button takes is the end of the cell's
// own link: the script reads it there.
func (c *Cell) copiesLink() bool {
	before, ok := strings.CutSuffix(c.Href, c.Copy)
	return ok && c.Copy != "" && strings.HasSuffix(before, "/") && (c.Class == "tel" || c.Class == "code")
}

// speaks reports whether cells of a class are understood without their label, where a row is a card.
func speaks(class string) bool {
	return class == "state" || class == "code" || strings.HasPrefix(class, "dir")
}

// Body is the rows of the table.
func (p *Table) Body() template.HTML {
	var b strings.Builder
	b.Grow(len(p.Rows) * (len(p.Heads)*110 + 64))
	for i := range p.Rows {
		if p.Rows[i].Failed {
			b.WriteString(`<tr class="failed">`)
		} else {
			b.WriteString("<tr>")
		}
		if p.Picks {
			b.WriteString(`<td class="choose">`)
			if r := &p.Rows[i]; r.Pick != "" && len(r.Cells) > 0 {
				b.WriteString(string(PickBox(r.Pick, r.Cells[0].Text)))
			}
			b.WriteString("</td>")
		}
		for j := range p.Rows[i].Cells {
			c := &p.Rows[i].Cells[j]
			b.WriteString("<td")
			attribute(&b, "class", c.Class)
			if j > 0 && !speaks(c.Class) {
				attribute(&b, "data-t", c.Label)
			}
			if !c.copiesLink() {
				attribute(&b, "data-copy", c.Copy)
			}
			b.WriteByte('>')
			c.draw(&b)
			for w := range p.Rows[i].Written {
				if j == 0 {
					b.WriteByte(' ')
					p.Rows[i].Written[w].draw(&b)
				}
			}
			b.WriteString("</td>")
		}
		b.WriteString("</tr>\n")
	}
	return template.HTML(b.String()) // escaped by draw and attribute
}

// PickBox is the box that selects a record; what says which one to screen readers.
func PickBox(pick, what string) template.HTML {
	var b strings.Builder
	b.WriteString(`<input type="checkbox" name="record" form="` + SelectForm + `"`)
	attribute(&b, "value", pick)
	attribute(&b, "aria-label", "Select "+what)
	b.WriteByte('>')
	return template.HTML(b.String()) // escaped by attribute
}

// GridLine is a line across a drawing in a box of 100 by 100, with its number.
type GridLine struct {
	Y    float64
	Text string
}

// Mark is a time under a drawing. Anchor says which end of the text stands at X.
type Mark struct {
	X            float64
	Text, Anchor string
}

// Round rounds a place in a drawing to two digits.
func Round(x float64) float64 { return math.Round(x*100) / 100 }
