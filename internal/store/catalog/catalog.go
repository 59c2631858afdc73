// Package catalog keeps the numbers that stand for sources, kinds and shapes in the database, and what the indexes
// know of each kind. There are few numbers, and a number never changes.
package catalog

import (
	"context"
	"database/sql/driver"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"understudy"
	"understudy/internal/store/db"
	"understudy/internal/store/postings"
	"understudy/internal/store/terms"
	"understudy/internal/store/words"
	"understudy/kit/jsonspan"
	"understudy/kit/lockwatch"
	"understudy/spec"
)

// Kind is a kind with its number in the database.
type Kind struct {
	Number       int64
	SourceNumber int64
	Source       string
	prefix       atomic.Pointer[string]
	Spec         *spec.Kind // the kind's spec, or nil if the specs do not name the kind
	Words        *words.Kind
	WordForm     string // the rule by which the words now in the index were cut
	Terms        terms.Kind
	TermForm     string // the fingerprint of the rules by which the terms now in the index were computed
	Name         string
}

// Shape is a shape with its number in the database.
type Shape struct {
	Number, Slot int64
	Kind         *Kind
	Name         string
}

type kindName struct{ source, kind string }
type shapeName struct{ source, kind, shape string }

// Catalog holds all numbers in memory. It is safe for concurrent use, but only the goroutine with the writing
// connection may call Enter.
type Catalog struct {
	pool    *db.Pool
	specs   map[string]*spec.Spec
	mu      lockwatch.RWMutex
	sources map[string]int64
	kinds   map[kindName]*Kind
	shapes  map[shapeName]*Shape
	parents map[int64]string // how a record's parent is found, by shape number (spec.ParentRule)

	kindList  []*Kind // all kinds; the slice is replaced, never modified
	shapeList []*Shape
}

// New returns the catalog of a database, without numbers. Load reads them.
func New(pool *db.Pool, specs map[string]*spec.Spec) *Catalog {
	return &Catalog{pool: pool, specs: specs, sources: map[string]int64{}, kinds: map[kindName]*Kind{}, shapes: map[shapeName]*Shape{},
		parents: map[int64]string{}}
}

var (
	selectSources = &db.Statement{Head: "SELECT number, name FROM source"}
	selectKinds   = &db.Statement{Head: "SELECT k.number, k.source, k.name, k.prefix, s.name, k.terms, coalesce(k.words, '') " +
		"FROM kind k JOIN source s ON s.number = k.source"}
	selectShapes = &db.Statement{Head: "SELECT h.number, h.slot, h.name, k.name, s.name FROM shape h " +
		"JOIN kind k ON k.number = h.kind JOIN source s ON s.number = k.source"}
	// Before step 14 of the schema, processes may live that do not know db.AllForms.
	// The conditions leave out what is there, because PostgreSQL takes a number also for a row in conflict.
	insertSource = &db.Statement{Head: "INSERT INTO source (name) SELECT CAST(?1 AS TEXT) " +
		"WHERE NOT EXISTS (SELECT 1 FROM source WHERE name = ?1)"}
	insertKind = &db.Statement{Head: "INSERT INTO kind (source, name, prefix, parent, terms, words) " +
		"SELECT s.number, ?1, CASE WHEN c.needs >= 14 THEN CAST(?7 AS TEXT) ELSE ?2 END, ?3, ?4, ?5 FROM source s " +
		"CROSS JOIN counter c WHERE s.name = ?6 " +
		"AND NOT EXISTS (SELECT 1 FROM kind k WHERE k.source = s.number AND k.name = ?1)"}
	insertShape = &db.Statement{Head: "INSERT INTO shape (kind, slot, name) SELECT k.number, (SELECT count(*) " +
		"FROM shape WHERE kind = k.number), ?1 FROM kind k JOIN source s ON s.number = k.source WHERE s.name = ?2 " +
		"AND k.name = ?3 AND NOT EXISTS (SELECT 1 FROM shape h WHERE h.kind = k.number AND h.name = ?1)"}
)

