// Package otter is a part of the bench: the hot tier beside a cache of the library otter that holds the same entries by
// their weight.
package otter

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"

	"understudy"
	"understudy/bench/rig"
	"understudy/mirror/cache"
)

const (
	limit   = 25 << 20 // of each cache, in bytes
	writers = 4

	// warmAnswer is the CPU of a warm answer of the express lane where 16 requests stand in a write (express.txt): it is
	// the least that a look-up is a part of.
	warmAnswer = 5 * time.Microsecond
	// mostSlower is how much of it a look-up in otter may take longer.
	mostSlower = 0.05
)

// Measure compares look-ups, writes, what is held at most, and what is found. The hot tier stays ours unless a look-up in
// otter takes at most 5 % of a warm answer longer, and otter never holds more than its limit.
func Measure(ctx context.Context, r *rig.Run) error {
	held, err := newPages(r.Size(4_000, 500), 60, 1<<40) // of full pages, 25 MiB hold about as many
	if err != nil {
		return err
	}
	held.lookUp(r)
	for _, of := range []struct{ pages, rows int }{{800, 12_000}, {40_000, 60}} {
		p, err := newPages(r.Size(of.pages, of.pages/20), of.rows, limit)
		if err != nil || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		r.Say("%d pages of %d bytes each; of them both caches keep %d MiB", len(p.entries), p.bytes/int64(len(p.entries)), limit/rig.Mib)
		r.Say("")
		p.write(r)
		p.read(r)
		r.Say("")
	}
	return nil
}

// pages are packed pages, and what each of them takes by the books of the tier.
type pages struct {
	keys    []understudy.Key
	entries []*cache.Entry
	weights map[uint64]uint32 // by hash
	bytes   int64             // of all
	tier    *cache.Tier       // has packed them, and holds none yet
}

// newPages packs pages of up to so many rows for a tier with a limit.
func newPages(n, rows int, limit int64) (*pages, error) {
	p := &pages{weights: map[uint64]uint32{}, tier: cache.New(limit)}
	scale := cache.New(1 << 40)
	group := cache.NewGroup("calls")
	random := rand.New(rand.NewPCG(1, 36))
	for i := range n {
		body := []byte(`{"calls":[`)
		for range 1 + random.IntN(rows) {
			body = fmt.Appendf(body, `{"sid":"CA%016x%016x","status":"completed","duration":"%d"},`, random.Uint64(), random.Uint64(), i)
		}
		page := &understudy.Page{Key: understudy.Key{Source: "twilio", URI: fmt.Sprintf("/2010-04-01/Calls.json?PageToken=PA%08x", i)},
			Shape: "calls", List: true, Status: 200, Body: append(body, "]}"...)}
		e := p.tier.Pack(group, page)
		if e == nil {
			return nil, fmt.Errorf("otter: page %d cannot be packed", i)
		}
		scale.Put(e, nil)
		weight := scale.Usage().Bytes
		scale.Drop(e)
		if _, taken := p.weights[e.Hash]; taken || weight <= 0 {
			return nil, fmt.Errorf("otter: page %d has the weight %d", i, weight)
		}
		p.keys, p.entries = append(p.keys, page.Key), append(p.entries, e)
		p.weights[e.Hash], p.bytes = uint32(weight), p.bytes+weight
	}
	return p, nil
}

// lookUp times look-ups of pages that are all held.
func (p *pages) lookUp(r *rig.Run) {
	theirs := otter.Must(&otter.Options[uint64, *cache.Entry]{MaximumWeight: 1 << 40, Weigher: p.weigh})
	for _, e := range p.entries {
		p.tier.Put(e, nil)
		theirs.Set(e.Hash, e)
	}
	random := rand.New(rand.NewPCG(2, 36))
	often := rand.NewZipf(random, 1.1, 8, uint64(len(p.keys)-1))
	asked := make([]understudy.Key, 1<<16)
	for i := range asked {
		asked[i] = p.keys[often.Uint64()]
	}
	ways := []func(understudy.Key) *cache.Entry{
		p.tier.Find,
		func(key understudy.Key) *cache.Entry {
			e, _ := theirs.GetIfPresent(p.tier.Hash(key))
			return e
		},
	}
	table := [][]string{{"look-up, ns", "1 reader: ours", "otter", "4 readers: ours", "otter"}}
	var slower []float64
	for round := range r.Times(15, 2) {
		row := []string{fmt.Sprintf("round %d", round+1)}
		for _, readers := range []int{1, 4} {
			var took [2]time.Duration
			for i := range ways {
				way := (i + round) % 2
				took[way] = each(readers, asked, r.Times(16, 1), ways[way])
			}
			slower = append(slower, 100*float64(took[1]-took[0])/float64(warmAnswer))
			row = append(row, rig.Figure(float64(took[0])), rig.Figure(float64(took[1])))
		}
		table = append(table, row)
	}
	r.Table(table)
	r.AtMost("a look-up in otter: longer than in ours, of a warm answer, median", rig.Median(slower), 100*mostSlower, "%")
	r.Say("")
}

