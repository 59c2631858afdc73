// What pages cost.

package viewer

import (
	"html"
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
func (d *discard) Flush()                      {}

// Pages that are warm in the mirror: gate, cells, template, gzip. A list has 50 rows.
func BenchmarkPage(b *testing.B) {
	first := open(b)
	call, number := first.firstID("/twilio/calls?Status=completed", `CA[0-9a-f]{32}`), first.ownNumber()
	other := conversation.FindString(html.UnescapeString(first.page("/twilio/number/"+number, all)))
	for _, c := range []struct{ name, path, token, encoding string }{
		{"detail", "/twilio/calls/" + call, "alltoken", "gzip"}, {"number", "/twilio/number/" + number, "alltoken", "gzip"},
		{"conversation", other, "alltoken", "gzip"}, {"home", "/", "alltoken", "gzip"},
		{"calls", "/twilio/calls", "alltoken", "gzip"}, {"calls_plain", "/twilio/calls", "alltoken", ""},
		{"calls_masked", "/twilio/calls", "supporttoken", "gzip"}, {"messages", "/twilio/messages", "alltoken", "gzip"},
	} {
		b.Run(c.name, func(b *testing.B) {
			h := open(b, searched(b))
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
