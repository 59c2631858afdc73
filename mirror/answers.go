// Answers: what a list is answered from first, upstream or records.

package mirror

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"understudy"
	"understudy/kit/suggest"
	"understudy/spec"
)

// Answers says what lists are answered from first.
type Answers string

// The three ways. With AnswersAuto a list is upstream first until Enough samples
// in a row were equal, and again from the first that was not.
const (
	AnswersAuto     Answers = "auto" // and ""
	AnswersUpstream Answers = "upstream"
	AnswersRecords  Answers = "records"
)

// Enough is how many samples in a row have to be equal before a list is
// answered from records first.
const Enough = 500

// listMode is one list of one source: how it is answered, and how well records
// tell what upstream says.
type listMode struct {
	kind *kind
	list *spec.List

	set    atomic.Value // Answers
	agreed atomic.Bool  // Enough samples in a row were equal

	composed, checked atomic.Int64 // answers from records before upstream was asked; of these, asked upstream too

	mu        sync.Mutex
	agreement agreement
	dirty     bool // the notes do not say it yet
}

// listMode is the list a target asks for; nil when it is none of records.
func (s *source) listMode(t *spec.Target) *listMode {
	if t.List == nil {
		return nil
	}
	return s.lists[t.List]
}

// first reports whether records are asked before upstream is.
func (l *listMode) recordsFirst() bool {
	switch set, _ := l.set.Load().(Answers); set {
	case AnswersRecords:
		return true
	case AnswersUpstream:
		return false
	}
	return l.agreed.Load()
}

// compared reports whether the last sample of the list was as upstream said.
func (l *listMode) compared() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.agreement.Equal > 0
}

// SetAnswers says what the lists of a source are answered from first, by kind;
// "" is for those that are not named. Errors: a source or a kind that is none,
// a word that is none; nothing is changed then.
func (m *Mirror) SetAnswers(source string, by map[string]Answers) error {
	s := m.sources[source]
	if s == nil {
		return fmt.Errorf("mirror: answers: no source %q", source)
	}
	return s.setAnswers(by)
}

func (s *source) setAnswers(by map[string]Answers) error {
	for _, kind := range slices.Sorted(maps.Keys(by)) {
		if kind != "" && s.Spec.Kind(kind) == nil {
			return fmt.Errorf("mirror: source %s: answers: %q is not a kind of %s", s.Name, kind, s.Spec.Name)
		}
		if err := by[kind].Check(); err != nil {
			return fmt.Errorf("mirror: source %s: answers: %w", s.Name, err)
		}
	}
	for _, l := range s.lists {
		set, named := by[l.kind.name]
		if !named {
			set = by[""]
		}
		if set == "" {
			set = AnswersAuto
		}
		l.set.Store(set)
	}
	return nil
}

// Check refuses a word that is none of the three, and names the nearest.
func (a Answers) Check() error {
	known := []string{string(AnswersAuto), string(AnswersUpstream), string(AnswersRecords)}
	if a == "" || slices.Contains(known, string(a)) {
		return nil
	}
	return fmt.Errorf("%q is no way to answer%s", string(a), suggest.Hint(string(a), known))
}

// defaultChecks is how many answers from records may be asked upstream, too, a
// minute.
const defaultChecks = 6

// checks bounds what is asked upstream only to compare.
type checks struct {
	every atomic.Int64 // nanoseconds between two
	next  atomic.Int64
}

// SetChecks says how many lists made from records may be asked upstream, too, a
// minute; 0 = 6. Error: a source the mirror does not have.
func (m *Mirror) SetChecks(source string, perMinute float64) error {
	s := m.sources[source]
	if s == nil {
		return fmt.Errorf("mirror: checks: no source %q", source)
	}
	s.checks.set(perMinute)
	return nil
}

func (c *checks) set(perMinute float64) {
	if perMinute <= 0 {
		perMinute = defaultChecks
	}
	c.every.Store(int64(float64(time.Minute) / perMinute))
}

// recentWrites is what writes may have changed of a kind since the newest page came.
type recentWrites struct {
	mu   sync.Mutex
	at   time.Time       // the last
	ids  map[string]bool // records they touched, not seen since
	many bool            // more than are remembered
}

// maxWrote bounds the records remembered.
const maxWrote = 64

// last is when the last write was; zero: there was none.
func (w *recentWrites) last() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.at
}

func (w *recentWrites) note(now time.Time, id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at = now
	if id == "" {
		return
	}
	if w.ids == nil {
		w.ids = map[string]bool{}
	}
	if len(w.ids) < maxWrote || w.ids[id] {
		w.ids[id] = true
	} else {
		w.many = true
	}
}

// recallWrites finds out, once for a kind, whether something was written before the
// start that no newest page has shown: then it is as if it were written now.
func (co *composer) recallWrites(ctx context.Context, k *kind) error {
	if k.written == 0 || k.recalled.Load() {
		return nil
	}
	shown := false
	for key, p := range k.source.polls() {
		if p.kind != k || !p.whole {
			continue
		}
		page, err := co.store.Page(ctx, key)
		if err != nil && !errors.Is(err, understudy.ErrNotFound) {
			return err
		}
		shown = shown || err == nil && page.Generation >= k.written
	}
	if !shown {
		k.recentWrites.note(co.now(), "")
	}
	k.recalled.Store(true)
	return nil
}
