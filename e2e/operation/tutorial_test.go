// The tutorial of an API of one's own, typed as it stands.

package operation

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"understudy/e2e/rig"
)

const tutorial = "../../docs/start/own-api.md"

// TestOwnAPITutorial follows docs/start/own-api.md: it starts the shop, draws and tries its spec, and asks for
// orders through Understudy, with the shop up and down.
func TestOwnAPITutorial(t *testing.T) {
	t.Parallel()
	d := openDesk(t)
	shop := freePort(t, "127.0.0.1")
	for _, b := range rig.ReadBlocks(t, tutorial) {
		name := map[string]string{"python": "shop.py", "yaml": "understudy.yml"}[b.Language]
		if name == "" {
			continue
		}
		text := b.Text()
		if b.Language == "python" {
			text = strings.Replace(text, `("127.0.0.1", 8017)`, `("127.0.0.1", `+strings.TrimPrefix(shop, "127.0.0.1:")+`)`, 1)
		}
		if err := os.WriteFile(filepath.Join(d.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var server *exec.Cmd
	var dropIn string
	for _, s := range commands(t, tutorial) {
		c := strings.NewReplacer("127.0.0.1:8017", shop, "http://127.0.0.1:4420", dropIn).Replace(s.command)
		switch {
		case c == "python3 shop.py":
			server = startShop(t, d.dir, shop)
		case c == "bin/understudy serve":
			s := rig.Start(t, d.dir, "serve", "--viewer", "127.0.0.1:0", "--drop-in", "orders=127.0.0.1:0")
			dropIn = s.URL("orders")
		case strings.HasPrefix(c, "curl "):
			masked := strings.ReplaceAll(direct(t, shop, "/orders?status=failed&limit=2"), "+1415555", "********")
			if through := d.shell(c); through != masked {
				t.Errorf("%s answers\n%s\nwant\n%s", c, through, masked)
			}
			askInOutage(t, d, server, shop, c)
		default:
			d.shell(c)
		}
	}
	if dropIn == "" || server == nil {
		t.Errorf("%s starts no shop or no server", tutorial)
	}
}

// askInOutage stops the shop once every order is stored, and asks for a page that nobody has asked for.
func askInOutage(t *testing.T, d *desk, server *exec.Cmd, shop, command string) {
	t.Helper()
	const page = "/orders?status=open&limit=7"
	want := strings.ReplaceAll(direct(t, shop, page), "+1415555", "********")
	d.shell("bin/understudy sync orders/orders") // waits until the kind is complete
	if err := server.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = server.Wait() // it was killed
	ask := strings.Replace(command, "/orders?status=failed&limit=2", page, 1)
	if have := d.shell(ask); have != want {
		t.Errorf("without the shop %s answers\n%s\nwant\n%s", ask, have, want)
	}
}

// direct returns what the shop itself answers.
func direct(t *testing.T, shop, page string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+shop+page, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer shop-secret-of-the-api")
	r, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// startShop starts the shop and waits until it listens.
func startShop(t *testing.T, dir, address string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "python3", "shop.py")
	cmd.Dir = dir
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	rig.Await(t, func() string {
		c, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", address)
		if err != nil {
			return "the shop does not listen: " + err.Error()
		}
		_ = c.Close()
		return ""
	})
	return cmd
}

// freePort returns an address of this machine with a port that nobody listens on.
func freePort(t *testing.T, ip string) string {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(ip, "0"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
