// Finding the records of a person, and those that lie under them.

package erase

import (
	"context"
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
	all   []record
}

// record is a record that is to be erased.
type record struct {
	kind, id string
	number   int64
}

// Records is how many records were found.
func (f Found) Records() int { return len(f.all) }

// maxRounds bounds how deep records lie under one another.
const maxRounds = 8

// finding is one search.
type finding struct {
	store   Store
	pool    *sqlite.Pool
	text    string // what was asked for
	n       understudy.Phone
	source  string
	known   map[string]bool // ids found, "kind/id"
	roots   map[string]string
	all     []record
	numbers map[string]bool
}

// Find finds the records of a source that belong to a number: those in which,
// in any version that is held, a field of class phone is the number in any way
// of writing it, and those that lie under them (a call's recordings, a
// message's images), by their parent or a link. A phone field that is no number
// ("client:anna") is found by its text. what may also be KIND/ID: that record
// and what lies under it. It reads every body of the source once, or a few times
// when something lies deep. ErrInvalid: the source is unknown, or a number
// without a country's code is several.
func (r *Eraser) Find(ctx context.Context, source, what string) (Found, error) {
	leave, err := r.pool.Begin()
	if err != nil {
		return Found{}, err
	}
	defer leave()
	f, err := r.find(ctx, source, what)
	return f, sqlite.Failed(false, err, "find records in %s", source)
}

func (r *Eraser) find(ctx context.Context, source, what string) (Found, error) {
	number, ok := r.store.Source(source)
	if !ok {
		return Found{}, fmt.Errorf("%w: nothing is held of a source %q", understudy.ErrInvalid, source)
	}
	f := &finding{store: r.store, pool: r.pool, text: what, n: understudy.ReadPhone(what), source: source, known: map[string]bool{},
		roots: map[string]string{}, numbers: map[string]bool{}}
	named := false
	if name, id, ok := strings.Cut(what, "/"); ok {
		if k, ok := r.store.Kind(source, name); ok {
			named = true
			if err := f.record(ctx, k, id); err != nil {
				return Found{}, err
			}
		}
	}
	for round := 0; round < maxRounds; round++ {
		before := len(f.all)
		if named && before == 0 {
			break // there is no such record, so nothing lies under it
		}
		err := f.store.VisitBodies(ctx, number, func(k Kind, e *codec.Entry) {
			if !f.known[k.Name+"/"+e.ID] && (round == 0 && !named && f.phones(k.Spec, e.Body) || f.under(k.Spec, e.Body)) {
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
func (f *finding) record(ctx context.Context, k Kind, id string) error {
	return f.pool.Read(ctx, func(c *sqlite.Conn) error {
		record, err := names.Record(c, k.Number, sqlite.AppendID(nil, k.Prefix, id))
		if err == nil && record != 0 {
			f.add(k, &codec.Entry{Record: record, ID: id})
		}
		return err
	})
}

func (f *finding) add(k Kind, e *codec.Entry) {
	f.known[k.Name+"/"+e.ID] = true
	f.all = append(f.all, record{kind: k.Name, id: e.ID, number: e.Record})
	if k.Spec == nil || k.Spec.Own == "" { // what is done with a number of ours does not lie under it
		f.roots[e.ID] = k.Name
	}
}

// phones reports whether a field of class phone is the number.
func (f *finding) phones(k *spec.Kind, body []byte) bool {
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
