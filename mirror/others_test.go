// Other processes on the same database: writes that they do not learn of, and pages that they fetch.

package mirror

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/request"
)

// otherProcesses are other processes, and the notes of this one, as a test decides.
type otherProcesses struct {
	intents
	mu      sync.Mutex
	alone   bool
	refused error
	awaited []int64
}

func (o *otherProcesses) BeginFetch(context.Context, understudy.Key) (fetch bool, end func(), err error) {
	return true, func() {}, nil
}
func (o *otherProcesses) IsLeader() bool { return true }
func (o *otherProcesses) IsAlone() bool  { return o.alone }

func (o *otherProcesses) AwaitRecheck(numbers []int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.awaited = append(o.awaited, numbers...)
}

func (o *otherProcesses) Begin(t request.Invalidation) (int64, error) {
	if o.refused != nil {
		return 0, o.refused
	}
	return o.intents.Begin(t)
}

// TestWriteThatOthersCannotLearnOfIsNotSent: a write that could not be noted is not sent. If the note is there, and the store
// cannot be told the result, the answer waits until others recheck the write.
func TestWriteThatOthersCannotLearnOfIsNotSent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := &otherProcesses{intents: intents{open: map[int64]request.Invalidation{}}}
		var away atomic.Bool
		s := open(t, 3, func(options *Options) { options.Others, options.Intents = o, o },
			over(func(inner Store) Store {
				return &oddStore{Store: inner, touch: func() error {
					if away.Load() {
						return errors.New("store: away")
					}
					return nil
				}}
			}))
		s.answers(t, http.StatusOK, &call{sid(1), "busy", true}, nil)
		o.refused = fmt.Errorf("note: %w", understudy.ErrDatabaseAway)
		_, err := s.post(t, http.MethodPost, s.call(t, sid(1)))
		checktest.True(t, errors.Is(err, understudy.ErrDatabaseAway), "a write without a note returns %v", err)
		checktest.Equal(t, len(s.writes), 0, "writes sent without a note")
		o.refused = nil
		away.Store(true)
		_, err = s.post(t, http.MethodPost, s.call(t, sid(1)))
		checktest.MustNoError(t, err, "write")
		checktest.Equal(t, fmt.Sprint(o.awaited, o.count()), "[1] 1", "writes for which it has waited, and open ones")
		away.Store(false)
		s.Flush(t.Context())
		time.Sleep(time.Minute)
		checktest.Equal(t, o.count(), 0, "open writes after the store can be told")
		_, err = s.post(t, http.MethodPost, s.call(t, sid(1)))
		checktest.MustNoError(t, err, "write")
		checktest.Equal(t, fmt.Sprint(o.awaited), "[1]", "writes for which it has waited")
	})
}

// TestRecheckedWriteIsLookedUp: a page of a record that another process may have written is not fresh any more, nor are lists.
func TestRecheckedWriteIsLookedUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3)
		s.get(t, s.newest(t))
		s.get(t, s.call(t, sid(2)))
		want(t, s.get(t, s.call(t, sid(2))), request.Composed, "composed")
		s.set(sid(2), "redacted", true)
		s.RecheckWrite(request.Invalidation{Source: "twilio", Kind: "calls", ID: sid(2)})
		s.RecheckWrite(request.Invalidation{Source: "gone", Kind: "calls", ID: sid(2)})
		want(t, s.get(t, s.call(t, sid(2))), request.Cold, "")
		want(t, s.get(t, s.newest(t)), request.Cold, "")
	})
}

// TestForgettingOutdatesFetchesOfOthers: the store refuses a page whose fetch another process began before a record was forgotten.
// What this process fetches afterwards is stored.
func TestForgettingOutdatesFetchesOfOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := &otherProcesses{intents: intents{open: map[int64]request.Invalidation{}}}
		s := open(t, 3, func(options *Options) { options.Others = o })
		s.get(t, s.newest(t))
		before, err := s.store.ReadPage(t.Context(), s.newest(t).Key)
		checktest.MustNoError(t, err, "read")
		_, err = s.ForgetRecord(t.Context(), "twilio", "calls", sid(2))
		checktest.MustNoError(t, err, "forget")
		_, err = s.store.Save(t.Context(), before)
		checktest.True(t, errors.Is(err, understudy.ErrOutdated), "a page fetched before is saved: %v", err)
		want(t, s.get(t, s.newest(t)), request.Cold, "")
		_, err = s.store.ReadPage(t.Context(), s.newest(t).Key)
		checktest.NoError(t, err, "read the page fetched afterwards")
	})
}

// countingStore counts the pages that are read from the store.
type countingStore struct {
	Store
	reads atomic.Int64
}

func (c *countingStore) ReadPage(ctx context.Context, key understudy.Key) (*understudy.Page, error) {
	c.reads.Add(1)
	return c.Store.ReadPage(ctx, key)
}

// TestLoneProcessReadsNoPageBeforeAFetch: only if there are other processes, a fetch reads what they may have stored meanwhile.
func TestLoneProcessReadsNoPageBeforeAFetch(t *testing.T) {
	t.Parallel()
	for _, alone := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			o := &otherProcesses{alone: alone}
			var c *countingStore
			s := open(t, 3, func(options *Options) { options.Others = o },
				over(func(inner Store) Store { c = &countingStore{Store: inner}; return c }))
			s.get(t, s.newest(t))
			checktest.Equal(t, c.reads.Load() == 1, alone, "whether one page is read for a fetch: %d were (alone: %v)", c.reads.Load(), alone)
		})
	}
}

// TestWriteElsewhereOutdatesItsRecordAlone: after another process has written to a record, this record and the lists are fetched
// again. Other records stay in memory.
func TestWriteElsewhereOutdatesItsRecordAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3)
		read := func(first, second, list request.Outcome) {
			t.Helper()
			checktest.Equal(t, s.get(t, s.call(t, sid(1))).Outcome, first, "outcome of the first call")
			checktest.Equal(t, s.get(t, s.call(t, sid(2))).Outcome, second, "outcome of the second call")
			checktest.Equal(t, s.get(t, s.newest(t)).Outcome, list, "outcome of the list")
			synctest.Wait() // until the pages are in memory
		}
		read(request.Cold, request.Cold, request.Cold)
		read(request.Warm, request.Warm, request.Warm)
		for generation := int64(1); generation < 3; generation++ {
			touched := request.Invalidation{Source: "twilio", Kind: "calls", ID: sid(2)}
			_, err := s.store.Touch(t.Context(), touched)
			checktest.MustNoError(t, err, "touch")
			s.NoteWriteElsewhere("twilio", "calls", generation, []string{sid(2)})
			read(request.Warm, request.Cold, request.Cold)
			read(request.Warm, request.Warm, request.Warm)
		}
		s.NoteWriteElsewhere("twilio", "calls", 2, []string{sid(1)}) // it is known already
		read(request.Warm, request.Warm, request.Warm)
	})
}
