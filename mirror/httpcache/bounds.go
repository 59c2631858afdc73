// Bounds: how old an answer may be, by what upstream said of it.

package httpcache

import (
	"math"
	"time"
)

// Bounds are the ages up to which upstream lets an answer be given, each counted from when
// its header came (Response.At). An age below 0 means: at no time.
type Bounds struct {
	Fresh    time.Duration // younger than this: without asking upstream (RFC 9111, 4.2)
	Explicit bool          // upstream said how long it is fresh; else Fresh is a guess (4.2.2)
	Behind   time.Duration // past Fresh: while upstream is asked behind the answer (RFC 5861, 3)
	Error    time.Duration // past Fresh: when upstream answers 500, 502, 503 or 504 (RFC 5861, 4)
	Down     time.Duration // past Fresh: when upstream cannot be reached (RFC 9111, 4.2.4)
	Strict   bool          // past Fresh at no time, whoever permits it
	Validate bool          // at no time without asking upstream (RFC 9111, 5.2.2.4); Strict is set, too
	NoStore  bool          // it must not be stored (RFC 9111, 5.2.2.5)
}

// Bounds are those that the header sets.
func (r *Response) Bounds() Bounds {
	said, _ := r.directives()
	life, explicit := r.Lifetime()
	b := Bounds{Fresh: life - r.InitialAge, Explicit: explicit, Behind: -1, Error: -1, Down: -1, Strict: said.revalidates(),
		Validate: said.whole("no-cache"), NoStore: said.forbidsStoring()}
	if b.Strict {
		return b
	}
	if n, ok := said.seconds("stale-while-revalidate"); ok {
		b.Behind = b.Fresh + n
	}
	b.Down = math.MaxInt64
	if n, ok := said.seconds("stale-if-error"); ok {
		b.Error, b.Down = b.Fresh+n, b.Fresh+n
	}
	return b
}
