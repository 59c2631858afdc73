// This file handles requests in tunnels to hosts of sources.

package connect

import (
	"cmp"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"understudy/kit/jsonhttp"
	"understudy/spec"
)

// Origin is an address of a source's upstream that this server serves itself.
type Origin struct {
	Host, Port string
	Base       string // the beginning of all paths at this address, without a trailing slash
	url        string // the beginning of absolute URLs at this address
}

// Origins returns the addresses that callers of a source use. This is upstream if it is an https URL with a host
// name, else the hosts of the spec. An IP address is left out, because there is no certificate for it.
func Origins(s *spec.Spec, upstream string) (all []Origin) {
	if at, ok := originOf(upstream); ok {
		return []Origin{at}
	}
	for _, h := range s.Hosts {
		if at, ok := originOf(h.URL); ok {
			all = append(all, at)
		}
	}
	return all
}

func originOf(text string) (Origin, bool) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" || net.ParseIP(u.Hostname()) != nil {
		return Origin{}, false
	}
	at := Origin{Host: strings.ToLower(u.Hostname()), Port: u.Port(), Base: strings.TrimSuffix(u.EscapedPath(), "/")}
	at.url = "https://" + strings.ToLower(u.Host) + at.Base
	at.Port = cmp.Or(at.Port, "443")
	return at, true
}

// URLs returns a function from a path of a source to the beginning of the upstream's absolute URLs for that path.
func URLs(s *spec.Spec, upstream string) func(path string) string {
	all := Origins(s, upstream)
	return func(path string) string {
		if len(all) > 1 {
			if host, ok := s.HostURL(path); ok {
				if at, ok := originOf(host); ok {
					return at.url
				}
			}
		}
		if len(all) == 0 {
			return ""
		}
		return all[0].url
	}
}

// Served is the handler for the requests to one address.
type Served struct {
	Origin Origin
	http.Handler
}

// NewHandler returns the handler for requests in tunnels. It passes each request to the handler for the tunnel's
// host. A request that names another host gets status 421 (RFC 9110, 7.4).
func NewHandler(all []Served) http.Handler {
	by := map[string]Served{}
	for _, s := range all {
		by[s.Origin.Host] = s
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS == nil {
			refuse(w, http.StatusMisdirectedRequest, "no tunnel")
			return
		}
		s, ok := by[strings.ToLower(r.TLS.ServerName)]
		host, port, err := splitAuthority(r.Host)
		if err != nil { // the Host header has no port
			host, port = strings.ToLower(strings.TrimSuffix(r.Host, ".")), s.Origin.Port
		}
		if !ok || host != s.Origin.Host || port != s.Origin.Port {
			refuse(w, http.StatusMisdirectedRequest, "this tunnel is for another host")
			return
		}
		if s.Origin.Base != "" {
			if r = stripBase(r, s.Origin.Base); r == nil {
				refuse(w, http.StatusNotFound, "upstream has no such path")
				return
			}
		}
		s.ServeHTTP(w, r)
	})
}

// refuse sends an error of this server as plain text.
func refuse(w http.ResponseWriter, status int, text string) {
	jsonhttp.SignError(w.Header(), status, text)
	http.Error(w, text, status)
}

// stripBase returns the request with its path relative to base, or nil if the path is not below base.
func stripBase(r *http.Request, base string) *http.Request {
	uri, ok := strings.CutPrefix(r.RequestURI, base)
	if !ok || !strings.HasPrefix(uri, "/") {
		return nil
	}
	u, err := url.ParseRequestURI(uri)
	if err != nil {
		return nil
	}
	out := *r
	out.URL, out.RequestURI = u, uri
	return &out
}

// listener is a net.Listener for connections that the proxy has taken over.
type listener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// Accept waits for the next connection that the proxy has taken over.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept. Accepted connections remain open.
func (l *listener) Close() error { l.once.Do(func() { close(l.closed) }); return nil }

// Addr returns a placeholder, because the listener has no address.
func (l *listener) Addr() net.Addr { return insideAddr{} }

type insideAddr struct{}

func (insideAddr) Network() string { return "connect" }
func (insideAddr) String() string  { return "inside" }
