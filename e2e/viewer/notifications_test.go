// Notifications: a person switches them on, a push service of the test's own receives them, the PyPI package http-ece
// decrypts one, and Chromium's service worker shows it.

package viewer

import (
	"bytes"
	"crypto/ecdh"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/serviceworker"
	"github.com/chromedp/chromedp"

	"understudy/e2e/browser"
	"understudy/e2e/rig"
	"understudy/internal/checktest"
)

func TestBrowserShowsANotification(t *testing.T) {
	t.Parallel()
	received := make(chan []byte, 10)
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		received <- body
		w.WriteHeader(http.StatusCreated)
	}))
	t.Cleanup(service.Close)
	s, _ := rig.StartServer(t, rig.Settings{Upstream: rig.StartAPI(t, "--records", "100").URL("slowapi"), Role: "all", Mirror: "{}\npush: {contact: \"mailto:desk@example.com\", allow_private: true, hosts: [\"" +
		strings.TrimPrefix(service.URL, "http://") + "\"]}\n"})
	viewer := s.URL("viewer")
	post := func(path string, form url.Values) rig.Reply {
		t.Helper()
		r, err := rig.AskBy(&http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
			"POST", "", viewer+path, form.Encode(), "Content-Type", "application/x-www-form-urlencoded")
		checktest.MustNoError(t, err, "POST %s", path)
		return r
	}

	// The subscription is one that a browser would have made; Chromium's own needs Google's push service.
	key, err := ecdh.P256().GenerateKey(rand.Reader)
	checktest.MustNoError(t, err, "make a key")
	auth := make([]byte, 16)
	_, _ = rand.Read(auth)
	encode := base64.RawURLEncoding.EncodeToString
	r := post("/-/notifications", url.Values{"name": {"Desk"}, "endpoint": {service.URL + "/send"},
		"p256dh": {encode(key.PublicKey().Bytes())}, "auth": {encode(auth)}})
	checktest.MustEqual(t, r.Status, http.StatusSeeOther, "switch on: %s", r.Body)
	r = post("/search/save", url.Values{"q": {"kind:messages status:failed"}, "name": {"Failed messages"}})
	checktest.MustEqual(t, r.Status, http.StatusSeeOther, "save a search: %s", r.Body)
	r = post("/-/watches/new", url.Values{"search": {"Failed messages"}, "channel": {"push"}})
	checktest.MustEqual(t, r.Status, http.StatusSeeOther, "make a watch: %s", r.Body)
	location := r.Header.Get("Location")
	checktest.MustTrue(t, regexp.MustCompile(`^/-/watches/[a-z0-9]+$`).MatchString(location), "the watch is at %q", location)
	r = post(location+"/test", nil)
	checktest.MustEqual(t, r.Status, http.StatusSeeOther, "send a test: %s", r.Body)
	var sealed []byte
	select {
	case sealed = <-received:
	case <-time.After(20 * time.Second):
		t.Fatal("the push service received nothing")
	}
	plain := decryptByPython(t, sealed, encode(key.Bytes()), encode(auth))
	checktest.MustContains(t, plain, "Test of the watch “Failed messages”", "the decrypted message")

	b := browser.OpenTab(t, viewer)
	registrations := make(chan string, 10)
	checktest.MustNoError(t, chromedp.Listen(b.Ctx, func(event any) {
		if e, ok := event.(*serviceworker.EventWorkerRegistrationUpdated); ok {
			for _, one := range e.Registrations {
				select {
				case registrations <- string(one.RegistrationID):
				default:
				}
			}
		}
	}), "listen")
	browser.Command(b, serviceworker.Enable, cdp.Empty{})
	b.Open("/-/notifications")
	browser.Command(b, cdpbrowser.SetPermission, cdpbrowser.SetPermissionParams{Origin: viewer,
		Permission: &cdpbrowser.PermissionDescriptor{Name: "notifications"}, Setting: cdpbrowser.PermissionSettingGranted,
		BrowserContextID: chromedp.FromContext(b.Ctx).BrowserContextID})
	checktest.True(t, browser.Eval[bool](b, `!document.querySelector("form[data-notify] button").disabled`), "the button is off")
	checktest.MustTrue(t, browser.Eval[bool](b, `(async () => {
		const r = await navigator.serviceWorker.register(document.querySelector("script[src*=notify]").src);
		for (let i = 0; i < 200 && !r.active; i++) await new Promise(f => setTimeout(f, 50));
		window.registration = r;
		return !!r.active;
	})()`), "the service worker is not active")
	var registration string
	select {
	case registration = <-registrations:
	case <-time.After(20 * time.Second):
		t.Fatal("no registration of a service worker")
	}
	delivered := time.Time{}
	rig.Await(t, func() string {
		if time.Since(delivered) > 5*time.Second { // a busy browser may drop one; those with the same tag are one notification
			delivered = time.Now()
			browser.Command(b, serviceworker.DeliverPushMessage, serviceworker.DeliverPushMessageParams{Origin: viewer + "/",
				RegistrationID: serviceworker.RegistrationID(registration), Data: plain})
		}
		shown := browser.Eval[string](b, `registration.getNotifications().then(all => all.map(n => [n.title, n.body, n.tag, n.data].join("|")).join("\n"))`)
		id := strings.TrimPrefix(location, "/-/watches/")
		want := fmt.Sprintf("Test of the watch “Failed messages”|This is a test. Nothing was found; messages of this watch arrive here.|%s|%s%s", id, viewer, location)
		if shown != want {
			return fmt.Sprintf("the screen shows %q, want %q", shown, want)
		}
		return ""
	})

	// Switched off, the browser receives nothing, and the test says so.
	id := regexp.MustCompile(`/-/notifications/([0-9a-f]+)/remove`).FindSubmatch(rig.Get(t, "", viewer+"/-/notifications").Body)
	checktest.MustTrue(t, id != nil, "the page lists no browser")
	checktest.Equal(t, post("/-/notifications/"+string(id[1])+"/remove", nil).Status, http.StatusSeeOther, "switch off")
	checktest.Equal(t, len(received), 0, "other messages")
}

// decryptByPython decrypts a message with the PyPI package http-ece.
func decryptByPython(t *testing.T, sealed []byte, key, auth string) string {
	t.Helper()
	python, err := filepath.Abs("../sdks/python/.venv/bin/python")
	checktest.MustNoError(t, err, "find Python")
	cmd := exec.CommandContext(t.Context(), python, "../sdks/python/decrypt.py", key, auth)
	cmd.Stdin, cmd.Env = bytes.NewReader(sealed), os.Environ()
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	checktest.MustNoError(t, err, "decrypt: %s", complaints.String())
	return string(out)
}
