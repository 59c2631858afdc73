// Origin policy: which hosts get the credential, and where a redirect may lead.

package upstream

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"understudy"
	"understudy/internal/checktest"
	"understudy/request"
	"understudy/spec"
)

// The credential goes to the source's own hosts and paths alone, and no further once
// another host decides where to look.
func TestCredentialStaysAtHome(t *testing.T) {
	var home, cdn seen
	var back, next string
	there := cdn.serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/back" {
			http.Redirect(w, r, back, http.StatusFound)
			return
		}
		wav(w, r)
	})
	srv := home.serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == audioPath:
			http.SetCookie(w, &http.Cookie{Name: "session", Value: "x", Path: "/"})
			http.Redirect(w, r, next, http.StatusTemporaryRedirect)
		default:
			wav(w, r)
		}
	})
	const elsewhere = "/2010-04-01/Accounts/" + account + "/Recordings/RE2.wav"
	for _, test := range []struct {
		name, next, back string
		home, cdn        []bool // whether each request carried the credential
	}{
		{"a content network", there.URL + "/signed?key=1", "", []bool{true}, []bool{false}},
		{"the same host, no path of the spec", "/cdn/x", "", []bool{true, false}, nil},
		{"the same host and API", elsewhere, "", []bool{true, true}, nil},
		{"a path that only looks like the API's", "/2010-04-01x/y", "", []bool{true, false}, nil},
		{"dots", "/2010-04-01/%2e%2e/y", "", []bool{true, false}, nil},
		{"user information", strings.Replace(there.URL, "http://", "http://u:p@", 1) + "/x", "", []bool{true}, []bool{false}},
		{"sent back", there.URL + "/back", srv.URL + elsewhere, []bool{true, false}, []bool{false}},
	} {
		t.Run(test.name, func(t *testing.T) {
			home.all, cdn.all, next, back = nil, nil, test.next, test.back
			c := scripted(t, nil, at(srv.URL))
			stranger := &http.Transport{} // the other listens here, too, where no redirect leads
			defer stranger.CloseIdleConnections()
			c.media.outside = stranger
			m, err := openAudio(t, c, func(a *request.MediaRequest) { a.Range = "bytes=0-3" })
			if err != nil {
				t.Fatal(err)
			}
			if got := text(t, m); got != "RIFF" {
				t.Errorf("%q", got)
			}
			check := func(who string, s *seen, want []bool) {
				got := s.headers("Authorization")
				if len(got) != len(want) {
					t.Fatalf("%s was asked %d times, want %d", who, len(got), len(want))
				}
				for i, shown := range want {
					if (got[i] != "") != shown {
						t.Errorf("%s, request %d: Authorization %q, want one: %v", who, i, got[i], shown)
					}
				}
				if c := strings.Join(s.headers("Cookie"), ""); c != "" {
					t.Errorf("%s was shown a cookie: %s", who, c)
				}
			}
			check("the source", &home, test.home)
			check("the other", &cdn, test.cdn)
		})
	}
}

func TestRedirectsEnd(t *testing.T) {
	var s seen
	srv := s.serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, audioPath, http.StatusFound) })
	c := scripted(t, nil, at(srv.URL))
	_, err := openAudio(t, c)
	if e := failure(t, err); e.Why != understudy.FailUnusable || !strings.Contains(e.Error(), "more than 5 redirects") {
		t.Errorf("%v", e)
	}
	checktest.MustEqual(t, len(s.all), 6, "len(s.all)")
	checktest.Equal(t, c.Stats().Requests, 1, "c.Stats().Requests")
	checktest.Equal(t, c.Health().State, "ok", "c.Health().State")
}

func TestNoRedirectWithoutTLS(t *testing.T) {
	s := &script{do: func(int, *http.Request) (*http.Response, error) {
		return reply(302, "", "Location", "http://cdn.example/signed-link"), nil
	}}
	_, err := openAudio(t, scripted(t, s, func(o *Options) { o.Base = "https://api.example" }))
	e := failure(t, err)
	checktest.Equal(t, e.Why, understudy.FailUnusable, "e.Why")
	checktest.Contains(t, e.Error(), "without TLS", "e.Error()")
	checktest.Lacks(t, e.Error(), "signed-link", "e.Error()")
	if s.count() != 1 {
		t.Errorf("%d requests", s.count())
	}
}

