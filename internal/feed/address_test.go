// Tests of where webhooks may go, and of what is asked of them.

package feed

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"understudy"
)

func TestHookRoutes(t *testing.T) {
	t.Parallel()
	o := Options{Token: "tokentoken"}
	o.Policy.Hooks = []Hook{{Name: "crm", URL: "https://crm.example/hook", Source: "twilio", Role: "all",
		Secret: understudy.NewSecret(hookSecret)}}
	r := open(t, some(), o)
	post := func(role, path, body string, headers ...string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.server.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		if role != "" {
			req.SetBasicAuth(role, "")
		}
		for i := 0; i < len(headers); i += 2 {
			req.Header.Set(headers[i], headers[i+1])
		}
		resp, err := r.server.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(answer)
	}
	for _, c := range []struct {
		role, path, body string
		headers          []string
		status           int
		text             string
	}{
		{"all", "crm", `{"after":3}`, nil, 200, `"after":3,"behind":5`},
		{"", "crm", `{}`, []string{"Authorization", "Bearer tokentoken"}, 200, `"after":3`},
		{"", "crm", `{}`, []string{"Authorization", "Bearer wrong"}, 401, ""},
		{"support", "crm", `{"after":0}`, nil, 403, "role all"},
		{"open", "crm", `{"after":0}`, nil, 403, "role all"},
		{"", "crm", `{}`, nil, 401, ""},
		{"all", "nobody", `{}`, nil, 404, "no webhook"},
		{"all", "crm", `{"after":9}`, nil, 400, "want 0 to 8"},
		{"all", "crm", `{"after":-1}`, nil, 400, "want 0 to 8"},
		{"all", "crm", `{"befor":1}`, nil, 400, "not what is expected"},
		{"all", "crm", ``, nil, 400, "not what is expected"},
		{"all", "crm", `{}`, []string{"Content-Type", "text/plain"}, 400, "application/json"},
		{"all", "crm", `{}`, []string{"Sec-Fetch-Site", "cross-site"}, 403, ""},
	} {
		status, text := post(c.role, "/-/webhooks/"+c.path, c.body, c.headers...)
		if status != c.status || !strings.Contains(text, c.text) {
			t.Errorf("%s %s %s: %d %s; want %d with %q", c.role, c.path, c.body, status, text, c.status, c.text)
		}
	}
	if _, body := r.get(t, "all", "/-/webhooks"); !strings.Contains(body,
		`{"webhooks":[{"name":"crm","source":"twilio","state":"ok","after":3`) {
		t.Errorf("the list is %s", body)
	}
}

func TestHookSettings(t *testing.T) {
	t.Parallel()
	good := Hook{Name: "crm", URL: "https://crm.example/hook", Source: "twilio", Role: "all", Secret: understudy.NewSecret(hookSecret)}
	r := open(t, some(), Options{Policy: Policy{Hooks: []Hook{good}}})
	p := r.feed.o.Policy
	for want, change := range map[string]func(*Hook){
		"want https://":           func(h *Hook) { h.URL = "ftp://crm.example" },
		"only https":              func(h *Hook) { h.URL = "http://crm.example" },
		"no credentials":          func(h *Hook) { h.URL = "https://me:secret@crm.example" },
		"the address is loopback": func(h *Hook) { h.URL = "https://127.0.0.1:9/" },
		"the address is private":  func(h *Hook) { h.URL = "https://[fd00::1]/" },
		"want whsec_":             func(h *Hook) { h.Secret = understudy.NewSecret("whsec_!!!") },
		"want whsec_ and base64":  func(h *Hook) { h.Secret = understudy.Secret{} },
		"at least 24":             func(h *Hook) { h.Secret = understudy.NewSecret("whsec_c2hvcnQ=") },
		"random bytes":            func(h *Hook) { h.Secret = understudy.NewSecret("whsec_") },
		`did you mean "calls"`:    func(h *Hook) { h.Kinds = []string{"cals"} },
		"may not see alerts":      func(h *Hook) { h.Role, h.Kinds = "desk", []string{"alerts"} },
		"may not see body":        func(h *Hook) { h.Role, h.Fields = "support", []string{"body"} },
		"may see nothing":         func(h *Hook) { h.Role = "other" },
		`no role "dask"`:          func(h *Hook) { h.Role = "dask" },
		`no source is called "x"`: func(h *Hook) { h.Source = "x" },
		"is there twice":          func(*Hook) {},
	} {
		bad := good
		change(&bad)
		p.Hooks = []Hook{good, bad}
		err := r.feed.SetPolicy(t.Context(), p)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "!!!") {
			t.Errorf("%v, want one with %q", err, want)
		}
	}
	if len(r.feed.Webhooks()) != 1 {
		t.Error("wrong settings changed what is in force")
	}
}

