// Watches that two processes share on one database.

package watch

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/sample"
	"understudy/internal/store/storetest"
)

// newPair returns two processes on one database, with one receiver.
func newPair(t *testing.T) (a, b *rig) {
	t.Helper()
	path := storetest.File(t)
	a, b = newRigAt(t, path), newRigAt(t, path)
	b.receiver, b.url, b.rules = a.receiver, a.url, a.rules
	b.enforce()
	return a, b
}

// refresh begins a transaction.
func (r *rig) refresh() {
	r.Helper()
	checktest.MustNoError(r, r.store.Refresh(r.Context()), "refresh")
}

func TestTwoProcessesShareWatches(t *testing.T) {
	t.Parallel()
	a, b := newPair(t)
	id := a.watch(Webhook, "status:failed")
	b.refresh()
	w := b.status(id).Watch
	again, err := b.book.Make(t.Context(), b.desk(), w.Search, w.To)
	checktest.MustNoError(t, err, "the same watch in the other process")
	checktest.Equal(t, again, id, "the id of the same watch")

	checktest.MustNoError(t, b.book.Pause(t.Context(), id), "pause at b")
	a.put(message(1, "inbound", "failed"))
	checktest.Equal(t, a.status(id).State.Stopped, Paused, "the state at a after a pause at b")
	checktest.Equal(t, ids(a.told()), "", "told by a after a pause at b")
	checktest.MustNoError(t, a.book.Resume(t.Context(), id), "resume at a")
	a.put(message(2, "inbound", "failed"))
	b.refresh()
	checktest.Equal(t, ids(b.told()), "2", "told by b after it was resumed at a")
	a.refresh()
	checktest.Equal(t, a.status(id).State.Told, 1, "matches that were told, at a")

	checktest.MustNoError(t, b.book.Remove(t.Context(), id), "remove at b")
	a.refresh()
	checktest.Equal(t, len(a.book.Watches(a.desk(), true)), 0, "watches at a after one was removed at b")
	for what, err := range map[string]error{"pause": a.book.Pause(t.Context(), id), "remove": a.book.Remove(t.Context(), id)} {
		checktest.True(t, errors.Is(err, understudy.ErrNotFound), "%s a watch that was removed at b: %v", what, err)
	}
}

// A process that does not know yet that a watch was removed does not store it again.
func TestRemovedWatchIsNotStoredAgain(t *testing.T) {
	t.Parallel()
	a, b := newPair(t)
	id := a.watch(Webhook, "status:failed")
	b.refresh()
	b.book.entries()[0].setPosition("twilio", 100)
	checktest.MustNoError(t, a.book.Remove(t.Context(), id), "remove")
	b.book.save(t.Context())
	checktest.Equal(t, len(b.book.Watches(b.desk(), true)), 0, "watches at b")
	values, err := b.store.KV.ReadValues(t.Context(), keyPrefix)
	checktest.MustNoError(t, err, "read the values")
	checktest.Equal(t, len(values), 0, "stored watches")
}

// Whichever process reads the changes and sends the messages, each record is told once.
func TestTwoProcessesTellEachMatchOnce(t *testing.T) {
	t.Parallel()
	chance := rand.New(rand.NewPCG(sample.Seed(t), 1))
	a, b := newPair(t)
	id := a.watch(Webhook, "status:failed")
	b.refresh()
	both, n, got := []*rig{a, b}, 0, ""
	for range 120 {
		r := both[chance.IntN(2)]
		switch chance.IntN(6) {
		case 0, 1: // some match, some not
			n++
			r.clock = a.clock
			r.put(message(n, "inbound", []string{"failed", "sent"}[n%2]))
			a.clock, b.clock = r.clock, r.clock
		case 2, 3:
			checktest.MustNoError(t, r.book.readChanges(t.Context()), "read the changes")
		case 4:
			r.book.save(t.Context())
		default:
			checktest.MustNoError(t, r.book.Deliver(t.Context(), job(id)), "deliver")
		}
		got += " " + ids(a.receiver.take())
	}
	checktest.MustNoError(t, errors.Join(a.book.readChanges(t.Context()), a.book.Deliver(t.Context(), job(id))), "the last round")
	got += " " + ids(a.receiver.take())
	var want []string
	for i := 2; i <= n; i += 2 {
		want = append(want, fmt.Sprint(i))
	}
	checktest.Equal(t, strings.Join(strings.Fields(got), " "), strings.Join(want, " "), "records that were told")
	checktest.Equal(t, a.status(id).State.Told, int64(len(want)), "matches that were told")
}

// A process that tests changes while another one has already added their matches drops its own.
func TestMatchesOfAnotherProcessAreNotAddedAgain(t *testing.T) {
	t.Parallel()
	a, b := newPair(t)
	id := a.watch(Webhook, "status:failed")
	b.refresh()
	w, err := b.book.newWatcher(t.Context(), b.book.entries()[0])
	checktest.MustNoError(t, err, "the watch at b")
	a.put(message(1, "inbound", "failed"), message(2, "inbound", "sent"))
	checktest.MustNoError(t, a.book.readChanges(t.Context()), "read the changes at a")
	a.put(message(3, "inbound", "failed"))
	checktest.MustNoError(t, b.book.follow(t.Context(), "twilio", []*watcher{w}), "read the changes at b")
	checktest.Equal(t, b.status(id).Pending, 2, "matches")
	checktest.Equal(t, ids(a.told()), "1 3", "told")
}

