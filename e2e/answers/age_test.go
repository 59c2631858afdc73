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
	"understudy/internal/checktest"
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
		checktest.MustNoError(t, err, "%s", when)
		checktest.True(t, age >= 4000, "%s: age is %v, want >= 4000", when, age)
		checktest.True(t, age <= 7000, "%s: age is %v, want <= 7000", when, age)
		checktest.Contains(t, r.Header.Get("Cache-Status"), how, `%s: r.Header.Get("Cache-Status")`, when)
		checktest.Equal(t, asked.Load(), 1, "%s: asked.Load()", when)
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
