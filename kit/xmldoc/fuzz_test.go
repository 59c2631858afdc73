// Any calls whatever: encoding/xml reads the same tree back.

package xmldoc

import (
	"bytes"
	"encoding/xml"
	"io"
	"testing"
	"unicode/utf8"

	"understudy/internal/checktest"
)

// node is an element as it was meant; text stands in kids too, without a name.
type node struct {
	name  string
	attrs [][2]string
	text  string
	kids  []*node
}

// script turns bytes into calls and the tree they mean.
type script struct {
	data    []byte
	w       *Writer
	illegal IllegalPolicy
	open    []*node
	content bool // the innermost element has content
}

func (s *script) take(n int) string {
	n = min(n, len(s.data))
	text := string(s.data[:n])
	s.data = s.data[n:]
	return text
}

func (s *script) number() int {
	if len(s.data) == 0 {
		return 0
	}
	n := int(s.data[0])
	s.data = s.data[1:]
	return n
}

func (s *script) name() string { return "n" + string(rune('a'+s.number()%26)) }

func (s *script) run() *node {
	root := &node{name: "root"}
	s.w.Open("root")
	s.open = []*node{root}
	for len(s.data) > 0 {
		in := s.open[len(s.open)-1]
		switch s.number() % 5 {
		case 0:
			if len(s.open) == MaxDepth {
				return root
			}
			n := &node{name: s.name()}
			s.w.Open(n.name)
			in.kids = append(in.kids, n)
			s.open, s.content = append(s.open, n), false
		case 1:
			if len(s.open) == 1 {
				return root
			}
			s.w.Close()
			s.open, s.content = s.open[:len(s.open)-1], true
		case 2:
			s.attr(in)
		case 3:
			s.text(in, s.take(s.number()))
		case 4: // a long one, cut anywhere
			text := s.take(s.number())
			long := ""
			for len(text) > 0 && len(long) < 2000 {
				long += text
			}
			s.text(in, long)
		}
	}
	return root
}

func (s *script) attr(in *node) {
	name, value := s.name(), s.take(s.number())
	for _, a := range in.attrs {
		if a[0] == name {
			return
		}
	}
	if !s.content {
		s.w.AddAttr(name, value)
		in.attrs = append(in.attrs, [2]string{name, legal(value, s.illegal)})
	}
}

func (s *script) text(in *node, text string) {
	s.w.WriteText(text)
	s.content = s.content || text != ""
	if text = legal(text, s.illegal); text == "" {
		return
	}
	if n := len(in.kids); n > 0 && in.kids[n-1].name == "" {
		in.kids[n-1].text += text
		return
	}
	in.kids = append(in.kids, &node{text: text})
}

// read is the tree a decoder makes of a document.
func read(t *testing.T, doc []byte) *node {
	top := &node{}
	open := []*node{top}
	d := xml.NewDecoder(bytes.NewReader(doc))
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("%v in %q", err, doc)
		}
		in := open[len(open)-1]
		switch token := token.(type) {
		case xml.StartElement:
			n := &node{name: token.Name.Local}
			for _, a := range token.Attr {
				n.attrs = append(n.attrs, [2]string{a.Name.Local, a.Value})
			}
			in.kids, open = append(in.kids, n), append(open, n)
		case xml.EndElement:
			open = open[:len(open)-1]
		case xml.CharData:
			in.kids = append(in.kids, &node{text: string(token)})
		}
	}
	if len(top.kids) != 1 {
		t.Fatalf("%d roots in %q", len(top.kids), doc)
	}
	return top.kids[0]
}

func same(a, b *node) bool {
	if a.name != b.name || a.text != b.text || len(a.attrs) != len(b.attrs) || len(a.kids) != len(b.kids) {
		return false
	}
	for i := range a.attrs {
		if a.attrs[i] != b.attrs[i] {
			return false
		}
	}
	for i := range a.kids {
		if !same(a.kids[i], b.kids[i]) {
			return false
		}
	}
	return true
}

func FuzzWriter(f *testing.F) {
	f.Add([]byte("\x00a\x02b\x04<&>\"\x03\x05hello\x01\x03\x02\r\n"), false)
	f.Add([]byte("\x04\x05a\xf0\x9f\x8e\x89\x03\x03\xed\xa0\x80\x02c\x06\xef\xbf\xbe\x00\x0b\x80"), true)
	f.Add([]byte("\x03\x04]]>\x00\x00\x00\x00\x00\x00\x03\x04\xe2\x82\xac\xff\x01\x01"), false)
	f.Fuzz(func(t *testing.T, data []byte, drop bool) {
		o := Options{Buffer: 1}
		if drop {
			o.Illegal = Drop
		}
		var out bytes.Buffer
		s := &script{data: data, w: New(&out, o), illegal: o.Illegal}
		want := s.run()
		if err := s.w.End(); err != nil {
			t.Fatal(err)
		}
		for rest := out.Bytes(); len(rest) > 0; {
			r, n := utf8.DecodeRune(rest)
			checktest.MustTrue(t, !(r == utf8.RuneError && n == 1),
				"r == utf8.RuneError && n == 1; r is %v, n is %v", r, n)
			checktest.MustTrue(t, r != 0xFFFE, "r is 0xFFFE")
			checktest.MustTrue(t, r != 0xFFFF, "r is 0xFFFF")
			checktest.MustTrue(t, !(r < ' ' && r != '\t' && r != '\n'), `r < ' ' && r != '\t' && r != '\n'; r is %v`,
				r)
			rest = rest[n:]
		}
		if got := read(t, out.Bytes()); !same(got, want) {
			t.Fatalf("read back otherwise: %q", out.Bytes())
		}
	})
}
