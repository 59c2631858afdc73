// Failures: audio and images that could recently not be downloaded or stored.

package media

import (
	"time"

	"understudy"
)

const (
	failurePause = time.Second      // the minimum time between a failure and the next attempt
	notKeptPause = 10 * time.Minute // how long nobody tries to store a file again that could not be stored
	failureShown = 5 * time.Minute  // how long readers are told about a failure of upstream
	maxFailures  = 1024
)

// negative is a failed download. Until nextTry no new download starts. Until ends readers are told about the failure.
type negative struct {
	text          string
	nextTry, ends time.Time
}

// rememberFailure remembers a failed download. The caller holds the lock.
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

// failure returns the last failure of a download as a detail for the response. It returns "" if the last download
// succeeded, or if the failure was long ago.
func (c *Cache) failure(key understudy.Key, now time.Time) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w := c.downloads.failures[key]; now.Before(w.ends) {
		return w.text
	}
	return ""
}
