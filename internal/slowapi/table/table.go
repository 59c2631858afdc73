// The simulated records, by kind.

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
	ID     string // the id of the record, which is unique within its kind
	Values Values
}

// Text returns a string, a number or a bool as text. It returns "" for any other value.
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

// Number returns a number, or a Stamp in Unix seconds. It returns 0 for any other value.
func (r *Row) Number(name string) int64 {
	switch v := r.Values[name].(type) {
	case int64:
		return v
	case Stamp:
		return int64(v)
	}
	return 0
}

// With returns a copy of the values with some changes. A value that is changed to nil is kept and is null in the JSON.
func (v Values) With(changes Values) Values {
	all := maps.Clone(v)
	maps.Copy(all, changes)
	return all
}

// Kind has all records of one kind.
type Kind struct {
	rows []*Row // the rows, the oldest first
	byID map[string]*Row
}

// Rows returns all records, oldest first. The caller holds Mu and must not change the slice.
func (k *Kind) Rows() []*Row { return k.rows }

// Find returns the record with an id. It returns nil if there is none.
func (k *Kind) Find(id string) *Row { return k.byID[id] }

// Add appends a record.
func (k *Kind) Add(id string, v Values) *Row {
	r := &Row{ID: id, Values: v}
	k.rows = append(k.rows, r)
	k.byID[id] = r
	return r
}

// Delete removes a record. It does not change slices that Rows has returned before.
func (k *Kind) Delete(r *Row) {
	delete(k.byID, r.ID)
	k.rows = slices.DeleteFunc(slices.Clone(k.rows), func(one *Row) bool { return one == r })
}

// Select returns the records for which match returns true. They are in descending order of the number sortBy, or if
// sortBy is "", newest first. Of equal numbers the newest record is first. ascending reverses all of this.
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

// World has the records and the clock of one simulated API. Whoever reads must hold Mu for reading, and whoever
// changes something must hold it for writing.
type World struct {
	Records        int // the number of records of the main kind
	Seed           uint64
	Epoch          time.Time // the time of the newest record
	Account, Token string
	ClockRuns      bool // whether the clock runs in real time; if not, it stands still until it is advanced
	Now            func() time.Time

	Mu    sync.RWMutex
	Kinds map[string]*Kind
	// Creators has functions that create one new record, by the name of the kind. The caller holds Mu.
	Creators map[string]func(now int64)
	// CheckEdit checks the values that POST /-/edit sets in a record, and returns the values to set. The caller holds Mu.
	CheckEdit func(kind string, r *Row, set Values) (Values, error)
	advanced  time.Duration // by how much the control path /-/advance has advanced the clock
	startedAt time.Time     // the time at which Begin was called
}

// Begin starts the clock. The fields before Mu must be set. kinds are the names of the kinds, which have no records yet.
func (w *World) Begin(kinds ...string) {
	w.Kinds, w.Creators, w.startedAt = map[string]*Kind{}, map[string]func(int64){}, w.Now()
	for _, name := range kinds {
		w.Kinds[name] = &Kind{byID: map[string]*Row{}}
	}
}

// Run calls do while it holds Mu: for reading if the method of the request is GET, otherwise for writing.
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

// Clock returns the time of the simulated world in Unix seconds. The caller holds Mu.
func (w *World) Clock() int64 {
	at := w.Epoch.Add(w.advanced)
	if w.ClockRuns {
		at = at.Add(max(w.Now().Sub(w.startedAt), 0))
	}
	return at.Unix()
}

// Random returns the random numbers for one record or another object. They depend only on the seed, the tag and the index.
func (w *World) Random(tag uint64, index int) fake.Rng { return fake.RngFor(w.Seed, tag, int64(index)) }
