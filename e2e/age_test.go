// Ages: data from a provider's cache do not look younger than they are.

package e2e

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
)

// D14: upstream's own Age is added, fetched, held and after a restart, and
// makes nothing less fresh: held pages are not asked for again.
func TestUpstreamAgeIsAdded(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.RawQuery, "To=") {
			asked.Add(1)
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Age", "4000")
		_, _ = w.Write([]byte(`{"calls":[{"sid":"CA1"}],"next_page_uri":null}`))
	}))
	defer upstream.Close()
	const list = base + "/Calls.json?To=%2B14155550100"
	s, dir := startServer(t, settings{upstream: upstream.URL, role: "all", mirror: "{newest: 1h, older: 1h}"})
	aged := func(when, how string) {
		t.Helper()
		r := get(t, account+":"+demoToken, s.URL("twilio")+list)
		age, err := strconv.Atoi(r.header.Get("Age"))
		if err != nil || age < 4000 || age > 7000 || !strings.Contains(r.header.Get("Cache-Status"), how) || asked.Load() != 1 {
			t.Errorf("%s: Age %q, %s, %d asked; want 4000 or a little more, %s, 1", when, r.header.Get("Age"), r.header.Get("Cache-Status"), asked.Load(), how)
		}
	}
	aged("fetched", "fwd=uri-miss")
	aged("held", "; hit; ttl=3")
	page := string(get(t, "", s.URL("viewer")+"/twilio/calls?To=%2B14155550100").body)
	if !strings.Contains(page, "66 min old") && !strings.Contains(page, "67 min old") {
		t.Errorf("the viewer does not say how old it is: %s", page[strings.Index(page, "<footer"):])
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	s = start(t, dir, "serve")
	aged("after a restart", "; hit; ttl=3")
}
