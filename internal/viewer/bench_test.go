// What a list page costs.

package viewer

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// discard is a ResponseWriter that keeps nothing but the length.
type discard struct {
	head   http.Header
	length int
	status int
}

func (d *discard) Header() http.Header         { return d.head }
func (d *discard) Write(b []byte) (int, error) { d.length += len(b); return len(b), nil }
func (d *discard) WriteHeader(status int)      { d.status = status }

// One page of 50 rows, warm in the mirror: gate, cells, template, gzip.
func BenchmarkList(b *testing.B) {
	for _, c := range []struct{ name, path, token, encoding string }{
		{"calls", "/twilio/calls", "alltoken", "gzip"}, {"calls_plain", "/twilio/calls", "alltoken", ""},
		{"calls_masked", "/twilio/calls", "supporttoken", "gzip"}, {"messages", "/twilio/messages", "alltoken", "gzip"},
	} {
		b.Run(c.name, func(b *testing.B) {
			h := open(b)
			r := httptest.NewRequest("GET", c.path, nil)
			r.SetBasicAuth(account, c.token)
			r.Header.Set("Accept-Encoding", c.encoding)
			h.viewer.ServeHTTP(httptest.NewRecorder(), r) // fills the mirror
			w := &discard{head: http.Header{}}
			b.ReportAllocs()
			for b.Loop() {
				w.length = 0
				h.viewer.ServeHTTP(w, r)
			}
			b.ReportMetric(float64(w.length), "wire-B")
		})
	}
}
