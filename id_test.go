// IDs: every form there and back, exactly, in every sort and without one.

package understudy

import (
	"bytes"
	"encoding"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"understudy/internal/checktest"
)

type (
	call struct{}
	note struct{}
	uuid struct{}
)

func (call) Prefix() string { return "CA" }
func (note) Prefix() string { return "note_" }
func (uuid) Prefix() string { return "" }

var (
	_ encoding.TextAppender      = ID[call]{}
	_ encoding.BinaryAppender    = ID[call]{}
	_ encoding.TextMarshaler     = ID[call]{}
	_ encoding.BinaryMarshaler   = ID[call]{}
	_ encoding.TextUnmarshaler   = (*ID[call])(nil)
	_ encoding.BinaryUnmarshaler = (*ID[call])(nil)
	_ encoding.TextAppender      = AnyID{}
	_ encoding.BinaryAppender    = AnyID{}
	_ encoding.TextMarshaler     = AnyID{}
	_ encoding.BinaryMarshaler   = AnyID{}
	_ encoding.TextUnmarshaler   = (*AnyID)(nil)
	_ encoding.BinaryUnmarshaler = (*AnyID)(nil)
)

// The seed vector: a UUID, its 22 characters, its 32 hex digits.
const (
	seedUUID  = "ad91e02b-a147-4c47-aa8c-1f3c2240c0df"
	seedShort = "rZHgK6FHTEeqjB88IkDA3w"
	seedHex   = "ad91e02ba1474c47aa8c1f3c2240c0df"
)

func TestSeedVector(t *testing.T) {
	var id ID[uuid]
	if err := id.Scan(seedUUID); err != nil {
		t.Fatal(err)
	}
	if id.ShortString() != seedShort || id.String() != seedHex {
		t.Errorf("%s %s", id.ShortString(), id)
	}
	for _, text := range []string{seedShort, seedHex} {
		if got, ok := ParseID[uuid](text); !ok || got != id {
			t.Errorf("%s is read as %v %v", text, got, ok)
		}
	}
	{
		got, ok := ParseID[call]("CA" + seedShort)
		checktest.MustTrue(t, ok, "ok is false; got %v", got)
		checktest.Equal(t, got.String(), "CA"+seedHex, "got.String()")
		checktest.Equal(t, got.ShortString(), "CA"+seedShort, "got.ShortString()")
	}
}

// A text names one id, and an id has one text of either form: the 15 others
// that decode to the same bytes are refused.
func TestAliasesAreRefused(t *testing.T) {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	read := 0
	for _, c := range alphabet {
		text := seedShort[:21] + string(c)
		if id, ok := ParseID[uuid](text); ok {
			if read++; id.ShortString() != text {
				t.Errorf("%s is read as %s", text, id.ShortString())
			}
		}
	}
	if read != 4 { // the last character holds two bits
		t.Errorf("%d of 64 last characters are read, want 4", read)
	}
	last := strings.IndexByte(alphabet, seedShort[21])
	for i := 1; i < 16; i++ {
		if alias := seedShort[:21] + alphabet[last&^15+(last+i)&15:][:1]; alias != seedShort {
			if _, ok := ParseID[uuid](alias); ok {
				t.Errorf("%s is read", alias)
			}
		}
	}
}

func TestParseID(t *testing.T) {
	for _, text := range []string{
		"", "note_", seedHex, seedShort, "CA" + seedHex, "note_" + strings.ToUpper(seedHex), "note_" + seedHex[1:], "note_" + seedHex + "0",
		"Note_" + seedHex,
		"note_" + seedUUID, "note_" + seedShort + "=", "note_" + seedShort[:20] + "\r\n", "note_" + seedShort[:21] + "\n", "note_\n" +
			seedShort[:21],
		"note_" + strings.ReplaceAll(seedShort, "r", "+"), "note_" + seedHex[:31] + "é", " note_" + seedHex,
	} {
		if id, ok := ParseID[note](text); ok || id != (ID[note]{}) {
			t.Errorf("%q is taken for %v", text, id)
		}
		id := ID[note]{Raw: [16]byte{1}}
		if err := id.UnmarshalText([]byte(text)); !errors.Is(err, ErrInvalid) || id.Raw[0] != 1 {
			t.Errorf("%q: %v, the id is now %v", text, err, id)
		}
	}
}

