// Package xmldoc writes XML 1.0 documents (W3C, fifth edition) to a stream. It uses bounded memory, does not
// allocate, and never writes unbalanced tags. Characters that XML cannot represent are replaced or dropped, and
// counted.
//
// Writer writes any document; Update writes a search engine's update document.
package xmldoc

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
)

// The limits of a document.
const (
	MaxDepth      = 256  // the maximum nesting depth of elements
	MaxAttributes = 256  // the maximum number of attributes of an element
	MaxName       = 1000 // the maximum length in bytes of an element's or attribute's name
)

// ErrStructure is the error of calls that cannot form a document, such as an invalid name, an attribute after
// text, a second root element, or more than the limits allow.
var ErrStructure = errors.New("xmldoc: not a document")

// IllegalPolicy says what happens to characters that XML 1.0 cannot represent, not even escaped. These are
// control characters other than tab, line feed and carriage return, U+FFFE, U+FFFF, and each byte that is not
// UTF-8. (A surrogate written as UTF-8 is three such bytes.)
type IllegalPolicy uint8

// The policies for illegal characters.
const (
	Replace IllegalPolicy = iota // each illegal character is replaced by U+FFFD
	Drop                         // illegal characters are left out
)

// Options are the options of a writer. The zero value is usable.
type Options struct {
	// Buffer is the number of bytes that are collected before a write, at least 4 KiB; 0 means 32 KiB. A writer
	// holds at most twice as many, however long a text is.
	Buffer  int
	Illegal IllegalPolicy
}

// Writer writes one XML document. After the first error all calls do nothing, and Flush, End and Err return that error.
// Let End close the root element: an interrupted document then lacks its last end tag, so that every parser rejects it.
// Writer is not safe for concurrent use.
type Writer struct {
	out     io.Writer // the stream to write to, or nil if the document stays in buf
	buf     []byte
	limit   int
	illegal IllegalPolicy

	open         []string // the names of the open elements
	attrs        []string // the names of the attributes in the current start tag
	inTag        bool     // whether a start tag is being written
	declared     bool     // whether the document has a declaration
	hasRoot      bool     // whether the document has a root element
	illegalCount int64
	err          error
}

// New returns a writer to out. If out is nil, the whole document stays in memory, and Bytes returns it.
func New(out io.Writer, o Options) *Writer {
	const usual, least = 32 << 10, 4 << 10
	o.Buffer = cmp.Or(o.Buffer, usual)
	w := &Writer{out: out, limit: max(o.Buffer, least), illegal: o.Illegal}
	if out != nil {
		w.buf = make([]byte, 0, 2*w.limit)
	}
	return w
}

// Reset begins a new document that is written to out and reuses the memory. Unflushed bytes of the document
// before are dropped.
func (w *Writer) Reset(out io.Writer) {
	clear(w.open)
	clear(w.attrs)
	*w = Writer{out: out, buf: w.buf[:0], limit: w.limit, illegal: w.illegal, open: w.open[:0], attrs: w.attrs[:0]}
}

// WriteDeclaration writes the XML declaration, which must come first. It is optional, because UTF-8 is the
// default of XML.
func (w *Writer) WriteDeclaration() {
	if w.err != nil {
		return
	}
	if w.declared || w.hasRoot {
		w.fail("a declaration that is not the beginning")
		return
	}
	w.declared = true
	w.buf = append(w.buf, `<?xml version="1.0" encoding="UTF-8"?>`...)
	w.drain()
}

// Open begins an element. Names consist of ASCII letters, digits, "_", "-" and ".", and do not begin with a
// digit, "-" or ".". There are no namespaces.
func (w *Writer) Open(name string) {
	switch {
	case w.err != nil:
		return
	case !isValidName(name):
		w.fail("element name %.40q", name)
		return
	case len(w.open) == 0 && w.hasRoot:
		w.fail("a second root element %s", name)
		return
	case len(w.open) == MaxDepth:
		w.fail("more than %d elements within each other", MaxDepth)
		return
	}
	w.closeTag()
	w.open = append(w.open, name)
	w.attrs = w.attrs[:0]
	w.inTag, w.hasRoot = true, true
	w.buf = append(append(w.buf, '<'), name...)
	w.drain()
}

// AddAttr adds an attribute to the element that was just opened. A name may occur only once.
func (w *Writer) AddAttr(name, value string) {
	switch {
	case w.err != nil:
		return
	case !w.inTag:
		w.fail("attribute %.40q outside a start tag", name)
		return
	case !isValidName(name):
		w.fail("attribute name %.40q", name)
		return
	case len(w.attrs) == MaxAttributes:
		w.fail("more than %d attributes in %s", MaxAttributes, w.open[len(w.open)-1])
		return
	}
	if slices.Contains(w.attrs, name) {
		w.fail("attribute %s twice in %s", name, w.open[len(w.open)-1])
		return
	}
	w.attrs = append(w.attrs, name)
	w.buf = append(append(append(w.buf, ' '), name...), '=', '"')
	w.escape(value, &inAttr)
	w.buf = append(w.buf, '"')
	w.drain()
}

// WriteText adds escaped text to the innermost element. A parser reads back the same text, except for illegal
// characters (see IllegalPolicy).
func (w *Writer) WriteText(text string) {
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
	if w.inTag {
		w.inTag = false
		w.buf = append(w.buf, '/', '>')
	} else {
		w.buf = append(append(append(w.buf, '<', '/'), w.open[last]...), '>')
	}
	w.open = w.open[:last]
	w.drain()
}

// WriteElement writes a complete element: Open, WriteText and Close.
func (w *Writer) WriteElement(name, text string) {
	w.Open(name)
	w.WriteText(text)
	w.Close()
}

// Flush writes the buffered bytes to the stream. It does not end a start tag: attributes may still follow.
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

// End ends all open elements and flushes. For a document without a root element the error is ErrStructure.
func (w *Writer) End() error {
	for w.err == nil && len(w.open) > 0 {
		w.Close()
	}
	if w.err == nil && !w.hasRoot {
		w.fail("no root element")
	}
	return w.Flush()
}

// Bytes returns the bytes that are not yet written. For a writer without a stream that is the whole document so
// far. The slice is valid until the next call.
func (w *Writer) Bytes() []byte { return w.buf }

// IllegalCount returns how many characters and bytes were replaced or dropped.
func (w *Writer) IllegalCount() int64 { return w.illegalCount }

// Err returns the first error.
func (w *Writer) Err() error { return w.err }

// closeTag ends the start tag that is being written, because content follows.
func (w *Writer) closeTag() {
	if w.inTag {
		w.inTag = false
		w.buf = append(w.buf, '>')
	}
}

// drain flushes if enough bytes are buffered.
func (w *Writer) drain() {
	if w.out != nil && len(w.buf) >= w.limit {
		_ = w.Flush() // Flush stores its error in w.err
	}
}

func (w *Writer) fail(format string, args ...any) {
	w.err = fmt.Errorf("%w: "+format, append([]any{ErrStructure}, args...)...)
}
