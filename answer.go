// Answer: a page and how it came.

package understudy

import "time"

// Ask is one question to the mirror. It does not say who asks.
type Ask struct {
	Target   *Target
	MaxStale *time.Duration // how old an answer the grant accepts; nil: the mirror's ages; 0: as fresh as upstream
	NoCache  bool           // the request said no-cache: join or start a fetch
	// Turn is an opaque tag. Those who wait for upstream with different ones
	// take turns, so that a flood of one does not starve another. It shapes
	// nothing that is kept.
	Turn uint64
}

// How says how an answer came.
type How uint8

// The four ways.
const (
	Warm     How = iota // fresh from memory or store
	Stale               // past fresh
	Cold                // fetched
	Composed            // made from records
)

// String is the word in logs, stats and pages.
func (h How) String() string {
	if int(h) < len(hows) {
		return hows[h]
	}
	return "unknown"
}

var hows = [...]string{"warm", "stale", "cold", "composed"}

// Answer is a page and how it came. It is shared by every reader of the same
// flight and never changed.
type Answer struct {
	Page     *Page
	Gzip     []byte // Page.Body compressed, when the mirror has it ready; else nil
	How      How
	Age      time.Duration
	TTL      time.Duration // how long it stays fresh; negative: past fresh by that much
	Fwd      string        // why upstream was asked, as in Cache-Status (RFC 9211): "uri-miss", "stale", "request"; "" for a hit
	Stored   bool          // the store has it
	Joined   bool          // it shared a fetch another reader began
	Detail   string        // "stale: upstream 503", "not stored: disk full"; may be empty
	Upstream time.Duration // upstream's own time, 0 for a hit
	Store    time.Duration // the store's, 0 from memory
}