// A failure elsewhere is not the source's.
func TestOthersFailureIsNotTheSources(t *testing.T) {
	gone := httptest.NewServer(nil)
	gone.Close()
	for name, there := range map[string]string{"refused": gone.URL, "bad": ""} {
		var s seen
		var c *Client
		srv := s.serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/cdn" {
				w.WriteHeader(http.StatusForbidden)
				return
			}
			http.Redirect(w, r, there+"/cdn", http.StatusFound)
		})
		c = scripted(t, nil, at(srv.URL))
		for range 6 {
			_, err := openAudio(t, c)
			failure(t, err)
			c.breaker.NoteNewCredential() // no pause between tries
		}
		if c.Health().State != "ok" {
			t.Errorf("%s: %+v", name, c.Health())
		}
	}
}

func TestInwardAddresses(t *testing.T) {
	for _, test := range []struct {
		base, at string
		want     bool
	}{
		{"", "93.184.216.34", true}, {"", "2606:2800:220:1::1", true},
		{"", "127.0.0.1", false}, {"", "::1", false}, {"", "::ffff:127.0.0.1", false}, {"", "0.0.0.0", false}, {"", "::", false},
		{"", "10.1.2.3", false}, {"", "172.16.0.1", false}, {"", "192.168.1.1", false}, {"", "fd00::1", false}, {"", "100.64.0.1", false},
		{"", "169.254.169.254", false}, {"", "fe80::1", false}, {"", "224.0.0.1", false}, {"", "ff02::1", false}, {"", "255.255.255.255", false},
		{"", "64:ff9b::7f00:1", false}, {"", "2002:7f00:1::", false}, {"", "198.18.0.1", false}, {"", "fec0::1", false},
		// L8: the source's own address and port alone, not all that is as near.
		{"http://127.0.0.1:4116", "127.0.0.1:4116", true}, {"http://127.0.0.1:4116", "127.0.0.1:4114", false},
		{"http://127.0.0.1:4116", "127.9.9.9:4116", false}, {"http://localhost:1", "127.0.0.1:1", true},
		{"http://localhost:1", "127.0.0.1:2", false},
		{"http://127.0.0.1:4116", "10.0.0.1:4116", false}, {"http://127.0.0.1:4116", "169.254.169.254:4116", false},
		{"http://10.0.0.5", "10.0.0.5:80", true}, {"http://10.0.0.5", "10.0.0.5:443", false}, {"http://10.0.0.5", "10.0.0.6:80", false},
		{"http://10.0.0.5", "127.0.0.1:80", false}, {"http://10.0.0.5", "169.254.169.254:80", false},
		{"https://93.184.216.34", "10.0.0.1", false},
	} {
		o := Options{Source: &spec.Source{Name: "twilio", User: account, Spec: builtInSpec(t, "twilio")}, Base: test.base}
		o.setDefaults()
		to, err := netip.ParseAddrPort(test.at)
		if err != nil {
			to = netip.AddrPortFrom(netip.MustParseAddr(test.at), 443)
		}
		if got := newOriginPolicy(&o).isAllowed(t.Context(), to); got != test.want {
			t.Errorf("base %q, redirect to %s: allowed %v", test.base, test.at, got)
		}
	}
}

// The address is looked at when it is dialled, not when it is named.
func TestInwardIsRefusedAtTheDial(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(wav))
	defer srv.Close()
	o := Options{Source: &spec.Source{Name: "twilio", User: account, Spec: builtInSpec(t, "twilio")}}
	o.setDefaults()
	w := newOriginPolicy(&o)
	defer w.close()
	_, port, _ := net.SplitHostPort(srv.Listener.Addr().String())
	req, _ := http.NewRequestWithContext(t.Context(), "GET", "http://localhost:"+port+"/", nil)
	resp, err := w.outside.RoundTrip(req)
	if err == nil {
		resp.Body.Close()
	}
	if !errors.Is(err, errPrivateAddress) {
		t.Errorf("%v", err)
	}
}

func TestIsHome(t *testing.T) {
	o := Options{Source: &spec.Source{Name: "twilio", User: account, Spec: builtInSpec(t, "twilio")}}
	o.setDefaults()
	w := newOriginPolicy(&o)
	defer w.close()
	for link, want := range map[string]bool{
		"https://api.twilio.com/2010-04-01/Accounts.json": true, "https://API.twilio.com:443/2010-04-01/x": true,
		"http://api.twilio.com/2010-04-01/x": false, "https://api.twilio.com:444/2010-04-01/x": false,
		"https://api.twilio.com/other": false, "https://api.twilio.com.evil.example/2010-04-01/x": false,
		"https://evil.example/2010-04-01/x": false, "https://api.twilio.com/2010-04-01/../x": false,
	} {
		u, err := url.Parse(link)
		if err != nil {
			t.Fatal(err)
		}
		if got := w.isHome(u); got != want {
			t.Errorf("%s: %v", link, got)
		}
	}
}
