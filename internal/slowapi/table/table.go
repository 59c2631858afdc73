// Rows: the records of a world, by kind.

package table

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"understudy/internal/slowapi/fake"
	"understudy/internal/slowapi/format"
)

// Row is one record.
type Row struct {
	ID string // unique within its kind
	V  Values
}

// Text is a value as text, "" for none. Numbers are digits.
func (r *Row) Text(name string) string {
	switch v := r.V[name].(type) {
	case string:
		return v
	case int64:
		return strconv.FormatInt(v, 10)
	case bool:
		return strconv.FormatBool(v)
	}
	return ""
}

// Number is a value as a number: of a Stamp its seconds. 0 stands for none.
func (r *Row) Number(name string) int64 {
	switch v := r.V[name].(type) {
	case int64:
		return v
	case Stamp:
		return int64(v)
	}
	return 0
}

// With is the values with others in their place. A nil stays: it shows as null.
func (v Values) With(changes Values) Values {
	all := maps.Clone(v)
	maps.Copy(all, changes)
	return all
}

// Kind is the records of one sort, the oldest first.
type Kind struct {
	rows []*Row
	byID map[string]*Row
}

// Rows are all records, the oldest first. The caller holds Mu and changes none.
func (k *Kind) Rows() []*Row { return k.rows }

// Find is the record with an id, nil for none.
func (k *Kind) Find(id string) *Row { return k.byID[id] }

// Add appends a record.
func (k *Kind) Add(id string, v Values) *Row {
	r := &Row{ID: id, V: v}
	k.rows = append(k.rows, r)
	k.byID[id] = r
	return r
}

// Delete takes a record out.
func (k *Kind) Delete(r *Row) {
	delete(k.byID, r.ID)
	k.rows = slices.DeleteFunc(slices.Clone(k.rows), func(one *Row) bool { return one == r })
}

// Select are the records that pass, the newest first, or in the order of a value:
// of those that have the same, the newest first.
func (k *Kind) Select(passes func(*Row) bool, by string, ascending bool) []*Row {
	var found []*Row
	for _, r := range slices.Backward(k.rows) {
		if passes(r) {
			found = append(found, r)
		}
	}
	if by != "" {
		slices.SortStableFunc(found, func(a, b *Row) int { return cmp.Compare(b.Number(by), a.Number(by)) })
	}
	if ascending {
		slices.Reverse(found)
	}
	return found
}

// World is the records and the clock of one API. Reads hold Mu for reading,
// changes for writing.
type World struct {
	Records        int
	Seed           uint64
	Epoch          time.Time // the newest record's time
	Account, Token string
	Flows          bool // the clock runs in real time
	Now            func() time.Time

	Mu    sync.RWMutex
	Kinds map[string]*Kind
	// Come makes new records of a kind that arrives; Change makes changes from
	// outside true for a record. The caller holds Mu.
	Come   map[string]func(now int64)
	Change func(kind string, r *Row, set Values) (Values, error)
	moved  time.Duration
	began  time.Time
}

// Begin begins the world that the fields before Mu describe, without records of these kinds.
func (w *World) Begin(kinds ...string) {
	w.Kinds, w.Come, w.began = map[string]*Kind{}, map[string]func(int64){}, w.Now()
	for _, name := range kinds {
		w.Kinds[name] = &Kind{byID: map[string]*Row{}}
	}
}

// Run lets do answer a request. Reads share the world, a write has it alone.
func (w *World) Run(q *Request, do Handler) format.Answer {
	if q.Method == http.MethodGet {
		w.Mu.RLock()
		defer w.Mu.RUnlock()
	} else {
		w.Mu.Lock()
		defer w.Mu.Unlock()
	}
	return do(q)
}

// Clock is the world's time in Unix seconds. The caller holds Mu.
func (w *World) Clock() int64 {
	at := w.Epoch.Add(w.moved)
	if w.Flows {
		at = at.Add(max(w.Now().Sub(w.began), 0))
	}
	return at.Unix()
}

// Draw begins the stream of numbers of one thing.
func (w *World) Draw(tag uint64, index int) fake.Rng { return fake.RngFor(w.Seed, tag, int64(index)) }
