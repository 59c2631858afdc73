// This file finds the records of a person, and the records that belong to these records.

package erase

import (
	"context"
	"database/sql/driver"
	"fmt"
	"maps"
	"slices"
	"strings"

	"understudy"
	"understudy/internal/store/codec"
	"understudy/internal/store/db"
	"understudy/internal/store/names"
	"understudy/kit/jsonspan"
	"understudy/spec"
)

// Found is what an erasure would erase.
type Found struct {
	Kinds map[string]int // the number of found records by kind
	all   []record
}

// record is a record to erase.
type record struct {
	kind, id string
	number   int64
}

// Records returns how many records were found.
func (f Found) Records() int { return len(f.all) }

// maxRounds is the maximum number of rounds of a search. Each round finds records that belong to those found before.
const maxRounds = 8

// finding is the state of one search.
type finding struct {
	store   Store
	pool    *db.Pool
	text    string // the text that the caller asked to erase
	n       understudy.Phone
	known   map[string]bool // the ids of the found records, as "kind/id"
	roots   map[string]string
	all     []record
	numbers map[string]bool
}

// Find finds the records of a source that belong to a phone number. Such a record has the number, in any way of writing
// it, in a field of class phone in any stored version. Find also finds the records that belong to such a record by
// their parent or a link, such as a call's recordings or a message's images. A phone field whose value is not a number
// ("client:anna") is compared as text. what may also be KIND/ID. Then Find returns that record and the records that
// belong to it. Find reads every body of the source once, and again for each level of records below. It returns
// ErrInvalid if the source is unknown, or if a number without country code may mean several numbers.
func (r *Eraser) Find(ctx context.Context, source, what string) (Found, error) {
	f, err := r.find(ctx, source, what)
	return f, db.WrapError(false, err, "find records in %s", source)
}

// find searches all bodies of the source, and again while a round has found more records.
func (r *Eraser) find(ctx context.Context, source, what string) (Found, error) {
	number, ok, err := r.store.FindSource(ctx, source)
	if err != nil {
		return Found{}, err
	}
	if !ok {
		return Found{}, fmt.Errorf("%w: nothing is stored of a source %q", understudy.ErrInvalid, source)
	}
	f := &finding{store: r.store, pool: r.pool, text: what, n: understudy.ParsePhone(what), known: map[string]bool{},
		roots: map[string]string{}, numbers: map[string]bool{}}
	named := false
	if name, id, ok := strings.Cut(what, "/"); ok {
		if k, ok := r.store.Kind(source, name); ok {
			named = true
			if err := f.addRecord(ctx, k, id); err != nil {
				return Found{}, err
			}
		}
	}
	for round := 0; round < maxRounds && (!named || len(f.known) > 0); round++ { // nothing belongs to an id without a record
		before := len(f.all)
		err := f.store.VisitBodies(ctx, number, func(k Kind, e *codec.Entry) {
			if !f.known[k.Name+"/"+e.ID] && (round == 0 && !named && f.matchPhones(k.Spec, e.Body) || f.isUnder(k.Spec, e.Body)) {
				f.add(k, e)
			}
		})
		if err != nil {
			return Found{}, err
		}
		if len(f.all) == before {
			break
		}
	}
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

// selectNamed also reports whether an erasure of the record that a person asked for is complete.
var selectNamed = &db.Statement{Head: "SELECT record, CASE WHEN erased = ? AND NOT EXISTS (SELECT 1 FROM erasing " +
	"WHERE erasing.record = names.record) THEN 1 ELSE 0 END FROM names WHERE kind = ? AND id = ?"}

// addRecord begins the search with one record, given by its id. An erased record is not found again, but the records that
// belong to it and were stored since are found.
func (f *finding) addRecord(ctx context.Context, k Kind, id string) error {
	return f.pool.Read(ctx, func(c db.Conn) error {
		args := []driver.Value{int64(names.Erased), k.Number, db.AppendID(nil, k.Prefix(), id)}
		_, err := db.QueryRow(c, selectNamed, args, func(row []driver.Value) {
			f.add(k, &codec.Entry{Record: row[0].(int64), ID: id})
			if row[1].(int64) == 1 {
				f.all = nil
			}
		})
		return err
	})
}

func (f *finding) add(k Kind, e *codec.Entry) {
	f.known[k.Name+"/"+e.ID] = true
	f.all = append(f.all, record{kind: k.Name, id: e.ID, number: e.Record})
	if k.Spec == nil || k.Spec.OwnNumber == "" { // records on one of the account's own numbers do not belong to the person
		f.roots[e.ID] = k.Name
	}
}

// matchPhones reports whether a field of class phone is the number.
func (f *finding) matchPhones(k *spec.Kind, body []byte) bool {
	if k == nil {
		return false
	}
	doc, err := jsonspan.Parse(body)
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
		m := understudy.ParsePhone(text)
		switch {
		case f.n.Digits == "":
			hit = hit || strings.EqualFold(text, f.text)
		case f.n.Match(m):
			hit = true
			if m.HasCountryCode && !f.n.HasCountryCode {
				f.numbers["+"+m.Digits] = true
			}
		}
	}
	return hit
}

// isUnder reports whether a record belongs to a record that was already found.
func (f *finding) isUnder(k *spec.Kind, body []byte) bool {
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
			if doc, err = jsonspan.Parse(body); err != nil || doc.Kind != jsonspan.Object {
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
