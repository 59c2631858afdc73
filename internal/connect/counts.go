// Counts: how many tunnels there are, and what became of requests for one.

package connect

import (
	"net"
	"sync"
	"sync/atomic"
)

// Stats are a proxy's counts. Open, Other and OtherLimit are of this moment, the rest since its
// start.
type Stats struct {
	Open       int64 `json:"open"`  // to hosts of sources
	Made       int64 `json:"made"`  // the same, ever
	Other      int64 `json:"other"` // to other hosts
	OtherMade  int64 `json:"other_made"`
	OtherLimit int64 `json:"other_limit"` // at once
	Refused    int64 `json:"refused"`     // requests that were answered 4xx or 503
	Failed     int64 `json:"failed"`      // other hosts that could not be reached: 502
}

// counts are the counts themselves.
type counts struct {
	open, made, otherMade, refused, failed atomic.Int64
}

// Stats are the counts now.
func (p *Proxy) Stats() Stats {
	c := &p.counts
	return Stats{Open: c.open.Load(), Made: c.made.Load(), Other: int64(p.limiter.Load().InUse), OtherMade: c.otherMade.Load(),
		OtherLimit: int64(p.o.Tunnels), Refused: c.refused.Load(), Failed: c.failed.Load()}
}

// conn is a client's connection in which TLS begins.
type conn struct {
	net.Conn
	host string // that the tunnel is for
	left func() // counts it out, once
}

// newConn counts a connection in.
func (p *Proxy) newConn(nc net.Conn, host string) *conn {
	p.counts.made.Add(1)
	p.counts.open.Add(1)
	return &conn{nc, host, sync.OnceFunc(func() { p.counts.open.Add(-1) })}
}

// Close ends the connection.
func (c *conn) Close() error {
	defer c.left()
	return c.Conn.Close()
}
