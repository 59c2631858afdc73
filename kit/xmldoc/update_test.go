// Update documents: their form, their memory, and what they cost beside
// encoding/xml.

package xmldoc

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

func TestUpdate(t *testing.T) {
	var out bytes.Buffer
	u := NewUpdate(&out, Options{})
	u.BeginDoc()
	u.AddField("id", "CA1")
	u.AddField("body", "1 < 2 & \x00")
	u.AddField("to", "+1")
	u.AddField("to", "+2")
	u.BeginDoc()
	u.BeginDoc()
	u.AddField("id", "CA2")
	if err := u.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := xml.Unmarshal(out.Bytes(), new(struct{})); err == nil {
		t.Error("a document that was broken off is taken for a whole one")
	}
	if err := u.End(); err != nil {
		t.Fatal(err)
	}
	const want = `<?xml version="1.0" encoding="UTF-8"?><add><doc><field name="id">CA1</field>` +
		`<field name="body">1 &lt; 2 &amp; ` + "\uFFFD" + `</field><field name="to">+1</field><field name="to">+2</field></doc>` +
		`<doc/><doc><field name="id">CA2</field></doc></add>`
	if out.String() != want || u.IllegalCount() != 1 {
		t.Errorf("%d illegal, got\n%s\nwant\n%s", u.IllegalCount(), out.String(), want)
	}
	out.Reset()
	u.Reset(&out)
	if err := u.End(); err != nil || out.String() != `<?xml version="1.0" encoding="UTF-8"?><add/>` {
		t.Errorf("%v: %s", err, out.String())
	}
}

func TestFieldOutsideADocument(t *testing.T) {
	u := NewUpdate(nil, Options{})
	u.AddField("id", "1")
	if !errors.Is(u.Err(), ErrStructure) || !errors.Is(u.End(), ErrStructure) {
		t.Error(u.Err())
	}
	u.Reset(nil)
	if u.BeginDoc(); u.End() != nil {
		t.Error(u.Err())
	}
	if u.BeginDoc(); !errors.Is(u.End(), ErrStructure) {
		t.Errorf("a document after the end: %s", u.Bytes())
	}
}

// hundred is a document of 100 fields, as encoding/xml marshals one.
type hundred struct {
	XMLName xml.Name `xml:"add"`
	Fields  []one    `xml:"doc>field"`
}

type one struct {
	Name  string `xml:"name,attr"`
	Value string `xml:",chardata"`
}

func hundredFields() (h hundred) {
	values := []string{"CA0123456789abcdef0123456789abcdef", "completed", "+13055550123", "Mon, 01 Jun 2026 12:00:00 +0000",
		"Tom & Jerry <tom@example.com> sagten: schöne Grüße", ""}
	for i := range 100 {
		h.Fields = append(h.Fields, one{fmt.Sprintf("field_%d", i), values[i%len(values)]})
	}
	return h
}

func (h *hundred) write(u *Update) {
	u.BeginDoc()
	for i := range h.Fields {
		u.AddField(h.Fields[i].Name, h.Fields[i].Value)
	}
}

// Both write what a decoder reads as the same.
func TestBesideEncodingXML(t *testing.T) {
	h := hundredFields()
	theirs, err := xml.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	u := NewUpdate(nil, Options{})
	h.write(u)
	if err := u.End(); err != nil {
		t.Fatal(err)
	}
	if !same(read(t, theirs), read(t, bytes.TrimPrefix(u.Bytes(), []byte(`<?xml version="1.0" encoding="UTF-8"?>`)))) {
		t.Errorf("ours\n%s\ntheirs\n%s", u.Bytes(), theirs)
	}
}

func TestNothingIsAllocated(t *testing.T) {
	h := hundredFields()
	u := NewUpdate(nil, Options{})
	document := func() {
		u.Reset(nil)
		h.write(u)
		if err := u.End(); err != nil {
			t.Fatal(err)
		}
	}
	document()
	if n := testing.AllocsPerRun(100, document); n != 0 {
		t.Errorf("%v allocations a document", n)
	}
}

// counter counts what it is given and forgets it.
type counter struct{ bytes int }

func (c *counter) Write(p []byte) (int, error) { c.bytes += len(p); return len(p), nil }

func live() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestTenThousandDocumentsInLittleMemory(t *testing.T) {
	const most = 1 << 20
	h, out := hundredFields(), &counter{}
	before := live()
	u := NewUpdate(out, Options{})
	for i := range 10_000 {
		h.write(u)
		if i == 5000 {
			u.AddField("body", strings.Repeat("<long> & wide 日本 ", 1<<16)) // 1.3 MB in one field
		}
		if i%1000 == 999 {
			if held := live() - before; held >= most {
				t.Fatalf("after %d documents %d bytes are held", i+1, held)
			}
		}
	}
	if err := u.End(); err != nil {
		t.Fatal(err)
	}
	if out.bytes < 50<<20 {
		t.Errorf("only %d bytes were written", out.bytes)
	}
	t.Logf("%d MiB written", out.bytes>>20)
}

func BenchmarkHundredFields(b *testing.B) {
	h := hundredFields()
	u := NewUpdate(nil, Options{})
	b.ReportAllocs()
	for b.Loop() {
		u.Reset(nil)
		h.write(u)
		if err := u.End(); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(int64(len(u.Bytes())))
}

func BenchmarkHundredFieldsEncodingXML(b *testing.B) {
	h := hundredFields()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := xml.Marshal(&h); err != nil {
			b.Fatal(err)
		}
	}
}
