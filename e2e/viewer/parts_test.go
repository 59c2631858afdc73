// Parts: a page is on screen before its slowest part, without scripts, through a
// server in front, and ends upstream when its reader leaves.

package viewer

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"

	"understudy/e2e/browser"
	"understudy/e2e/rig"
	"understudy/internal/checktest"
)

// locks stand in front of an upstream and hold requests back by a word of their
// address.
type locks struct {
	*httptest.Server
	open map[string]chan struct{} // closed: what has the word passes
	held chan string              // words of the requests that are held
	left chan string              // words of those that ended before they passed
}

func newLocks(t *testing.T, upstream string, words ...string) *locks {
	t.Helper()
	to, err := url.Parse(upstream)
	if err != nil {
		t.Fatal(err)
	}
	pass := httputil.NewSingleHostReverseProxy(to)
	l := &locks{open: map[string]chan struct{}{}, held: make(chan string, 100), left: make(chan string, 100)}
	for _, w := range words {
		l.open[w] = make(chan struct{})
	}
	l.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for word, open := range l.open {
			if !strings.Contains(r.URL.String(), word) {
				continue
			}
			l.held <- word
			select {
			case <-open:
			case <-r.Context().Done():
				l.left <- word
				return
			}
		}
		pass.ServeHTTP(w, r)
	}))
	t.Cleanup(l.Close)
	return l
}

// numberLists are the requests behind a number's page, by the heading each is shown under.
var numberLists = map[string]string{
	"/Calls.json?From": "Calls from", "/Calls.json?To": "Calls to", "/Messages.json?From": "Messages from", "/Messages.json?To": "Messages to",
}

// numberServer is a server whose number pages wait for locks.
func numberServer(t *testing.T) (l *locks, viewer, path string) {
	t.Helper()
	up := rig.StartAPI(t, "--records", "300", "--latency", "1ms").URL("slowapi")
	var owns struct {
		Numbers []struct {
			Number string `json:"phone_number"`
		} `json:"incoming_phone_numbers"`
	}
	if err := json.Unmarshal(rig.Get(t, rig.Account+":"+rig.APIToken, up+rig.Base+"/IncomingPhoneNumbers.json").Body, &owns); err != nil || len(owns.Numbers) == 0 {
		t.Fatalf("%v, %d own numbers", err, len(owns.Numbers))
	}
	l = newLocks(t, up, "/Calls.json?From", "/Calls.json?To", "/Messages.json?From", "/Messages.json?To")
	house, _ := rig.StartServer(t, rig.Settings{Upstream: l.URL, Role: "all"})
	return l, house.URL("viewer"), "/twilio/number/" + owns.Numbers[0].Number
}

