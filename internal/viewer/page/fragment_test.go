package page

import (
	"bytes"
	"compress/gzip"
	"hash/maphash"
	"io"
	"slices"
	"testing"
	"time"

	"understudy/internal/query"
)

// Whatever stands in a page, it is no mark of a fragment, and what is written is
// gzip of what is written plain.
func FuzzPieces(f *testing.F) {
	f.Add("a\x000\x00b", "frag")
	f.Add("\x00\x00\x001\x00", "")
	f.Add("\x00-1\x00x\x00", "y")
	f.Fuzz(func(t *testing.T, body, kept string) {
		y := &Reply{Fragments: []*Fragment{{Plain: []byte(kept)}}}
		var plain, packed bytes.Buffer
		must(t, y.writePlain(&plain, []byte(body)))
		must(t, y.writeGzip(&packed, []byte(body)))
		var pieces bytes.Buffer
		stream := packer{Independent: true}
		stream.begin(&pieces)
		for range 2 {
			must(t, stream.add(y, &pieces, []byte(body)))
		}
		must(t, stream.end(&pieces))
		for of, want := range map[*bytes.Buffer][]byte{&packed: plain.Bytes(), &pieces: slices.Concat(plain.Bytes(), plain.Bytes())} {
			z, err := gzip.NewReader(of)
			must(t, err)
			if got, err := io.ReadAll(z); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%q is %q, %v", want, got, err)
			}
		}
	})
}

// An identity is another with every part.
func TestIdentity(t *testing.T) {
	s := maphash.MakeSeed()
	seen := map[Identity]int{}
	counted := func(n int64, value string) *query.SearchResult {
		return &query.SearchResult{Total: &query.Count{N: n}, Facets: []query.SearchFacet{{Name: "status",
			Values: []query.SearchValue{{Value: value}}}}}
	}
	for i, parts := range [][]any{
		{}, {""}, {"a"}, {"a", "b"}, {"b", "a"}, {"ab"}, {map[string]bool{}}, {map[string]bool{"a": true}},
		{map[string]bool{"a": true, "b": true}},
		{counted(1, "a")}, {counted(2, "a")}, {counted(1, "b")}, {[]byte("x")},
		{time.Unix(1, 0)}, {time.Unix(2, 0)}, {Snapshot{Kinds: map[string]StoredKind{"a": {Records: 1}}}},
		{Snapshot{Kinds: map[string]StoredKind{"a": {Records: 2}}}},
		{[]any{nil, nil}}, {(*When)(nil)}, {&When{}}, {1}, {int64(1)}, {true}, {false}, {1.5},
	} {
		of := Identity{}.With(s, parts...)
		if other, twice := seen[of]; twice && i > 1 {
			t.Errorf("%v is as number %d", parts, other)
		}
		seen[of] = i
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
