// Training: once enough of a shape was seen, a dictionary is made for it.

package store

import (
	"bytes"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/klauspost/compress/dict"
	"github.com/klauspost/compress/zstd"
)

const (
	trainBodies    = 240      // bodies seen before a shape's blocks get a dictionary
	trainPages     = 64       // pages seen before its pages get one
	trainBytes     = 8 << 20  // or as many bytes, with at least minSamples
	minSamples     = 32       // fewer teach nothing
	longSample     = 32 << 10 // what is longer is not sampled
	bodyDictionary = 16 << 10
	pageDictionary = 4 << 10
	whole          = 4                // samples that are the history of a dictionary
	trainSave      = 30 * time.Second // deadline of storing a dictionary
)

// training is one dictionary of a shape, 0 while it has none, and what it will
// be trained on. Bodies are copies: pages may be large.
type training struct {
	number  int64
	samples []sample
	bytes   int
	done    bool // trained, being trained, or found to be of no use
}

// sample is something to be packed: a version, or a page's skeleton.
type sample struct {
	entry
	skeleton
	first, last string
}

// sample is told every page that was saved, with the writing connection held.
func (db *DB) sample(s *saving) {
	if s.shape == nil || s.kind.spec == nil || len(s.rows) == 0 {
		return
	}
	blocks := &s.shape.dictionary
	for i := range s.fresh {
		if blocks.number != 0 || blocks.done {
			break
		}
		if e := &s.fresh[i]; len(e.body) <= longSample {
			one := sample{entry: *e}
			one.body = slices.Clone(e.body) // a part of a page would keep all of it in memory
			blocks.add(one, len(e.body))
		}
	}
	if blocks.ready(trainBodies) {
		db.train(s.shape, blocks, "dictionary", db.bodyTrial(s.kind, blocks.samples))
	}
	pages := &s.shape.envelope
	if s.p.List && s.keepsPage() && pages.number == 0 && !pages.done && len(s.outside) <= longSample {
		sk := s.skeleton()
		sk.outside = slices.Clone(sk.outside)
		pages.add(sample{skeleton: sk, first: s.rows[0].ID, last: s.rows[len(s.rows)-1].ID}, len(s.outside))
		if pages.ready(trainPages) {
			db.train(s.shape, pages, "envelope", pageTrial(pages.samples))
		}
	}
}

func (t *training) add(s sample, size int) {
	t.samples = append(t.samples, s)
	t.bytes += size
}

func (t *training) ready(enough int) bool {
	return !t.done && t.number == 0 && (len(t.samples) >= enough || t.bytes >= trainBytes && len(t.samples) >= minSamples)
}

// trial is what a dictionary is built of and how it is judged.
type trial struct {
	size    int      // of the dictionary, at most
	history []byte   // scrubbed: some whole samples
	learn   [][]byte // scrubbed
	held    [][]byte // real, not among those learned from
}

// train builds, tries and stores a dictionary, in a goroutine that Close waits
// for: it takes a fraction of a second of one core, and nobody waits. column
// is where the shape keeps its number.
func (db *DB) train(shape *shapeRow, t *training, column string, make func() trial) {
	t.done, t.samples = true, nil
	db.training.Add(1)
	go func() {
		defer db.training.Done()
		log := db.o.Logger.With("shape", shape.name, "of", column)
		body, saves, err := buildDictionary(make())
		if err == nil {
			err = db.putDictionary(shape, t, column, body)
		}
		if err != nil {
			log.Debug("store: no dictionary", "why", err)
			return
		}
		log.Debug("store: dictionary trained", "bytes", len(body), slog.Float64("saves", saves))
	}()
}

// bodyTrial prepares the dictionary of a shape's blocks. Held back are a
// block as a page makes it and some as a single change makes them.
func (db *DB) bodyTrial(kind *kindRow, samples []sample) func() trial {
	return func() trial {
		t := trial{size: bodyDictionary}
		rng := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
		held := len(samples) / 5
		var block []entry
		for i, s := range samples[held:] {
			clean := s.entry
			clean.body, clean.id = scrub(rng, kind.spec, s.body), ""
			if i < whole {
				t.history = append(t.history, clean.body...)
			}
			t.learn = append(t.learn, appendBlock(nil, []entry{clean}))
			if block = append(block, clean); len(block) == perBlock/2 {
				t.learn = append(t.learn, appendBlock(nil, block))
				block = block[:0]
			}
		}
		var entries []entry
		for i, s := range samples[:held] {
			entries = append(entries, s.entry)
			if i%6 == 0 {
				t.held = append(t.held, appendBlock(nil, []entry{s.entry}))
			}
		}
		t.held = append(t.held, appendBlock(nil, entries[:min(perBlock, len(entries))]))
		return t
	}
}

