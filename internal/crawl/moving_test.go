// Walks over lists whose pages are named by numbers, while rows come and go.

package crawl

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"understudy"
	"understudy/internal/checktest"
	draw "understudy/internal/sample"
	"understudy/spec"
	"understudy/upstream"
)

// moving has the boxes of a world cut by number, as a paging says; between two answers
// rows come and go. shown are those that a page had.
func moving(t *testing.T, w *world, way string, between func()) (shown map[string]bool, pages *int) {
	t.Helper()
	before, rest, _ := strings.Cut(madeUp, "paging: {")
	_, rest, _ = strings.Cut(rest, "}")
	text := before + "paging: {" + way + "}" + rest
	sp, err := upstream.ReadSpec("moving.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	w.spec, w.src = sp, &spec.Source{Name: "post", Spec: sp, User: "me"}
	shown, pages = map[string]bool{}, new(int)
	offset := strings.Contains(way, "offset")
	odd := strings.Contains(way, "max_size: 8") // sizes other than that are refused
	w.change = func(p *understudy.Page) {
		if *pages++; *pages > 3000 {
			t.Fatal("the walk does not end")
		}
		target, err := sp.ResolveKey(p.Key)
		if err != nil {
			t.Fatal(err)
		}
		get := func(name string, or int) int {
			text, _ := target.Query.Get(name)
			if n, err := strconv.Atoi(text); err == nil {
				return n
			}
			return or
		}
		size, at := min(get("size", 5), 10), get("page", 0)
		if p.Rows, p.Next = nil, (understudy.Key{}); odd && size != 8 {
			p.Status = http.StatusUnprocessableEntity
			return
		}
		from, next := at*size, at+1
		if offset {
			from, next = at, at+size
		}
		rows := w.things["boxes"]
		from = min(from, len(rows))
		for _, x := range rows[from:min(from+size, len(rows))] {
			p.Rows = append(p.Rows, understudy.Row{ID: x.id})
			shown[x.id] = true
		}
		if from+size < len(rows) {
			q := target.Query.Remove(func(q understudy.Param) bool { return q.Name == "page" })
			to, err := sp.Resolve("post", target.Key.Path(), append(q, understudy.Param{Name: "page", Value: strconv.Itoa(next)}).String())
			if err != nil {
				t.Fatal(err)
			}
			p.Next = to.Key
		}
		between()
	}
	return shown, pages
}

var waysThatMove = []string{
	"style: number, page: page, size: size, default_size: 5, max_size: 10",
	"style: offset, page: page, size: size, default_size: 5, max_size: 10",
	"style: header, page: page, size: size, default_size: 5, max_size: 10",
	"style: number, page: page, size: size, default_size: 8, max_size: 8",
	"style: number, page: page",
}

// Every row that is there from the beginning of a walk to its end is seen, whatever
// comes and goes around it meanwhile.
func TestAWalkOverPagesThatMoveMissesNothing(t *testing.T) {
	seed := draw.Seed(t)
	rounds := 20
	if draw.IsFullRun() {
		rounds = 500
	}
	for i, way := range waysThatMove {
		t.Run(way, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, uint64(i)))
			for round := range rounds {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t)
					for n := range 80 {
						w.things["boxes"] = append(w.things["boxes"], thing{id: fmt.Sprint("b", n)})
					}
					calm, n, last := 2+rng.IntN(6), 0, 0
					shown, _ := moving(t, w, way, func() {
						// Where pages cannot overlap, two changes between two looks may hide each other.
						if last++; i >= 3 && last < 5 {
							return
						}
						rows := w.things["boxes"]
						what := rng.IntN(calm)
						if what < 2 {
							last = 0
						}
						switch what {
						case 0:
							n++
							w.things["boxes"] = slices.Insert(slices.Clone(rows), 0, thing{id: fmt.Sprint("new", round, "-", n)})
						case 1:
							if at := rng.IntN(max(1, len(rows)-3)); len(rows) > 40 {
								w.things["boxes"] = slices.Delete(slices.Clone(rows), at, at+1+rng.IntN(3))
							}
						}
					})
					x := w.walker(Settings{})
					keepKind(t, x, "boxes")
					if err := w.work(t.Context(), x); err != nil {
						t.Fatal(err)
					}
					complete(t, x, "boxes")
					for _, row := range w.things["boxes"] {
						if strings.HasPrefix(row.id, "b") && !shown[row.id] {
							t.Fatalf("%s was there all the time and was not seen: %q", row.id, w.asked)
						}
					}
				})
			}
		})
	}
}

