// Control requests: they create, change and delete records, which the imitated API itself could not do in this way.

package table

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"understudy/internal/slowapi/format"
)

// The limits of one control request.
const (
	maxArrivals = 100_000          // the maximum number of new records of each kind
	maxEdits    = 10_000           // maximum number of records that one request changes
	maxSeconds  = 10 * 366 * 86400 // the maximum number of seconds by which the clock can be advanced, ten years
)

// Controls returns the handlers of the paths under /-/ that change records.
func (w *World) Controls() map[string]Control {
	return map[string]Control{
		"/-/edit": w.applyEdits, "/-/advance": w.advance,
		"/-/limits": func([]byte) (any, error) { return nil, errors.New("this API has no /-/limits") },
	}
}

// advance handles POST /-/advance. It advances the clock, then creates records.
func (w *World) advance(raw []byte) (any, error) {
	var in map[string]int64
	if err := format.DecodeStrict(raw, &in); err != nil {
		return nil, err
	}
	for name, n := range in {
		limit := int64(maxArrivals)
		if name == "seconds" {
			limit = maxSeconds
		} else if w.Creators[name] == nil {
			return nil, fmt.Errorf("there is seconds, and of records: %s", strings.Join(slices.Sorted(maps.Keys(w.Creators)), ", "))
		}
		if n < 0 || n > limit {
			return nil, fmt.Errorf("%s must be 0 to %d", name, limit)
		}
	}
	w.Mu.Lock()
	defer w.Mu.Unlock()
	w.advanced += time.Duration(in["seconds"]) * time.Second
	delete(in, "seconds")
	for name, n := range in {
		for range n {
			w.Creators[name](w.Clock())
		}
	}
	return map[string]any{"clock": time.Unix(w.Clock(), 0).UTC(), "created": in}, nil
}

// applyEdits handles POST /-/edit. It applies the edits in order, until one is not valid. The edits before that one
// stay applied.
func (w *World) applyEdits(raw []byte) (any, error) {
	var in struct {
		Kind    string `json:"kind"`
		Records []struct {
			ID     string `json:"id"`
			Set    Values `json:"set"`
			Delete bool   `json:"delete"`
		} `json:"records"`
	}
	if err := format.DecodeStrict(raw, &in); err != nil {
		return nil, err
	}
	w.Mu.Lock()
	defer w.Mu.Unlock()
	kind := w.Kinds[in.Kind]
	if kind == nil {
		return nil, fmt.Errorf("there is no kind %q; there is %s", in.Kind, strings.Join(slices.Sorted(maps.Keys(w.Kinds)), ", "))
	}
	if len(in.Records) > maxEdits {
		return nil, fmt.Errorf("at most %d records at once", maxEdits)
	}
	for n, edit := range in.Records {
		r := kind.Find(edit.ID)
		if r == nil {
			return nil, fmt.Errorf("record %d of %d (those before it are changed): there is no %q", n, len(in.Records), edit.ID)
		}
		if edit.Delete {
			kind.Delete(r)
			continue
		}
		set, err := w.CheckEdit(in.Kind, r, edit.Set)
		if err != nil {
			return nil, fmt.Errorf("record %d of %d (those before it are changed): %w", n, len(in.Records), err)
		}
		r.Values = r.Values.With(set)
	}
	return map[string]int{"changed": len(in.Records)}, nil
}
