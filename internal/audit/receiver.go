// Receiver: an HTTP collector, and what addresses of receivers look like.

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

// The schemes of receivers.
const (
	schemeUDP   = "syslog+udp"
	schemeTCP   = "syslog+tcp"
	schemeTLS   = "syslog+tls"
	schemeHTTPS = "https"
	schemeHTTP  = "http"
)

// The bounds of a connection.
const (
	dialTime   = 10 * time.Second
	mostAnswer = 64 << 10 // bytes of an answer that are read
)

// errPlain is the error of http to an address of the Internet.
var errPlain = errors.New("http is only for this machine and private networks; write https://")

// CheckSend says what is wrong with the address of a receiver, as far as it can be told
// without resolving it: https://HOST/PATH, http://HOST/PATH in a private network,
// syslog+tls://HOST:PORT, syslog+tcp://HOST:PORT or syslog+udp://HOST:PORT. An HTTP collector
// alone takes a secret.
func CheckSend(address string, secret bool) error {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || u.User != nil || u.Fragment != "" {
		return errors.New("want https://HOST/PATH or syslog+tls://HOST:PORT, syslog+tcp or syslog+udp, without credentials")
	}
	switch u.Scheme {
	case schemeUDP, schemeTCP, schemeTLS:
		port, err := strconv.ParseUint(u.Port(), 10, 16)
		switch {
		case err != nil || port == 0 || u.Path != "" && u.Path != "/" || u.RawQuery != "":
			return fmt.Errorf("want %s://HOST:PORT", u.Scheme)
		case secret:
			return errors.New("syslog takes no send_secret")
		}
		return nil
	case schemeHTTPS, schemeHTTP:
		if at, err := netip.ParseAddr(u.Hostname()); err == nil && u.Scheme == schemeHTTP && !near(at) {
			return errPlain
		}
		if err := webhook.CheckURL(address, true); err != nil {
			return err
		}
		return nil
	}
	return fmt.Errorf("%q: want %s, %s, %s or %s", understudy.Clip(u.Scheme), schemeHTTPS, schemeTLS, schemeTCP, schemeUDP)
}

// near reports an address of this machine or of a private network.
func near(a netip.Addr) bool { a = a.Unmap(); return a.IsLoopback() || a.IsPrivate() }

// withoutQuery is an address without what may hold a token.
func withoutQuery(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	u.RawQuery = ""
	return u.String()
}

func receiverOf(o SendOptions) (receiver, error) {
	if err := CheckSend(o.URL, o.Secret.Reveal() != ""); err != nil {
		return nil, fmt.Errorf("audit: send: %w", err)
	}
	u, err := url.Parse(o.URL)
	if err != nil {
		return nil, err
	}
	switch u.Scheme {
	case schemeUDP:
		return &datagrams{address: u.Host, host: headerField(o.Host, mostHost)}, nil
	case schemeTCP:
		return &frames{dialer: &net.Dialer{Timeout: dialTime}, address: u.Host, host: headerField(o.Host, mostHost)}, nil
	case schemeTLS: // the name of the address is the one that its certificate must have
		trusted := &tls.Config{RootCAs: o.Roots, MinVersion: tls.VersionTLS12}
		dialer := &tls.Dialer{NetDialer: &net.Dialer{Timeout: dialTime}, Config: trusted}
		return &frames{dialer: dialer, address: u.Host, host: headerField(o.Host, mostHost)}, nil
	}
	return newCollector(o.URL, u.Scheme == schemeHTTP, o.Secret), nil
}

// collector takes lines by HTTP: a POST of JSON lines, of which a 2xx says that they are
// taken.
type collector struct {
	url    string
	secret understudy.Secret
	client *http.Client
}

func newCollector(address string, plain bool, secret understudy.Secret) *collector {
	permitted := webhook.Guard(true)
	client := webhook.NewClient(func(network, address string, c syscall.RawConn) error {
		if at, err := netip.ParseAddrPort(address); plain && (err != nil || !near(at.Addr())) {
			return errPlain
		}
		return permitted(network, address, c)
	}, 0)
	return &collector{url: address, secret: secret, client: client}
}

func (c *collector) close() { c.client.CloseIdleConnections() }

// take is nil after a 2xx.
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