func TestParseAnyID(t *testing.T) {
	const text = "CA0123456789abcdef0123456789abcdef"
	id, ok := ParseAnyID(text)
	checktest.MustTrue(t, ok, "ok is false")
	checktest.MustEqual(t, id.String(), text, "id.String()")
	checktest.MustEqual(t, id.Prefix, [2]byte{'C', 'A'}, "id.Prefix")
	checktest.MustEqual(t, id.Raw[0], 0x01, "id.Raw[0]")
	checktest.MustEqual(t, id.Raw[15], 0xef, "id.Raw[15]")
	for _, other := range []string{
		"CA", text[:33], text + "0", strings.ToUpper(text), "C1" + text[2:], "1A" + text[2:], text[:33] + "g", text[:33] + "F", "é" + text[2:],
		text[:33] + "-", "CA" + seedShort[:20] + "\r\n",
	} {
		if id, ok := ParseAnyID(other); ok || id != (AnyID{}) {
			t.Errorf("%q is taken for %v", other, id)
		}
		if err := new(AnyID).UnmarshalText([]byte(other)); !errors.Is(err, ErrInvalid) {
			t.Errorf("%q: %v", other, err)
		}
	}
	if _, ok := ParseAnyID("CA" + seedShort); ok {
		t.Error("ParseAnyID does not give back what it read")
	}
	var read AnyID
	if err := read.UnmarshalText([]byte("CA" + seedShort)); err != nil || read.String() != "CA"+seedHex {
		t.Errorf("%v %v", read, err)
	}
}

func TestZeroIDs(t *testing.T) {
	var id ID[call]
	checktest.True(t, id.IsZero(), "id.IsZero() is false")
	checktest.Equal(t, id.String(), "CA"+strings.Repeat("0", 32), "id.String()")
	checktest.True(t, !(ID[call]{Raw: [16]byte{15: 1}}).IsZero(),
		"(ID[call]{Raw: [16]byte{15: 1}}).IsZero() is true")
	var none AnyID
	text, _ := json.Marshal(none)
	data, _ := none.MarshalBinary()
	checktest.True(t, none.IsZero(), "none.IsZero() is false; text %s", text)
	checktest.Equal(t, none.String(), "", "none.String(); text %s", text)
	checktest.Equal(t, string(text), `""`, "string(text)")
	checktest.Equal(t, len(data), AnyIDSize, "len(data); text %s", text)
	read := AnyID{Prefix: [2]byte{'C', 'A'}}
	checktest.True(t, !read.IsZero(), "read.IsZero() is true")
	checktest.MustTrue(t, json.Unmarshal(text, &read) == nil, "json.Unmarshal(text, &read) is %v",
		json.Unmarshal(text, &read))
	checktest.True(t, read.IsZero(), "read.IsZero() is false")
	checktest.MustTrue(t, read.UnmarshalBinary(data) == nil, "read.UnmarshalBinary(data) != nil")
	checktest.True(t, read.IsZero(), "read.IsZero() is false")
}

