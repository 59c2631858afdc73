// Find: the records of a person, and what lies under them.

package store

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"database/sql/driver"
	"fmt"
	"maps"
	"slices"
	"strings"

	"understudy"
	"understudy/internal/store/codec"
	"understudy/internal/store/names"
	"understudy/internal/store/sqlite"
	"understudy/kit/jsonspan"
	"understudy/spec"
)

// Found is what an erasure would take.
type Found struct {
	Kinds map[string]int // how many records of each kind
	all   []found
}

// Records is how many records were found.
func (f Found) Records() int { return len(f.all) }

// maxRounds bounds how deep records lie under one another.
const maxRounds = 8

// finding is one search.
type finding struct {
	*eraseFinder
	source  string
	known   map[string]bool // ids found, "kind/id"
	roots   map[string]string
	all     []found
	numbers map[string]bool
}

// eraseFinder is what a record is found by.
type eraseFinder struct {
	db   *DB
	text string
	n    understudy.Phone
}

// Find finds the records of a source that belong to a number: those in which,
// in any version that is held, a field of class phone is the number in any way
// of writing it, and those that lie under them (a call's recordings, a
// message's images), by their parent or a link. A phone field that is no number
// ("client:anna") is found by its text. what may also be KIND/ID: that record
// and what lies under it. It reads every body of the source once, or a few times
// when something lies deep. ErrInvalid: the source is unknown, or a number
// without a country's code is several.
func (db *DB) Find(ctx context.Context, source, what string) (Found, error) {
	leave, err := db.pool.Begin()
	if err != nil {
		return Found{}, err
	}
	defer leave()
	f, err := db.find(ctx, source, what)
	return f, sqlite.Failed(false, err, "find records in %s", source)
}

func (db *DB) find(ctx context.Context, source, what string) (Found, error) {
	number, ok := db.source(source)
	if !ok {
		return Found{}, errNoSource(source)
	}
	f := &finding{eraseFinder: &eraseFinder{db: db, text: what, n: understudy.ReadPhone(what)}, source: source, known: map[string]bool{},
		roots: map[string]string{}, numbers: map[string]bool{}}
	named := false
	if name, id, ok := strings.Cut(what, "/"); ok && db.kind(source, name) != nil {
		named = true
		if err := f.record(ctx, name, id); err != nil {
			return Found{}, err
		}
	}
	for round := 0; round < maxRounds; round++ {
		before := len(f.all)
		if named && before == 0 {
			break // there is no such record, so nothing lies under it
		}
		err := db.eachBody(ctx, number, func(k *kindRow, name string, e *codec.Entry) bool {
			if !f.known[name+"/"+e.ID] && (round == 0 && !named && f.phones(k.spec, e.Body) || f.under(k.spec, e.Body)) {
				f.add(k, name, e)
			}
			return true
		})
		if err != nil {
			return Found{}, err
		}
		if len(f.all) == before {
			break
		}
	}
	return f.found()
}

// found is what was found, unless it may be several people's.
func (f *finding) found() (Found, error) {
	if len(f.numbers) > 1 {
		return Found{}, fmt.Errorf("%w: %s may be one of %s; write it with its country's code, as in +14155550100", understudy.ErrInvalid,
			f.text, strings.Join(slices.Sorted(maps.Keys(f.numbers)), ", "))
	}
	kinds := map[string]int{}
	for _, one := range f.all {
		kinds[one.kind]++
	}
	return Found{Kinds: kinds, all: f.all}, nil
}

// record begins with one record.
func (f *finding) record(ctx context.Context, kind, id string) error {
	k := f.db.kind(f.source, kind)
	return f.db.pool.Read(ctx, func(c *sqlite.Conn) error {
		record, err := names.Record(c, k.number, sqlite.AppendID(nil, k.prefix, id))
		if err == nil && record != 0 {
			f.add(k, kind, &codec.Entry{Record: record, ID: id})
		}
		return err
	})
}

func (f *finding) add(k *kindRow, name string, e *codec.Entry) {
	f.known[name+"/"+e.ID] = true
	f.all = append(f.all, found{kind: name, id: e.ID, record: e.Record})
	if k.spec == nil || k.spec.Own == "" { // what is done with a number of ours does not lie under it
		f.roots[e.ID] = name
	}
}

