// A page that waits for the provider: the browser gets its style sheet meanwhile (103 Early Hints).

package viewer

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"understudy/e2e/browser"
	"understudy/e2e/rig"
	"understudy/internal/checktest"
)

// The provider answers only after the server has sent the style sheet. The page has sent nothing until then, because the request prefers to
// wait. So only the informational response can have led the browser to the style sheet.
func TestBrowserGetsTheStyleSheetOfALatePageEarly(t *testing.T) {
	t.Parallel()
	api, err := url.Parse(rig.StartAPI(t, "--latency", "1ms", "--records", "50").URL("slowapi"))
	checktest.MustNoError(t, err, "address of the API")
	answer := make(chan struct{})
	release := sync.OnceFunc(func() { close(answer) })
	defer release()
	proxy := httputil.NewSingleHostReverseProxy(api)
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-answer:
			proxy.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(provider.Close)
	certificate, key := rig.WriteTrusted(t, t.TempDir())
	server, dir := rig.StartServer(t, rig.Settings{Upstream: provider.URL, Role: "all",
		Store: fmt.Sprintf("tls: {cert: %s, key: %s}\n", certificate, key)})
	b := browser.OpenTab(t, server.URL("viewer"))
	browser.Command(b, network.SetExtraHTTPHeaders, network.SetExtraHTTPHeadersParams{Headers: network.Headers{"Prefer": "wait=15"}})
	b.Do(chromedp.Evaluate[chromedp.Void](`setTimeout(() => location.href = "` + b.Home + `/twilio/calls")`)) // the browser stays free
	log := func() string {
		text, _ := os.ReadFile(filepath.Join(dir, rig.AccessLog)) // absent before the first request
		return string(text)
	}
	const sheet = `.css"`
	rig.Await(t, func() string {
		if !strings.Contains(log(), sheet) {
			return "the browser has not asked for the style sheet"
		}
		return ""
	})
	checktest.True(t, !strings.Contains(log(), "/twilio/calls"), "the page was answered before:\n%s", log())
	release()
	b.Do(chromedp.WaitReady(chromedp.CSS("footer")))
	from := browser.Eval[string](b, `new Promise(done => {
		const say = () => done(performance.getEntriesByType("resource").find(r => r.name.endsWith(".css")).initiatorType);
		if (document.readyState == "complete") say(); else addEventListener("load", say);
	})`)
	checktest.Equal(t, from, "early-hints", "what has led the browser to the style sheet")
	checktest.Equal(t, strings.Count(log(), sheet), 1, "requests for the style sheet")
	b.CheckComplaints("the page")
}
