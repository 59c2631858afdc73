// This file counts tunnels and refused requests.

package connect

import (
	"net"
	"sync/atomic"
)

// Stats are the counters of a proxy. Open, Other and OtherLimit are current values. The other fields count since the start.
type Stats struct {
	Open       int64 `json:"open"`  // the number of open tunnels to hosts of sources
	Made       int64 `json:"made"`  // the number of tunnels to hosts of sources since the start
	Other      int64 `json:"other"` // the number of open tunnels to other hosts
	OtherMade  int64 `json:"other_made"`
	OtherLimit int64 `json:"other_limit"` // the maximum number of open tunnels to other hosts
	Refused    int64 `json:"refused"`     // the number of requests with a 4xx or 503 response
	Failed     int64 `json:"failed"`      // the number of requests (status 502) for other hosts that could not be reached
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
	onClose func() // decrements the count of open tunnels; effective only once
}

// Close closes the connection.
func (c *conn) Close() error {
	defer c.onClose()
	return c.Conn.Close()
}
