// Bounds: how old a response may be to be used as an answer, according to upstream's headers.

package httpcache

import (
	"math"
	"time"
)

// Bounds are the ages up to which upstream's headers permit a response to be used. An age is counted from the time at
// which the header was received (Response.At). A negative age means never.
type Bounds struct {
	FreshUntil   time.Duration // the age until which the response may be used without asking upstream (RFC 9111, 4.2)
	Explicit     bool          // whether upstream stated the lifetime; otherwise FreshUntil is a heuristic (4.2.2)
	RefreshUntil time.Duration // the age until which the response may be used while upstream is asked in the background (RFC 5861, 3)
	ErrorUntil   time.Duration // the age until which the response may be used if upstream answers 500, 502, 503 or 504 (RFC 5861, 4)
	DownUntil    time.Duration // the age until which the response may be used if upstream cannot be reached (RFC 9111, 4.2.4)
	Strict       bool          // whether the response must not be used after FreshUntil, even if the request permits it
	Validate     bool          // whether the response must not be used without asking upstream (RFC 9111, 5.2.2.4); implies Strict
	NoStore      bool          // whether the response must not be stored (RFC 9111, 5.2.2.5)
}

// Bounds returns the bounds that the header sets.
func (r *Response) Bounds() Bounds {
	said, _ := r.directives()
	life, explicit := r.Lifetime()
	b := Bounds{FreshUntil: life - r.InitialAge, Explicit: explicit, RefreshUntil: -1, ErrorUntil: -1, DownUntil: -1,
		Strict: said.mustRevalidate(), Validate: said.hasWhole("no-cache"), NoStore: said.isNoStore()}
	if b.Strict {
		return b
	}
	if n, ok := said.seconds("stale-while-revalidate"); ok {
		b.RefreshUntil = b.FreshUntil + n
	}
	b.DownUntil = math.MaxInt64
	if n, ok := said.seconds("stale-if-error"); ok {
		b.ErrorUntil, b.DownUntil = b.FreshUntil+n, b.FreshUntil+n
	}
	return b
}
