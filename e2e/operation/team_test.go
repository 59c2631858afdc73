// Team: the files of docs/how-to/team.md for nginx and Caddy, in front of a server with the settings of that page.

package operation

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"understudy/e2e/rig"
)

const teamPage = "../../docs/how-to/team.md"

// TestTeamBehindTheDocumentedProxies follows docs/how-to/team.md: anna signs in through the proxy, opens a page and the
// feed, and a program asks at the drop-in port. The server knows the address of the client, whatever the client says.
func TestTeamBehindTheDocumentedProxies(t *testing.T) {
	t.Parallel()
	for language, start := range map[string]func(t *testing.T, dir, address, viewer, programs string){"nginx": startNginx, "caddyfile": startCaddy} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			text := ""
			for _, b := range rig.ReadBlocks(t, teamPage) {
				if b.Language == language {
					text += b.Text()
				}
			}
			if !strings.Contains(text, "127.0.0.1:4114") {
				t.Fatalf("%s has no proxy in %s:\n%s", teamPage, language, text)
			}
			d := openDesk(t)
			d.open(teamPage)
			d.run("understudy users add anna --role support")
			d.server = rig.Start(t, d.dir, "serve", "--viewer", "127.0.0.1:0", "--drop-in", "twilio=127.0.0.1:0")
			program := madeCredential.FindStringSubmatch(d.run("understudy credentials make billing --source twilio --role support"))
			if program == nil {
				t.Fatal("no credential was made")
			}
			behind := func(port string) string {
				return strings.ReplaceAll(text, "127.0.0.1:4114", strings.TrimPrefix(d.server.URL(port), "http://"))
			}
			ip := ownAddress(t)
			address := freePort(t, ip)
			start(t, d.dir, address, behind("viewer"), behind("twilio"))
			c := remoteClient(t, ip, address)
			rig.Await(t, func() string {
				if _, err := c.ask(t.Context(), http.MethodGet, "https://calls.example.com/-/sign-in", "", ""); err != nil {
					return err.Error()
				}
				return ""
			})
			c.use(t, ip, program[1], program[2], d.api)
			rig.Await(t, func() string {
				if log := d.server.Log(); !strings.Contains(log, "peer="+ip+" ") {
					return "the log does not have the address of the client:\n" + log
				}
				return ""
			})
			if log := d.server.Log(); strings.Contains(log, "198.51.100.7") {
				t.Errorf("the log has the address that the client claimed:\n%s", log)
			}
		})
	}
}

// ownAddress returns an address of this machine that other machines reach: the server believes no proxy that a client is
// on the proxy's own machine.
func ownAddress(t *testing.T) string {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if ip, _, _ := net.ParseCIDR(a.String()); ip.IsGlobalUnicast() && ip.To4() != nil {
			return ip.String()
		}
	}
	t.Fatalf("this machine has only %v; the test needs an address that is not loopback", all)
	return ""
}

// remote is a browser and a program on another machine, which claim another address.
type remote struct{ client *http.Client }

func remoteClient(t *testing.T, ip, address string) *remote {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	from := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}}
	transport := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return from.DialContext(ctx, network, address)
		}}
	t.Cleanup(transport.CloseIdleConnections)
	return &remote{&http.Client{Jar: jar, Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// ask sends a request. A body is a form of the page that the browser shows.
func (c *remote) ask(ctx context.Context, method, address, user, form string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(form))
	if err != nil {
		return nil, err
	}
	r.Header.Set("X-Forwarded-For", "198.51.100.7")
	if form != "" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", "https://"+r.URL.Host)
	}
	if name, secret, ok := strings.Cut(user, ":"); ok {
		r.SetBasicAuth(name, secret)
		r.Header.Set("Cache-Control", "no-cache")
	}
	return c.client.Do(r)
}

// read sends a request and returns the body of its answer, which must have a status.
func (c *remote) read(t *testing.T, method, address, user, form string, status int) string {
	t.Helper()
	r, err := c.ask(t.Context(), method, address, user, form)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != status {
		t.Fatalf("%s %s answers %d, want %d: %.300s %v", method, address, r.StatusCode, status, body, err)
	}
	return string(body)
}

