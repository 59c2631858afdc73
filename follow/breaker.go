// Breaker: the Receive calls of a process do not all try a server that does not answer.

package follow

import (
	"context"
	"errors"
	"time"

	"understudy/kit/lockwatch"
)

// maxFailures is the number of failures in a row after which a server is tried by one call at a time.
const maxFailures = 5

// breaker is the circuit breaker of one server, for all Receive calls (M. Nygard, Release It!, 2007). It is open from
// maxFailures failures in a row until the server answers. While it is open, one call probes the server. After a failed
// probe there is a pause, and then the next call in the line probes.
type breaker struct {
	failures int           // in a row; while the breaker is open, only those of probes count
	cause    error         // of the last failure, while the breaker is open
	probe    chan struct{} // full while a call probes, and during the pause after it
}

// breakers has the breaker of each server that does not answer, and the lock of their fields.
var breakers = struct {
	mu       lockwatch.Mutex
	byServer map[string]*breaker
}{byServer: map[string]*breaker{}}

// findBreaker returns the breaker of a server, and why it is open.
func findBreaker(server string) (b *breaker, cause error) {
	breakers.mu.Lock()
	defer breakers.mu.Unlock()
	if b = breakers.byServer[server]; b == nil {
		b = &breaker{probe: make(chan struct{}, 1)}
		breakers.byServer[server] = b
	}
	return b, b.cause
}

// enter waits for the right to connect: not at all while the breaker is closed. The caller must call leave with the
// result of the attempt. Only the first call counts.
func (c *client) enter(ctx context.Context) (leave func(error), err error) {
	b, cause := findBreaker(c.at.Host)
	isProbe, hasLeft := false, false
	if cause != nil {
		select {
		case b.probe <- struct{}{}:
			isProbe = true
		case <-ctx.Done():
			return nil, &lostError{err: cause}
		}
	}
	return func(err error) {
		breakers.mu.Lock()
		defer breakers.mu.Unlock()
		if hasLeft {
			return
		}
		hasLeft = true
		pause := time.Duration(0)
		switch _, isLost := errors.AsType[*lostError](err); {
		case ctx.Err() != nil: // the call ends, which says nothing about the server
		case !isLost:
			b.failures, b.cause = 0, nil
			delete(breakers.byServer, c.at.Host)
		case isProbe || b.failures < maxFailures:
			if b.failures++; b.failures >= maxFailures {
				b.cause = err
			}
			pause = c.choosePause(max(0, b.failures-maxFailures))
		}
		if isProbe {
			time.AfterFunc(pause, func() { <-b.probe })
		}
	}, nil
}
