// Cost: two listings of 10,000 rows, beside the way with a struct an entry.

package folder

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"understudy/kit/jsonspan"
)

// rows is a listing in JSON: a name and five fields each, in random order, the
// same rows for the same seed.
func rows(n int, seed, order uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 0))
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(`{"id":"CA%016x%016x","status":"completed","price":"-0.%05d","duration":"%d","updated":"2026-06-01T12:%02d:00Z",`+
			`"to":"+1305%07d"}`,
			r.Uint64(), r.Uint64(), r.IntN(99999), r.IntN(5000), r.IntN(60), r.IntN(9999999))
	}
	o := rand.New(rand.NewPCG(order, 1))
	o.Shuffle(n, func(i, j int) { all[i], all[j] = all[j], all[i] })
	return []byte("[" + strings.Join(all, ",") + "]")
}

// whole is the outermost value of a body that was checked when it came.
func whole(body []byte) jsonspan.Value {
	return jsonspan.Value{Kind: jsonspan.Array, Start: 0, End: len(body)}
}

// parse puts a listing into a folder over it.
func parse(body []byte, entries int) (*Folder, error) {
	f, err := Wrap(body, entries)
	if err != nil {
		return nil, err
	}
	jsonspan.VisitElements(body, whole(body), func(row jsonspan.Value) bool {
		c := jsonspan.NewCursor(body, row)
		c.Enter()
		for c.Next() {
			isID := jsonspan.MatchName(c.Name(), "id")
			if v := c.Skip(); isID {
				f.AddSpan(v.Start+1, v.End-1, row.Start, row.End)
				break
			}
		}
		return true
	})
	return f, nil
}

// object and field are the way with a struct an entry: what one writes first.
type object struct {
	id     string
	fields []field
}

type field struct{ name, value string }

func parseObjects(body []byte) (all []*object) {
	jsonspan.VisitElements(body, whole(body), func(row jsonspan.Value) bool {
		o := &object{}
		jsonspan.VisitMembers(body, row, func(name []byte, v jsonspan.Value) bool {
			if jsonspan.MatchName(name, "id") {
				o.id = jsonspan.Text(body, v)
			} else {
				o.fields = append(o.fields, field{jsonspan.Name(name), jsonspan.Text(body, v)})
			}
			return true
		})
		all = append(all, o)
		return true
	})
	slices.SortFunc(all, func(a, b *object) int { return strings.Compare(a.id, b.id) })
	return all
}

func mergeObjects(old, new []*object, yield func(what Difference, id string)) {
	for len(old) > 0 || len(new) > 0 {
		switch {
		case len(new) == 0 || len(old) > 0 && old[0].id < new[0].id:
			yield(Removed, old[0].id)
			old = old[1:]
		case len(old) == 0 || new[0].id < old[0].id:
			yield(Added, new[0].id)
			new = new[1:]
		default:
			if !slices.Equal(old[0].fields, new[0].fields) {
				yield(Changed, new[0].id)
			}
			old, new = old[1:], new[1:]
		}
	}
}

// compare parses, sorts and merges two listings; it counts what differs.
func compare(t testing.TB, old, new []byte, entries int) (n int) {
	a, err := parse(old, entries)
	if err != nil {
		t.Fatal(err)
	}
	b, err := parse(new, entries)
	if err != nil {
		t.Fatal(err)
	}
	Merge(a, b, func(Difference, []byte, []byte, []byte) bool { n++; return true })
	return n
}

func compareObjects(old, new []byte) (n int) {
	mergeObjects(parseObjects(old), parseObjects(new), func(Difference, string) { n++ })
	return n
}

const entries = 10_000

