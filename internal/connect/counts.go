// Counts: counts tunnels and refused requests.

package connect

import (
	"net"
	"sync"
	"sync/atomic"
)

// Stats are the counts of a proxy. Open, Other and OtherLimit are current values; the others count since the start.
type Stats struct {
	Open       int64 `json:"open"`  // tunnels to hosts of sources that are open
	Made       int64 `json:"made"`  // tunnels to hosts of sources since the start
	Other      int64 `json:"other"` // tunnels to other hosts that are open
	OtherMade  int64 `json:"other_made"`
	OtherLimit int64 `json:"other_limit"` // the maximum of Other
	Refused    int64 `json:"refused"`     // requests with a 4xx or 503 response
	Failed     int64 `json:"failed"`      // requests for other hosts that could not be reached: 502
}

// counts are the counters of a proxy.
type counts struct {
	open, made, otherMade, refused, failed atomic.Int64
}

// Stats returns the current counts.
func (p *Proxy) Stats() Stats {
	c := &p.counts
	return Stats{Open: c.open.Load(), Made: c.made.Load(), Other: int64(p.limiter.Load().InUse), OtherMade: c.otherMade.Load(),
		OtherLimit: int64(p.o.Tunnels), Refused: c.refused.Load(), Failed: c.failed.Load()}
}

// conn is a client's connection in which TLS begins.
type conn struct {
	net.Conn
	host    string // the host of the tunnel
	onClose func() // reduces the count of open tunnels, once
}

// newConn wraps a connection and counts it as open.
func (p *Proxy) newConn(nc net.Conn, host string) *conn {
	p.counts.made.Add(1)
	p.counts.open.Add(1)
	return &conn{nc, host, sync.OnceFunc(func() { p.counts.open.Add(-1) })}
}

// Close closes the connection.
func (c *conn) Close() error {
	defer c.onClose()
	return c.Conn.Close()
}
