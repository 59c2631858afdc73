// Update: writes the update document of a search engine.

package xmldoc

import "io"

// Update writes documents for a search index, in the format of Apache Solr's update handler ("Indexing with
// Update Handlers: XML Formatted Index Updates" in its reference guide):
//
//	<add><doc><field name="id">CA…</field>…</doc>…</add>
//
// It keeps only the bytes that wait to be written, so its memory does not depend on the number or the size of
// documents. As in Writer, the first error stays.
type Update struct {
	w     *Writer
	inDoc bool
}

// NewUpdate begins an update document that is written to out.
func NewUpdate(out io.Writer, o Options) *Update {
	u := &Update{w: New(out, o)}
	u.writeStart()
	return u
}

// Reset begins a new update document and reuses the memory of u.
func (u *Update) Reset(out io.Writer) {
	u.w.Reset(out)
	u.writeStart()
}

func (u *Update) writeStart() {
	u.inDoc = false
	u.w.WriteDeclaration()
	u.w.Open("add")
}

// BeginDoc begins a document and ends the document before.
func (u *Update) BeginDoc() {
	u.endDoc()
	u.w.Open("doc")
	u.inDoc = true
}

// AddField adds a field to the current document. A name may be repeated for a field with several values. Before
// the first BeginDoc the error is ErrStructure.
func (u *Update) AddField(name, value string) {
	if !u.inDoc && u.w.err == nil {
		u.w.fail("field %.40q outside a document", name)
	}
	u.w.Open("field")
	u.w.AddAttr("name", name)
	u.w.WriteText(value)
	u.w.Close()
}

// Flush writes the buffered bytes to the stream.
func (u *Update) Flush() error { return u.w.Flush() }

// End ends the update document. Without End the document is incomplete, and a reader rejects it.
func (u *Update) End() error {
	u.endDoc()
	return u.w.End()
}

func (u *Update) endDoc() {
	if u.inDoc {
		u.inDoc = false
		u.w.Close()
	}
}

// Bytes returns the bytes that are not yet written; see Writer.Bytes.
func (u *Update) Bytes() []byte { return u.w.Bytes() }

// IllegalCount returns how many characters and bytes were replaced or dropped.
func (u *Update) IllegalCount() int64 { return u.w.IllegalCount() }

// Err returns the first error.
func (u *Update) Err() error { return u.w.Err() }
