// Fuzzers and tests of blocks, patches and skeletons.

package store

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"understudy"

	"pgregory.net/rapid"
)

func FuzzBlock(f *testing.F) {
	f.Add(appendBlock(nil, nil))
	f.Add(appendBlock(nil, []entry{{record: 7, id: "CA1", clock: -5, final: true, body: []byte(`{"sid":"CA1"}`)},
		{record: 9, id: "elsewhere", body: []byte("x")}}))
	parent := "CF2"
	f.Add(appendBlock(nil, []entry{{record: 7, id: "CA1", clock: 5, parent: "CF1", body: []byte(`{"sid":"CA1","in":"CF1"}`), depth: 2},
		{record: 7, delta: &delta{base: 99, patch: []byte("\x01\x02\x03abc"), clock: -4}},
		{record: 8, final: true, delta: &delta{base: 100, patch: []byte("x"), parent: &parent}, depth: 1}}))
	f.Fuzz(func(t *testing.T, data []byte) {
		entries, err := parseBlock(data)
		if err != nil {
			return
		}
		again, err := parseBlock(appendBlock(nil, entries))
		if err != nil || len(again) != len(entries) {
			t.Fatalf("%d entries came back as %d, %v", len(entries), len(again), err)
		}
		for i := range entries {
			a, b := entries[i], again[i]
			if a.record != b.record || a.id != b.id || a.clock != b.clock || a.final != b.final || !bytes.Equal(a.body, b.body) ||
				a.parent != b.parent || a.depth != b.depth {
				t.Fatalf("%+v came back as %+v", a, b)
			}
			if !reflect.DeepEqual(a.delta, b.delta) && !(len(a.delta.patch) == 0 && len(b.delta.patch) == 0) {
				t.Fatalf("%+v came back as %+v", a.delta, b.delta)
			}
		}
	})
}

// A patch makes the body it was made of, and one that fits nothing makes an
// error.
func FuzzPatch(f *testing.F) {
	old := `{"sid": "CA1", "status": "queued", "price": null, "duration": "9", "uri": "/Calls/CA1"}`
	f.Add([]byte(old), []byte(strings.Replace(old, "queued", "completed", 1)))
	f.Add([]byte(old), []byte(strings.Replace(strings.Replace(old, "null", `"-0.0085"`, 1), `"9"`, `"10"`, 1)))
	f.Add([]byte(""), []byte("x"))
	f.Add([]byte(old), []byte(old[:40]))
	f.Add([]byte("\x01\x02"), []byte("\x00\x00\x05hello"))
	f.Fuzz(func(t *testing.T, base, body []byte) {
		patch, ok := appendPatch([]byte("before"), base, body)
		if string(patch[:6]) != "before" {
			t.Fatalf("what was there is %q", patch[:6])
		}
		if ok {
			if len(patch)-6 > len(body)/2 {
				t.Fatalf("a patch of %d bytes for a body of %d", len(patch)-6, len(body))
			}
			if back, err := applyPatch(base, patch[6:]); err != nil || !bytes.Equal(back, body) {
				t.Fatalf("%q became %q by %q, %v; want %q", base, back, patch[6:], err, body)
			}
		}
		if made, err := applyPatch(base, body); err == nil && len(made) > len(base)+len(body) {
			t.Fatalf("%d bytes were made of %d and %d", len(made), len(base), len(body))
		}
	})
}

func FuzzSkeleton(f *testing.F) {
	one := skeleton{uri: "/a?b=c", contentType: "text/plain", id: "x", next: "/a?b=d", versions: []int64{5, 6, 7, 3}, gaps: []int{2, 1, 1, 1},
		outside: []byte(`{"next":"/a?b=d",,,,}`)}
	f.Add(one.appendTo(nil, "firstfirst", "lastlast"))
	f.Add((&skeleton{}).appendTo(nil, "", ""))
	f.Fuzz(func(t *testing.T, data []byte) {
		sk, err := parseSkeleton(data)
		if err != nil || len(sk.versions) > 1000 {
			return
		}
		e := entry{id: "firstfirst", body: []byte("{}")}
		entries := make([]*entry, len(sk.versions))
		for i := range entries {
			entries[i] = &e
		}
		_, _, _ = sk.assemble(entries)
	})
}