// A list that rests costs few pages more than it has.
func TestOverlapIsCheap(t *testing.T) {
	for i, most := range []int{15, 11, 15, 40, 40} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			for n := range 90 {
				w.things["boxes"] = append(w.things["boxes"], thing{id: fmt.Sprint("b", n)})
			}
			shown, pages := moving(t, w, waysThatMove[i], func() {})
			x := w.walker(Settings{})
			keepKind(t, x, "boxes")
			if err := w.work(t.Context(), x); err != nil || len(shown) != 90 {
				t.Fatalf("%d rows, %v", len(shown), err)
			}
			if *pages > most {
				t.Errorf("%s: %d pages, want at most %d", waysThatMove[i], *pages, most)
			}
			if s := state(t, x, "boxes"); s.Total != 90 {
				t.Errorf("%s: %d records counted", waysThatMove[i], s.Total)
			}
		})
	}
}

// A list whose every page is another one than before ends with an error, not never.
func TestRowsThatGoFasterThanTheyAreRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := newWorld(t), 0
		renew := func() {
			rows := make([]thing, 5000)
			for i := range rows {
				n++
				rows[i].id = "b" + strconv.Itoa(n)
			}
			w.things["boxes"] = rows
		}
		renew()
		_, pages := moving(t, w, waysThatMove[1], renew)
		x := w.walker(Settings{})
		keepKind(t, x, "boxes")
		err := w.work(t.Context(), x)
		if err == nil || !strings.Contains(err.Error(), "rows disappear faster than the list is read") {
			t.Fatalf("after %d pages: %v", *pages, err)
		}
		if s := state(t, x, "boxes"); s.Complete || *pages > 1000 {
			t.Errorf("after %d pages %+v", *pages, s)
		}
	})
}

// An upstream that gives the same page under every number, whatever it is asked for, ends
// the walk with an error.
func TestNumbersThatCountForNothing(t *testing.T) {
	for _, way := range waysThatMove {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			for n := range 30 {
				w.things["boxes"] = append(w.things["boxes"], thing{id: fmt.Sprint("b", n)})
			}
			_, pages := moving(t, w, way, func() {})
			honest := w.change
			w.change = func(p *understudy.Page) {
				honest(p)
				target, err := w.spec.ResolveKey(p.Key)
				if err != nil {
					t.Fatal(err)
				}
				text, _ := target.Query.Get("page")
				at, _ := strconv.Atoi(text)
				p.Rows = p.Rows[:0]
				for n := range 5 {
					p.Rows = append(p.Rows, understudy.Row{ID: fmt.Sprint("b", n)})
				}
				q := target.Query.Remove(func(q understudy.Param) bool { return q.Name == "page" })
				q = append(q, understudy.Param{Name: "page", Value: strconv.Itoa(at + 5)})
				to, err := w.spec.Resolve("post", target.Key.Path(), q.String())
				if err != nil {
					t.Fatal(err)
				}
				p.Next = to.Key
			}
			x := w.walker(Settings{})
			keepKind(t, x, "boxes")
			err := w.work(t.Context(), x)
			checktest.MustTrue(t, err != nil, "%s: err is nil", way)
			checktest.True(t, *pages <= 50, "%s: *pages is %v, want <= 50; %v", way, *pages, err)
			if why := regexp.MustCompile("form a circle|refuses the list|begins before the requested offset"); !why.MatchString(err.Error()) {
				t.Errorf("%s: %v", way, err)
			}
			if s := state(t, x, "boxes"); s.Complete {
				t.Errorf("%s: complete: %+v", way, s)
			}
		})
	}
}