// phones reports whether a field of class phone is the number.
func (f *finding) phones(k *spec.Kind, body []byte) bool {
	if k == nil {
		return false
	}
	doc, err := jsonspan.Document(body)
	if err != nil || doc.Kind != jsonspan.Object {
		return false
	}
	hit := false
	for _, field := range k.Fields {
		if field.Class != spec.ClassPhone {
			continue
		}
		v, ok := jsonspan.Find(body, doc, field.Name)
		if !ok || v.Kind != jsonspan.String {
			continue
		}
		text := jsonspan.Text(body, v)
		m := understudy.ReadPhone(text)
		switch {
		case f.n.Digits == "":
			hit = hit || strings.EqualFold(text, f.text)
		case f.n.Same(m):
			hit = true
			if m.Country && !f.n.Country {
				f.numbers["+"+m.Digits] = true
			}
		}
	}
	return hit
}

// under reports whether a record lies under one that was found.
func (f *finding) under(k *spec.Kind, body []byte) bool {
	if k == nil || len(f.roots) == 0 {
		return false
	}
	var doc jsonspan.Value
	for _, field := range k.Fields {
		if field.Link == "" && field.Name != k.Parent {
			continue
		}
		if doc.Kind == jsonspan.None {
			var err error
			if doc, err = jsonspan.Document(body); err != nil || doc.Kind != jsonspan.Object {
				return false
			}
		}
		v, ok := jsonspan.Find(body, doc, field.Name)
		if !ok || v.Kind != jsonspan.String {
			continue
		}
		if kind, ok := f.roots[jsonspan.Text(body, v)]; ok && (field.Link == kind || field.Link == spec.AnyKind || field.Link == "") {
			return true
		}
	}
	return false
}

var selectSourceBlocks = &sqlite.Statement{Head: `SELECT b.number, h.kind FROM block b JOIN shape h ON h.number = b.shape
	JOIN kind k ON k.number = h.kind
	WHERE b.number > ? AND k.source = ? ORDER BY b.number LIMIT ?`}

// eachBody calls each for every body that is held of a source, a few blocks in
// one read transaction, until it returns false.
func (db *DB) eachBody(ctx context.Context, source int64, each func(k *kindRow, name string, e *codec.Entry) bool) error {
	kinds, names := map[int64]*kindRow{}, map[int64]string{}
	db.catalog.mu.RLock()
	for name, k := range db.catalog.kinds {
		kinds[k.number], names[k.number] = k, name.kind
	}
	db.catalog.mu.RUnlock()
	last, more := int64(-1), true
	for more {
		n := 0
		err := db.pool.Read(ctx, func(c *sqlite.Conn) error {
			type place struct{ block, kind int64 }
			var places []place
			err := c.Query(selectSourceBlocks, 0, []driver.Value{last, source, int64(scanPages)}, func(r []driver.Value) error {
				places = append(places, place{r[0].(int64), r[1].(int64)})
				return nil
			})
			blocks := db.blocks(c)
			for _, p := range places {
				if err != nil {
					return err
				}
				n, last = n+1, p.block
				b, err := blocks.block(p.block)
				if err != nil {
					return err
				}
				for i := range b.entries {
					e, err := blocks.entry(p.block*codec.PerBlock + int64(i))
					if err != nil {
						return err
					}
					if !e.Pruned() && kinds[p.kind] != nil && !each(kinds[p.kind], names[p.kind], e) {
						n = 0
						return nil
					}
				}
			}
			return err
		})
		if err != nil {
			return err
		}
		more = n == scanPages
	}
	return nil
}

var (
	selectSeal = &sqlite.Statement{Head: "SELECT seal FROM counter"}
	updateSeal = &sqlite.Statement{Head: "UPDATE counter SET seal = ?"}
)

// sealKey is the key of the hashes in receipts, made when it is first needed.
func sealKey(c *sqlite.Conn) (key []byte, err error) {
	if _, err = c.One(selectSeal, nil, func(r []driver.Value) { key = r[0].([]byte) }); err != nil || len(key) > 0 {
		return key, err
	}
	key = newSeal()
	return key, c.Exec(updateSeal, 0, key)
}

func newSeal() []byte {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // it never fails
	return key
}

// sealed is the keyed hash of what was asked for.
func sealed(key []byte, source, what string) []byte {
	if n := understudy.ReadPhone(what); n.Digits != "" {
		what = n.Digits
	}
	mac := hmac.New(sha256.New, key)
	mac.Write(append(append([]byte(source), 0), bytes.ToLower([]byte(what))...))
	return mac.Sum(nil)[:16]
}
