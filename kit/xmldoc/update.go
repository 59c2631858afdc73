// Update: the update document of a search engine, one document after another.

package xmldoc

import "io"

// Update writes documents to be added to a search index, in the form that
// Apache Solr's update handler reads ("Indexing with Update Handlers: XML
// Formatted Index Updates" in its reference guide):
//
//	<add><doc><field name="id">CA…</field>…</doc>…</add>
//
// Nothing of a document is kept but what waits to be written, so any number of
// them, of any size, takes the same memory. Errors stay, as those of Writer.
type Update struct {
	w     *Writer
	inDoc bool
}

// NewUpdate begins an update document to out.
func NewUpdate(out io.Writer, o Options) *Update {
	u := &Update{w: New(out, o)}
	u.begin()
	return u
}

// Reset begins another one with the memory of this one.
func (u *Update) Reset(out io.Writer) {
	u.w.Reset(out)
	u.begin()
}

func (u *Update) begin() {
	u.inDoc = false
	u.w.Declare()
	u.w.Open("add")
}

// Doc begins a document and ends the one before.
func (u *Update) Doc() {
	u.endDoc()
	u.w.Open("doc")
	u.inDoc = true
}

// Field adds a field to the document begun; a name that comes again is a field
// with several values. Before the first Doc it is ErrStructure.
func (u *Update) Field(name, value string) {
	if !u.inDoc && u.w.err == nil {
		u.w.fail("field %.40q outside a document", name)
	}
	u.w.Open("field")
	u.w.Attr("name", name)
	u.w.Text(value)
	u.w.Close()
}

// Flush writes out what waits.
func (u *Update) Flush() error { return u.w.Flush() }

// End ends the update document. Without it a reader finds it broken off and
// adds nothing more.
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

// Bytes is what waits to be written; see Writer.
func (u *Update) Bytes() []byte { return u.w.Bytes() }

// Illegal is how many characters and bytes were replaced or left out.
func (u *Update) Illegal() int64 { return u.w.Illegal() }

// Err is the first error.
func (u *Update) Err() error { return u.w.Err() }