// pageTrial prepares the dictionary of a shape's pages.
func pageTrial(samples []sample) func() trial {
	return func() trial {
		t := trial{size: pageDictionary}
		rng := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
		for i := range samples {
			s := &samples[i]
			if i%5 == 0 {
				t.held = append(t.held, s.skeleton.appendTo(nil, s.first, s.last))
				continue
			}
			clean := s.skeleton
			clean.outside, _ = mark(clean.outside, s.first, s.last)
			clean.outside = scrubOutside(rng, clean.outside)
			uri := scrubOutside(rng, []byte(`"`+clean.uri+`"`))
			clean.uri, clean.id, clean.next = string(uri[1:len(uri)-1]), "", ""
			t.learn = append(t.learn, clean.appendTo(nil, "", ""))
			if len(t.learn) <= whole {
				t.history = append(t.history, t.learn[len(t.learn)-1]...)
			}
		}
		return t
	}
}

// errUseless: the dictionary saves less than a tenth.
var errUseless = errors.New("it saves less than 10 %")

// buildDictionary builds a dictionary from some whole samples as they are, which
// is good when samples are much alike; where that is of no use for what was held
// back, from what is frequent in all of them.
func buildDictionary(t trial) (body []byte, saves float64, err error) {
	ways := []func() ([]byte, error){
		func() ([]byte, error) {
			return zstd.BuildDict(zstd.BuildDictOptions{ID: 1, Contents: t.learn, History: t.history[:min(t.size, len(t.history))],
				Offsets: [3]int{1, 4, 8}, CompatV155: true, Level: packLevel})
		},
		func() ([]byte, error) {
			return dict.BuildZstdDict(t.learn, dict.Options{MaxDictSize: t.size, HashBytes: 8, ZstdDictID: 1, ZstdDictCompat: true, ZstdLevel: packLevel})
		},
	}
	// The first that is of use is taken: trying both costs twice the work.
	for _, build := range ways {
		one, saved, berr := tryDictionary(build, t.held)
		if berr == nil {
			return one, saved, nil
		}
		err = errors.Join(err, berr)
	}
	return nil, 0, err
}

// tryDictionary builds a dictionary and tries it on what was held back: it
// must bring everything back and save at least a tenth. The builders are young
// and may panic on odd input; that is an error here.
func tryDictionary(build func() ([]byte, error), held [][]byte) (body []byte, saves float64, err error) {
	defer func() {
		if p := recover(); p != nil {
			body, err = nil, fmt.Errorf("the dictionary builder failed: %v", p)
		}
	}()
	if body, err = build(); err != nil {
		return nil, 0, err
	}
	without, err := newEncoder(nil)
	if err != nil {
		return nil, 0, err
	}
	with, err := newEncoder(body)
	if err != nil {
		return nil, 0, err
	}
	dec, err := newDecoder(body)
	if err != nil {
		return nil, 0, err
	}
	defer dec.Close()
	before, after := 0, 0
	for _, raw := range held {
		packed := with.EncodeAll(raw, nil)
		back, err := dec.DecodeAll(packed, make([]byte, 0, len(raw)))
		if err != nil || !bytes.Equal(back, raw) {
			return nil, 0, fmt.Errorf("the dictionary does not bring back what was packed (%v)", err)
		}
		after += len(packed)
		before += len(without.EncodeAll(raw, nil))
	}
	if after*10 > before*9 {
		return nil, 0, errUseless
	}
	return body, 1 - float64(after)/float64(before), nil
}

var (
	insertDictionary = &statement{head: "INSERT INTO dictionary (shape, body) VALUES (?, ?) RETURNING number"}
	setDictionary    = map[string]*statement{
		"dictionary": {head: "UPDATE shape SET dictionary = ? WHERE number = ?"},
		"envelope":   {head: "UPDATE shape SET envelope = ? WHERE number = ?"},
	}
)

// putDictionary stores a dictionary; what is packed from now on uses it. Older
// blocks and pages keep theirs.
func (db *DB) putDictionary(shape *shapeRow, t *training, column string, body []byte) error {
	ctx, cancel := context.WithTimeout(context.Background(), trainSave)
	defer cancel()
	return db.write(ctx, func(c *conn) (bool, error) {
		var number int64
		broken, err := c.transaction(ctx, beginWrite, func() error {
			_, err := c.one(insertDictionary, []driver.Value{shape.number, body}, func(r []driver.Value) { number = r[0].(int64) })
			if err != nil {
				return err
			}
			return c.exec(setDictionary[column], 0, number, shape.number)
		})
		if err == nil {
			if err = db.packer.learn(number, body); err == nil {
				t.number = number
			}
		}
		return broken, err
	})
}