// Both ways see the same.
func TestSameAsObjects(t *testing.T) {
	old := rows(1000, 1, 1)
	new := bytes.Replace(rows(1000, 1, 2), []byte("completed"), []byte("failed"), 1)
	i := bytes.Index(new, []byte(`},`)) + 2
	new = append([]byte("["), new[i:]...)                                           // the first is gone
	new = append(bytes.TrimSuffix(new, []byte("]")), []byte(`,{"id":"CAnew"}]`)...) // one has come
	var a, b []string
	oldF, err := parse(old, 0)
	if err != nil {
		t.Fatal(err)
	}
	newF, err := parse(new, 0)
	if err != nil {
		t.Fatal(err)
	}
	Merge(oldF, newF, func(what Difference, key, _, _ []byte) bool {
		a = append(a, fmt.Sprint(what, string(key)))
		return true
	})
	if _, err := jsonspan.Parse(new); err != nil {
		t.Fatal(err)
	}
	mergeObjects(parseObjects(old), parseObjects(new), func(what Difference, id string) { b = append(b, fmt.Sprint(what, id)) })
	if len(a) < 2 || !slices.Equal(a, b) {
		t.Errorf("%v, the other way %v", a, b)
	}
}

// Parsing, sorting and comparing two listings in different orders: two
// allocations a folder, none with memory used again.
func TestAllocations(t *testing.T) {
	old, new := rows(entries, 1, 1), rows(entries, 1, 2)
	if n := testing.AllocsPerRun(3, func() {
		if n := compare(t, old, new, entries); n != 0 {
			t.Fatalf("%d differ", n)
		}
	}); n > 4 {
		t.Errorf("%v allocations into bodies that are there", n)
	}
	a, b := New(0, 0), New(0, 0)
	again := func() {
		for f, body := range map[*Folder][]byte{a: old, b: new} {
			f.Reset()
			jsonspan.VisitElements(body, whole(body), func(row jsonspan.Value) bool {
				id, _ := jsonspan.Find(body, row, "id")
				if err := f.Add(id.Bytes(body), row.Bytes(body)); err != nil {
					t.Fatal(err)
				}
				return true
			})
		}
		Merge(a, b, func(_ Difference, key, _, _ []byte) bool { t.Fatalf("%s differs", key); return false })
	}
	again()
	if n := testing.AllocsPerRun(3, again); n > 4 {
		t.Errorf("%v allocations with copies, into memory used again", n)
	}
	if n := testing.AllocsPerRun(3, func() {
		for range 2 {
			f := New(entries, entries*50)
			for i := range entries {
				if err := f.Add(old[i:i+34], old[:8]); err != nil {
					t.Fatal(err)
				}
			}
			f.Sort()
		}
	}); n > 4 {
		t.Errorf("%v allocations with copies, into new memory", n)
	}
}

// A folder takes at least ten times less heap than objects do; the bodies are
// there in both.
func TestHeap(t *testing.T) {
	old, new := rows(entries, 1, 1), rows(entries, 1, 2)
	heap := func(do func()) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		do()
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	mine := heap(func() { compare(t, old, new, entries) })
	theirs := heap(func() { compareObjects(old, new) })
	if mine*10 > theirs {
		t.Errorf("%d bytes, objects %d", mine, theirs)
	}
}

func BenchmarkFolders(b *testing.B) {
	old, new := rows(entries, 1, 1), rows(entries, 1, 2)
	b.ReportAllocs()
	for b.Loop() {
		compare(b, old, new, entries)
	}
}

func BenchmarkObjects(b *testing.B) {
	old, new := rows(entries, 1, 1), rows(entries, 1, 2)
	b.ReportAllocs()
	for b.Loop() {
		compareObjects(old, new)
	}
}

// Without the parsing: what sorting and comparing ids costs.
func BenchmarkIDs(b *testing.B) {
	old, new := rows(entries, 1, 1), rows(entries, 1, 2)
	x, err := parse(old, entries)
	if err != nil {
		b.Fatal(err)
	}
	y, err := parse(new, entries)
	if err != nil {
		b.Fatal(err)
	}
	unsorted := [2][]entry{slices.Clone(x.entries), slices.Clone(y.entries)}
	b.ReportAllocs()
	for b.Loop() {
		copy(x.entries, unsorted[0])
		copy(y.entries, unsorted[1])
		x.unsorted, y.unsorted = true, true
		Merge(x, y, func(_ Difference, key, _, _ []byte) bool { b.Fatalf("%s differs", key); return false })
	}
}
