// Folder: which side is which, and what is kept of odd listings.

package folder

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"understudy/internal/checktest"
)

// of is a folder of "key=value" words, in their order.
func of(t testing.TB, words string) *Folder {
	t.Helper()
	var f Folder
	for word := range strings.FieldsSeq(words) {
		key, value, _ := strings.Cut(word, "=")
		if err := f.Add([]byte(key), []byte(value)); err != nil {
			t.Fatal(err)
		}
	}
	return &f
}

// differences are what Merge yields, in words.
func differences(old, new *Folder) string {
	var all []string
	Merge(old, new, func(what Difference, key, oldValue, newValue []byte) bool {
		all = append(all, fmt.Sprintf("%v %s %s>%s", what, key, oldValue, newValue))
		return true
	})
	return strings.Join(all, ", ")
}

// Seen from old to new: what old alone has was removed, what new alone has was
// added. The table holds each case both ways round, and at either end.
func TestWhichSideIsWhich(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"", "", ""},
		{"a=1", "a=1", ""},
		{"a=1", "", "removed a 1>"},
		{"", "a=1", "added a >1"},
		{"a=1", "a=2", "changed a 1>2"},
		{"a=1 b=1", "b=1", "removed a 1>"},
		{"b=1", "a=1 b=1", "added a >1"},
		{"a=1 b=1", "a=1", "removed b 1>"},
		{"a=1", "a=1 b=1", "added b >1"},
		{"a=1 c=1", "b=2 d=2", "removed a 1>, added b >2, removed c 1>, added d >2"},
		{"a=1 b=2 d=4", "a=1 c=3 d=5", "removed b 2>, added c >3, changed d 4>5"},
		{"d=4 a=1 b=2", "c=3 d=5 a=1", "removed b 2>, added c >3, changed d 4>5"},
		{"a= aa=1", "a=1 aa=", "changed a >1, changed aa 1>"},
		{"ab=c", "a=bc", "added a >bc, removed ab c>"},
		{"a=1 b=1 a=2", "a=2 b=1", ""}, // the last one counts
		{"b=1 b=2 b=3", "b=3", ""},
	} {
		if got := differences(of(t, c.old), of(t, c.new)); got != c.want {
			t.Errorf("%q -> %q: %s, want %s", c.old, c.new, got, c.want)
		}
	}
}

func TestMergeStops(t *testing.T) {
	for _, c := range [][2]string{{"a=1 b=1", ""}, {"", "a=1 b=1"}, {"a=1 b=1", "a=2 b=2"}, {"a=1 d=1 e=1", "b=1 c=1 e=2"}} {
		n := 0
		Merge(of(t, c[0]), of(t, c[1]), func(Difference, []byte, []byte, []byte) bool { n++; return false })
		if n != 1 {
			t.Errorf("%q: %d yielded after the end", c, n)
		}
	}
}

func TestReading(t *testing.T) {
	f := of(t, "c=3 a=1 b=2 a=4")
	var all []string
	for key, value := range f.All() {
		all = append(all, string(key)+string(value))
	}
	if f.Len() != 3 || strings.Join(all, " ") != "a4 b2 c3" {
		t.Errorf("%d: %v", f.Len(), all)
	}
	for range f.All() {
		break
	}
	if v, ok := f.Get([]byte("b")); !ok || string(v) != "2" {
		t.Errorf("%q, %v", v, ok)
	}
	if _, ok := f.Get([]byte("bb")); ok {
		t.Error("a key nobody added is there")
	}
	if err := f.Add([]byte("aa"), []byte("5")); err != nil || differences(of(t, "a=4 b=2 c=3"), f) != "added aa >5" {
		t.Error("adding to a sorted folder")
	}
	f.Reset()
	if f.Len() != 0 || differences(f, of(t, "z=1")) != "added z >1" {
		t.Error("a folder is not empty after Reset")
	}
}

func TestOverABody(t *testing.T) {
	body := []byte(`{"id":"b","x":1}{"id":"a","x":2}`)
	f, err := Wrap(body, 2)
	if err != nil {
		t.Fatal(err)
	}
	f.AddSpan(7, 8, 0, 16)
	f.AddSpan(23, 24, 16, 32)
	if got := differences(of(t, `a={"id":"a","x":2} b=0`), f); got != `changed b 0>{"id":"b","x":1}` {
		t.Error(got)
	}
	before := bytes.Clone(body)
	{
		err := f.Add([]byte("c"), []byte("3"))
		checktest.MustNoError(t, err, "body %s", body)
		checktest.Equal(t, f.Len(), 3, "f.Len(); body %s", body)
		checktest.True(t, bytes.Equal(body, before), "body is %q, want %q", body, before)
	}
	f.Reset()
	if err := f.Add([]byte("d"), nil); err != nil || !bytes.Equal(body, before) {
		t.Errorf("%v; the body is now %s", err, body)
	}
	for _, span := range [][4]int{{0, 99, 0, 1}, {0, 1, 0, 99}, {2, 1, 0, 1}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%v is taken", span)
				}
			}()
			f.AddSpan(span[0], span[1], span[2], span[3])
		}()
	}
}

// Sorting agrees with the standard library's for keys that share beginnings,
// end within each other, are there twice, or are all alike.
func TestSorting(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for name, key := range map[string]func(i int) string{
		"ids":             func(int) string { return fmt.Sprintf("CA%016x%016x", r.Uint64(), r.Uint64()) },
		"in order":        func(i int) string { return fmt.Sprintf("CA%032x", i) },
		"turned":          func(i int) string { return fmt.Sprintf("CA%032x", 10_000-i) },
		"few letters":     func(int) string { return strings.Repeat("a", r.IntN(300)) + strings.Repeat("\x00", r.IntN(3)) },
		"many twice":      func(int) string { return fmt.Sprint(r.IntN(50)) },
		"all alike":       func(int) string { return "same" },
		"all empty":       func(int) string { return "" },
		"in each other":   func(i int) string { return strings.Repeat("x", i) },
		"long and alike":  func(int) string { return strings.Repeat("y", 1000) + fmt.Sprint(r.IntN(1000)) },
		"every beginning": func(int) string { return string([]byte{byte(r.Uint32()), byte(r.Uint32())}) },
	} {
		n := 3000
		f, want := New(n, 0), map[string]string{}
		for i := range n {
			k, v := key(i), fmt.Sprint(i)
			want[k] = v
			if err := f.Add([]byte(k), []byte(v)); err != nil {
				t.Fatal(err)
			}
		}
		keys := slices.Sorted(maps.Keys(want))
		if f.Len() != len(keys) {
			t.Errorf("%s: %d keys, want %d", name, f.Len(), len(keys))
			continue
		}
		i := 0
		for k, v := range f.All() {
			if string(k) != keys[i] || string(v) != want[keys[i]] {
				t.Errorf("%s: at %d %q=%s, want %q=%s", name, i, k, v, keys[i], want[keys[i]])
				break
			}
			i++
		}
	}
}
