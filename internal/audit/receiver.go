// This file sends to an HTTP collector, and checks the addresses of receivers.

package audit

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"syscall"
	"time"

	"understudy"
	"understudy/internal/webhook"
)

// The URL schemes of receivers.
const (
	schemeUDP   = "syslog+udp"
	schemeTCP   = "syslog+tcp"
	schemeTLS   = "syslog+tls"
	schemeHTTPS = "https"
	schemeHTTP  = "http"
)

// The limits of a connection to a receiver.
const (
	dialTimeout = 10 * time.Second
	maxResponse = 64 << 10 // the maximum number of bytes that are read from a response
)

// errPublicHTTP is the error for an http address outside private networks.
var errPublicHTTP = errors.New("http is only for this machine and private networks; write https://")

// CheckSend returns an error if the address of a receiver is invalid, as far as that can be decided without
// resolving it. Valid are https://HOST/PATH, http://HOST/PATH in a private network, syslog+tls://HOST:PORT,
// syslog+tcp://HOST:PORT and syslog+udp://HOST:PORT. Only an HTTP collector takes a secret.
func CheckSend(address string, secret bool) error {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || u.User != nil || u.Fragment != "" {
		return errors.New("write https://HOST/PATH, or syslog+tls://HOST:PORT (or syslog+tcp, syslog+udp), without credentials")
	}
	switch u.Scheme {
	case schemeUDP, schemeTCP, schemeTLS:
		port, err := strconv.ParseUint(u.Port(), 10, 16)
		switch {
		case err != nil || port == 0 || u.Path != "" && u.Path != "/" || u.RawQuery != "":
			return fmt.Errorf("it is not the address of a receiver; write %s://HOST:PORT", u.Scheme)
		case secret:
			return errors.New("syslog has no place for a secret; remove send_secret")
		}
		return nil
	case schemeHTTPS, schemeHTTP:
		if at, err := netip.ParseAddr(u.Hostname()); err == nil && u.Scheme == schemeHTTP && !isPrivate(at) {
			return errPublicHTTP
		}
		return webhook.CheckURL(address, true)
	}
	return fmt.Errorf("it begins with %q; write %s, %s, %s or %s", understudy.Clip(u.Scheme), schemeHTTPS, schemeTLS, schemeTCP, schemeUDP)
}

// isPrivate reports whether an address belongs to this machine or to a private network.
func isPrivate(a netip.Addr) bool { a = a.Unmap(); return a.IsLoopback() || a.IsPrivate() }

// stripQuery returns an address without its query, which may contain a token.
func stripQuery(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	u.RawQuery = ""
	return u.String()
}

// newReceiver returns the receiver for an address.
func newReceiver(o SendOptions) (receiver, error) {
	if err := CheckSend(o.URL, o.Secret.Reveal() != ""); err != nil {
		return nil, fmt.Errorf("audit: send: %w", err)
	}
	u, err := url.Parse(o.URL)
	if err != nil {
		return nil, err
	}
	switch u.Scheme {
	case schemeUDP:
		return &datagramReceiver{address: u.Host, host: headerField(o.Host, maxHost)}, nil
	case schemeTCP:
		return &streamReceiver{dialer: &net.Dialer{Timeout: dialTimeout}, address: u.Host, host: headerField(o.Host, maxHost)}, nil
	case schemeTLS: // the certificate must be valid for the host name of the address
		trusted := &tls.Config{RootCAs: o.Roots, MinVersion: tls.VersionTLS12}
		dialer := &tls.Dialer{NetDialer: &net.Dialer{Timeout: dialTimeout}, Config: trusted}
		return &streamReceiver{dialer: dialer, address: u.Host, host: headerField(o.Host, maxHost)}, nil
	}
	return newCollector(o.URL, u.Scheme == schemeHTTP, o.Secret), nil
}

// collector sends lines by HTTP, as a POST of JSON lines. A response with a 2xx status confirms the lines.
type collector struct {
	url    string
	secret understudy.Secret
	client *http.Client
}

func newCollector(address string, plain bool, secret understudy.Secret) *collector {
	permitted := webhook.Guard(true)
	client := webhook.NewClient(func(network, address string, c syscall.RawConn) error {
		if at, err := netip.ParseAddrPort(address); plain && (err != nil || !isPrivate(at.Addr())) {
			return errPublicHTTP
		}
		return permitted(network, address, c)
	}, 0)
	return &collector{url: address, secret: secret, client: client}
}

func (c *collector) close() { c.client.CloseIdleConnections() }

// take sends lines and returns nil after a response with a 2xx status.
func (c *collector) take(ctx context.Context, lines [][]byte) error {
	body := append(bytes.Join(lines, []byte("\n")), '\n')
	header := http.Header{"Content-Type": {"application/x-ndjson"}, "User-Agent": {"understudy-audit"}}
	if token := c.secret.Reveal(); token != "" {
		header.Set("Authorization", "Bearer "+token)
	}
	answer, err := webhook.Post(ctx, c.client, c.url, header, body)
	if err != nil && answer.Status != 0 {
		return fmt.Errorf("it answered %d", answer.Status)
	}
	return err
}
