// Outage: whether a source fails now, so that what is held can say why it is old.

package mirror

import (
	"errors"
	"sync/atomic"

	"understudy"
)

// outageAfter is how many fetches of a source fail in a row before it counts as
// an outage that no fetch was refused for.
const outageAfter = 3

// outage is how the last fetches of a source ended.
type outage struct {
	fails atomic.Int64
	why   atomic.Pointer[understudy.UpstreamError] // of the last that failed; nil: it brought a page
}

// heard notes the end of a fetch. A limit of our own is no failure of upstream.
func (o *outage) heard(err error) {
	var why *understudy.UpstreamError
	switch {
	case err == nil:
		if o.fails.Load() != 0 {
			o.fails.Store(0)
			o.why.Store(nil)
		}
	case !errors.As(err, &why) || why.Why == understudy.FailBusy:
	case why.Why == understudy.FailDown || why.Why == understudy.FailCredential:
		o.fails.Store(outageAfter)
		o.why.Store(why)
	default:
		o.fails.Add(1)
		o.why.Store(why)
	}
}

// reason is why what is held cannot be refilled now, "" while upstream is well.
func (o *outage) reason() string {
	if why := o.why.Load(); why != nil && o.fails.Load() >= outageAfter {
		return why.Short()
	}
	return ""
}
