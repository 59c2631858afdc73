// The hot tier: pages come out as they went in, under its limit, and a walk
// does not throw out what is read.

package cache

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"understudy"
	"understudy/internal/checktest"
)

// least is the smallest limit the mirror gives a tier.
const least = 4 << 20

// tierOf is a tier and a group to put pages of.
func tierOf(limit int64) (*Tier, *Group) { return New(limit), NewGroup("calls") }

// TestPackedPagesComeOutWhole: every field of any page, ids of any form, rows
// anywhere in any body.
func TestPackedPagesComeOutWhole(t *testing.T) {
	h, k := tierOf(64 << 20)
	rapid.Check(t, func(t *rapid.T) {
		p := anyPage(t)
		e := h.Pack(k, p)
		if len(p.Rows) > 0 && bytes.IndexByte(p.Body, idMark) >= 0 {
			if e != nil {
				t.Fatal("packed a body with marks in it")
			}
			return
		}
		if e == nil {
			t.Fatal("not packed")
		}
		got, err := h.Unpack(e)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, p) {
			t.Fatalf("got  %+v\nwant %+v", got, p)
		}
	})
}

func anyPage(t *rapid.T) *understudy.Page {
	piece := rapid.OneOf(
		rapid.StringOfN(rapid.RuneFrom([]rune("{}\":,abc é\n\x02")), 0, 40, -1),
		rapid.Just(strings.Repeat(`"uri":"/Calls/x",`, 900)),
		rapid.Just("\x01"),
	)
	id := rapid.OneOf(
		rapid.StringMatching(`[A-Z]{2}[0-9a-f]{32}`),
		rapid.StringMatching(`[a-z~]{0,20}`),
		rapid.Just("CA0123456789ABCDEF0123456789ABCDEF"),
	)
	var body []byte
	var rows []understudy.Row
	marks := rapid.IntRange(0, 30).Draw(t, "marks") == 0
	write := func(s string) {
		if marks || s != "\x01" {
			body = append(body, s...)
		}
	}
	for range rapid.IntRange(0, 6).Draw(t, "rows") {
		write(piece.Draw(t, "between"))
		r := understudy.Row{ID: id.Draw(t, "id"), Start: len(body), Clock: rapid.Int64().Draw(t, "clock"),
			Final: rapid.Bool().Draw(t, "final"), Record: rapid.Int64Range(0, 1<<60).Draw(t, "record"), Version: rapid.Int64().Draw(t, "version")}
		for range rapid.IntRange(0, 4).Draw(t, "times") {
			write(piece.Draw(t, "row"))
			write(r.ID)
		}
		r.End = len(body)
		rows = append(rows, r)
	}
	write(piece.Draw(t, "after"))
	if body == nil {
		body = []byte{}
	}
	sum := sha256.Sum256(body)
	text := rapid.StringMatching(`[ -~]{0,20}`)
	return &understudy.Page{
		Key: understudy.Key{Source: "twilio", URI: "/" + text.Draw(t, "uri")}, Kind: "calls",
		Shape: rapid.SampledFrom([]string{"calls", "other"}).Draw(t, "shape"),
		List:  rapid.Bool().Draw(t, "list"), ID: text.Draw(t, "page id"), Status: rapid.IntRange(200, 599).Draw(t, "status"),
		ContentType: text.Draw(t, "type"),
		Body:        body, Rows: rows, Next: understudy.Key{Source: text.Draw(t, "next source"), URI: text.Draw(t, "next")},
		At: time.Now(), Generation: rapid.Int64().Draw(t, "generation"), Version: rapid.Int64().Draw(t, "page version"), Sum: [16]byte(sum[:16]),
		Superseded: rapid.Bool().Draw(t, "superseded"), NotStored: text.Draw(t, "not stored"),
	}
}

func TestMalformedRowsAreNotPacked(t *testing.T) {
	h, k := tierOf(64 << 20)
	for _, rows := range [][]understudy.Row{
		{{Start: 0, End: 11}}, {{Start: 4, End: 3}}, {{Start: -1, End: 3}}, {{Start: 0, End: 5}, {Start: 4, End: 6}},
	} {
		if h.Pack(k, &understudy.Page{Body: []byte("0123456789"), Rows: rows}) != nil {
			t.Errorf("packed rows %+v of ten bytes", rows)
		}
	}
}