// each returns what one look-up takes a reader.
func each(readers int, asked []understudy.Key, rounds int, find func(understudy.Key) *cache.Entry) time.Duration {
	runtime.GC()
	var wg sync.WaitGroup
	began := time.Now()
	for reader := range readers {
		wg.Go(func() {
			for range rounds {
				for i := range asked {
					if e := find(asked[(i+reader*len(asked)/readers)%len(asked)]); e != nil {
						e.Use()
					}
				}
			}
		})
	}
	wg.Wait()
	cores := min(readers, runtime.GOMAXPROCS(0))
	return time.Since(began) * time.Duration(cores) / time.Duration(readers*rounds*len(asked))
}

// write has four writers put all pages into caches that hold a part of them, and looks how much these hold at most.
func (p *pages) write(r *rig.Run) {
	table := [][]string{{"put, ns", "ours", "held at most, % of the limit", "otter", "held at most, % of the limit"}}
	var ours, theirs []float64
	for round := range r.Times(9, 2) {
		tier := cache.New(limit)
		var held most
		took := p.put(func(e *cache.Entry) {
			tier.Put(e, nil)
			if e.Hash%8 == 0 {
				held.note(tier.Usage().Bytes)
			}
		})
		ours = append(ours, held.share())
		table = append(table, []string{fmt.Sprintf("round %d", round+1), rig.Figure(float64(took)), rig.Figure(held.share())})
		tier.DropAll(p.entries) // so that they can be put into another

		var now atomic.Int64 // bytes of what can be found in the cache
		var otters most
		c := otter.Must(&otter.Options[uint64, *cache.Entry]{MaximumWeight: limit, Weigher: p.weigh,
			OnAtomicDeletion: func(e otter.DeletionEvent[uint64, *cache.Entry]) { now.Add(-int64(p.weights[e.Key])) }})
		took = p.put(func(e *cache.Entry) {
			c.Set(e.Hash, e)
			otters.note(now.Add(int64(p.weights[e.Hash]))) // the true number is no less
		})
		theirs = append(theirs, otters.share())
		c.StopAllGoroutines()
		table[round+1] = append(table[round+1], rig.Figure(float64(took)), rig.Figure(otters.share()))
	}
	r.Table(table)
	r.AtMost("held by ours at most, worst round", rig.Quantile(ours, 1), 100, "% of the limit")
	r.AtMost("held by otter at most, worst round", rig.Quantile(theirs, 1), 100, "% of the limit")
	r.Say("")
}

// put gives every page to a cache, a part of them by each writer, and returns what one takes.
func (p *pages) put(into func(*cache.Entry)) time.Duration {
	var wg sync.WaitGroup
	began := time.Now()
	for writer := range writers {
		wg.Go(func() {
			for i := writer; i < len(p.entries); i += writers {
				into(p.entries[i])
			}
		})
	}
	wg.Wait()
	return time.Since(began) / time.Duration(len(p.entries))
}

// read has one reader ask for a few pages often and walk through all others, and counts what is found.
func (p *pages) read(r *rig.Run) {
	c := otter.Must(&otter.Options[uint64, *cache.Entry]{MaximumWeight: limit, Weigher: p.weigh})
	random := rand.New(rand.NewPCG(3, 36))
	often := rand.NewZipf(random, 1.1, 8, uint64(len(p.keys)/4-1))
	walked, asked := len(p.keys)/4, 0
	var ours, theirs int
	for range r.Times(1_000_000, 20_000) {
		i := int(often.Uint64())
		if random.IntN(4) == 0 { // a walk that comes by once
			i, walked = walked, walked+1
			if walked == len(p.keys) {
				walked = len(p.keys) / 4
			}
		} else {
			asked++
		}
		e := p.entries[i]
		if found := p.tier.Find(p.keys[i]); found == nil {
			p.tier.Put(e, nil)
		} else if found.Use(); i < len(p.keys)/4 {
			ours++
		}
		if _, found := c.GetIfPresent(e.Hash); !found {
			c.Set(e.Hash, e)
		} else if i < len(p.keys)/4 {
			theirs++
		}
	}
	c.StopAllGoroutines()
	r.Say("found of what is asked for more than once, beside a walk: ours %s %%, otter %s %%", rig.Figure(100*float64(ours)/float64(asked)),
		rig.Figure(100*float64(theirs)/float64(asked)))
}

func (p *pages) weigh(hash uint64, _ *cache.Entry) uint32 { return p.weights[hash] }

// most is the largest number of bytes that was noted.
type most struct{ bytes atomic.Int64 }

func (m *most) note(bytes int64) {
	for was := m.bytes.Load(); bytes > was && !m.bytes.CompareAndSwap(was, bytes); was = m.bytes.Load() {
	}
}

func (m *most) share() float64 { return 100 * float64(m.bytes.Load()) / limit }
