// Memo: what is known of a kind between its walks, kept as a note.

package walk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"understudy"
)

// memoVersion is the form of a memo. One of another form is not read: the kind
// is then walked anew.
const memoVersion = 1

// memo is what is known of a kind. Times are Unix seconds.
type memo struct {
	V    int  `json:"v"`
	Keep bool `json:"keep"` // it is kept up

	// Spans are the clocks walked, of a kind whose lists take a stretch of
	// time; Rest is when the last walk over the whole lists began, which finds
	// the records without a clock.
	Spans spans `json:"spans,omitempty"`
	Rest  int64 `json:"rest,omitempty"`
	// Oldest is where the first stretch ends that has no beginning.
	Oldest int64 `json:"oldest,omitempty"`
	// Ended says that upstream keeps nothing that is older.
	Ended string `json:"ended,omitempty"`

	// Top are the newest records when the list was last known without a gap,
	// at CaughtUp. Behind: a newer page is known, and not what lies between.
	Top      []string `json:"top,omitempty"`
	CaughtUp int64    `json:"caught_up,omitempty"`
	Behind   int64    `json:"behind,omitempty"`
	// After is the last change looked at, of a kind that lies under another.
	After int64 `json:"after,omitempty"`

	// Missed are records without a path of their own that the last sweep
	// missed, by id.
	Missed []string `json:"missed,omitempty"`
	// Failed is why the last sync or sweep ended before its end.
	Failed string `json:"failed,omitempty"`
	// Records is how many the last walk saw.
	Records int64 `json:"records,omitempty"`
}

func noteName(name string) string { return "walk/" + name }

// load reads a kind's memo once.
func (w *Walker) load(ctx context.Context, x *walked) error {
	if x.loaded {
		return nil
	}
	raw, err := w.o.Notes.Note(ctx, noteName(x.name()))
	if err != nil && !errors.Is(err, understudy.ErrNotFound) {
		return fmt.Errorf("walk: %s: %w", x.name(), err)
	}
	var m memo
	if len(raw) > 0 && (json.Unmarshal(raw, &m) != nil || m.V != memoVersion) {
		w.o.Logger.Warn("walk: what was known is of another form; walked anew", "kind", x.name())
		m = memo{Keep: m.Keep}
	}
	m.V = memoVersion
	x.memo, x.loaded = m, true
	return nil
}

// read is a copy of a kind's memo.
func (w *Walker) read(ctx context.Context, x *walked) (memo, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := w.load(ctx, x); err != nil {
		return memo{}, err
	}
	return x.memo, nil
}

// change changes a kind's memo and keeps it. When it cannot be kept it is as
// before.
func (w *Walker) change(ctx context.Context, x *walked, how func(*memo)) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := w.load(ctx, x); err != nil {
		return err
	}
	m := x.memo
	how(&m)
	raw, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("walk: %s: %w", x.name(), err)
	}
	if err := w.o.Notes.SetNote(ctx, noteName(x.name()), raw); err != nil {
		return fmt.Errorf("walk: %s: %w", x.name(), err)
	}
	x.memo = m
	return nil
}
