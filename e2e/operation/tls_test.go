// TLS: certificates of the server and of files, the protocols, and the commands that reach a server with TLS.

package operation

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"understudy/e2e/rig"
	"understudy/internal/checktest"
)

// understudyIn runs a command in the folder of a server. It returns what the command prints to standard output, and whether it succeeds.
func understudyIn(t *testing.T, dir string, args ...string) (out string, ok bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), rig.Program, args...)
	cmd.Dir = dir
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stderr.String(), false
	}
	return stdout.String(), true
}

// trusting returns a client that trusts one certificate and speaks one version of HTTP.
func trusting(t *testing.T, certificate string, version int) *http.Client {
	t.Helper()
	roots := x509.NewCertPool()
	checktest.MustTrue(t, roots.AppendCertsFromPEM([]byte(certificate)), "%q is no certificate", certificate)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: version == 2}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 20 * time.Second}
}

func TestTLSAsDocumented(t *testing.T) {
	t.Parallel()
	up := rig.StartAPI(t, "--latency", "1ms", "--records", "200").URL("slowapi")
	house, dir := rig.StartServer(t, rig.Settings{Upstream: up, Role: "all", Mirror: "{newest: 1h, older: 1h, settled_age: 1h}",
		Store: "tls: self\n"})
	own, ok := understudyIn(t, dir, "cert")
	checktest.MustTrue(t, ok, "understudy cert: %s", own)
	page := house.URL("twilio") + rig.Base + "/Calls.json?PageSize=20"
	read := func(client *http.Client, url string) (resp *http.Response, body string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		checktest.MustNoError(t, err, "request")
		r.SetBasicAuth(rig.Account, rig.DemoToken)
		resp, err = client.Do(r)
		checktest.MustNoError(t, err, "%s", url)
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		checktest.NoError(t, err, "%s", url)
		return resp, string(text)
	}
	var first string
	for _, version := range []int{1, 2, 1, 2} {
		resp, body := read(trusting(t, own, version), page)
		checktest.Equal(t, resp.StatusCode, 200, "HTTP/%d: status", version)
		checktest.Equal(t, resp.ProtoMajor, version, "version")
		if first == "" {
			first = body
		}
		checktest.Equal(t, body, first, "HTTP/%d: body", version)
	}
	resp, _ := read(trusting(t, own, 2), strings.Replace(house.URL("viewer"), "127.0.0.1", "localhost", 1))
	checktest.Equal(t, resp.StatusCode, 200, "the home page: status")
	checktest.Equal(t, resp.Header.Get("Strict-Transport-Security"), "", "of a certificate of the server: Strict-Transport-Security")
	if _, err := http.Get(page); err == nil {
		t.Error("a client that does not trust the certificate is answered")
	}
	status, ok := understudyIn(t, dir, "status")
	if !ok || !strings.Contains(status, house.URL("viewer")) || !strings.HasPrefix(house.URL("viewer"), "https://") {
		t.Errorf("status prints %s", status)
	}

	certificate, key := rig.WriteCertificate(t, dir)
	other, _ := rig.WriteCertificate(t, t.TempDir())
	settings := filepath.Join(dir, "understudy.yml")
	was := rig.ReadFile(t, settings)
	serves := func(want string) {
		t.Helper()
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM([]byte(want))
		c, err := tls.Dial("tcp", strings.TrimPrefix(house.URL("twilio"), "https://"), &tls.Config{RootCAs: roots})
		checktest.MustNoError(t, err, "another certificate is served")
		checktest.NoError(t, c.Close(), "close")
	}
	for _, c := range []struct {
		tls, refused, want string
	}{
		{"{cert: " + certificate + ", key: " + key + "}", "", rig.ReadFile(t, certificate)},
		{"{cert: " + other + ", key: " + key + "}", "do not belong together", rig.ReadFile(t, certificate)},
		{"{cert: mail.crt, key: nothing.key}", "nothing.key", rig.ReadFile(t, certificate)},
		{"self", "", own},
		{"{cert: mail.crt, key: mail.key}", "", rig.ReadFile(t, certificate)},
	} {
		checktest.MustNoError(t, os.WriteFile(settings, []byte(strings.Replace(was, "tls: self", "tls: "+c.tls, 1)), 0o600), "write")
		checked, ok := understudyIn(t, dir, "check")
		checktest.Equal(t, ok, c.refused == "", "check with %s succeeds, and prints %s", c.tls, checked)
		out, ok := understudyIn(t, dir, "reload")
		checktest.Equal(t, ok, c.refused == "", "reload with %s succeeds, and prints %s", c.tls, out)
		if !strings.Contains(out, c.refused) {
			t.Errorf("reload with %s prints %q", c.tls, out)
		}
		serves(c.want)
	}
	checktest.MustNoError(t, os.WriteFile(settings, []byte(strings.Replace(was, "tls: self\n", "", 1)), 0o600), "write")
	if out, ok := understudyIn(t, dir, "reload"); !ok || !strings.Contains(out, "tls") {
		t.Errorf("reload without TLS prints %s", out)
	}
	serves(rig.ReadFile(t, certificate))
}

// A page that waits for the provider names its style sheet first, and only to a browser. The log has the final status.
func TestEarlyHintsOfALatePage(t *testing.T) {
	t.Parallel()
	up := rig.StartAPI(t, "--latency", "300ms", "--records", "50").URL("slowapi")
	house, dir := rig.StartServer(t, rig.Settings{Upstream: up, Role: "all", Store: "tls: self\n"})
	own, ok := understudyIn(t, dir, "cert")
	checktest.MustTrue(t, ok, "understudy cert: %s", own)
	var hints []string
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got1xxResponse: func(status int, h textproto.MIMEHeader) error {
		hints = append(hints, strconv.Itoa(status)+" "+h.Get("Link"))
		checktest.Equal(t, len(h), 1, "fields of the informational response")
		return nil
	}})
	for _, c := range []struct {
		path, mode string
		version    int
		hints      int
	}{
		{"/twilio/calls", "navigate", 2, 1},
		{"/twilio/messages", "navigate", 1, 0},
		{"/twilio/conferences", "cors", 2, 0},
		{"/twilio/recordings.json", "navigate", 2, 0},
	} {
		hints = nil
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, house.URL("viewer")+c.path, nil)
		checktest.MustNoError(t, err, "request")
		r.Header.Set("Sec-Fetch-Mode", c.mode)
		resp, err := trusting(t, own, c.version).Do(r)
		checktest.MustNoError(t, err, "%s", c.path)
		_, err = io.Copy(io.Discard, resp.Body)
		checktest.NoError(t, errors.Join(err, resp.Body.Close()), "%s", c.path)
		checktest.Equal(t, resp.StatusCode, 200, "%s: status", c.path)
		checktest.MustEqual(t, len(hints), c.hints, "%s: informational responses %q", c.path, hints)
		if c.hints == 1 {
			checktest.Equal(t, hints[0], "103 "+resp.Header.Get("Link"), "%s: informational response", c.path)
		}
	}
}
