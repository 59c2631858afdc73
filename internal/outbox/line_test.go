// Tests of lines and of the ids of messages.

package outbox

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"understudy"
)

// Receivers drop ids that they know, so the bytes stay the same from version to version.
func TestMessageIDsStayTheSame(t *testing.T) {
	t.Parallel()
	key := []byte("key")
	id := MessageID(key, "webhook\x00%s\x00%s\x00%d\x00%d\x00%d", "crm", "twilio", 0, 8, 1)
	if id.ShortString() != "msg_nBKnGAqmCeB45Bw6kFaZqw" {
		t.Errorf("a batch of a webhook is %s", id.ShortString())
	}
	id = MessageID(key, "watch\x00%s\x00%d%s", "w1", 2, "\x00twilio\x003\x00twilio\x005")
	if id.String() != "msg_ae7cb9ddf14bce5b390262d719e97a12" {
		t.Errorf("a message of a watch is %s", id)
	}
}

func TestJobIsEnqueuedOnceUntilItsDeliveryEnds(t *testing.T) {
	t.Parallel()
	l, now, jobs := NewLine(), time.Unix(1000, 0), 0
	var refused error
	enqueue := func(want int, why string) {
		t.Helper()
		err := l.Enqueue(t.Context(), func(_ context.Context, all ...understudy.Job) ([]int64, error) {
			if refused == nil {
				jobs += len(all)
			}
			return nil, refused
		}, "deliver", "crm", now, time.Minute)
		if !errors.Is(err, refused) {
			t.Errorf("%s: %v", why, err)
		}
		if jobs != want {
			t.Errorf("%s: %d jobs, want %d", why, jobs, want)
		}
	}
	failed := errors.New("failed")
	deliver := func(err error) {
		if got := l.Deliver(t.Context(), func() error { return err }); !errors.Is(got, err) {
			t.Errorf("a delivery returns %v, want %v", got, err)
		}
	}
	enqueue(1, "nothing is live")
	enqueue(1, "a job is live")
	deliver(failed)
	enqueue(1, "its job is tried again")
	deliver(nil)
	enqueue(2, "its job ended")
	now = now.Add(time.Minute)
	enqueue(3, "the job may be lost")
	l.Release()
	refused = failed
	enqueue(3, "the store refuses")
	refused = nil
	enqueue(4, "it was not enqueued")
}

func TestDeliveriesOfALineTakeTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := NewLine()
		release := make(chan struct{})
		go func() { _ = l.Deliver(t.Context(), func() error { <-release; return nil }) }()
		synctest.Wait()
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := l.Deliver(short, func() error { t.Error("two at once"); return nil }); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a delivery that waits ends with %v", err)
		}
		close(release)
		ran := false
		if err := l.Deliver(t.Context(), func() error { ran = true; return nil }); err != nil {
			t.Error(err)
		}
		if !ran {
			t.Error("the next delivery did not run")
		}
	})
}