// Any page comes back through its skeleton.
func TestSkeletons(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SliceOfN(rapid.SampledFrom([]string{"aaaaaaaa", "aaaaaaaab", "b", "\x01\x02cccccc", "dddddddd"}), 0, 6).Draw(t, "ids")
		gap := rapid.Custom(func(t *rapid.T) string {
			return strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"", ", ", "aaaaaaaa", "aaaaaaaab", "\x01", "\x02", "dddddddd", "[",
				"/next"}), 0, 3).Draw(t, "parts"), "")
		})
		p := understudy.Page{ContentType: "t", ID: "i"}
		var entries []*entry
		var versions []int64
		body := []byte(gap.Draw(t, "head"))
		for i, id := range ids {
			text := fmt.Sprintf("{%s}", id)
			p.Rows = append(p.Rows, understudy.Row{ID: id, Start: len(body), End: len(body) + len(text)})
			body = append(append(body, text...), gap.Draw(t, "gap")...)
			entries = append(entries, &entry{id: id, record: int64(i), body: []byte(text)})
			versions = append(versions, rapid.Int64Range(1, 5).Draw(t, "version"))
		}
		outside, gaps := outsideOf(body, p.Rows)
		sk := skeleton{uri: "/u", contentType: "t", id: "i", next: "/next", versions: versions, gaps: gaps, outside: outside}
		first, last := "", ""
		if len(ids) > 0 {
			first, last = ids[0], ids[len(ids)-1]
		}
		back, err := parseSkeleton(sk.appendTo(nil, first, last))
		if err != nil {
			t.Fatal(err)
		}
		got, rows, err := back.assemble(entries)
		if err != nil || !bytes.Equal(got, body) || back.next != "/next" || back.uri != "/u" || back.contentType != "t" || back.id != "i" ||
			len(rows) != len(ids) {
			t.Fatalf("%q came back as %q, %+v, %v", body, got, back, err)
		}
		for i, r := range rows {
			if r.Start != p.Rows[i].Start || r.End != p.Rows[i].End || r.ID != ids[i] || r.Version != versions[i] {
				t.Fatalf("row %d: %+v, want %+v", i, r, p.Rows[i])
			}
		}
	})
}

// What is packed comes back.
func FuzzPack(f *testing.F) {
	z := newPacker(4)
	f.Add(marked(3), 1)
	f.Add(append(marked(4), marked(5)...), 7)
	f.Add([]byte(nil), 0)
	f.Fuzz(func(t *testing.T, raw []byte, times int) {
		raw = bytes.Repeat(raw[:min(len(raw), 8<<10)], min(max(times%8, 1), 8))
		packed := z.pack([]byte("x"), raw)
		back, err := z.unpack(nil, packed[1:], len(raw))
		if err != nil || !bytes.Equal(back, raw) {
			t.Fatalf("%d bytes came back as %d, %v", len(raw), len(back), err)
		}
		if _, err := z.unpack(nil, packed[1:], len(raw)+1); err == nil {
			t.Fatal("a wrong size passed")
		}
		_, _ = z.unpack(nil, raw, len(raw)) // must not panic
	})
}

func TestUnpackIsBounded(t *testing.T) {
	z := newPacker(4)
	packed := z.pack(nil, make([]byte, 1<<20))
	if _, err := z.unpack(nil, packed, 100); err == nil {
		t.Error("more came out than the size says")
	}
	if _, err := z.unpack(nil, packed, -1); err == nil {
		t.Error("a negative size passed")
	}
}

// marked is a body with a value of every sort.
func marked(n int) []byte {
	m := func(place string) string { return fmt.Sprintf("Marker%sQq%05d", place, n) }
	id := func(k int) string { return fmt.Sprintf("TH%032x", 0xabcdef0123+n*100+k) }
	return fmt.Appendf(nil, `{"sid": %q, "phone": "+1415%07d", "body": "%s \u00e9 \n \ud83d\ude00 日本", "name": %q,
		"url": "https://%s/x", "price": -%d.25,
		"secret": %q, "shown": "(415) %07d", "other": %q, "status": "completed",
		"uri": "/2010-04-01/Things/%s.json?To=%s&Page=0&Digits=4155550%03d",
		"inner": {"status": "done", "phone": "+1415%07d", "%s": "%s", "deep": {"a": ["%s", {"b": "%s"}]}}, "unknown": "%s",
		"list": ["%s", 4155551234567]}`,
		id(1), n, m("Body"), m("Name"), m("Host"), 31415000+n, m("Secret"), n, id(2), id(3), m("Query"), n, n, m("Key"), m("Unknown"), m("Deep"),
		m("Deeper"), m("Top"), m("Item"))
}
