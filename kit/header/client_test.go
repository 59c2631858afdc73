package header

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
)

func TestClientIsNamedByABelievedProxyAlone(t *testing.T) {
	proxies := Proxies{netip.MustParsePrefix("10.0.0.0/24"), netip.MustParsePrefix("127.0.0.1/32"), netip.MustParsePrefix("fd00::/64")}
	for name, c := range map[string]struct{ peer, forwarded, want string }{
		"no proxy":                     {"192.0.2.1:50", "198.51.100.7", "192.0.2.1:50"},
		"a proxy":                      {"10.0.0.1:50", "198.51.100.7", "198.51.100.7:0"},
		"a proxy on this machine":      {"127.0.0.1:50", "198.51.100.7", "198.51.100.7:0"},
		"an address the client chose":  {"10.0.0.1:50", "203.0.113.9, 198.51.100.7", "198.51.100.7:0"},
		"an own one the client chose":  {"10.0.0.1:50", "203.0.113.9, 10.0.0.2 , 198.51.100.7", "198.51.100.7:0"},
		"two proxies":                  {"10.0.0.1:50", "198.51.100.7,10.0.0.2", "198.51.100.7:0"},
		"two lines":                    {"10.0.0.1:50", "198.51.100.7\n10.0.0.2", "198.51.100.7:0"},
		"with a port":                  {"10.0.0.1:50", "198.51.100.7:4711", "198.51.100.7:0"},
		"IPv6":                         {"[fd00::1]:50", "2001:db8::7", "[2001:db8::7]:0"},
		"IPv6 with a port":             {"[fd00::1]:50", "[2001:db8::7]:4711", "[2001:db8::7]:0"},
		"IPv4 within IPv6":             {"[::ffff:10.0.0.1]:50", "::ffff:198.51.100.7", "198.51.100.7:0"},
		"nobody":                       {"10.0.0.1:50", "", "10.0.0.1:50"},
		"no address":                   {"10.0.0.1:50", "198.51.100.7, unknown", "10.0.0.1:50"},
		"proxies alone":                {"10.0.0.1:50", "10.0.0.3, 10.0.0.2", "10.0.0.1:50"},
		"one on the proxy's machine":   {"10.0.0.1:50", "127.0.0.2", "10.0.0.1:50"},
		"one on its machine, mapped":   {"10.0.0.1:50", "::ffff:127.0.0.2", "10.0.0.1:50"},
		"an address that is no number": {"pipe", "198.51.100.7", "pipe"},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.RemoteAddr = c.peer
			if c.forwarded != "" {
				r.Header["X-Forwarded-For"] = strings.Split(c.forwarded, "\n")
			}
			var got, peer string
			proxies.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got, peer = r.RemoteAddr, Peer(r) })).
				ServeHTTP(httptest.NewRecorder(), r)
			if got != c.want {
				t.Errorf("it is from %s, want %s", got, c.want)
			}
			if peer != c.peer {
				t.Errorf("the connection is from %s, want %s", peer, c.peer)
			}
		})
	}
}

// Whatever a client writes, it is not taken for this machine or for a proxy.
func FuzzClient(f *testing.F) {
	f.Add("198.51.100.7", "10.0.0.2, 127.0.0.1")
	f.Add("[::1]:80", ",,::")
	f.Fuzz(func(t *testing.T, first, second string) {
		proxies := Proxies{netip.MustParsePrefix("10.0.0.0/24")}
		r := &http.Request{RemoteAddr: "10.0.0.1:50", Header: http.Header{"X-Forwarded-For": {first, second}}}
		if client, ok := proxies.client(r); ok && (!client.IsValid() || client.IsLoopback() || proxies.Contains(client)) {
			t.Errorf("%q %q: %s", first, second, client)
		}
	})
}
