// Splicing: rows are inserted before the first row of a page.

package slide

import (
	"crypto/sha256"
	"slices"

	"understudy"
	"understudy/kit/jsonspan"
)

// Row is a row of a page with the bytes of its record.
type Row struct {
	Row  understudy.Row
	Body []byte
}

// RowsFrom returns the rows of a page from an index to its end.
func RowsFrom(p *understudy.Page, from int) []Row {
	rows := make([]Row, 0, len(p.Rows)-from)
	for _, r := range p.Rows[from:] {
		rows = append(rows, Row{r, p.Body[r.Start:r.End]})
	}
	return rows
}

// Splice returns a page with additional rows before its own. The array with the rows is the member key of the body, or if key
// is "", the body itself. Such a page is never stored. If the body has no such array, Splice returns the page unchanged.
func Splice(p *understudy.Page, key string, rows []Row) *understudy.Page {
	doc, err := jsonspan.Parse(p.Body)
	if err != nil || len(rows) == 0 {
		return p
	}
	if key != "" {
		doc, _ = jsonspan.Find(p.Body, doc, key)
	}
	if doc.Kind != jsonspan.Array {
		return p
	}
	out := *p
	at := doc.Start + 1
	out.Body = slices.Clone(p.Body[:at])
	out.Rows = make([]understudy.Row, 0, len(rows)+len(p.Rows))
	for i, r := range rows {
		if i > 0 {
			out.Body = append(out.Body, ',')
		}
		r.Row.Start = len(out.Body)
		out.Body = append(out.Body, r.Body...)
		r.Row.End = len(out.Body)
		out.Rows = append(out.Rows, r.Row)
	}
	if len(p.Rows) > 0 {
		out.Body = append(out.Body, ',')
	}
	by := len(out.Body) - at
	for _, r := range p.Rows {
		r.Start, r.End = r.Start+by, r.End+by
		out.Rows = append(out.Rows, r)
	}
	out.Body = append(out.Body, p.Body[at:]...)
	sum := sha256.Sum256(out.Body)
	out.Version, out.NotStored = 0, "it also has rows that moved from the previous page"
	copy(out.Sum[:], sum[:])
	return &out
}
