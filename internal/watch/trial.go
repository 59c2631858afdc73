// Trial: a message of no match, to see whether it arrives.

package watch

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"understudy"
)

// testPause is the least time between two tests of a watch.
const testPause = 5 * time.Second

// Test sends a message that says it is a test, and returns what became of it. Errors:
// ErrNotFound, ErrTooMany, ErrNotStored. A message that did not arrive is no error.
func (b *Book) Test(ctx context.Context, id string) (Delivery, error) {
	e, err := b.find(id)
	if err != nil {
		return Delivery{}, err
	}
	now := b.o.Now()
	e.mu.Lock()
	soon := !e.tested.IsZero() && now.Sub(e.tested) < testPause
	if !soon {
		e.tested = now
	}
	e.mu.Unlock()
	if soon {
		return Delivery{}, fmt.Errorf("watch: %w: it was tested a moment ago; wait %s", understudy.ErrTooMany, testPause)
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
	return d, b.change(ctx, e, func(k *kept) { k.log(d) })
}

// sentence returns what an error says to people, cut for the log.
func sentence(err error) string {
	text := understudy.PlainText(err)
	const most = 300
	return text[:min(len(text), most)]
}
