// This file passes bytes to and from other hosts unchanged.

package connect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// CheckTunnel returns an error for an invalid entry of Options.Tunnel. Valid entries are NAME, *.NAME for all hosts
// below it, and *, each with :PORT if the port is not 443.
func CheckTunnel(text string) error {
	host, port := pattern(text)
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return fmt.Errorf("%q: the port must be a number from 1 to 65535", text)
	}
	name := strings.TrimPrefix(host, "*.")
	if host == "*" || net.ParseIP(name) != nil && name == host {
		return nil
	}
	if name == "" || strings.ContainsAny(name, "*/ @:[]") || strings.HasPrefix(name, ".") || name != strings.ToLower(name) {
		return fmt.Errorf("%q: write NAME, *.NAME or *, in lower case, with :PORT if the port is not 443", text)
	}
	return nil
}

// pattern returns the host pattern and the port of an entry of Options.Tunnel.
func pattern(text string) (host, port string) {
	if host, port, err := net.SplitHostPort(text); err == nil {
		return host, port
	}
	return strings.Trim(text, "[]"), "443"
}

// matchTunnel reports whether a host and port match an entry of Options.Tunnel.
func matchTunnel(all []string, host, port string) bool {
	for _, text := range all {
		name, at := pattern(text)
		if at != port {
			continue
		}
		if name == "*" || name == host || strings.HasPrefix(name, "*.") && strings.HasSuffix(host, name[1:]) {
			return true
		}
	}
	return false
}

// splitAuthority returns the host and port of a CONNECT request (RFC 9112, 3.2.3) in canonical form.
func splitAuthority(text string) (host, port string, err error) {
	host, port, err = net.SplitHostPort(text)
	if err != nil {
		return "", "", err
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return "", "", errors.New("connect: no HOST:PORT")
	}
	if at, err := netip.ParseAddr(host); err == nil && at.Zone() == "" {
		return at.Unmap().String(), strconv.FormatUint(n, 10), nil
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if strings.HasSuffix(host, ".") || host == "" || strings.Trim(host, "abcdefghijklmnopqrstuvwxyz0123456789-_.") != "" {
		return "", "", errors.New("connect: no HOST:PORT")
	}
	return host, strconv.FormatUint(n, 10), nil
}

// openTunnel connects to another host and passes bytes both ways until both directions have ended or there is no
// traffic. The IP address is checked after the name was resolved.
func (p *Proxy) openTunnel(w http.ResponseWriter, r *http.Request, address string) {
	p.running.Add(1)
	defer p.running.Done()
	leave, err := p.limiter.Take("")
	if err != nil {
		w.Header().Set("Retry-After", "1")
		p.refuse(w, r, http.StatusServiceUnavailable, "Too many tunnels are open (connect.tunnels).")
		return
	}
	defer leave()
	began := p.o.Now()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(p.ctx, cancel)()
	far, err := p.dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		status, text := http.StatusBadGateway, "The host cannot be reached."
		if strings.Contains(err.Error(), "address not permitted") {
			status, text = http.StatusForbidden, "The host is inside this network; connect.allow_private permits that."
		}
		p.refuse(w, r, status, text)
		return
	}
	defer far.Close()
	near, err := p.takeConnection(w)
	if err != nil {
		return
	}
	defer near.Close()
	p.counts.otherMade.Add(1)
	p.log(r, http.StatusOK, p.pass(near, far), began)
}

// pass passes bytes both ways and returns how many bytes were received from the far end. It ends when both
// directions have ended, after an error, after the idle time without traffic, and when the proxy ends.
func (p *Proxy) pass(near, far net.Conn) (received int64) {
	defer context.AfterFunc(p.ctx, func() { _ = near.Close(); _ = far.Close() })()
	var moved atomic.Int64 // the time of the last traffic in either direction
	moved.Store(p.o.Now().UnixNano())
	var both sync.WaitGroup
	way := func(to, from net.Conn) int64 {
		n, err := p.copyBytes(to, from, &moved)
		if err == nil {
			err = closeWrite(to) // only this direction has ended, and the other may continue
		}
		if err != nil {
			_, _ = near.Close(), far.Close()
		}
		return n
	}
	both.Go(func() { way(far, near) })
	received = way(near, far)
	both.Wait()
	return received
}

// copyBytes copies bytes until the end of the stream.
func (p *Proxy) copyBytes(to, from net.Conn, moved *atomic.Int64) (n int64, err error) {
	buf := make([]byte, 32<<10)
	for {
		if err := from.SetReadDeadline(p.o.Now().Add(p.o.Idle)); err != nil {
			return n, err
		}
		got, err := from.Read(buf)
		if got > 0 {
			moved.Store(p.o.Now().UnixNano())
			if err := to.SetWriteDeadline(p.o.Now().Add(p.o.Idle)); err != nil {
				return n, err
			}
			sent, err := to.Write(buf[:got])
			n += int64(sent)
			if err != nil {
				return n, err
			}
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			return n, nil
		case errors.Is(err, os.ErrDeadlineExceeded) && p.o.Now().Sub(time.Unix(0, moved.Load())) < p.o.Idle:
			// The other direction still has traffic, so the tunnel is not idle.
		default:
			return n, err
		}
	}
}

// halfCloser is a connection whose sending direction can be closed.
type halfCloser interface{ CloseWrite() error }

// closeWrite closes the sending direction of a connection, if the connection supports this.
func closeWrite(c net.Conn) error {
	if half, ok := c.(halfCloser); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}
