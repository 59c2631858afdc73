// Failures: contents that could not be downloaded or stored recently.

package media

import (
	"time"

	"understudy"
)

const (
	failurePause = time.Second      // pause before the next try after a failure
	notKeptPause = 10 * time.Minute // pause before the next try after a content could not be stored
	failureShown = 5 * time.Minute  // how long a failure of upstream is shown to readers
	maxFailures  = 1024
)

// negative is the failure of a content. Until nextTry no download starts, and until ends the failure is
// shown.
type negative struct {
	text          string
	nextTry, ends time.Time
}

// rememberFailure stores a failure. The caller has the lock.
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

// failure returns the last failure of a content as a response detail. It returns "" if the last download
// succeeded or the failure is old.
func (c *Cache) failure(key understudy.Key, now time.Time) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w := c.downloads.failures[key]; now.Before(w.ends) {
		return w.text
	}
	return ""
}
