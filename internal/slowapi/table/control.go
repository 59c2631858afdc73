// Control: records that come, change and go from outside the API.

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

// Bounds of one request from outside.
const (
	maxCome    = 100_000
	maxEdits   = 10_000
	maxSeconds = 10 * 366 * 86400
)

// Controls are the paths under /-/ that change records.
func (w *World) Controls() map[string]Control {
	return map[string]Control{
		"/-/edit": w.edit, "/-/advance": w.advance,
		"/-/limits": func([]byte) (any, error) { return nil, errors.New("this API has no /-/limits") },
	}
}

// advance moves the clock, then lets records come.
func (w *World) advance(raw []byte) (any, error) {
	var in map[string]int64
	if err := format.DecodeStrict(raw, &in); err != nil {
		return nil, err
	}
	for name, n := range in {
		most := int64(maxCome)
		if name == "seconds" {
			most = maxSeconds
		} else if w.Come[name] == nil {
			return nil, fmt.Errorf("there is seconds, and of records: %s", strings.Join(slices.Sorted(maps.Keys(w.Come)), ", "))
		}
		if n < 0 || n > most {
			return nil, fmt.Errorf("%s must be 0 to %d", name, most)
		}
	}
	w.Mu.Lock()
	defer w.Mu.Unlock()
	w.moved += time.Duration(in["seconds"]) * time.Second
	delete(in, "seconds")
	for name, n := range in {
		for range n {
			w.Come[name](w.Clock())
		}
	}
	return map[string]any{"clock": time.Unix(w.Clock(), 0).UTC(), "created": in}, nil
}

// edit changes or deletes single records, up to the first that cannot be.
func (w *World) edit(raw []byte) (any, error) {
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
	for n, one := range in.Records {
		r := kind.Find(one.ID)
		if r == nil {
			return nil, fmt.Errorf("record %d of %d (those before it are changed): there is no %q", n, len(in.Records), one.ID)
		}
		if one.Delete {
			kind.Delete(r)
			continue
		}
		set, err := w.Change(in.Kind, r, one.Set)
		if err != nil {
			return nil, fmt.Errorf("record %d of %d (those before it are changed): %w", n, len(in.Records), err)
		}
		r.V = r.V.With(set)
	}
	return map[string]int{"changed": len(in.Records)}, nil
}
