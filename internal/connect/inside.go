// Inside: requests in tunnels to hosts of sources, and the handlers that answer them.

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

// Origin is one address of a source's upstream at which callers are answered here.
type Origin struct {
	Host, Port string
	Base       string // of the paths, without a slash at its end
	url        string // what absolute URLs begin with
}

// Origins are the addresses that callers of a source ask: upstream where that is a URL with
// https and a name, else the spec's hosts. An address without a name has no certificate here.
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

// URLs says for a path of a source what an absolute URL of upstream's begins with.
func URLs(s *spec.Spec, upstream string) func(path string) string {
	all := Origins(s, upstream)
	return func(path string) string {
		if len(all) > 1 {
			if host, ok := s.HostOf(path); ok {
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

// Served is a handler for the requests to one address.
type Served struct {
	Origin Origin
	http.Handler
}

// Inside answers requests in tunnels: by the handler of the host that the tunnel is for. A
// request that names another host is 421 (RFC 9110, 7.4).
func Inside(all []Served) http.Handler {
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
		if err != nil { // no port
			host, port = strings.ToLower(strings.TrimSuffix(r.Host, ".")), s.Origin.Port
		}
		if !ok || host != s.Origin.Host || port != s.Origin.Port {
			refuse(w, http.StatusMisdirectedRequest, "this tunnel is for another host")
			return
		}
		if s.Origin.Base != "" {
			if r = below(r, s.Origin.Base); r == nil {
				refuse(w, http.StatusNotFound, "upstream has no such path")
				return
			}
		}
		s.ServeHTTP(w, r)
	})
}

// refuse answers an error of our own in plain text.
func refuse(w http.ResponseWriter, status int, text string) {
	jsonhttp.SignError(w.Header(), status, text)
	http.Error(w, text, status)
}

// below is a request for a path below a base, without the base; nil for any other.
func below(r *http.Request, base string) *http.Request {
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

// listener gives connections that were taken over.
type listener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// Accept waits for a connection.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept. Connections that were given go on.
func (l *listener) Close() error { l.once.Do(func() { close(l.closed) }); return nil }

// Addr is no address that anybody could ask.
func (l *listener) Addr() net.Addr { return insideAddr{} }

type insideAddr struct{}

func (insideAddr) Network() string { return "connect" }
func (insideAddr) String() string  { return "inside" }
