package callers

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/spec"
)

// scoped is a book with one credential and a clock.
func scoped(t *testing.T, now *time.Time, c Credential) *Book {
	t.Helper()
	c.Name, c.Source, c.User, c.Grant = "billing", "twilio", "SK1", understudy.Grant{Role: "support"}
	b, err := New(Options{
		Credentials: []Credential{c}, Now: func() time.Time { return *now },
		Sources: []*spec.Source{{Name: "twilio", Spec: &spec.Spec{Auth: spec.Auth{Style: "basic"}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func from(address string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr = address
	r.SetBasicAuth("SK1", "a secret of some length")
	return r
}

// A credential may come with the digest of its secret, from some addresses, and so often.
func TestScopes(t *testing.T) {
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	sum := sha256.Sum256([]byte("a secret of some length"))
	b := scoped(t, &now, Credential{Digest: sum[:], Rate: 3, From: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"),
		netip.MustParsePrefix("2001:db8::/32")}})
	for address, want := range map[string]error{
		"10.1.2.3:1": nil, "[::ffff:10.1.2.3]:1": nil, "[2001:db8::1]:1": nil, "192.0.2.1:1": understudy.ErrUnauthorized,
		"[2001:db9::1]:1": understudy.ErrUnauthorized, "": understudy.ErrUnauthorized,
	} {
		now = now.Add(time.Minute)
		for what, ask := range map[string]func(*http.Request) (understudy.Caller, error){
			"a program": func(r *http.Request) (understudy.Caller, error) { return b.Identify(r, "twilio") }, "a person": b.IdentifyPerson,
		} {
			c, err := ask(from(address))
			checktest.True(t, errors.Is(err, want), "%s from %q: err is %v, want want", what, address, err)
			checktest.True(t, !errors.Is(err, understudy.ErrTooMany),
				"%s from %q: errors.Is(err, understudy.ErrTooMany) is true", what, address)
			checktest.True(t, !(want == nil && c.Name != "billing"),
				`%s from %q: want == nil && c.Name != "billing"; %v`, what, address, err)
		}
	}
	now = now.Add(time.Minute)
	through := 0
	for range 30 { // in three seconds
		now = now.Add(100 * time.Millisecond)
		switch _, err := b.Identify(from("10.1.2.3:1"), "twilio"); {
		case err == nil:
			through++
		case !errors.Is(err, understudy.ErrTooMany):
			t.Fatal(err)
		}
	}
	if through < 9 || through > 12 {
		t.Errorf("%d requests went through in three seconds, of three a second", through)
	}
}

// Only the caller that asks with the credential for metrics has no role, and only by IdentifyProgram.
func TestCredentialForMetrics(t *testing.T) {
	b, err := New(Options{
		Credentials: []Credential{{Name: "monitor", Secret: understudy.NewSecret("a secret of some length"),
			Grant: understudy.Grant{Service: understudy.ServiceMetrics}}},
		Sources: []*spec.Source{{Name: "twilio", Spec: &spec.Spec{Auth: spec.Auth{Style: "basic"}}}},
	})
	checktest.MustNoError(t, err, "make the book")
	r := httptest.NewRequest(http.MethodGet, "/-/metrics", nil)
	r.Header.Set("Authorization", "Bearer a secret of some length")
	c, err := b.IdentifyProgram(r)
	checktest.NoError(t, err, "as a program")
	checktest.Equal(t, c.Name+" "+c.Grant.Service, "monitor metrics", "the caller")
	_, err = b.IdentifyPerson(r)
	checktest.True(t, errors.Is(err, understudy.ErrForbidden), "as a person: %v, want ErrForbidden", err)
	_, err = b.Identify(r, "twilio")
	checktest.True(t, errors.Is(err, understudy.ErrUnauthorized), "at a source: %v, want ErrUnauthorized", err)
}

// A page of another site can reach a port of this machine, but not with the name of this machine.
func TestAdmitLocal(t *testing.T) {
	for name, c := range map[string]struct {
		r    *http.Request
		want error
	}{
		"here":           {local("127.0.0.1:50000", "127.0.0.1:4114"), nil},
		"another site":   {local("127.0.0.1:50000", "evil.example:4114"), understudy.ErrForbidden},
		"another port":   {local("127.0.0.1:50000", "127.0.0.1:80"), understudy.ErrForbidden},
		"from outside":   {local("192.0.2.1:50000", "127.0.0.1:4114"), understudy.ErrForbidden},
		"behind a proxy": {local("127.0.0.1:50000", "127.0.0.1:4114", "X-Forwarded-For", "192.0.2.1"), understudy.ErrForbidden},
	} {
		_, err := AdmitLocal(c.r)
		checktest.True(t, errors.Is(err, c.want), "%s: %v, want %v", name, err, c.want)
	}
}

// Callers have the counters that belong to their names, and each caller is listed.
func TestCallersHaveTheirUsage(t *testing.T) {
	counters := map[string]*understudy.Usage{}
	b, err := New(Options{
		Credentials: []Credential{credential("a", "twilio", "u", "x", "all"), credential("b", "twilio", "v", "y", "all")},
		Sources:     []*spec.Source{source("twilio", "basic")}, Open: []string{"web"},
		Usage: func(source, name string) *understudy.Usage {
			counters[source+" "+name] = new(understudy.Usage)
			return counters[source+" "+name]
		},
	})
	checktest.MustNoError(t, err, "make the book")
	found := map[string]bool{}
	for c := range b.Callers() {
		found[c.Source+" "+c.Name] = true
		checktest.True(t, c.Usage == counters[c.Source+" "+c.Name], "%s %s has another counter", c.Source, c.Name)
	}
	checktest.Equal(t, fmt.Sprint(found), "map[twilio a:true twilio b:true web loopback:true]", "the callers")
}
