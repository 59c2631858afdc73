// Package folders is a part of the bench: what differs between two listings, with and without an
// object a row.
package folders

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"time"

	"understudy/bench/rig"
	"understudy/kit/folder"
	"understudy/kit/jsonspan"
)

// listing is a JSON array of rows, an id and five fields each, in random
// order; the same rows for the same seed.
func listing(n int, seed, order uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 0))
	rows := make([]string, n)
	for i := range rows {
		rows[i] = fmt.Sprintf(`{"id":"CA%016x%016x","status":"completed","price":"-0.%05d","duration":"%d","updated":"2026-06-01T12:%02d:00Z","to":"+1305%07d"}`,
			r.Uint64(), r.Uint64(), r.IntN(99999), r.IntN(5000), r.IntN(60), r.IntN(9999999))
	}
	o := rand.New(rand.NewPCG(order, 1))
	o.Shuffle(n, func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	return []byte("[" + strings.Join(rows, ",") + "]")
}

// eachRow walks a listing; bodies that are held were checked when they came.
func eachRow(body []byte, yield func(row jsonspan.Value) bool) {
	jsonspan.VisitElements(body, jsonspan.Value{Kind: jsonspan.Array, End: len(body)}, yield)
}

// byOffsets is the product's way: offsets into the bodies, sorted and merged.
func byOffsets(old, new []byte, rows int) (differ int, err error) {
	open := func(body []byte) (*folder.Folder, error) {
		f, err := folder.Wrap(body, rows)
		if err != nil {
			return nil, err
		}
		eachRow(body, func(row jsonspan.Value) bool {
			c := jsonspan.NewCursor(body, row)
			for c.Enter(); c.Next(); {
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
	a, errA := open(old)
	b, errB := open(new)
	if err := errors.Join(errA, errB); err != nil {
		return 0, err
	}
	folder.Merge(a, b, func(folder.Difference, []byte, []byte, []byte) bool { differ++; return true })
	return differ, nil
}

// object is a row as one writes it first.
type object struct {
	id     string
	fields []field
}

type field struct{ name, value string }

// byObjects is the way with a struct a row and its fields as strings, read by
// the same parser, sorted, and merged.
func byObjects(old, new []byte, _ int) (differ int, err error) {
	open := func(body []byte) (all []*object) {
		eachRow(body, func(row jsonspan.Value) bool {
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
	a, b := open(old), open(new)
	for len(a) > 0 && len(b) > 0 {
		switch c := strings.Compare(a[0].id, b[0].id); {
		case c < 0:
			differ++
			a = a[1:]
		case c > 0:
			differ++
			b = b[1:]
		default:
			if !slices.Equal(a[0].fields, b[0].fields) {
				differ++
			}
			a, b = a[1:], b[1:]
		}
	}
	return differ + len(a) + len(b), nil
}

// costed is what comparing two listings took, each time.
type costed struct {
	each          time.Duration
	allocs, bytes float64
}

// cost compares a number of times and checks what was found.
func cost(way func(old, new []byte, rows int) (int, error), old, new []byte, rows, want, times int) (costed, error) {
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	for range times {
		if got, err := way(old, new, rows); err != nil || got != want {
			return costed{}, fmt.Errorf("%d rows differ, want %d: %w", got, want, err)
		}
	}
	took := time.Since(began)
	runtime.ReadMemStats(&after)
	n := float64(times)
	return costed{took / time.Duration(times), float64(after.Mallocs-before.Mallocs) / n, float64(after.TotalAlloc-before.TotalAlloc) / n}, nil
}

// MeasureWays compares two listings of 10,000 equal rows in two orders, by offsets and by objects in turns. It returns
// the milliseconds of each round, and the allocations and bytes of one comparison.
func MeasureWays(r *rig.Run, rounds int) (ms [2][]float64, allocs, bytes [2]float64, err error) {
	rows := r.Size(10_000, 500)
	old, same := listing(rows, 1, 1), listing(rows, 1, 2)
	for round := range rounds {
		for i := range ms {
			n := (i + round) % len(ms)
			way := []func(old, new []byte, rows int) (int, error){byOffsets, byObjects}[n]
			c, err := cost(way, old, same, rows, 0, r.Times(10, 2))
			if err != nil {
				return ms, allocs, bytes, err
			}
			ms[n] = append(ms[n], rig.Ms(c.each))
			allocs[n], bytes[n] = c.allocs, c.bytes
		}
	}
	return ms, allocs, bytes, nil
}

// Measure compares two listings of 10,000 rows both ways in alternating rounds:
// the same rows in two orders, then with one in a hundred changed.
func Measure(_ context.Context, r *rig.Run) error {
	rows := r.Size(10_000, 500)
	old, same := listing(rows, 1, 1), listing(rows, 1, 2)
	edited, changes := edit(same, 100)
	for _, c := range []struct {
		name   string
		new    []byte
		differ int
	}{{"nothing changed", same, 0}, {fmt.Sprintf("%d changed", changes), edited, changes}} {
		if err := foldersOf(r, c.name, old, c.new, rows, c.differ); err != nil {
			return err
		}
	}
	return nil
}

func foldersOf(r *rig.Run, name string, old, new []byte, rows, differ int) error {
	table := [][]string{{fmt.Sprintf("%d rows, %s", rows, name), "offsets ms", "allocations", "KiB", "objects ms", "allocations", "KiB", "times as fast"}}
	var ratios []float64
	var ours, theirs costed
	for round := range r.Times(11, 2) {
		us := func() (err error) { ours, err = cost(byOffsets, old, new, rows, differ, r.Times(40, 2)); return err }
		them := func() (err error) { theirs, err = cost(byObjects, old, new, rows, differ, r.Times(10, 2)); return err }
		if round%2 == 1 {
			us, them = them, us
		}
		if err := us(); err != nil {
			return err
		}
		if err := them(); err != nil {
			return err
		}
		ratio := float64(theirs.each) / float64(ours.each)
		ratios = append(ratios, ratio)
		row := []string{fmt.Sprintf("round %d", round+1)}
		for _, c := range []costed{ours, theirs} {
			row = append(row, rig.Figure(rig.Ms(c.each)), rig.Figure(c.allocs), rig.Figure(c.bytes/1024))
		}
		table = append(table, append(row, rig.Figure(ratio)))
	}
	r.Table(table)
	r.Say("times as fast: median %s, quartiles %s to %s", rig.Figure(rig.Median(ratios)), rig.Figure(rig.Quantile(ratios, 0.25)), rig.Figure(rig.Quantile(ratios, 0.75)))
	if differ == 0 {
		// A few belong to the measuring itself: they are divided by the runs.
		r.AtMost("allocations when nothing changed", float64(int(ours.allocs)), 4, "")
	}
	r.AtLeast("times as fast as with objects, "+name+", lower quartile", rig.Quantile(ratios, 0.25), 3, "")
	r.AtLeast("times less heap than with objects, "+name, theirs.bytes/ours.bytes, 10, "")
	r.Say("")
	return nil
}

// edit changes every nth row of a listing.
func edit(body []byte, nth int) (edited []byte, changes int) {
	var out []string
	eachRow(body, func(row jsonspan.Value) bool {
		text := string(row.Bytes(body))
		if len(out)%nth == 0 {
			text = strings.Replace(text, "completed", "failed", 1)
			changes++
		}
		out = append(out, text)
		return true
	})
	return []byte("[" + strings.Join(out, ",") + "]"), changes
}
