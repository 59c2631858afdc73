// Absolute URLs: where this slow API is, as the one who asks reaches it.
package slowapi

import (
	"net"
	"net/http"
)

// absolute is the URL of a path of ours under the address the request came to:
// its Host, and without one (HTTP/1.0) the address of the connection. The
// paging of the Monitor API and media_url are absolute, as
// https://monitor.twilio.com/v1/Alerts is at Twilio.
func (s *Server) absolute(r *http.Request, path string) string {
	scheme, host := "http://", r.Host
	if r.TLS != nil {
		scheme = "https://"
	}
	if at, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); host == "" && ok {
		host = at.String()
	}
	return scheme + host + path
}
