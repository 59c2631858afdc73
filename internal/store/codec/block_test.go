// Fuzzers and tests of blocks, patches and skeletons.

package codec

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"understudy"
	"understudy/internal/checktest"
)

func FuzzBlock(f *testing.F) {
	f.Add(AppendBlock(nil, nil))
	f.Add(AppendBlock(nil, []Entry{{Record: 7, ID: "CA1", Clock: -5, Final: true, Body: []byte(`{"sid":"CA1"}`)},
		{Record: 9, ID: "elsewhere", Body: []byte("x")}}))
	parent := "CF2"
	f.Add(AppendBlock(nil, []Entry{{Record: 7, ID: "CA1", Clock: 5, Parent: "CF1", Body: []byte(`{"sid":"CA1","in":"CF1"}`), Depth: 2},
		{Record: 7, Delta: &Delta{Base: 99, Patch: []byte("\x01\x02\x03abc"), Clock: -4}},
		{Record: 8, Final: true, Delta: &Delta{Base: 100, Patch: []byte("x"), Parent: &parent}, Depth: 1}}))
	f.Fuzz(func(t *testing.T, data []byte) {
		entries, err := ParseBlock(data)
		if err != nil {
			return
		}
		again, err := ParseBlock(AppendBlock(nil, entries))
		if err != nil || len(again) != len(entries) {
			t.Fatalf("%d entries came back as %d, %v", len(entries), len(again), err)
		}
		for i := range entries {
			a, b := entries[i], again[i]
			checktest.MustEqual(t, a.Record, b.Record, "a.Record")
			checktest.MustEqual(t, a.ID, b.ID, "a.ID")
			checktest.MustEqual(t, a.Clock, b.Clock, "a.Clock")
			checktest.MustEqual(t, a.Final, b.Final, "a.Final")
			checktest.MustTrue(t, bytes.Equal(a.Body, b.Body), "a.Body is %q, want %q", a.Body, b.Body)
			checktest.MustEqual(t, a.Parent, b.Parent, "a.Parent")
			checktest.MustEqual(t, a.Depth, b.Depth, "a.Depth")
			if !reflect.DeepEqual(a.Delta, b.Delta) && !(len(a.Delta.Patch) == 0 && len(b.Delta.Patch) == 0) {
				t.Fatalf("%+v came back as %+v", a.Delta, b.Delta)
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
		patch, ok := AppendPatch([]byte("before"), base, body)
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
	one := Skeleton{URI: "/a?b=c", ContentType: "text/plain", ID: "x", Next: "/a?b=d", Versions: []int64{5, 6, 7, 3}, Gaps: []int{2, 1, 1, 1},
		Outside: []byte(`{"next":"/a?b=d",,,,}`)}
	f.Add(one.AppendTo(nil, "firstfirst", "lastlast"))
	f.Add((&Skeleton{}).AppendTo(nil, "", ""))
	f.Fuzz(func(t *testing.T, data []byte) {
		sk, err := ParseSkeleton(data)
		if err != nil || len(sk.Versions) > 1000 {
			return
		}
		e := Entry{ID: "firstfirst", Body: []byte("{}")}
		entries := make([]*Entry, len(sk.Versions))
		for i := range entries {
			entries[i] = &e
		}
		_, _, _ = sk.Assemble(entries)
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
		var entries []*Entry
		var versions []int64
		body := []byte(gap.Draw(t, "head"))
		for i, id := range ids {
			text := fmt.Sprintf("{%s}", id)
			p.Rows = append(p.Rows, understudy.Row{ID: id, Start: len(body), End: len(body) + len(text)})
			body = append(append(body, text...), gap.Draw(t, "gap")...)
			entries = append(entries, &Entry{ID: id, Record: int64(i), Body: []byte(text)})
			versions = append(versions, rapid.Int64Range(1, 5).Draw(t, "version"))
		}
		outside, gaps := SplitOutside(body, p.Rows)
		sk := Skeleton{URI: "/u", ContentType: "t", ID: "i", Next: "/next", Versions: versions, Gaps: gaps, Outside: outside}
		first, last := "", ""
		if len(ids) > 0 {
			first, last = ids[0], ids[len(ids)-1]
		}
		back, err := ParseSkeleton(sk.AppendTo(nil, first, last))
		if err != nil {
			t.Fatal(err)
		}
		got, rows, err := back.Assemble(entries)
		checktest.MustNoError(t, err, "body %q; got %q", body, got)
		checktest.MustTrue(t, bytes.Equal(got, body), "got is %q, want %q", got, body)
		checktest.MustEqual(t, back.Next, "/next", "back.Next; body %q; got %q", body, got)
		checktest.MustEqual(t, back.URI, "/u", "back.URI; body %q; got %q", body, got)
		checktest.MustEqual(t, back.ContentType, "t", "back.ContentType; body %q; got %q", body, got)
		checktest.MustEqual(t, back.ID, "i", "back.ID; body %q; got %q", body, got)
		checktest.MustEqual(t, len(rows), len(ids), "len(rows); body %q; got %q", body, got)
		for i, r := range rows {
			checktest.MustEqual(t, r.Start, p.Rows[i].Start, "row %d: r.Start", i)
			checktest.MustEqual(t, r.End, p.Rows[i].End, "row %d: r.End", i)
			checktest.MustEqual(t, r.ID, ids[i], "row %d: r.ID", i)
			checktest.MustEqual(t, r.Version, versions[i], "row %d: r.Version", i)
		}
	})
}

// What is packed comes back.
func FuzzPack(f *testing.F) {
	z := NewPacker(4)
	f.Add(marked(3), 1)
	f.Add(append(marked(4), marked(5)...), 7)
	f.Add([]byte(nil), 0)
	f.Fuzz(func(t *testing.T, raw []byte, times int) {
		raw = bytes.Repeat(raw[:min(len(raw), 8<<10)], min(max(times%8, 1), 8))
		packed := z.Pack([]byte("x"), raw)
		back, err := z.Unpack(nil, packed[1:], len(raw))
		if err != nil || !bytes.Equal(back, raw) {
			t.Fatalf("%d bytes came back as %d, %v", len(raw), len(back), err)
		}
		if _, err := z.Unpack(nil, packed[1:], len(raw)+1); err == nil {
			t.Fatal("a wrong size passed")
		}
		_, _ = z.Unpack(nil, raw, len(raw)) // must not panic
	})
}

func TestUnpackIsBounded(t *testing.T) {
	z := NewPacker(4)
	packed := z.Pack(nil, make([]byte, 1<<20))
	if _, err := z.Unpack(nil, packed, 100); err == nil {
		t.Error("more came out than the size says")
	}
	if _, err := z.Unpack(nil, packed, -1); err == nil {
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
