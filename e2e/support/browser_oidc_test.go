// OIDC: people come in by a provider of OpenID Connect, a certified one.

package support

import (
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"

	"understudy/e2e/browser"
	"understudy/e2e/rig"
)

// startProvider starts a provider whose one user has a verified address at zitadel.ch.
func startProvider(t *testing.T) (issuer string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	issuer = "http://" + strings.Replace(l.Addr().String(), "127.0.0.1", "localhost", 1) + "/"
	router := exampleop.SetupServer(issuer, storage.NewStorage(storage.NewUserStore(issuer)), slog.New(slog.DiscardHandler), false)
	s := &http.Server{Handler: router, ReadHeaderTimeout: time.Minute}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close() })
	return issuer
}

func TestBrowserOIDC(t *testing.T) {
	t.Parallel()
	script := browser.Axe(t)
	issuer := startProvider(t)
	house, _ := rig.StartServer(t, rig.Settings{
		Upstream: rig.StartAPI(t, "--latency", "1ms", "--records", "300").URL("slowapi"),
		SignIn: `sign_in: oidc, oidc: {issuer: "` + issuer + `", client: understudy, secret: "file:oidc.secret", ` +
			`roles: {nobodies: all}, domains: {zitadel.ch: support}}`,
	})
	storage.RegisterClients(storage.WebClient("understudy", "secret", house.URL("viewer")+"/-/sign-in/callback"))
	b := browser.OpenTab(t, house.URL("viewer"))
	b.Open("/twilio/calls?Status=busy")
	if path := b.Path(); !strings.HasPrefix(path, "/-/sign-in?back=") {
		t.Fatalf("without a session a list leads to %s", path)
	}
	b.CheckAccessibility(script, "sign-in at a provider")
	b.CheckComplaints("sign-in")
	b.Do(chromedp.Click(chromedp.CSS(`a.primary`)), chromedp.WaitReady(chromedp.CSS(`#password`)),
		chromedp.SetValue(chromedp.CSS(`#username`), "test-user@localhost"), chromedp.Focus(chromedp.CSS(`#password`)))
	b.Follow(chromedp.KeyEvent("verysecure" + kb.Enter))
	if at := b.Path(); at != "/twilio/calls?Status=busy" {
		t.Fatalf("signed in, at %s: %s", at, browser.Eval[string](b, `document.body.innerText`))
	}
	b.Mu.Lock()
	b.Complaints = nil // of the provider's pages, which are at another origin
	b.Mu.Unlock()
	b.Follow(chromedp.Click(chromedp.CSS(`a[href="/-/sessions"]`)))
	if text := browser.Eval[string](b, `document.querySelector("main").innerText`); !strings.Contains(text, "test-user@zitadel.ch") {
		t.Errorf("the sessions are %q", text)
	}
	b.Follow(chromedp.Click(chromedp.CSS(`.acts button`)))
	b.Open("/twilio/calls")
	if path := b.Path(); !strings.HasPrefix(path, "/-/sign-in") {
		t.Errorf("signed out, at %s", path)
	}
	b.CheckComplaints("signed out")
}
