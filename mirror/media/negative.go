// Negative cache: contents that could not be downloaded or kept a while ago.

package media

import (
	"time"

	"understudy"
)

const (
	coolTime    = time.Second      // after a failure, before the next try
	retryAfter  = 10 * time.Minute // the same, after a content could not be kept
	failureKept = 5 * time.Minute  // how long a failure of upstream is told to readers
	maxFailures = 1024
)

// negative is what went wrong with a content, and until when no download is
// tried again.
type negative struct {
	text        string
	again, ends time.Time
}

// rememberFailure notes what went wrong; the lock is held.
func (ds *downloads) rememberFailure(key understudy.Key, w negative, now time.Time) {
	if len(ds.failures) >= maxFailures {
		for k, old := range ds.failures {
			if !now.Before(old.ends) {
				delete(ds.failures, k)
			}
		}
	}
	if len(ds.failures) < maxFailures {
		ds.failures[key] = w
	}
}

// failure is the last failure of a content as a detail for its readers; "" when
// the last download succeeded, or the failure is long ago.
func (c *Cache) failure(key understudy.Key, now time.Time) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w := c.downloads.failures[key]; now.Before(w.ends) {
		return w.text
	}
	return ""
}
