// What pages cost.

package viewer_test

import (
	"html"
	"net/http"
	"net/http/httptest"
	"testing"

	"understudy/internal/viewer/viewertest"
)

// Pages that are warm in the mirror: gate, cells, template, gzip. A list has 50 rows.
func BenchmarkPage(b *testing.B) {
	first := viewertest.Open(b)
	call, number := first.FirstID("/twilio/calls?Status=completed", `CA[0-9a-f]{32}`), first.OwnNumber()
	other := viewertest.ConversationPath.FindString(html.UnescapeString(first.Page("/twilio/number/"+number, viewertest.All)))
	for _, c := range []struct{ name, path, token, encoding string }{
		{"detail", "/twilio/calls/" + call, "alltoken", "gzip"}, {"number", "/twilio/number/" + number, "alltoken", "gzip"},
		{"conversation", other, "alltoken", "gzip"}, {"home", "/", "alltoken", "gzip"},
		{"calls", "/twilio/calls", "alltoken", "gzip"}, {"calls_plain", "/twilio/calls", "alltoken", ""},
		{"calls_masked", "/twilio/calls", "supporttoken", "gzip"}, {"messages", "/twilio/messages", "alltoken", "gzip"},
	} {
		b.Run(c.name, func(b *testing.B) {
			h := viewertest.Open(b, viewertest.WithSearch(b))
			r := httptest.NewRequest("GET", c.path, nil)
			r.SetBasicAuth(viewertest.Account, c.token)
			r.Header.Set("Accept-Encoding", c.encoding)
			h.Viewer.ServeHTTP(httptest.NewRecorder(), r) // fills the mirror
			w := &viewertest.Discard{Head: http.Header{}}
			b.ReportAllocs()
			for b.Loop() {
				w.Length = 0
				h.Viewer.ServeHTTP(w, r)
			}
			b.ReportMetric(float64(w.Length), "wire-B")
		})
	}
}
