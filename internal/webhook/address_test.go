// Tests of where webhooks may go.

package webhook

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"understudy"
)

const testSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

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
		if got := [2]bool{forbiddenReason(a, false) == "", forbiddenReason(a, true) == ""}; got != want {
			t.Errorf("%s is permitted %v, want %v", address, got, want)
		}
	}
	check := Guard(false)
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
	s, err := New(Options{URL: address, Secret: understudy.NewSecret(testSecret), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Send(t.Context(), "msg_1", []byte("{}")); err == nil ||
		!strings.Contains(err.Error(), "address not permitted: it is loopback") {
		t.Errorf("a name that resolves to this machine: %v", err)
	}
}

// The receiver's certificate counts, and the environment's proxy does not.
func TestSenderTrustsNobody(t *testing.T) {
	secure := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was reached") }))
	defer secure.Close()
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	s, err := New(Options{URL: secure.URL, AllowPrivate: true, Secret: understudy.NewSecret(testSecret), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Send(t.Context(), "msg_1", []byte("{}")); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("an unknown certificate: %v", err)
	}
	if s.client.Transport.(*http.Transport).Proxy != nil {
		t.Error("a proxy would be used")
	}
}
