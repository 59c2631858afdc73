// Connections with HTTP/2, with and without TLS.

package frontend

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"testing"

	"understudy/internal/checktest"
	"understudy/internal/config"
)

// The lane answers repeated requests over HTTP/2, also those with other traces, as net/http has answered the first. The handler sees the
// traces and no field of the lane.
func TestLaneOverHTTP2(t *testing.T) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		_, _ = fmt.Fprint(w, r.Method, r.RequestURI, r.Proto, r.Host, r.Header, r.TLS != nil, r.RemoteAddr != "")
	})
	over := serveTLS(t, handler, warmPaths{}, config.Limits{})
	plain := (&lanes{TB: t}).serve(warmPaths{})
	plain.SetHandler(handler, warmPaths{}, nil)
	for _, s := range []*Server{over, plain} {
		p := new(http.Protocols)
		p.SetHTTP2(s == over)
		p.SetUnencryptedHTTP2(s == plain)
		client := http.Client{Timeout: waitTime, Transport: &http.Transport{Protocols: p, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
		ask := func(path, trace string) string {
			r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, s.URL()+path, nil)
			checktest.MustNoError(t, err, "request")
			r.Header = http.Header{"User-Agent": {"test"}, "Traceparent": {trace}, "Accept": {"a", "b"}}
			resp, err := client.Do(r)
			checktest.MustNoError(t, err, "ask")
			body, err := io.ReadAll(resp.Body)
			checktest.NoError(t, err, "read")
			checktest.NoError(t, resp.Body.Close(), "close")
			resp.Header.Del("Date")
			return fmt.Sprint(resp.Proto, resp.Status, resp.Header, string(body))
		}
		first := ask("/warm", "a")
		for range 4 {
			checktest.Equal(t, ask("/warm", "a"), first, "a repeated request")
		}
		checktest.Equal(t, s.Load().Express, 4, "answers of the lane")
		other := ask("/warm", "c")
		checktest.Contains(t, other, "Traceparent:[c]", "another trace")
		checktest.Lacks(t, other, "Understudy", "fields of the lane")
		checktest.Equal(t, s.Load().Express, 5, "answers of the lane")
		for range 2 {
			checktest.Contains(t, ask("/cold", "a"), "200 OK", "a request that is never in memory")
		}
		checktest.Equal(t, s.Load().Express, 5, "answers of the lane")
		s.SetHandler(handler, nil, nil) // stored requests belong to the former handler
		checktest.Equal(t, ask("/warm", "a"), first, "after a new handler")
		checktest.Equal(t, s.Load().Express, 5, "answers of the lane")
		client.CloseIdleConnections()
	}
}