// Load reads the numbers from the database.
func (x *Catalog) Load(c db.Conn) error {
	install, err := x.read(c, false)
	if err == nil {
		install()
	}
	return err
}

// read reads the numbers. install puts them into memory. If empty is set, kinds that are not in memory yet have no records.
func (x *Catalog) read(c db.Conn, empty bool) (install func(), err error) {
	var steps []func()
	read := func(st *db.Statement, add func(r []driver.Value)) {
		if err == nil {
			err = db.VisitRows(c, st, nil, func(r []driver.Value) {
				row := slices.Clone(r)
				steps = append(steps, func() { add(row) })
			})
		}
	}
	read(selectSources, func(r []driver.Value) { x.sources[r[1].(string)] = r[0].(int64) })
	read(selectKinds, func(r []driver.Value) {
		name := kindName{r[4].(string), r[2].(string)}
		if x.kinds[name] == nil {
			k := &Kind{Number: r[0].(int64), SourceNumber: r[1].(int64), Source: name.source, Name: name.kind,
				Spec: x.SpecOf(name.source, name.kind), WordForm: r[6].(string)}
			k.TermForm, _ = r[5].(string)
			rule := words.RuleOf(k.Spec)
			k.Terms = terms.Kind{Spec: k.Spec, Fields: terms.Fields(x.specs[name.source], k.Spec)}
			if k.Spec == nil {
				k.Terms.Fields = terms.ReadFields(k.TermForm)
				rule = words.ReadRule(k.WordForm)
			}
			if k.Words = words.NewKind(k.Number, k.Name, rule); empty {
				k.Words.StartEmpty()
			}
			x.kinds[name] = k
		}
		prefix := r[3].(string)
		x.kinds[name].prefix.Store(&prefix)
	})
	read(selectShapes, func(r []driver.Value) {
		name := shapeName{r[4].(string), r[3].(string), r[2].(string)}
		if x.shapes[name] == nil {
			x.shapes[name] = &Shape{Number: r[0].(int64), Slot: r[1].(int64), Name: name.shape, Kind: x.kinds[kindName{name.source,
				name.kind}]}
			x.parents[r[0].(int64)] = x.shapes[name].Kind.ParentField()
		}
	})
	return func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		for _, step := range steps {
			step()
		}
		x.kindList, x.shapeList = slices.Collect(maps.Values(x.kinds)), slices.Collect(maps.Values(x.shapes))
	}, err
}

// Kinds returns all kinds with a number, in no order. The caller must not change the slice.
func (x *Catalog) Kinds() []*Kind {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.kindList
}

// Shapes returns all shapes with a number, in no order. The caller must not change the slice.
func (x *Catalog) Shapes() []*Shape {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.shapeList
}

// SpecOf returns the spec of a kind, or nil if the specs do not name the kind.
func (x *Catalog) SpecOf(source, kind string) *spec.Kind {
	if sp := x.specs[source]; sp != nil {
		return sp.Kind(kind)
	}
	return nil
}

// Source returns the number of a source. ok is false if nothing of the source was ever saved.
func (x *Catalog) Source(name string) (number int64, ok bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	number, ok = x.sources[name]
	return number, ok
}

// Kind returns a kind, or nil if nothing of it was ever saved.
func (x *Catalog) Kind(source, kind string) *Kind {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.kinds[kindName{source, kind}]
}

// Shape returns a shape of a kind, or nil if nothing of it was ever saved.
func (x *Catalog) Shape(source, kind, shape string) *Shape {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.shapes[shapeName{source, kind, shape}]
}

// FindSource returns the number of a source like Source. Before it says that there is none, it looks whether
// another process has saved one. Do not call it in a transaction.
func (x *Catalog) FindSource(ctx context.Context, name string) (number int64, ok bool, err error) {
	if number, ok = x.Source(name); !ok {
		if err = x.pool.Refresh(ctx); err == nil {
			number, ok = x.Source(name)
		}
	}
	return number, ok, err
}

// FindKind returns a kind as FindSource returns a source.
func (x *Catalog) FindKind(ctx context.Context, source, kind string) (*Kind, error) {
	if k := x.Kind(source, kind); k != nil {
		return k, nil
	}
	err := x.pool.Refresh(ctx)
	return x.Kind(source, kind), err
}

