// Package xmldoc writes XML 1.0 documents (W3C, fifth edition) to a stream: in
// bounded memory, without allocating, and never out of balance. What an XML
// document cannot hold is replaced or left out, and counted.
//
// Writer writes any document; Update writes a search engine's update document.
package xmldoc

import (
	"errors"
	"fmt"
	"io"
)

// The limits of a document.
const (
	MaxDepth      = 256  // elements within each other
	MaxAttributes = 256  // of one element
	MaxName       = 1000 // bytes of an element's or attribute's name
)

// ErrStructure is the error of calls that cannot become a document: a name
// that is none, an attribute after text, a second root, more than the limits.
var ErrStructure = errors.New("xmldoc: not a document")

// Illegal says what becomes of characters that XML 1.0 cannot hold, not even
// escaped: control characters other than tab, line feed and carriage return,
// U+FFFE, U+FFFF, and each byte that is no UTF-8 (surrogates written as UTF-8
// are three of those).
type Illegal uint8

// What becomes of them.
const (
	Replace Illegal = iota // U+FFFD stands for each
	Drop                   // they are left out
)

// Options are a writer's settings; the zero value is good.
type Options struct {
	// Buffer is how many bytes wait for a write, 4 KiB at least; 0 is 32 KiB.
	// A writer holds at most twice as much, however long a text is.
	Buffer  int
	Illegal Illegal
}

// Writer writes one document. The first error stays: from then on calls do
// nothing, and Flush, End and Err tell of it. Leave the root element to End: a
// document that was broken off then lacks its last end tag, and no parser takes
// it for a whole one. It is for one goroutine at a time.
type Writer struct {
	out     io.Writer // nil: everything stays in buf
	buf     []byte
	limit   int
	illegal Illegal

	open   []string // the elements begun and not ended
	attrs  []string // names in the start tag that is being written
	tag    bool     // a start tag is being written
	begun  bool     // there is a declaration
	rooted bool     // there is a root element
	bad    int64
	err    error
}

// New is a writer to out. Without one (nil) the document stays in memory, of
// whatever size it is, and Bytes gives it.
func New(out io.Writer, o Options) *Writer {
	const usual, least = 32 << 10, 4 << 10
	if o.Buffer == 0 {
		o.Buffer = usual
	}
	w := &Writer{out: out, limit: max(o.Buffer, least), illegal: o.Illegal}
	if out != nil {
		w.buf = make([]byte, 0, 2*w.limit)
	}
	return w
}

// Reset begins a new document to out, with the memory of the one before. What
// was not flushed is forgotten.
func (w *Writer) Reset(out io.Writer) {
	clear(w.open)
	clear(w.attrs)
	*w = Writer{out: out, buf: w.buf[:0], limit: w.limit, illegal: w.illegal, open: w.open[:0], attrs: w.attrs[:0]}
}

// Declare writes the XML declaration, which comes before anything else. A
// document does not need one: UTF-8 is what a parser takes it for.
func (w *Writer) Declare() {
	if w.err != nil {
		return
	}
	if w.begun || w.rooted {
		w.fail("a declaration that is not the beginning")
		return
	}
	w.begun = true
	w.buf = append(w.buf, `<?xml version="1.0" encoding="UTF-8"?>`...)
	w.drain()
}

// Open begins an element. Names are of ASCII letters, digits, "_", "-" and
// ".", not beginning with a digit, "-" or "."; there are no namespaces.
func (w *Writer) Open(name string) {
	switch {
	case w.err != nil:
		return
	case !named(name):
		w.fail("element name %.40q", name)
		return
	case len(w.open) == 0 && w.rooted:
		w.fail("a second root element %s", name)
		return
	case len(w.open) == MaxDepth:
		w.fail("more than %d elements within each other", MaxDepth)
		return
	}
	w.closeTag()
	w.open = append(w.open, name)
	w.attrs = w.attrs[:0]
	w.tag, w.rooted = true, true
	w.buf = append(append(w.buf, '<'), name...)
	w.drain()
}

// Attr adds an attribute to the element just begun. Each name stands once.
func (w *Writer) Attr(name, value string) {
	switch {
	case w.err != nil:
		return
	case !w.tag:
		w.fail("attribute %.40q outside a start tag", name)
		return
	case !named(name):
		w.fail("attribute name %.40q", name)
		return
	case len(w.attrs) == MaxAttributes:
		w.fail("more than %d attributes in %s", MaxAttributes, w.open[len(w.open)-1])
		return
	}
	for _, other := range w.attrs {
		if other == name {
			w.fail("attribute %s twice in %s", name, w.open[len(w.open)-1])
			return
		}
	}
	w.attrs = append(w.attrs, name)
	w.buf = append(append(append(w.buf, ' '), name...), '=', '"')
	w.escape(value, &inAttr)
	w.buf = append(w.buf, '"')
	w.drain()
}

// Text adds text to the innermost element, escaped. It is read back exactly,
// except for what Illegal speaks of.
func (w *Writer) Text(text string) {
	if w.err != nil || text == "" {
		return
	}
	if len(w.open) == 0 {
		w.fail("text outside the root element")
		return
	}
	w.closeTag()
	w.escape(text, &inText)
	w.drain()
}

// Close ends the innermost element.
func (w *Writer) Close() {
	if w.err != nil {
		return
	}
	if len(w.open) == 0 {
		w.fail("no element to end")
		return
	}
	last := len(w.open) - 1
	if w.tag {
		w.tag = false
		w.buf = append(w.buf, '/', '>')
	} else {
		w.buf = append(append(append(w.buf, '<', '/'), w.open[last]...), '>')
	}
	w.open = w.open[:last]
	w.drain()
}

// Element is Open, Text and Close.
func (w *Writer) Element(name, text string) {
	w.Open(name)
	w.Text(text)
	w.Close()
}

// Flush writes out what waits. It does not end a start tag: attributes may
// still follow.
func (w *Writer) Flush() error {
	if w.err == nil && w.out != nil && len(w.buf) > 0 {
		n, err := w.out.Write(w.buf)
		if err == nil && n < len(w.buf) {
			err = io.ErrShortWrite
		}
		if err != nil {
			w.err = fmt.Errorf("xmldoc: write: %w", err)
		}
		w.buf = w.buf[:0]
	}
	return w.err
}

// End ends every element that is open and writes out what waits. A document
// without a root is ErrStructure.
func (w *Writer) End() error {
	for w.err == nil && len(w.open) > 0 {
		w.Close()
	}
	if w.err == nil && !w.rooted {
		w.fail("no root element")
	}
	return w.Flush()
}

// Bytes is what waits to be written: of a writer without a stream all of the
// document so far. It is valid until the next call.
func (w *Writer) Bytes() []byte { return w.buf }

// Illegal is how many characters and bytes were replaced or left out.
func (w *Writer) Illegal() int64 { return w.bad }

// Err is the first error.
func (w *Writer) Err() error { return w.err }

// closeTag ends the start tag that is being written: content follows.
func (w *Writer) closeTag() {
	if w.tag {
		w.tag = false
		w.buf = append(w.buf, '>')
	}
}

// drain writes out what waits once that is enough.
func (w *Writer) drain() {
	if w.out != nil && len(w.buf) >= w.limit {
		_ = w.Flush() // stays in err
	}
}

func (w *Writer) fail(format string, args ...any) {
	w.err = fmt.Errorf("%w: "+format, append([]any{ErrStructure}, args...)...)
}
