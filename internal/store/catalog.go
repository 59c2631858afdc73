// The numbers of sources, kinds and shapes: few, and never changed once given.

package store

import (
	"context"
	"database/sql/driver"
	"fmt"
	"sync"

	"understudy"
	"understudy/internal/store/postings"
	"understudy/internal/store/sqlite"
	"understudy/internal/store/terms"
	"understudy/internal/store/words"
	"understudy/spec"
)

// kindRow is a kind as the database numbers it.
type kindRow struct {
	number, source int64
	prefix         string
	spec           *spec.Kind // nil when the specs do not name it
	words          words.Kind
	form           string // of the words that are in the index
	terms          terms.Kind
	print          string // fingerprint of the terms that are in the index
	name           string
}

// shapeRow is a shape as the database numbers it.
type shapeRow struct {
	number, slot int64
	kind         *kindRow
	name         string
}

type kindName struct{ source, kind string }
type shapeName struct{ source, kind, shape string }

// catalog is everything numbered so far, in memory.
type catalog struct {
	specs   map[string]*spec.Spec
	mu      sync.RWMutex
	sources map[string]int64
	kinds   map[kindName]*kindRow
	shapes  map[shapeName]*shapeRow
	parents map[int64]string // by number of the shape: where parents are, if they are
}

func newCatalog(specs map[string]*spec.Spec) *catalog {
	return &catalog{specs: specs, sources: map[string]int64{}, kinds: map[kindName]*kindRow{}, shapes: map[shapeName]*shapeRow{},
		parents: map[int64]string{}}
}

var (
	selectSources = &sqlite.Statement{Head: "SELECT number, name FROM source"}
	selectKinds   = &sqlite.Statement{Head: "SELECT k.number, k.source, k.name, k.prefix, s.name, k.terms, coalesce(k.words, '') " +
		"FROM kind k JOIN source s ON s.number = k.source"}
	selectShapes = &sqlite.Statement{Head: "SELECT h.number, h.slot, h.name, k.name, s.name FROM shape h " +
		"JOIN kind k ON k.number = h.kind JOIN source s ON s.number = k.source"}
	insertSource = &sqlite.Statement{Head: "INSERT INTO source (name) VALUES (?) ON CONFLICT DO NOTHING"}
	insertKind   = &sqlite.Statement{Head: "INSERT INTO kind (source, name, prefix, parent, terms, words) " +
		"SELECT number, ?, ?, ?, ?, ? FROM source WHERE name = ? ON CONFLICT DO NOTHING"}
	insertShape = &sqlite.Statement{Head: "INSERT INTO shape (kind, slot, name) SELECT k.number, (SELECT count(*) " +
		"FROM shape WHERE kind = k.number), ? FROM kind k JOIN source s ON s.number = k.source WHERE s.name = ? " +
		"AND k.name = ? ON CONFLICT DO NOTHING"}
)

// readCatalog fills the catalog from the database.
func (x *catalog) readCatalog(c *sqlite.Conn) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	err := c.Query(selectSources, 0, nil, func(r []driver.Value) error {
		x.sources[r[1].(string)] = r[0].(int64)
		return nil
	})
	if err != nil {
		return err
	}
	err = c.Query(selectKinds, 0, nil, func(r []driver.Value) error {
		name := kindName{r[4].(string), r[2].(string)}
		if x.kinds[name] == nil {
			k := &kindRow{number: r[0].(int64), source: r[1].(int64), prefix: r[3].(string), spec: x.kindSpec(name), name: name.kind,
				form: r[6].(string)}
			k.print, _ = r[5].(string)
			k.words.Number, k.words.Rule = k.number, words.RuleOf(k.spec)
			k.terms = terms.Kind{Spec: k.spec, Fields: terms.Fields(x.specs[name.source], k.spec)}
			if k.spec == nil {
				k.terms.Fields = terms.ReadFields(k.print)
				k.words.Rule = words.ReadRule(k.form)
			}
			x.kinds[name] = k
		}
		return nil
	})
	if err != nil {
		return err
	}
	return c.Query(selectShapes, 0, nil, func(r []driver.Value) error {
		name := shapeName{r[4].(string), r[3].(string), r[2].(string)}
		if x.shapes[name] == nil {
			x.shapes[name] = &shapeRow{number: r[0].(int64), slot: r[1].(int64), name: name.shape, kind: x.kinds[kindName{name.source,
				name.kind}]}
			x.parents[r[0].(int64)] = x.shapes[name].kind.parentField()
		}
		return nil
	})
}