// use signs in, opens a page and the sessions, and reads from the feed a change that a program's request brings.
func (c *remote) use(t *testing.T, ip, user, secret, api string) {
	t.Helper()
	const viewer, calls = "https://calls.example.com", "https://programs.example.com" + rig.Base + "/Calls.json?PageSize=5"
	form := url.Values{"name": {"anna"}, "password": {password}, "back": {"/"}}.Encode()
	c.read(t, http.MethodPost, viewer+"/-/sign-in", "", form, http.StatusSeeOther)
	c.read(t, http.MethodGet, viewer+"/twilio/calls", "", "", http.StatusOK)
	if page := c.read(t, http.MethodGet, viewer+"/-/sessions", "", "", http.StatusOK); !strings.Contains(page, "from "+ip) {
		t.Errorf("the page of sessions does not have the browser's address:\n%s", page)
	}
	c.read(t, http.MethodGet, calls, user+":wrong", "", http.StatusUnauthorized)
	ctx, cancel := context.WithTimeout(t.Context(), rig.Patience)
	defer cancel()
	feed, err := c.ask(ctx, http.MethodGet, viewer+"/-/feed?kind=calls", "", "")
	if err != nil || feed.StatusCode != http.StatusOK {
		t.Fatalf("the feed answers %v: %v", feed, err)
	}
	defer feed.Body.Close()
	lines := bufio.NewScanner(feed.Body)
	until(t, lines, "id: ") // the place at which the stream begins: the answer is still open
	rig.Control(t, api, "/-/advance", `{"calls":1}`)
	c.read(t, http.MethodGet, calls, user+":"+secret, "", http.StatusOK)
	until(t, lines, `"what":"came"`)
}

// until reads lines up to one that has a text.
func until(t *testing.T, lines *bufio.Scanner, text string) {
	t.Helper()
	for lines.Scan() {
		if strings.Contains(lines.Text(), text) {
			return
		}
	}
	t.Fatalf("the stream ends without %q: %v", text, lines.Err())
}

// startNginx runs nginx with two locations as the page has them.
func startNginx(t *testing.T, dir, address, viewer, programs string) {
	t.Helper()
	certificate, key := rig.WriteCertificate(t, dir)
	server := "\tserver { listen %s ssl; server_name %s.example.com; ssl_certificate %s; ssl_certificate_key %s;\n%s}\n"
	config := filepath.Join(dir, "nginx.conf")
	(&desk{t: t, dir: dir}).write("nginx.conf", fmt.Sprintf("daemon off; master_process off; pid %[1]s/pid; error_log stderr;\nevents {}\nhttp {\n"+
		"\taccess_log off; client_body_temp_path %[1]s/b; proxy_temp_path %[1]s/p; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;\n",
		dir)+fmt.Sprintf(server, address, "calls", certificate, key, viewer)+fmt.Sprintf(server, address, "programs", certificate, key, programs)+"}\n")
	runProxy(t, dir, "nginx", "-c", config, "-p", dir, "-e", "stderr")
}

// startCaddy runs Caddy with the file of the page twice, and options that have it sign its own certificates.
func startCaddy(t *testing.T, dir, address, viewer, programs string) {
	t.Helper()
	ip, port, _ := net.SplitHostPort(address)
	(&desk{t: t, dir: dir}).write("Caddyfile", "{\n\tadmin off\n\tlocal_certs\n\tskip_install_trust\n\tauto_https disable_redirects\n"+
		"\tdefault_bind "+ip+"\n\thttps_port "+port+"\n\tstorage file_system "+dir+"/caddy\n\tservers {\n\t\tprotocols h1 h2\n\t}\n}\n"+
		viewer+strings.Replace(programs, "calls.", "programs.", 1))
	runProxy(t, dir, "caddy", "run", "--config", filepath.Join(dir, "Caddyfile"), "--adapter", "caddyfile")
}

// runProxy runs a program until the test ends.
func runProxy(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(rig.FindProgram(t, name), args...)
	cmd.Env = []string{"HOME=" + dir}
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		if _ = cmd.Wait(); t.Failed() {
			t.Logf("%s wrote: %s", name, said.String())
		}
	})
}
