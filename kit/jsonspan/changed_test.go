// Changed: a table, an oracle, and what it costs.

package jsonspan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestChanged(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{`{}`, `{}`, ""},
		{`{"a":1,"b":"x"}`, "{ \"a\": 1 ,\n\"b\":\"x\" }", ""},
		{`{"a":1,"b":2}`, `{"b":2,"a":1}`, ""},
		{`{"a":1,"b":2}`, `{"b":3,"a":1}`, "b"},
		{`{"a":1}`, `{"a":1,"b":2}`, "b"},
		{`{"a":1,"b":2}`, `{"b":2}`, "a"},
		{`{"a":null}`, `{}`, "a"},
		{`{"a":1}`, `{"a":1.0}`, "a"},
		{`{"a":"1"}`, `{"a":1}`, "a"},
		{`{"price":null}`, `{"price":"-0.02"}`, "price"},
		{`{"a":"/é"}`, `{"a":"\/\u00e9"}`, ""},
		{`{"a":"é"}`, `{"a":"\u00e8"}`, "a"},
		{`{"\u0061":1,"b":2}`, `{"a":1,"b":3}`, "b"},
		{`{"\u0061":1}`, `{"b":1}`, `\u0061 b`},
		{`{"a":"\ud83d\ude00"}`, `{"a":"😀"}`, ""},
		{`{"meta":{"page":1,"size":2}}`, `{"meta":{"size":2,"page":3}}`, "meta.page"},
		{`{"m":{"n":{"o":1}},"x":1}`, `{"x":2,"m":{"n":{"o":2,"p":1}}}`, "m.n.o m.n.p x"},
		{`{"m":{"n":1}}`, `{"m":null}`, "m"},
		{`{"m":{}}`, `{}`, "m"},
		{`{"l":[1,{"a":1,"b":2}]}`, `{"l":[ 1, {"b":2,"a":1} ]}`, ""},
		{`{"l":[1,2]}`, `{"l":[2,1]}`, "l"},
		{`{"l":[1,2]}`, `{"l":[1]}`, "l"},
		{`{"l":[[1,2],[]]}`, `{"l":[[1,2],{}]}`, "l"},
		{`{"a":1,"a":2}`, `{"a":3,"a":2}`, ""},
		{`{"a":1,"a":1}`, `{"a":1}`, ""},
		{`{"a":2,"b":1,"a":1}`, `{"a":1,"b":1,"c":0}`, "c"},
		{`{"a":1,"b":1}`, `{"a":2,"c":1,"a":1}`, "b c"},
	} {
		if got := changed(t, c.old, c.new); strings.Join(got, " ") != c.want {
			t.Errorf("%s -> %s: %q, want %q", c.old, c.new, got, c.want)
		}
		if got := changed(t, c.new, c.old); len(got) != len(strings.Fields(c.want)) {
			t.Errorf("%s <- %s: %q, want %q", c.old, c.new, got, c.want)
		}
	}
}

func changed(t testing.TB, old, new string) []string {
	t.Helper()
	var names []string
	if err := FindChanges([]byte(old), []byte(new), func(name []byte) bool {
		names = append(names, string(name))
		return true
	}); err != nil {
		t.Fatalf("%s -> %s: %v", old, new, err)
	}
	slices.Sort(names)
	return names
}

func TestChangedRefuses(t *testing.T) {
	for _, c := range [][2]string{{`[]`, `{}`}, {`{}`, `[]`}, {`{`, `{`}, {`{}`, `{"a":}`}, {``, ``}, {`null`, `null`}} {
		if err := FindChanges([]byte(c[0]), []byte(c[1]), func([]byte) bool { t.Error("yielded"); return true }); err == nil {
			t.Errorf("%q: no error", c)
		}
	}
}

// Stopping stops, on both ways through an object.
func TestChangedStops(t *testing.T) {
	for _, c := range [][2]string{{`{"a":1,"b":{"c":1,"d":1}}`, `{"a":1,"b":{"c":2,"d":2}}`}, {`{"a":1,"b":1}`, `{"c":1,"d":1}`}} {
		n := 0
		if err := FindChanges([]byte(c[0]), []byte(c[1]), func([]byte) bool { n++; return false }); err != nil || n != 1 {
			t.Errorf("%q: %d names, %v", c, n, err)
		}
	}
}