// FuzzUnpack: a damaged page is an error, never a panic or a wrong page size.
func FuzzUnpack(f *testing.F) {
	for _, p := range []*understudy.Page{
		{Body: []byte(`{"calls":[]}`)},
		{Body: []byte(`[{"sid":"CA0123456789abcdef0123456789abcdef"}]`),
			Rows: []understudy.Row{{ID: "CA0123456789abcdef0123456789abcdef", Start: 1, End: 45, Record: 1, Version: 2}}},
		{Body: []byte(`{"a":"longer than eight"}`), Rows: []understudy.Row{{ID: "longer than eight", End: 25}}},
	} {
		head, ids := appendHead(nil, p)
		f.Add(appendMarked(head, p.Body, p.Rows), ids)
	}
	f.Fuzz(func(t *testing.T, data, ids []byte) {
		p, text, size, err := readHead(data, ids)
		if err != nil || size > 1<<20 {
			return
		}
		body, err := unmark(text, p.Rows, size)
		if err == nil && len(body) != size {
			t.Errorf("%d bytes, want %d", len(body), size)
		}
	})
}

// small is a page of about size bytes that does not compress.
func small(r *rand.Rand, n, size int) *understudy.Page {
	var b strings.Builder
	b.WriteString(`{"calls":["`)
	for b.Len() < size {
		b.WriteString(strconv.FormatUint(r.Uint64(), 36))
	}
	b.WriteString(`"]}`)
	return &understudy.Page{Key: understudy.Key{Source: "twilio", URI: fmt.Sprintf("/%d", n)}, Kind: "calls", Shape: "calls", List: true,
		Status: 200, Body: []byte(b.String())}
}

func (h *Tier) has(key understudy.Key) bool {
	e := h.Find(key)
	return e != nil && e.links.queue != nil
}

// TestAWalkThrowsOutOnlyItself: pages that were read stay through a walk of
// ten thousand others, though they are not read meanwhile.
func TestAWalkThrowsOutOnlyItself(t *testing.T) {
	h, k := tierOf(least)
	r := rand.New(rand.NewPCG(1, 1))
	var read []understudy.Key
	for n := range 20 {
		p := small(r, n, 2000)
		read = append(read, p.Key)
		h.Put(h.Pack(k, p), nil)
		for range 3 {
			h.Find(p.Key).Use()
		}
	}
	for n := range 10_000 {
		p := small(r, 1000+n, 2000)
		h.Put(h.Pack(k, p), nil)
		h.Find(p.Key).Use() // each is read once, as by a walk
	}
	for _, key := range read {
		if !h.has(key) {
			t.Errorf("%s was thrown out", key)
		}
	}
	if u := h.Usage(); u.Bytes > least || u.Entries < 1000 {
		t.Errorf("%d entries, %d bytes", u.Entries, u.Bytes)
	}
}

// TestWhatComesBackSoonStays: a page that was thrown out and is wanted again
// goes where a walk does not reach it.
func TestWhatComesBackSoonStays(t *testing.T) {
	h, k := tierOf(least)
	r := rand.New(rand.NewPCG(1, 1))
	fill := func(from, n int) {
		for i := range n {
			h.Put(h.Pack(k, small(r, from+i, 2000)), nil)
		}
	}
	first := small(r, 0, 2000)
	h.Put(h.Pack(k, first), nil)
	for n := 1; h.has(first.Key); n++ {
		fill(n, 1)
	}
	h.Put(h.Pack(k, first), nil)
	fill(100_000, 1000)
	if !h.has(first.Key) {
		t.Error("thrown out a second time")
	}
}

