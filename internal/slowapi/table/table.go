// The records of a world, by kind.

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
	ID     string // unique within its kind
	Values Values
}

// Text returns a string, number or bool as text. It returns "" for every other value.
func (r *Row) Text(name string) string {
	switch v := r.Values[name].(type) {
	case string:
		return v
	case int64:
		return strconv.FormatInt(v, 10)
	case bool:
		return strconv.FormatBool(v)
	}
	return ""
}

// Number returns a number, or the Unix seconds of a Stamp. It returns 0 for every other value.
func (r *Row) Number(name string) int64 {
	switch v := r.Values[name].(type) {
	case int64:
		return v
	case Stamp:
		return int64(v)
	}
	return 0
}

// With returns a copy of the values with the changes applied. A nil value is kept and shows as null.
func (v Values) With(changes Values) Values {
	all := maps.Clone(v)
	maps.Copy(all, changes)
	return all
}

// Kind has the records of one kind.
type Kind struct {
	rows []*Row // the rows, the oldest first
	byID map[string]*Row
}

// Rows returns all records, the oldest first. The caller holds Mu and does not change the slice.
func (k *Kind) Rows() []*Row { return k.rows }

// Find returns the record with an id, or nil if there is none.
func (k *Kind) Find(id string) *Row { return k.byID[id] }

// Add appends a record.
func (k *Kind) Add(id string, v Values) *Row {
	r := &Row{ID: id, Values: v}
	k.rows = append(k.rows, r)
	k.byID[id] = r
	return r
}

// Delete removes a record. A slice that Rows returned before stays as it was.
func (k *Kind) Delete(r *Row) {
	delete(k.byID, r.ID)
	k.rows = slices.DeleteFunc(slices.Clone(k.rows), func(one *Row) bool { return one == r })
}

// Select returns the records for which match returns true, in descending order of the number sortBy, or the
// newest first if sortBy is "". Among equal numbers the newest is first. ascending reverses the order.
func (k *Kind) Select(match func(*Row) bool, sortBy string, ascending bool) []*Row {
	var found []*Row
	for _, r := range slices.Backward(k.rows) {
		if match(r) {
			found = append(found, r)
		}
	}
	if sortBy != "" {
		slices.SortStableFunc(found, func(a, b *Row) int { return cmp.Compare(b.Number(sortBy), a.Number(sortBy)) })
	}
	if ascending {
		slices.Reverse(found)
	}
	return found
}

// World has the records and the clock of one API. Readers hold Mu for reading and
// writers hold it for writing.
type World struct {
	Records        int // the number of records of the main kind
	Seed           uint64
	Epoch          time.Time // the time of the newest record
	Account, Token string
	ClockRuns      bool // the clock of the world runs in real time instead of standing still
	Now            func() time.Time

	Mu    sync.RWMutex
	Kinds map[string]*Kind
	// Creators create one record of a kind, by its name. They are used for arrivals. The caller holds Mu.
	Creators map[string]func(now int64)
	// CheckEdit checks what POST /-/edit sets in a record and returns the values to set. The caller holds Mu.
	CheckEdit func(kind string, r *Row, set Values) (Values, error)
	advanced  time.Duration // how far /-/advance has advanced the clock
	startedAt time.Time     // when Begin was called
}

// Begin starts the clock of the world that the fields before Mu describe, and adds empty kinds with these names.
func (w *World) Begin(kinds ...string) {
	w.Kinds, w.Creators, w.startedAt = map[string]*Kind{}, map[string]func(int64){}, w.Now()
	for _, name := range kinds {
		w.Kinds[name] = &Kind{byID: map[string]*Row{}}
	}
}

// Run calls do while it holds Mu: for reading if the method is GET, otherwise for writing.
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

// Clock returns the time of the world in Unix seconds. The caller holds Mu.
func (w *World) Clock() int64 {
	at := w.Epoch.Add(w.advanced)
	if w.ClockRuns {
		at = at.Add(max(w.Now().Sub(w.startedAt), 0))
	}
	return at.Unix()
}

// Random returns a random generator for one thing. It depends only on the seed, the tag and the index.
func (w *World) Random(tag uint64, index int) fake.Rng { return fake.RngFor(w.Seed, tag, int64(index)) }
