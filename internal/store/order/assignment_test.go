// Placing: whatever stands where, the rows of a page come to stand below each
// other, and none where another is.

package order

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"understudy/internal/store/postings"
)

// TestPlacing places pages of rows with and without a time beside records that
// stand close together. The row the next page begins with is one of these.
func TestPlacing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ground := &taken{of: map[int64]*placedRecord{}}
		second := rapid.Int64Range(100, 103)
		for range rapid.IntRange(0, 12).Draw(t, "others") {
			_, last := postings.SecondBounds(second.Draw(t, "second"))
			near := rapid.SampledFrom([]int64{0, 1, 2, 3, 8, positionStep, postings.Within / 2, postings.Within - 1}).Draw(t, "near")
			if at := last - near; ground.of[at] == nil {
				ground.put(&placedRecord{at: Nowhere}, at)
			}
		}
		others := slices.Clone(ground.at)
		var rows []*Assignment
		for range rapid.IntRange(1, 3).Draw(t, "runs") {
			of := int64(NoSecond)
			if rapid.Bool().Draw(t, "timed") {
				of = second.Draw(t, "of")
			}
			for range rapid.SampledFrom([]int{1, 2, 50, 300, 1000}).Draw(t, "rows") {
				rows = append(rows, &Assignment{At: Nowhere, Second: of})
			}
		}
		page := &Page{Store: ground, Rows: rows, AfterUnknown: rapid.Bool().Draw(t, "after")}
		pick := func(name string, page *Page) *Assignment {
			if len(others) == 0 || !rapid.Bool().Draw(t, name) {
				return nil
			}
			at := rapid.SampledFrom(others).Draw(t, name+" at")
			return &Assignment{At: at, Shown: true, Second: postings.PositionSecond(at)}
		}
		page.Top = pick("top", page)
		if next := pick("next", page); next != nil {
			page.Next = func() (*Assignment, error) { return next, nil }
		}
		placesFall(t, ground, page)
	})
}

// placesFall places a page and looks where its rows stand.
func placesFall(t interface{ Fatal(...any) }, ground *taken, page *Page) {
	if err := page.Place(); err != nil {
		t.Fatal(err)
	}
	for i, r := range page.Rows {
		if r.At == Nowhere || ground.of[r.At] != nil {
			t.Fatal(fmt.Sprintf("row %d stands at %d, where another is", i, r.At))
		}
		if i > 0 && r.At >= page.Rows[i-1].At {
			t.Fatal(fmt.Sprintf("row %d (second %d) stands at %d, not below %d (second %d)", i, r.Second, r.At, page.Rows[i-1].At,
				page.Rows[i-1].Second))
		}
	}
}

// Rows come between the last row of a page and the first of the next until
// there is no room left: that one moves with the others.
func TestTheNextPageMakesRoom(t *testing.T) {
	ground := &taken{of: map[int64]*placedRecord{}}
	first, _ := postings.SecondBounds(100)
	next := &placedRecord{at: Nowhere}
	ground.put(next, first+10)
	above := &Assignment{At: first + 11, Shown: true, Second: 100}
	page := &Page{Store: ground, Rows: []*Assignment{above, {At: Nowhere, Second: 100}}}
	page.Next = func() (*Assignment, error) { return next.placing(), nil }
	placesFall(t, ground, page)
	if last := page.Rows[1].At; last <= next.at {
		t.Errorf("the last row stands at %d, the next page at %d", last, next.at)
	}
}

// Rows without a time fill the seconds below the row they follow, beyond that
// of the next one with a time.
func TestManyRowsWithoutATime(t *testing.T) {
	top := &Assignment{Shown: true, Second: 101}
	top.At, _ = postings.SecondBounds(top.Second)
	page := &Page{Store: &taken{of: map[int64]*placedRecord{}}, Top: top}
	for range 300 {
		page.Rows = append(page.Rows, &Assignment{At: Nowhere, Second: NoSecond})
	}
	page.Rows = append(page.Rows, &Assignment{At: Nowhere, Second: 100})
	placesFall(t, &taken{of: map[int64]*placedRecord{}}, page)
}

