// Ages: data from a provider's cache do not look younger than they are.

package answers

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"understudy/e2e/rig"
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
	const list = rig.Base + "/Calls.json?To=%2B14155550100"
	s, dir := rig.StartServer(t, rig.Settings{Upstream: upstream.URL, Role: "all", Mirror: "{newest: 1h, older: 1h}"})
	aged := func(when, how string) {
		t.Helper()
		r := rig.Get(t, rig.Account+":"+rig.DemoToken, s.URL("twilio")+list)
		age, err := strconv.Atoi(r.Header.Get("Age"))
		if err != nil || age < 4000 || age > 7000 || !strings.Contains(r.Header.Get("Cache-Status"), how) || asked.Load() != 1 {
			t.Errorf("%s: Age %q, %s, %d asked; want 4000 or a little more, %s, 1", when, r.Header.Get("Age"), r.Header.Get("Cache-Status"), asked.Load(), how)
		}
	}
	aged("fetched", "fwd=uri-miss")
	aged("held", "; hit; ttl=3")
	page := string(rig.Get(t, "", s.URL("viewer")+"/twilio/calls?To=%2B14155550100").Body)
	if !strings.Contains(page, "66 min old") && !strings.Contains(page, "67 min old") {
		t.Errorf("the viewer does not say how old it is: %s", page[strings.Index(page, "<footer"):])
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	s = rig.Start(t, dir, "serve")
	aged("after a restart", "; hit; ttl=3")
}
