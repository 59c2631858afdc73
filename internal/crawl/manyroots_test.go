// Many roots: what walks over a hundred accounts read.

package crawl_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy/internal/crawl"
	"understudy/internal/sample"
	"understudy/internal/slowapi"
	"understudy/internal/store/storetest"
	"understudy/spec"
)

// write asks the API for a write, and is the id in its answer.
func write(t *testing.T, web *httptest.Server, method, path string, form url.Values) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, web.URL+"/2010-04-01/Accounts"+path, strings.NewReader(form.Encode()))
	must(t, err)
	r.SetBasicAuth(account, "slowapitoken")
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := http.DefaultClient.Do(r)
	must(t, err)
	defer resp.Body.Close()
	var out struct{ SID string }
	if err := json.NewDecoder(resp.Body).Decode(&out); resp.StatusCode/100 != 2 || err != nil && method == http.MethodPost {
		t.Fatalf("%s: %v %d", path, err, resp.StatusCode)
	}
	return out.SID
}

// A sweep reads what is held of its own account: of a hundred accounts all sweeps together
// read each record a few times, and what is deleted in one of them goes.
func TestASweepReadsItsOwnAccount(t *testing.T) {
	const each = 3
	accounts := sample.Count(30, 100)
	api, err := slowapi.New(slowapi.Options{Records: 20, Epoch: time.Now().Truncate(time.Second)})
	must(t, err)
	web := httptest.NewServer(api)
	t.Cleanup(func() { web.Close(); must(t, api.Close()) })
	var of, gone string
	for n := range accounts {
		of = write(t, web, http.MethodPost, ".json", url.Values{"FriendlyName": {fmt.Sprint(n)}})
		for range each {
			form := url.Values{"To": {"+15550000001"}, "From": {"+15550000009"}, "Body": {"x"}}
			gone = write(t, web, http.MethodPost, "/"+of+"/Messages.json", form)
		}
	}
	h := openAt(t, web, storetest.File(t), crawl.Settings{}, spec.AllRoots)
	h.sync("messages")
	h.await("every account", func() bool {
		s := h.state("messages")
		return s.Complete && len(h.log("messages", 0)) >= accounts*each
	})
	held, from := len(h.log("messages", 0)), h.last()
	write(t, web, http.MethodDelete, "/"+of+"/Messages/"+gone+".json", nil)
	h.read.Store(0)
	h.swept("messages")
	if got := h.log("messages", from); !slices.Equal(got, []string{gone + " went"}) {
		t.Errorf("changes: %v, want %s gone", got, gone)
	}
	if read := h.read.Load(); read > int64(6*held) {
		t.Errorf("the sweeps of %d accounts read %d rows of %d messages", accounts+1, read, held)
	} else {
		t.Logf("%d rows read of %d messages", read, held)
	}
}
