package lockwatch

import (
	"cmp"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// arrival is a goroutine that calls Lock or RLock and holds the lock for a time: a writer for 1 s, a reader for 0.5 s.
type arrival struct {
	name string // begins with W for a writer, and with R for a reader
	at   time.Duration
}

func (a *arrival) reads() bool { return a.name[0] == 'R' }

func (a *arrival) hold() time.Duration {
	if a.reads() {
		return time.Second / 2
	}
	return time.Second
}

// policy decides whether a reader may lock while other readers have the lock and a writer waits. first says whether the first of these
// readers is still there.
type policy func(first bool) bool

func goPolicy(bool) bool            { return false }
func articlePolicy(first bool) bool { return first }

// queue is a lock in a model of time.
type queue struct {
	joins   policy
	holders map[*arrival]time.Duration // when they unlock
	waiting []*arrival
	first   *arrival
	locked  map[string]time.Duration // when each has locked
}

func (q *queue) writerWaits() bool {
	return slices.ContainsFunc(q.waiting, func(a *arrival) bool { return !a.reads() })
}

func (q *queue) writes() bool {
	for a := range q.holders {
		return !a.reads()
	}
	return false
}

func (q *queue) lock(a *arrival, now time.Duration) {
	if len(q.holders) == 0 {
		q.first = a
	}
	q.holders[a], q.locked[a.name] = now+a.hold(), now
}

func (q *queue) arrive(a *arrival, now time.Duration) {
	_, first := q.holders[q.first]
	switch {
	case len(q.holders) == 0, a.reads() && !q.writes() && (!q.writerWaits() || q.joins(first)):
		q.lock(a, now)
	default:
		q.waiting = append(q.waiting, a)
	}
}

// leave unlocks. A writer lets in all readers that wait, and the last reader the first writer.
func (q *queue) leave(a *arrival, now time.Duration) {
	delete(q.holders, a)
	if len(q.holders) > 0 {
		return
	}
	next := slices.DeleteFunc(slices.Clone(q.waiting), func(w *arrival) bool { return w.reads() == a.reads() })
	if len(next) == 0 {
		next = q.waiting
	}
	for _, w := range next {
		if w.reads() || len(q.holders) == 0 {
			q.lock(w, now)
			q.waiting = slices.DeleteFunc(q.waiting, func(o *arrival) bool { return o == w })
		}
	}
}

// run plays the arrivals. It calls arrive and leave after each event of the model.
func (q *queue) run(arrivals []arrival, arrive, leave func(*arrival)) map[string]time.Duration {
	q.holders, q.locked = map[*arrival]time.Duration{}, map[string]time.Duration{}
	for next := 0; next < len(arrivals) || len(q.holders) > 0; {
		holders := slices.SortedFunc(maps.Keys(q.holders), func(a, b *arrival) int { return cmp.Compare(q.holders[a], q.holders[b]) })
		if len(holders) > 0 && (next == len(arrivals) || q.holders[holders[0]] <= arrivals[next].at) {
			q.leave(holders[0], q.holders[holders[0]])
			leave(holders[0])
			continue
		}
		q.arrive(&arrivals[next], arrivals[next].at)
		arrive(&arrivals[next])
		next++
	}
	return q.locked
}

// rwLocker is implemented by sync.RWMutex and by RWMutex.
type rwLocker interface {
	sync.Locker
	RLock()
	RUnlock()
	TryRLock() bool
}

// play plays the arrivals with a lock. After each event it waits until the lock has the state of the model.
//
// The time is that of the model. In a bubble of testing/synctest time would stand still, because a goroutine that waits for a mutex does
// not count as blocked there.
func play(t *testing.T, rw rwLocker, q *queue, arrivals []arrival) {
	t.Helper()
	var mu sync.Mutex
	locked, unlock, done := map[string]bool{}, map[string]chan bool{}, map[string]chan bool{}
	settle := func(a *arrival) {
		t.Helper()
		stacks := make([]byte, 1<<20)
		var got []string
		for until := time.Now().Add(10 * time.Second); time.Now().Before(until); time.Sleep(50 * time.Microsecond) {
			mu.Lock()
			got = slices.Sorted(maps.Keys(locked))
			mu.Unlock()
			text := string(stacks[:runtime.Stack(stacks, true)])
			waiting := strings.Count(text, "[sync.RWMutex.") + strings.Count(text, "[sync.Mutex.Lock")
			shut := !rw.TryRLock()
			if !shut {
				rw.RUnlock()
			}
			if len(got) == len(q.locked) && waiting == len(q.waiting) && shut == (q.writes() || q.writerWaits()) {
				if want := slices.Sorted(maps.Keys(q.locked)); !slices.Equal(got, want) {
					t.Fatalf("after %s: %v have locked, want %v", a.name, got, want)
				}
				return
			}
		}
		t.Fatalf("after %s: %v have locked, want %v", a.name, got, slices.Sorted(maps.Keys(q.locked)))
	}
	q.run(arrivals, func(a *arrival) {
		end, ended := make(chan bool), make(chan bool)
		unlock[a.name], done[a.name] = end, ended
		go func() {
			defer close(ended)
			if a.reads() {
				rw.RLock()
				defer rw.RUnlock()
			} else {
				rw.Lock()
				defer rw.Unlock()
			}
			mu.Lock()
			locked[a.name] = true
			mu.Unlock()
			<-end
		}()
		settle(a)
	}, func(a *arrival) {
		close(unlock[a.name])
		<-done[a.name]
		settle(a)
	})
}

// TestQueueOfRWMutex: a writer that waits shuts out new readers at once. When a writer unlocks, all readers that wait lock, then the next
// writer. The article says that readers may join while the first of them holds the lock.
func TestQueueOfRWMutex(t *testing.T) {
	const ms = time.Millisecond
	for _, test := range []struct {
		name     string
		arrivals []arrival
		want     map[string]time.Duration
		article  map[string]time.Duration // where its theory differs
	}{
		{"a reader at 1.25 s waits for the writer",
			[]arrival{{"W1", 0}, {"R1", 250 * ms}, {"R2", 500 * ms}, {"R3", 750 * ms}, {"W2", 800 * ms}, {"R4", 1250 * ms}},
			map[string]time.Duration{"W1": 0, "R1": 1000 * ms, "R2": 1000 * ms, "R3": 1000 * ms, "W2": 1500 * ms, "R4": 2500 * ms},
			map[string]time.Duration{"R4": 1250 * ms, "W2": 1750 * ms}},
		{"readers join only before a writer waits",
			[]arrival{{"R1", 0}, {"R2", 250 * ms}, {"W1", 300 * ms}, {"R3", 400 * ms}},
			map[string]time.Duration{"R1": 0, "R2": 250 * ms, "W1": 750 * ms, "R3": 1750 * ms},
			map[string]time.Duration{"R3": 400 * ms, "W1": 900 * ms}},
		{"readers come between two writers",
			[]arrival{{"W1", 0}, {"W2", 100 * ms}, {"R1", 200 * ms}, {"R2", 300 * ms}, {"W3", 400 * ms}},
			map[string]time.Duration{"W1": 0, "R1": 1000 * ms, "R2": 1000 * ms, "W2": 1500 * ms, "W3": 2500 * ms}, nil},
	} {
		q := queue{joins: goPolicy}
		play(t, &sync.RWMutex{}, &q, test.arrivals)
		if !maps.Equal(q.locked, test.want) {
			t.Errorf("%s: %v, want %v", test.name, q.locked, test.want)
		}
		watch(t, time.Hour)
		play(t, &RWMutex{}, &queue{joins: goPolicy}, test.arrivals)
		theory := (&queue{joins: articlePolicy}).run(test.arrivals, func(*arrival) {}, func(*arrival) {})
		for name, at := range test.article {
			if theory[name] != at || test.want[name] == at {
				t.Errorf("%s: the article lets %s lock at %v, want %v", test.name, name, theory[name], at)
			}
		}
	}
}