// Whatever a name resolves to is looked at when it is dialled.
func TestAddressesThatAreRefused(t *testing.T) {
	t.Parallel()
	for address, want := range map[string][2]bool{ // permitted; permitted with allow_private
		"8.8.8.8": {true, true}, "1.1.1.1": {true, true}, "2606:4700:4700::1111": {true, true}, "2a00:1450::1": {true, true},
		"127.0.0.1": {false, true}, "127.255.255.254": {false, true}, "::1": {false, true}, "::ffff:127.0.0.1": {false, true},
		"10.0.0.1": {false, true}, "172.16.0.1": {false, true}, "172.31.255.255": {false, true}, "172.32.0.1": {true, true},
		"192.168.1.1":     {false, true},
		"::ffff:10.0.0.1": {false, true}, "fc00::1": {false, true}, "fdff::1": {false, true}, "100.64.0.1": {false, true},
		"100.127.255.255": {false, true}, "100.128.0.1": {true, true},
		"100.100.100.200": {false, false}, "100.100.100.201": {false, true}, "169.254.169.254": {}, "169.254.0.1": {},
		"::ffff:169.254.169.254": {}, "168.63.129.16": {}, "192.0.0.192": {}, "fd00:ec2::254": {},
		"fe80::1": {}, "fe80::1%eth0": {}, "2606:4700::1%eth0": {}, "febf::1": {}, "fec0::1": {},
		"0.0.0.0": {}, "0.1.2.3": {}, "::": {}, "224.0.0.1": {}, "239.255.255.250": {}, "ff02::1": {}, "ff0e::1": {}, "255.255.255.255": {},
		"240.0.0.1": {},
		"192.0.2.1": {}, "198.51.100.1": {}, "203.0.113.1": {}, "198.18.0.1": {}, "192.88.99.1": {}, "2001:db8::1": {}, "3fff::1": {},
		"100::1":             {},
		"64:ff9b::127.0.0.1": {}, "64:ff9b::10.1.2.3": {}, "64:ff9b::169.254.169.254": {}, "64:ff9b::8.8.8.8": {true, true}, "64:ff9b:1::1": {},
		"2002:7f00:1::": {}, "2002:808:808::": {}, "2001::1": {}, "2001:20::1": {}, "::127.0.0.1": {}, "::8.8.8.8": {}, "5f00::1": {},
		"4000::1": {},
	} {
		a := netip.MustParseAddr(address)
		if got := [2]bool{forbidden(a, false) == "", forbidden(a, true) == ""}; got != want {
			t.Errorf("%s is permitted %v, want %v", address, got, want)
		}
	}
	check := guard(false)
	for _, c := range []struct {
		network, address string
		ok               bool
	}{{"tcp4", "8.8.8.8:443", true}, {"tcp6", "[2606:4700::1]:443", true}, {"tcp4", "127.0.0.1:443", false}, {"tcp6", "[::1]:443", false},
		{"udp4", "8.8.8.8:53", false}, {"unix", "/run/x", false}, {"tcp4", "localhost:1", false}} {
		if err := check(c.network, c.address, nil); (err == nil) != c.ok {
			t.Errorf("dial %s %s: %v", c.network, c.address, err)
		}
	}
}

func TestNamesThatResolveInside(t *testing.T) {
	t.Parallel()
	secure := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was reached") }))
	defer secure.Close()
	address := strings.Replace(secure.URL, "127.0.0.1", "localhost", 1)
	s, err := newSender(Hook{URL: address, Secret: understudy.NewSecret(hookSecret)}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	if _, err := s.send(t.Context(), "msg_1", []byte("{}")); err == nil ||
		!strings.Contains(err.Error(), "address not permitted: it is loopback") {
		t.Errorf("a name that resolves to this machine: %v", err)
	}
}

// The receiver's certificate counts, and the environment's proxy does not.
func TestSenderTrustsNobody(t *testing.T) {
	secure := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was reached") }))
	defer secure.Close()
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	s, err := newSender(Hook{URL: secure.URL, AllowPrivate: true, Secret: understudy.NewSecret(hookSecret)}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	if _, err := s.send(t.Context(), "msg_1", []byte("{}")); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("an unknown certificate: %v", err)
	}
	if s.client.Transport.(*http.Transport).Proxy != nil {
		t.Error("a proxy would be used")
	}
}