func (x *catalog) kindSpec(name kindName) *spec.Kind {
	if sp := x.specs[name.source]; sp != nil {
		return sp.Kind(name.kind)
	}
	return nil
}

// usualPrefix is what most ids of a kind begin with, "" when the spec does not
// say so in two characters.
func usualPrefix(k *spec.Kind) string {
	if k != nil && len(k.Prefixes) > 0 && len(k.Prefixes[0]) == 2 {
		return k.Prefixes[0]
	}
	return ""
}

// source is a source's number; ok is false when nothing of it was ever saved.
func (x *catalog) source(name string) (number int64, ok bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	number, ok = x.sources[name]
	return number, ok
}

func (x *catalog) kind(source, kind string) *kindRow {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.kinds[kindName{source, kind}]
}

func (x *catalog) shape(source, kind, shape string) *shapeRow {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.shapes[shapeName{source, kind, shape}]
}

// parentField is the field of parents of a shape's kind, by the shape's number.
func (x *catalog) parentField(shape int64) string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.parents[shape]
}

// number makes sure that source, kind and shape have numbers (kind and shape
// may be empty). It is called with the writing connection, outside a
// transaction: a number given in vain does no harm.
func (x *catalog) number(ctx context.Context, c *sqlite.Conn, source, kind, shape string) error {
	if _, ok := x.source(source); ok && (kind == "" || x.kind(source, kind) != nil && (shape == "" || x.shape(source, kind,
		shape) != nil)) {
		return nil
	}
	sp := x.kindSpec(kindName{source, kind})
	_, err := c.Transaction(ctx, sqlite.BeginWrite, func() error {
		err := c.Exec(insertSource, 0, source)
		if err == nil && kind != "" {
			err = c.Exec(insertKind, 0, kind, usualPrefix(sp), (&kindRow{spec: sp}).parentField(),
				terms.Fingerprint(terms.Fields(x.specs[source], sp)), words.RuleOf(sp).Form(), source)
		}
		if err == nil && shape != "" {
			if err = x.checkShapes(); err == nil {
				err = c.Exec(insertShape, 0, shape, source, kind)
			}
			if err != nil {
				err = fmt.Errorf("shape %s of kind %s: %w", shape, kind, err)
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	return x.readCatalog(c)
}

// checkShapes makes sure that the numbers of kinds and shapes fit into a place.
func (x *catalog) checkShapes() error {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if n := max(len(x.shapes), len(x.kinds)); n >= 1<<postings.ShapeBits-1 {
		return fmt.Errorf("%w: %d kinds and shapes are as many as one store keeps", understudy.ErrNotStored, n)
	}
	return nil
}

// kindOfShape is the kind of a shape's number, nil when there is none.
func (x *catalog) kindOfShape(number int64) *kindRow {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, s := range x.shapes {
		if s.number == number {
			return s.kind
		}
	}
	return nil
}

// kindsOfShapes are the kinds of shapes, by the shapes' numbers.
func (x *catalog) kindsOfShapes() map[int64]*kindRow {
	x.mu.RLock()
	defer x.mu.RUnlock()
	kinds := make(map[int64]*kindRow, len(x.shapes))
	for _, s := range x.shapes {
		kinds[s.number] = s.kind
	}
	return kinds
}