// Chromium shows each part in its place as it comes, though it runs no script.
func TestBrowserShowsPartsWithoutScripts(t *testing.T) {
	t.Parallel()
	l, viewer, path := numberServer(t)
	b := browser.OpenTab(t, viewer)
	browser.Command(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	browser.Command(b, page.Navigate, page.NavigateParams{URL: viewer + path})
	shown := func(want string) {
		t.Helper()
		rig.Await(t, func() string {
			if text := browser.Eval[string](b, `document.querySelector("main")?.innerText ?? ""`); !strings.Contains(text, want) {
				return fmt.Sprintf("%q is not on screen, but %q", want, text)
			}
			return ""
		})
	}
	waiting := `[...document.querySelectorAll(".parts")].map(e => [...e.shadowRoot.querySelectorAll("slot[name]")].filter(s => !s.assignedNodes().length).map(s => s.innerText.trim()).join()).join()`
	shown("JSON")
	rig.Await(t, func() string {
		if got := browser.Eval[string](b, waiting); got != "Contact …,Calls from …,Calls to …,Messages from …,Messages to …,Alerts about it …" {
			return "on their way are " + got
		}
		return ""
	})
	close(l.open["/Messages.json?To"])
	shown("Messages to\n")
	for word, open := range l.open {
		if word != "/Messages.json?To" {
			close(open)
		}
	}
	shown("Alerts about it\n")
	rig.Await(t, func() string { return browser.Eval[string](b, `document.querySelector("footer") ? "" : "no end"`) })
	// They stand in the order of the page, whatever order they came in.
	order := browser.Eval[[]string](b, `[...document.querySelectorAll("main h2")].sort((a, b) => a.getBoundingClientRect().top - b.getBoundingClientRect().top).map(h => h.innerText)`)
	{
		got := strings.Join(order, ",")
		checktest.True(t,
			strings.HasSuffix(got, "One of our own numbers,Calls from,Calls to,Messages from,Messages to,Alerts about it,Delete or remove"),
			"on screen the order is: got is %q", got)
		checktest.True(t, strings.HasPrefix(got, "Conversation with "), "on screen the order is: got is %q", got)
		checktest.Equal(t, strings.Count(got, ",Contact,"), 1,
			`on screen the order is: strings.Count(got, ",Contact,")`)
	}
	if ids := browser.Eval[int](b, `[...document.querySelectorAll("[id]")].map(e => e.id).filter((id, i, all) => all.indexOf(id) !== i).length`); ids != 0 {
		t.Errorf("%d ids are there twice", ids)
	}
	b.CheckComplaints("parts")
}

// stream asks over a connection of its own and gives the body as it comes.
func stream(t *testing.T, ctx context.Context, dial func() (net.Conn, error), address string) (*http.Response, *bufio.Reader) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true, DisableCompression: true, DialContext: func(context.Context, string, string) (net.Conn, error) { return dial() },
	}}
	r, err := http.NewRequestWithContext(ctx, "GET", address, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.SetBasicAuth(rig.Account, rig.DemoToken) // who comes through a server in front signs in
	r.Header.Set("Accept-Encoding", "gzip")
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	if resp.StatusCode != 200 || resp.Header.Get("Content-Encoding") != "gzip" {
		t.Fatalf("%d %v", resp.StatusCode, resp.Header)
	}
	zr, err := gzip.NewReader(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, bufio.NewReader(zr)
}

// until reads lines up to one that has the text.
func until(t *testing.T, r *bufio.Reader, text string) {
	t.Helper()
	for {
		line, err := r.ReadString('\n')
		if strings.Contains(line, text) {
			return
		}
		if err != nil {
			t.Fatalf("%v before %q", err, text)
		}
	}
}

// nginx as it comes passes every piece on at once, packed.
func TestPartsThroughNginx(t *testing.T) {
	t.Parallel()
	l, viewer, path := numberServer(t)
	dir, err := os.MkdirTemp("", "nginx") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket, config := filepath.Join(dir, "s"), filepath.Join(dir, "nginx.conf")
	text := fmt.Sprintf(`daemon off; master_process off; pid %[1]s/pid; error_log stderr;
events {}
http {
	access_log off; client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/c;
	server { listen unix:%[2]s; location / { proxy_pass %[3]s; proxy_set_header Host %[4]s; } }
}
`, dir, socket, viewer, strings.TrimPrefix(viewer, "http://"))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(rig.FindProgram(t, "nginx"), "-c", config, "-p", dir, "-e", "stderr")
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		if _ = cmd.Wait(); t.Failed() {
			t.Logf("nginx wrote: %s", said.String())
		}
	})
	rig.Await(t, func() string {
		c, err := net.Dial("unix", socket)
		if err != nil {
			return "nginx does not listen: " + err.Error()
		}
		_ = c.Close()
		return ""
	})
	_, body := stream(t, t.Context(), func() (net.Conn, error) { return net.Dial("unix", socket) }, viewer+path)
	until(t, body, "</template>")
	for word, heading := range numberLists { // in any order
		close(l.open[word])
		until(t, body, "<h2>"+heading+"</h2>")
	}
	until(t, body, "</html>")
	if rest, err := io.ReadAll(body); err != nil || len(rest) > 0 && strings.TrimSpace(string(rest)) != "" {
		t.Errorf("after the end: %q, %v", rest, err)
	}
}

// Requests upstream end with the reader they are made for.
func TestReaderWhoLeavesEndsUpstream(t *testing.T) {
	t.Parallel()
	l, viewer, path := numberServer(t)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	_, body := stream(t, ctx, func() (net.Conn, error) { return net.Dial("tcp", strings.TrimPrefix(viewer, "http://")) }, viewer+path)
	until(t, body, "</template>")
	for range numberLists {
		<-l.held
	}
	leave()
	began := time.Now()
	for range numberLists {
		<-l.left
	}
	t.Logf("upstream saw its requests end after %v", time.Since(began))
}