// Objects of many members, in order and not, with few and with all changed.
func TestChangedOfManyMembers(t *testing.T) {
	build := func(n int, name func(int) int, value func(int) int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"m%d":%d`, name(i), value(name(i)))
		}
		return "{" + b.String()[1:] + "}"
	}
	same := func(i int) int { return i }
	for _, n := range []int{10, 63, 64, 65, 20_000} {
		turned := func(i int) int { return n - 1 - i }
		old := build(n, same, same)
		if got := changed(t, old, build(n, turned, same)); len(got) != 0 {
			t.Errorf("%d turned round: %v", n, got[:1])
		}
		for _, order := range []func(int) int{same, turned} {
			if got := changed(t, old, build(n, order, func(i int) int { return i + 1 })); len(got) != n {
				t.Errorf("%d of %d found", len(got), n)
			}
		}
	}
}

func TestChangedAllocatesNothing(t *testing.T) {
	row := page(2)
	doc, err := Parse(row)
	if err != nil {
		t.Fatal(err)
	}
	calls, _ := Find(row, doc, "calls")
	var rows []string
	VisitElements(row, calls, func(v Value) bool { rows = append(rows, string(v.Bytes(row))); return true })
	var spaced bytes.Buffer
	if err := json.Indent(&spaced, []byte(rows[1]), "", " "); err != nil {
		t.Fatal(err)
	}
	sid, rest, _ := strings.Cut(rows[1][1:len(rows[1])-1], ", ")
	for name, new := range map[string]string{
		"equal": rows[1], "spaced": spaced.String(), "turned": "{" + rest + "," + sid + "}",
		"escaped": strings.ReplaceAll(rows[1], `/`, `\/`), "one more member": rows[1][:len(rows[1])-1] + `,"x":1}`,
	} {
		old, new, want := []byte(rows[1]), []byte(new), 0
		if name == "one more member" {
			want = 1
		}
		count := 0
		yield := func([]byte) bool { count++; return true }
		if n := testing.AllocsPerRun(100, func() {
			count = 0
			if err := FindChanges(old, new, yield); err != nil || count != want {
				t.Fatalf("%s: %d names, %v", name, count, err)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// oracle is Changed with encoding/json and maps.
func oracle(old, new map[string]any, prefix string, names map[string]bool) {
	for name := range maps.Keys(old) {
		if _, ok := new[name]; !ok {
			names[prefix+name] = true
		}
	}
	for name, after := range new {
		before, ok := old[name]
		a, objectA := before.(map[string]any)
		b, objectB := after.(map[string]any)
		switch {
		case ok && objectA && objectB:
			oracle(a, b, prefix+name+".", names)
		case !ok || !reflect.DeepEqual(before, after):
			names[prefix+name] = true
		}
	}
}

func decode(data []byte) (map[string]any, bool) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var m map[string]any
	return m, dec.Decode(&m) == nil
}

func FuzzChanged(f *testing.F) {
	for _, c := range [][2]string{
		{`{"a":1}`, `{"a":2}`}, {`{"a":1,"b":{"c":[1,{"d":2}]}}`, `{"b":{"c":[1,{"d":3}]},"a":1}`},
		{`{"a":1,"a":2,"b":3}`, `{"a":2,"b":4,"a":1}`},
		{`{"\u0061":"\ud83d\ude00"}`, `{"a":"😀","b":null}`}, {`{"a.b":1,"a":{"b":1}}`, `{"a.b":2,"a":{"b":2}}`}, {`{"":{"":1}}`, `{"":{"":2}}`},
		{`{"a":"x\/y"}`, `{"a":"x/y"}`}, {`{"l":[]}`, `{"l":{}}`},
	} {
		f.Add([]byte(c[0]), []byte(c[1]))
	}
	f.Fuzz(func(t *testing.T, old, new []byte) {
		got := map[string]bool{}
		err := FindChanges(old, new, func(name []byte) bool { got[Name(name)] = true; return true })
		a, errA := parseObject(old)
		b, errB := parseObject(new)
		if (err == nil) != (errA == nil && errB == nil) {
			t.Fatalf("%v, but %v and %v", err, errA, errB)
		}
		if err != nil || CheckLossless(old) != nil || CheckLossless(new) != nil {
			return // encoding/json makes one rune of all broken text
		}
		before, ok := decode(a.Bytes(old))
		after, ok2 := decode(b.Bytes(new))
		if !ok || !ok2 {
			t.Fatal("encoding/json reads no object")
		}
		want := map[string]bool{}
		oracle(before, after, "", want)
		if !maps.Equal(got, want) {
			t.Fatalf("%q -> %q: %v, want %v", old, new, got, want)
		}
	})
}

func BenchmarkChanged(b *testing.B) {
	data := page(1)
	doc, _ := Parse(data)
	calls, _ := Find(data, doc, "calls")
	old := calls.Bytes(data)[1 : calls.End-calls.Start-1]
	new := bytes.Replace(old, []byte(`"-0.200"`), []byte(`"-0.300"`), 1)
	b.SetBytes(int64(len(old)))
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		if err := FindChanges(old, new, func([]byte) bool { n++; return true }); err != nil {
			b.Fatal(err)
		}
	}
	if n == 0 {
		b.Fatal("nothing changed")
	}
}
