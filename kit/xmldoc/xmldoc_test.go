// The writer: structure, escaping, streams, errors; encoding/xml reads it back.

package xmldoc

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"understudy/internal/checktest"
)

func TestDocument(t *testing.T) {
	var out bytes.Buffer
	w := New(&out, Options{})
	w.WriteDeclaration()
	w.Open("a")
	w.AddAttr("x", "1 < 2 & \"3\"\t\n\r")
	w.AddAttr("y.z-0", "")
	w.Open("b")
	w.Close()
	w.WriteText("")
	w.WriteText("]]> <é & 日本 🎉>\n\t\r\"'")
	w.WriteElement("c", "")
	w.WriteElement("c", "x")
	w.Open("d")
	w.WriteText("y")
	if err := w.End(); err != nil {
		t.Fatal(err)
	}
	const want = `<?xml version="1.0" encoding="UTF-8"?><a x="1 &lt; 2 &amp; &quot;3&quot;&#x9;&#xA;&#xD;" y.z-0=""><b/>` +
		"]]&gt; &lt;é &amp; 日本 🎉&gt;\n\t&#xD;\"'<c/><c>x</c><d>y</d></a>"
	if out.String() != want {
		t.Errorf("got  %q\nwant %q", out.String(), want)
	}
	if w.IllegalCount() != 0 {
		t.Errorf("%d illegal", w.IllegalCount())
	}
}

func TestIllegalCharacters(t *testing.T) {
	for _, c := range []struct {
		text, replaced, dropped string
		n                       int64
	}{
		{"a\x00b\x1fc\x7fd", "a\uFFFDb\uFFFDc\x7fd", "abc\x7fd", 2},
		{"\uFFFE\uFFFF\uFFFD\U0001FFFE\uD7FF\uE000", "\uFFFD\uFFFD\uFFFD\U0001FFFE\uD7FF\uE000", "\uFFFD\U0001FFFE\uD7FF\uE000", 2},
		{"\xed\xa0\x80é\xff", "\uFFFD\uFFFD\uFFFDé\uFFFD", "é", 4}, // a surrogate, a stray byte
		{"\xc0\x80\xf4\x90\x80\x80\xe2\x82", strings.Repeat("\uFFFD", 8), "", 8},
	} {
		for illegal, want := range map[IllegalPolicy]string{Replace: c.replaced, Drop: c.dropped} {
			w := New(nil, Options{Illegal: illegal})
			w.Open("a")
			w.AddAttr("b", c.text)
			w.WriteText(c.text)
			if err := w.End(); err != nil {
				t.Fatal(err)
			}
			if got := string(w.Bytes()); got != `<a b="`+want+`">`+want+`</a>` && want != "" || w.IllegalCount() != 2*c.n {
				t.Errorf("%q: %q, %d illegal", c.text, got, w.IllegalCount())
			}
		}
	}
}

// Whatever is called in the wrong place is an error that stays, and nothing is
// written from then on.
func TestMisuse(t *testing.T) {
	for name, do := range map[string]func(w *Writer){
		"end too many":         func(w *Writer) { w.WriteElement("a", ""); w.Close() },
		"second root":          func(w *Writer) { w.WriteElement("a", ""); w.Open("b") },
		"text before root":     func(w *Writer) { w.WriteText(" ") },
		"text after root":      func(w *Writer) { w.WriteElement("a", ""); w.WriteText("x") },
		"late attribute":       func(w *Writer) { w.Open("a"); w.WriteText("x"); w.AddAttr("b", "") },
		"attribute of nothing": func(w *Writer) { w.AddAttr("b", "") },
		"attribute after end":  func(w *Writer) { w.Open("a"); w.Open("b"); w.Close(); w.AddAttr("b", "") },
		"attribute twice":      func(w *Writer) { w.Open("a"); w.AddAttr("b", "1"); w.AddAttr("c", "1"); w.AddAttr("b", "2") },
		"late declaration":     func(w *Writer) { w.Open("a"); w.WriteDeclaration() },
		"second declaration":   func(w *Writer) { w.WriteDeclaration(); w.WriteDeclaration() },
		"no root":              func(w *Writer) { w.WriteDeclaration() },
		"empty name":           func(w *Writer) { w.Open("") },
		"name with a bracket":  func(w *Writer) { w.Open("a><b") },
		"name with a digit":    func(w *Writer) { w.Open("1a") },
		"name with a colon":    func(w *Writer) { w.Open("a:b") },
		"name beyond ASCII":    func(w *Writer) { w.Open("é") },
		"attribute's name":     func(w *Writer) { w.Open("a"); w.AddAttr(`b="" c`, "") },
		"long name":            func(w *Writer) { w.Open(strings.Repeat("a", MaxName+1)) },
		"too deep": func(w *Writer) {
			for range MaxDepth + 1 {
				w.Open("a")
			}
		},
		"too many attributes": func(w *Writer) {
			w.Open("a")
			for i := range MaxAttributes + 1 {
				w.AddAttr(fmt.Sprint("b", i), "")
			}
		},
	} {
		w := New(nil, Options{})
		do(w)
		err := w.End()
		before := string(w.Bytes())
		if !errors.Is(err, ErrStructure) || !errors.Is(w.Err(), ErrStructure) {
			t.Errorf("%s: %v", name, err)
		}
		w.Open("z")
		w.AddAttr("z", "")
		w.WriteText("z")
		w.Close()
		w.WriteDeclaration()
		checktest.Equal(t, w.Flush(), err, "%s: w.Flush()", name)
		checktest.Equal(t, w.End(), err, "%s: w.End()", name)
		checktest.Equal(t, string(w.Bytes()), before, "%s: string(w.Bytes())", name)
	}
}