// ParentField returns the parent rule of a shape's kind, by the shape's number.
func (x *Catalog) ParentField(shape int64) string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.parents[shape]
}

// Enter gives numbers to a source, a kind and a shape that have none yet; kind and shape may be empty. Call it
// with the writing connection, outside a transaction. A number that is never used does no harm.
func (x *Catalog) Enter(ctx context.Context, c db.Conn, source, kind, shape string) error {
	if _, ok := x.Source(source); ok && (kind == "" || x.Kind(source, kind) != nil && (shape == "" || x.Shape(source, kind,
		shape) != nil)) {
		return nil
	}
	sp := x.SpecOf(source, kind)
	_, err := db.Transaction(ctx, func(c db.Conn) error {
		err := c.Execute(insertSource, 0, source)
		if err == nil && kind != "" {
			usual, prefix := "", db.AllForms
			if sp != nil && len(sp.Prefixes) > 0 {
				if prefix += sp.Prefixes[0]; len(sp.Prefixes[0]) == 2 {
					usual = sp.Prefixes[0]
				}
			}
			err = c.Execute(insertKind, 0, kind, usual, (&Kind{Spec: sp}).ParentField(),
				terms.Fingerprint(sp, terms.Fields(x.specs[source], sp)), words.RuleOf(sp).Form(), source, prefix)
		}
		if err == nil && shape != "" {
			if err = x.checkShapes(); err == nil {
				err = c.Execute(insertShape, 0, shape, source, kind)
			}
			if err != nil {
				err = fmt.Errorf("shape %s of kind %s: %w", shape, kind, err)
			}
		}
		if err != nil {
			return err
		}
		return x.LoadAfterCommit(c)
	})(c)
	return err
}

// LoadAfterCommit reads what the open writing transaction has changed, and puts it into memory after the commit.
func (x *Catalog) LoadAfterCommit(c db.Conn) error {
	x.pool.MarkChanged(db.Catalog)
	install, err := x.read(c, true)
	x.pool.CallAfterCommit(install)
	return err
}

// Prefix returns what db.AppendID needs to know of the kind. Call it in the transaction that uses the stored id, because it may change.
func (k *Kind) Prefix() string { return *k.prefix.Load() }

// checkShapes returns an error if a further kind or shape number would not fit into the low bits of a posting.
func (x *Catalog) checkShapes() error {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if n := max(len(x.shapes), len(x.kinds)); n >= 1<<postings.ShapeBits-1 {
		return fmt.Errorf("%w: %d kinds and shapes are as many as one store keeps", understudy.ErrNotStored, n)
	}
	return nil
}

// KindOfShape returns the kind of a shape by the shape's number, or nil if there is no such shape.
func (x *Catalog) KindOfShape(number int64) *Kind {
	for _, s := range x.Shapes() {
		if s.Number == number {
			return s.Kind
		}
	}
	return nil
}

// KindsOfShapes returns the kinds of all shapes, by the shapes' numbers.
func (x *Catalog) KindsOfShapes() map[int64]*Kind {
	kinds := map[int64]*Kind{}
	for _, s := range x.Shapes() {
		kinds[s.Number] = s.Kind
	}
	return kinds
}

// ParentField returns the rule for finding the parent of a kind's records (spec.ParentRule).
func (k *Kind) ParentField() string {
	if k == nil || k.Spec == nil {
		return ""
	}
	return k.Spec.ParentRule()
}

// ParentOf returns the parent that a body names by a rule of the spec, or "" if it names none.
func ParentOf(rule string, body []byte) string {
	if rule == "" {
		return ""
	}
	field, id := spec.ParseParentRule(rule)
	doc, err := jsonspan.Parse(body)
	if err != nil {
		return ""
	}
	switch v, ok := jsonspan.Find(body, doc, field); {
	case ok && v.Kind == jsonspan.String:
		return id(jsonspan.Text(body, v))
	case ok && v.Kind == jsonspan.Number:
		return string(v.Bytes(body))
	}
	return ""
}
