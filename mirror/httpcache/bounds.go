// Bounds: how old an answer may be, by upstream's headers.

package httpcache

import (
	"math"
	"time"
)

// Bounds are the ages up to which upstream's headers allow an answer. Each age is counted from when the
// header was received (Response.At). An age below 0 means never.
type Bounds struct {
	FreshUntil   time.Duration // the age until which the response is answered without asking upstream (RFC 9111, 4.2)
	Explicit     bool          // upstream stated the lifetime; otherwise FreshUntil is heuristic (4.2.2)
	RefreshUntil time.Duration // the age until which it is answered while upstream is asked in the background (RFC 5861, 3)
	ErrorUntil   time.Duration // the age until which it is answered if upstream responds with 500, 502, 503 or 504 (RFC 5861, 4)
	DownUntil    time.Duration // the age until which it is answered if upstream cannot be reached (RFC 9111, 4.2.4)
	Strict       bool          // the response is never answered after FreshUntil, even if the request allows it
	Validate     bool          // the response is never answered without asking upstream (RFC 9111, 5.2.2.4); implies Strict
	NoStore      bool          // the response must not be stored (RFC 9111, 5.2.2.5)
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
