// This file opens connections to brokers.

package publish

import (
	"context"
	"crypto/tls"
	"net"
)

// dial opens a connection to the broker, with TLS if the URL says so.
func (b *broker) dial(ctx context.Context) (net.Conn, error) {
	if b.tls {
		d := tls.Dialer{NetDialer: b.dialer, Config: &tls.Config{ServerName: b.host, MinVersion: tls.VersionTLS12}}
		return d.DialContext(ctx, "tcp", b.address)
	}
	return b.dialer.DialContext(ctx, "tcp", b.address)
}

// contextDialer opens connections to a broker until its context ends.
type contextDialer struct {
	ctx    context.Context
	dialer *net.Dialer
}

// Dial opens a connection.
func (d contextDialer) Dial(network, address string) (net.Conn, error) {
	return d.dialer.DialContext(d.ctx, network, address)
}