func TestTwoProcessesChangeWatchesAtOnce(t *testing.T) {
	t.Parallel()
	a, b := newPair(t)
	told, paused := a.watch(Webhook, "status:failed"), a.watch(Slack, "status:sent")
	b.refresh()
	search := a.status(told).Watch.Search
	const each = 12
	var wg sync.WaitGroup
	var made [2][]string
	for i, r := range []*rig{a, b} {
		r.clock = r.clock.Add(time.Hour)
		wg.Go(func() { // as Run does
			for range 2 * each {
				checktest.NoError(t, r.book.readChanges(t.Context()), "read the changes")
				r.book.save(t.Context())
			}
		})
		wg.Go(func() {
			for n := range each {
				at := Destination{Channel: Slack, To: fmt.Sprint(r.url, "/slack/", n/2)} // both make the same
				id, err := r.book.Make(t.Context(), r.desk(), search, at)
				checktest.NoError(t, err, "make")
				made[i] = append(made[i], id)
				r.book.NoteOwner(r.desk())
				switch {
				case i == 0:
					checktest.NoError(t, r.book.Pause(t.Context(), paused), "pause")
				default:
					_, err := r.book.Test(t.Context(), paused)
					checktest.True(t, err == nil || errors.Is(err, understudy.ErrTooMany), "test: %v", err)
				}
			}
		})
	}
	for n := range each { // a's clock stands still meanwhile
		_, err := a.store.Save(t.Context(), a.page(message(n, "inbound", "failed")))
		checktest.NoError(t, err, "save")
	}
	wg.Wait()
	checktest.Equal(t, fmt.Sprint(made[0]), fmt.Sprint(made[1]), "the ids of watches that both made")
	for _, r := range []*rig{a, b} {
		checktest.MustNoError(t, r.book.readChanges(t.Context()), "read the changes")
	}
	for i, r := range []*rig{a, b} {
		r.refresh()
		checktest.Equal(t, len(r.book.Watches(r.desk(), true)), 2+each/2, "watches in process %d", i)
		checktest.Equal(t, r.status(told).Pending, each, "matches in process %d", i)
		checktest.Equal(t, r.status(paused).State.Stopped, Paused, "the state of the paused watch in process %d", i)
		checktest.Equal(t, len(r.status(paused).Log), 1, "tests of the paused watch in process %d", i)
		checktest.True(t, r.status(told).Watch.Owner.LastSeen.Equal(a.clock), "the owner's last request in process %d is %v", i,
			r.status(told).Watch.Owner.LastSeen)
	}
}

// Positions are stored often. Other processes do not read the watch again because of that, and do not move it back.
func TestPositionsAreStoredQuietly(t *testing.T) {
	t.Parallel()
	a, b := newPair(t)
	id := a.watch(Webhook, "status:failed")
	b.refresh()
	a.put(message(1, "inbound", "sent"))
	checktest.Equal(t, ids(a.told()), "", "told")
	a.book.save(t.Context())
	b.refresh()
	position := func(r *rig) int64 { return r.book.entries()[0].readPosition("twilio") }
	checktest.Equal(t, position(a), 1, "the position at a")
	checktest.Equal(t, position(b), 0, "the position at b")
	checktest.MustNoError(t, b.book.Pause(t.Context(), id), "pause at b")
	checktest.Equal(t, position(b), 1, "the position at b after a change of its own")

	a.refresh()
	checktest.MustNoError(t, a.book.Resume(t.Context(), id), "resume at a")
	b.clock = b.clock.Add(2 * ownerInterval)
	b.book.NoteOwner(b.desk())
	b.book.save(t.Context())
	a.refresh()
	if seen := a.status(id).Watch.Owner.LastSeen; !seen.Equal(b.clock) {
		t.Errorf("a request of the owner at b is %v at a, want %v", seen, b.clock)
	}
}

// A pause is not lost when the attempt to send that is under way meanwhile fails.
func TestPauseDuringAFailingAttempt(t *testing.T) {
	t.Parallel()
	a, b := newPair(t)
	id := a.watch(Webhook, "status:failed")
	b.refresh()
	a.put(message(1, "inbound", "failed"))
	a.receiver.answers = []int{503}
	a.receiver.arrived = func() { checktest.NoError(t, b.book.Pause(context.Background(), id), "pause") }
	if err := a.round(); err == nil {
		t.Error("a failure is no error of the job")
	}
	a.receiver.arrived = nil
	checktest.Equal(t, a.status(id).State.Stopped, Paused, "the state after the attempt")
	checktest.Equal(t, a.status(id).Pending, 0, "pending matches of a paused watch")
	checktest.MustNoError(t, a.round(), "the next attempt")
	checktest.Equal(t, len(a.receiver.take()), 1, "messages")
	if log := b.status(id).Log; len(log) != 0 && !slices.ContainsFunc(log, func(d Delivery) bool { return d.Outcome == Failed }) {
		t.Errorf("the log is %v", log)
	}
}