func TestIDsInJSON(t *testing.T) {
	type both struct {
		ID   ID[note]            `json:"id"`
		None *ID[note]           `json:"none"`
		Zero ID[note]            `json:"zero,omitzero"`
		Any  AnyID               `json:"any"`
		By   map[ID[call]]string `json:"by"`
	}
	id, _ := ParseID[note]("note_" + seedHex)
	one, _ := ParseAnyID("SM" + seedHex)
	in := both{ID: id, Any: one, By: map[ID[call]]string{{Raw: id.Raw}: "x"}}
	text, err := json.Marshal(in)
	if want := fmt.Sprintf(`{"id":"note_%s","none":null,"any":"SM%[1]s","by":{"CA%[1]s":"x"}}`, seedHex); err != nil || string(text) != want {
		t.Fatalf("%v: %s, want %s", err, text, want)
	}
	for _, text := range []string{string(text), strings.ReplaceAll(string(text), seedHex, seedShort)} {
		var out both
		{
			err := json.Unmarshal([]byte(text), &out)
			checktest.MustNoError(t, err, "%s; out %+v", text, out)
			checktest.Equal(t, out.ID, id, "%s: out.ID", text)
			checktest.Equal(t, out.Any, one, "%s: out.Any", text)
			checktest.MustTrue(t, out.None == nil, "%s: out.None is %v", text, out.None)
			checktest.Equal(t, out.By[ID[call]{Raw: id.Raw}], "x", "%s: out.By[ID[call]{Raw: id.Raw}]", text)
		}
	}
	for _, text := range []string{`{"id":"CA` + seedHex + `"}`, `{"id":1}`, `{"any":"CA"}`} {
		if err := json.Unmarshal([]byte(text), new(both)); err == nil {
			t.Errorf("%s is read", text)
		}
	}
}

func TestBinaryIDs(t *testing.T) {
	raw, _ := hex.DecodeString(seedHex)
	var id ID[call]
	var one AnyID
	if err := errors.Join(id.UnmarshalBinary(raw), one.UnmarshalBinary(append([]byte("CA"), raw...))); err != nil {
		t.Fatal(err)
	}
	a, _ := id.MarshalBinary()
	b, _ := one.MarshalBinary()
	checktest.True(t, bytes.Equal(a, raw), "a is %q, want %q", a, raw)
	checktest.Equal(t, string(b), "CA"+string(raw), "string(b)")
	checktest.Equal(t, id.String(), one.String(), "id.String()")
	for _, bad := range [][]byte{nil, raw[:15], append(raw[:16:16], 0), append([]byte("C1"), raw...), append([]byte("\x00\x00"), raw...),
		make([]byte, 19)} {
		if err := one.UnmarshalBinary(bad); !errors.Is(err, ErrInvalid) {
			t.Errorf("%x: %v", bad, err)
		}
		if err := id.UnmarshalBinary(bad); !errors.Is(err, ErrInvalid) {
			t.Errorf("%x: %v", bad, err)
		}
	}
}

func TestIDsInOrder(t *testing.T) {
	texts := []string{"AA" + seedHex, "CA" + strings.Repeat("0", 32), "CA" + seedHex, "CA" + strings.Repeat("f", 32), "ca" + seedHex}
	var all []AnyID
	var calls []ID[call]
	for _, i := range []int{2, 4, 0, 3, 1} {
		one, _ := ParseAnyID(texts[i])
		all = append(all, one)
		if id, ok := ParseID[call](texts[i]); ok {
			calls = append(calls, id)
		}
	}
	slices.SortFunc(all, AnyID.Compare)
	slices.SortFunc(calls, ID[call].Compare)
	if fmt.Sprint(all) != fmt.Sprint(texts) || fmt.Sprint(calls) != fmt.Sprint(texts[1:4]) {
		t.Errorf("%v %v", all, calls)
	}
}