func TestAtTheLimits(t *testing.T) {
	w := New(nil, Options{})
	for range MaxDepth {
		w.Open(strings.Repeat("a", MaxName))
		for i := range MaxAttributes {
			w.AddAttr(fmt.Sprint("b", i), "")
		}
	}
	if err := w.End(); err != nil {
		t.Error(err)
	}
}

// slow takes a few bytes, then no more.
type slow struct {
	left, writes, largest int
	short                 bool
}

var errFull = errors.New("full")

func (s *slow) Write(p []byte) (int, error) {
	s.writes++
	s.largest = max(s.largest, len(p))
	if s.left -= len(p); s.left >= 0 {
		return len(p), nil
	}
	if s.short {
		return len(p) - 1, nil
	}
	return 0, errFull
}

func TestWriteErrorsStay(t *testing.T) {
	for _, short := range []bool{false, true} {
		out := &slow{left: 10_000, short: short}
		w := New(out, Options{Buffer: 1}) // the least there is
		w.Open("a")
		for range 100 {
			w.WriteText(strings.Repeat("x", 1000))
		}
		err, want := w.End(), errFull
		if short {
			want = io.ErrShortWrite
		}
		if !errors.Is(err, want) || !strings.HasPrefix(err.Error(), "xmldoc: ") {
			t.Errorf("%v, want %v", err, want)
		}
		writes := out.writes
		checktest.Equal(t, w.Flush(), err, "written to: w.Flush()")
		checktest.Equal(t, out.writes, writes, "written to: out.writes")
		checktest.True(t, writes <= 5, "written to: writes is %v, want <= 5", writes)
	}
}

// However long a text and however much escaping makes of it, a writer holds
// twice its buffer at most, and the text is whole.
func TestLongTexts(t *testing.T) {
	for _, part := range []string{`"`, "é", "日", "🎉", "\xff", "a🎉", "\x80\x80\x80\x80\x80"} {
		text := strings.Repeat(part, 100_000/len(part))
		var doc bytes.Buffer
		size := &slow{left: 1 << 30}
		w := New(io.MultiWriter(&doc, size), Options{Buffer: 4096})
		w.Open("a")
		w.AddAttr("b", text)
		w.WriteText(text)
		{
			err := w.End()
			checktest.MustNoError(t, err, "%q", part)
			checktest.Equal(t, cap(w.buf), 2*4096, "%q: cap(w.buf)", part)
			checktest.True(t, size.largest <= 2*4096, "%q: size.largest is %v", part, size.largest)
		}
		var a struct {
			B    string `xml:"b,attr"`
			Text string `xml:",chardata"`
		}
		{
			err := xml.Unmarshal(doc.Bytes(), &a)
			checktest.MustNoError(t, err, "%q", part)
			checktest.Equal(t, a.Text, legal(text, Replace), "%q: a.Text", part)
			checktest.Equal(t, a.B, a.Text, "%q: a.B", part)
		}
	}
}

func TestReset(t *testing.T) {
	var out bytes.Buffer
	w := New(&out, Options{Illegal: Drop})
	w.Open("lost")
	w.AddAttr("b", "\x00")
	w.Close()
	w.Close()
	w.Reset(&out)
	w.Open("a")
	w.AddAttr("b", "\x00")
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	w.AddAttr("c", "2")
	{
		err := w.End()
		checktest.MustNoError(t, err, "%v", err)
		checktest.Equal(t, out.String(), `<a b="" c="2"/>`, "%v: out.String()", err)
		checktest.Equal(t, w.IllegalCount(), 1, "%v: w.IllegalCount()", err)
	}
}

// legal is what is to be read back of a text, found without the tables.
func legal(text string, illegal IllegalPolicy) string {
	var b strings.Builder
	for len(text) > 0 {
		r, n := utf8.DecodeRuneInString(text)
		text = text[n:]
		ok := r == '\t' || r == '\n' || r == '\r' || r >= ' ' && r != 0xFFFE && r != 0xFFFF && (r != utf8.RuneError || n > 1)
		if ok {
			b.WriteRune(r)
		} else if illegal == Replace {
			b.WriteRune(utf8.RuneError)
		}
	}
	return b.String()
}