// TestTheBooksAreKept: pages of 1 KB to 1 MB come, become ready, are replaced
// and go; the limit is never passed and at the end nothing is left over.
func TestTheBooksAreKept(t *testing.T) {
	const limit = 8 << 20
	h, k := tierOf(limit)
	r := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		p := small(r, r.IntN(200), 1<<(10+r.IntN(11)))
		e := h.Pack(k, p)
		e.Stored, e.List = r.IntN(8) > 0, r.IntN(8) > 0
		switch r.IntN(5) {
		case 0:
			h.Put(e, h.Encode(p))
		case 1:
			h.Put(e, nil)
			h.makeReady(t.Context(), e)
		case 2:
			h.Forget(e.Hash)
		default:
			h.Put(e, nil)
		}
		if u := h.Usage(); u.Bytes > limit {
			t.Fatalf("%d bytes, %d of them ready; the limit is %d", u.Bytes, u.ReadyBytes, limit)
		}
		lists := true
		h.WalkGroup(k, func(e *Entry) { lists = lists && e.List && e.Stored })
		if h.HasOnlyLists(k) != lists {
			t.Fatalf("only lists of records: %v", !lists)
		}
	}
	for i := range h.shards {
		for _, e := range h.shards[i].entries {
			h.Drop(e)
		}
	}
	u := h.Usage()
	checktest.Equal(t, u.Entries, 0, "left over: u.Entries")
	checktest.Equal(t, u.Ready, 0, "left over: u.Ready")
	checktest.Equal(t, u.ReadyBytes, 0, "left over: u.ReadyBytes")
	checktest.Equal(t, h.small.bytes, 0, "left over: h.small.bytes")
	checktest.Equal(t, h.main.bytes, 0, "left over: h.main.bytes")
	checktest.MustTrue(t, h.small.first == nil, "left over: h.small.first is %v", h.small.first)
	checktest.MustTrue(t, h.main.last == nil, "left over: h.main.last is %v", h.main.last)
	checktest.True(t, h.ready.last == nil, "left over: h.ready.last is %v", h.ready.last)
}

func TestReadyPartHasAQuarterAndKeepsWhatIsUsed(t *testing.T) {
	h, k := tierOf(8 << 20)
	r := rand.New(rand.NewPCG(5, 6))
	asked := small(r, 0, 50_000)
	h.Put(h.Pack(k, asked), h.Encode(asked))
	for n := range 200 {
		p := small(r, 1+n, 50_000)
		h.Put(h.Pack(k, p), h.Encode(p))
		if e := h.Find(asked.Key); e != nil && e.ready.Load() != nil {
			e.Use()
			e.ready.Load().Use()
		}
	}
	if e := h.Find(asked.Key); e == nil || e.ready.Load() == nil {
		t.Error("the page that is asked for is ready no more")
	}
	if u := h.Usage(); u.Ready < 5 || u.ReadyBytes > 2<<20 {
		t.Errorf("%d ready pages, %d bytes", u.Ready, u.ReadyBytes)
	}
}

// TestReadyPartTakesWhatIsFree: more than a quarter of the limit is ready while all fits. Packed
// pages that come later have their three quarters.
func TestReadyPartTakesWhatIsFree(t *testing.T) {
	const limit = 8 << 20
	h, k := tierOf(limit)
	r := rand.New(rand.NewPCG(7, 8))
	for n := range 40 {
		p := small(r, n, 50_000)
		h.Put(h.Pack(k, p), h.Encode(p))
	}
	if u := h.Usage(); u.Ready != 40 || u.ReadyBytes <= limit/4 {
		t.Fatalf("%d of 40 are ready, %d bytes", u.Ready, u.ReadyBytes)
	}
	for n := range 400 {
		h.Put(h.Pack(k, small(r, 100+n, 50_000)), nil)
	}
	{
		u := h.Usage()
		checktest.True(t, u.Bytes <= limit, "u.Bytes is %v", u.Bytes)
		checktest.True(t, u.ReadyBytes <= limit/4, "u.ReadyBytes is %v", u.ReadyBytes)
		checktest.True(t, u.Bytes-u.ReadyBytes >= limit*7/10, "u.Bytes-u.ReadyBytes is %v", u.Bytes-u.ReadyBytes)
	}
}