func TestIDsAllocateNothing(t *testing.T) {
	buf := make([]byte, 0, 64)
	const text, short, other = "CA" + seedHex, "CA" + seedShort, "note_" + seedHex
	for name, do := range map[string]func(){
		"any":   func() { id, _ := ParseAnyID(text); buf, _ = id.AppendText(buf[:0]); buf, _ = id.AppendBinary(buf) },
		"text":  func() { id, _ := ParseID[note](other); buf, _ = id.AppendText(buf[:0]); buf, _ = id.AppendBinary(buf) },
		"short": func() { id, _ := ParseID[call](short); buf = id.AppendShort(buf[:0]) },
		"wrong": func() { _, _ = ParseID[call](text + "0"); _, _ = ParseID[uuid](seedShort[:21] + "x") },
	} {
		if n := testing.AllocsPerRun(100, do); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
	id, _ := ParseID[note](other)
	var kept [2]string
	if n := testing.AllocsPerRun(100, func() { kept[0], kept[1] = id.String(), id.ShortString() }); n > 2 {
		t.Errorf("String and Short: %v allocations for %v", n, kept)
	}
}

func FuzzParseID(f *testing.F) {
	f.Add("CA0123456789abcdef0123456789abcdef")
	f.Add("xy0123456789ABCDEF0123456789abcdef")
	f.Add("")
	for _, prefix := range []string{"", "CA", "note_"} {
		f.Add(prefix + seedHex)
		f.Add(prefix + seedShort)
		f.Add(prefix + seedShort[:21] + "x")
	}
	f.Fuzz(func(t *testing.T, text string) {
		if id, ok := ParseAnyID(text); ok && id.String() != text {
			t.Fatalf("%q comes back as %q", text, id)
		}
		exact[call](t, text)
		exact[note](t, text)
		exact[uuid](t, text)
	})
}

// exact: whatever is read is written again as it was, and through every form.
func exact[S IDKind](t *testing.T, text string) {
	id, ok := ParseID[S](text)
	if !ok {
		return
	}
	if id.String() != text && id.ShortString() != text {
		t.Fatalf("%q comes back as %q and %q", text, id, id.ShortString())
	}
	data, _ := id.MarshalBinary()
	var b, c, d, e ID[S]
	err := errors.Join(b.UnmarshalBinary(data), c.UnmarshalText([]byte(id.ShortString())), d.Scan(id.String()), e.Scan(data))
	checktest.MustNoError(t, err, "%q", text)
	checktest.MustEqual(t, b, id, "%q: b", text)
	checktest.MustEqual(t, c, id, "%q: c", text)
	checktest.MustEqual(t, d, id, "%q: d", text)
	checktest.MustEqual(t, e, id, "%q: e", text)
}

func FuzzRawID(f *testing.F) {
	f.Add(make([]byte, 16))
	f.Fuzz(func(t *testing.T, data []byte) {
		var id ID[call]
		copy(id.Raw[:], data)
		for _, text := range []string{id.String(), id.ShortString()} {
			if back, ok := ParseID[call](text); !ok || back != id {
				t.Fatalf("%x: %q comes back as %v %v", data, text, back, ok)
			}
		}
	})
}

func BenchmarkIDAppendText(b *testing.B) {
	id, _ := ParseID[call]("CA" + seedHex)
	buf := make([]byte, 0, 64)
	b.ReportAllocs()
	for b.Loop() {
		buf, _ = id.AppendText(buf[:0])
	}
}

func BenchmarkIDAppendShort(b *testing.B) {
	id, _ := ParseID[call]("CA" + seedHex)
	buf := make([]byte, 0, 64)
	b.ReportAllocs()
	for b.Loop() {
		buf = id.AppendShort(buf[:0])
	}
}

func BenchmarkAnyIDAppendText(b *testing.B) {
	id, _ := ParseAnyID("CA" + seedHex)
	buf := make([]byte, 0, 64)
	b.ReportAllocs()
	for b.Loop() {
		buf, _ = id.AppendText(buf[:0])
	}
}

func BenchmarkParseID(b *testing.B) {
	for _, text := range []string{"CA" + seedHex, "CA" + seedShort} {
		b.Run(fmt.Sprint(len(text)), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, ok := ParseID[call](text); !ok {
					b.Fatal(text)
				}
			}
		})
	}
}
