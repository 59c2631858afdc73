// This file sends a test message, which shows whether messages of a watch reach their receiver.

package watch

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"understudy"
)

// testInterval is the minimum time between two tests of a watch.
const testInterval = 5 * time.Second

// Test sends a test message and returns its delivery. It returns ErrNotFound, ErrTooMany or ErrNotStored. If the
// receiver does not get the message, the delivery says so, and the error is nil.
func (b *Book) Test(ctx context.Context, id string) (Delivery, error) {
	e, err := b.find(id)
	if err != nil {
		return Delivery{}, err
	}
	now := b.o.Now()
	e.mu.Lock()
	soon := !e.lastTest.IsZero() && now.Sub(e.lastTest) < testInterval
	if !soon {
		e.lastTest = now
	}
	e.mu.Unlock()
	if soon {
		return Delivery{}, fmt.Errorf("watch: %w: it was tested a moment ago; wait %s", understudy.ErrTooMany, testInterval)
	}
	select {
	case b.tests <- struct{}{}:
		defer func() { <-b.tests }()
	case <-ctx.Done():
		return Delivery{}, ctx.Err()
	}
	p, s := b.policy.Load(), e.status()
	note := &notification{ID: "msg_" + strings.ToLower(rand.Text()), Watch: s.Watch, At: now.UTC(), URL: p.URL, Test: true}
	d, _, err := b.try(ctx, p, &s.Watch, note)
	if ctx.Err() != nil {
		return Delivery{}, ctx.Err()
	}
	if err != nil {
		d.Outcome = Refused
	}
	return d, b.update(ctx, e, func(k *kept) { k.addDelivery(d) })
}