// countingGround counts the records that had to make room.
type countingGround struct {
	*taken
	moved int
}

func (g *countingGround) MoveApart(position int64, n int, moved func(to map[int64]int64)) error {
	return g.taken.MoveApart(position, n, func(to map[int64]int64) {
		g.moved += len(to)
		moved(to)
	})
}

// Thousands of one second come one by one, alone and on top of what is known: the
// newest stands above all, in its second, and no other makes room for it. A save
// that moves a few thousand takes longer than a save may.
func TestManyOfOneSecondComeAlone(t *testing.T) {
	ground := &countingGround{taken: &taken{of: map[int64]*placedRecord{}}}
	newest := &placedRecord{at: Nowhere}
	_, last := postings.SecondBounds(100)
	for n := range 20_000 {
		page := &Page{Store: ground, Rows: []*Assignment{{At: Nowhere, Second: 100}}}
		if n%3 == 1 {
			known := newest.placing()
			known.Second = 100
			page.Rows = append(page.Rows, known)
		}
		if err := page.Place(); err != nil {
			t.Fatal(err)
		}
		if at := page.Rows[0].At; at <= newest.at || at > last {
			t.Fatalf("record %d stands at %d, the one before it at %d, the second ends at %d", n, at, newest.at, last)
		}
		if ground.moved > 0 {
			t.Fatalf("%d had to make room for record %d", ground.moved, n)
		}
		newest = &placedRecord{at: Nowhere}
		ground.put(newest, page.Rows[0].At)
	}
}

// taken is a ground in a map: where the records of one kind stand.
type taken struct {
	at []int64 // rising
	of map[int64]*placedRecord
}

// placedRecord is a record of a ground in a map.
type placedRecord struct{ at int64 }

func (g *taken) FindBelow(position, least int64) (int64, error) {
	i, _ := slices.BinarySearch(g.at, position)
	if i == 0 || g.at[i-1] < least {
		return Nowhere, nil
	}
	return g.at[i-1], nil
}

func (g *taken) FindAbove(position, most int64) (int64, error) {
	i, found := slices.BinarySearch(g.at, position)
	if found {
		i++
	}
	if i == len(g.at) || g.at[i] > most {
		return Nowhere, nil
	}
	return g.at[i], nil
}

func (g *taken) MoveApart(position int64, n int, moved func(to map[int64]int64)) error {
	end, _ := slices.BinarySearch(g.at, position)
	first, low, step := spread(position, n, func(low int64) int {
		i, _ := slices.BinarySearch(g.at, low)
		return end - i
	})
	i, _ := slices.BinarySearch(g.at, low)
	stand := slices.Clone(g.at[i:end])
	records := make([]*placedRecord, len(stand))
	for j, from := range stand {
		records[j] = g.of[from]
		delete(g.of, from)
	}
	for j := range stand { // from the lowest on
		to := first - int64(len(stand)-1-j)*step
		g.at[i+j], g.of[to], records[j].at = to, records[j], to
	}
	told := make(map[int64]int64, len(stand))
	for j, from := range stand {
		told[from] = g.at[i+j]
	}
	moved(told)
	return nil
}

// put makes a record stand at a position.
func (g *taken) put(rec *placedRecord, at int64) {
	if rec.at == at {
		return
	}
	if rec.at != Nowhere {
		i, _ := slices.BinarySearch(g.at, rec.at)
		g.at = slices.Delete(g.at, i, i+1)
		delete(g.of, rec.at)
	}
	i, _ := slices.BinarySearch(g.at, at)
	g.at = slices.Insert(g.at, i, at)
	g.of[at], rec.at = rec, at
}

// placing is what is known of where a record stands.
func (r *placedRecord) placing() *Assignment {
	return &Assignment{At: r.at, Second: NoSecond}
}
