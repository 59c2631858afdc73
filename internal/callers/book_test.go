// Callers: who gets in, who does not, and what it costs.

package callers

import (
	"context"
	"encoding/base64"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/spec"
)

const account = "AC00000000000000000000000000000001"

var start = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func source(name, style string) *spec.Source {
	return &spec.Source{Name: name, Spec: &spec.Spec{Name: name, Auth: spec.Auth{Style: style}}}
}

func book(t testing.TB, o Options) *Book {
	t.Helper()
	if o.Sources == nil {
		o.Sources = []*spec.Source{source("twilio", "basic"), source("forge", "bearer"), source("open", "none")}
	}
	if o.Now == nil {
		o.Now = func() time.Time { return start }
	}
	b, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func credential(name, source, user, secret, role string) Credential {
	return Credential{Name: name, Source: source, User: user, Secret: understudy.NewSecret(secret),
		Grant: understudy.Grant{Role: role, IssuedBy: "config"}}
}

func basicHeader(user, secret string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+secret))
}

func request(headers ...string) *http.Request {
	r := httptest.NewRequest("GET", "/2010-04-01/Accounts.json", nil)
	for _, h := range headers {
		r.Header.Add("Authorization", h)
	}
	return r
}

func TestCaller(t *testing.T) {
	expired := credential("old", "twilio", account, "oldtoken", "all")
	expired.Grant.Expires = start
	soon := credential("soon", "twilio", account, "soontoken", "all")
	soon.Grant.Expires = start.Add(time.Second)
	b := book(t, Options{Credentials: []Credential{
		credential("demo", "twilio", account, "understudydemotoken", "all"),
		credential("masked", "twilio", account, "understudymaskedtoken", "support"),
		credential("colon", "twilio", "SK1", "a:b", "all"),
		credential("norole", "twilio", "SK2", "x", ""),
		expired, soon,
		credential("forge", "forge", "", "ghtoken", "all"),
		credential("open", "open", "me", "opentoken", "all"),
	}})
	for _, test := range []struct {
		name, source string
		headers      []string
		want         string // the caller's name, "" = refused
	}{
		{"right", "twilio", []string{basicHeader(account, "understudydemotoken")}, "demo"},
		{"another of the same user", "twilio", []string{basicHeader(account, "understudymaskedtoken")}, "masked"},
		{"scheme in capitals", "twilio", []string{"BASIC" + basicHeader(account, "understudydemotoken")[5:]}, "demo"},
		{"secret with a colon", "twilio", []string{basicHeader("SK1", "a:b")}, "colon"},
		{"no role is still known", "twilio", []string{basicHeader("SK2", "x")}, "norole"},
		{"not yet expired", "twilio", []string{basicHeader(account, "soontoken")}, "soon"},
		{"expired", "twilio", []string{basicHeader(account, "oldtoken")}, ""},
		{"wrong secret", "twilio", []string{basicHeader(account, "nope")}, ""},
		{"wrong user", "twilio", []string{basicHeader("AC2", "understudydemotoken")}, ""},
		{"case matters", "twilio", []string{basicHeader(strings.ToLower(account), "understudydemotoken")}, ""},
		{"the secret is empty", "twilio", []string{basicHeader(account, "")}, ""},
		{"user and secret run together", "twilio", []string{basicHeader(account+"u", "nderstudydemotoken")}, ""},
		{"zero byte instead of the split", "twilio", []string{basicHeader(account+"\x00understudydemotoken", "")}, ""},
		{"no colon", "twilio", []string{"Basic " + base64.StdEncoding.EncodeToString([]byte("x"))}, ""},
		{"not base64", "twilio", []string{"Basic !!!"}, ""},
		{"none", "twilio", nil, ""},
		{"empty", "twilio", []string{""}, ""},
		{"scheme alone", "twilio", []string{"Basic"}, ""},
		{"two headers", "twilio", []string{basicHeader(account, "understudydemotoken"), basicHeader(account, "understudydemotoken")}, ""},
		{"too long", "twilio", []string{"Basic " + strings.Repeat("A", 2000)}, ""},
		{"bearer where the spec says basic", "twilio", []string{"Bearer understudydemotoken"}, ""},
		{"another source's", "open", []string{basicHeader(account, "understudydemotoken")}, ""},
		{"unknown source", "nowhere", []string{basicHeader(account, "understudydemotoken")}, ""},
		{"bearer", "forge", []string{"Bearer ghtoken"}, "forge"},
		{"bearer wrong", "forge", []string{"Bearer ghtoken2"}, ""},
		{"basic where the spec says bearer", "forge", []string{basicHeader("", "ghtoken")}, ""},
		{"none upstream, basic here", "open", []string{basicHeader("me", "opentoken")}, "open"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, err := b.Identify(request(test.headers...), test.source)
			if test.want == "" {
				if !errors.Is(err, understudy.ErrUnauthorized) || c != (understudy.Caller{}) {
					t.Fatalf("got %q, %v; want ErrUnauthorized and nobody", c.Name, err)
				}
				return
			}
			checktest.MustNoError(t, err, "")
			checktest.MustEqual(t, c.Name, test.want, "c.Name")
			checktest.MustEqual(t, c.Source, test.source, "c.Source")
		})
	}
}

func TestRefusalsReadTheSame(t *testing.T) {
	b := book(t, Options{Credentials: []Credential{credential("demo", "twilio", account, "secret", "all")}})
	_, wrongUser := b.Identify(request(basicHeader("nobody", "secret")), "twilio")
	_, wrongSecret := b.Identify(request(basicHeader(account, "nope")), "twilio")
	if wrongUser.Error() != wrongSecret.Error() {
		t.Errorf("%q tells a wrong user from %q", wrongUser, wrongSecret)
	}
	if strings.Contains(wrongSecret.Error(), "nope") || strings.Contains(wrongSecret.Error(), account) {
		t.Errorf("%q repeats what was given", wrongSecret)
	}
}

func TestNewErrors(t *testing.T) {
	for _, test := range []struct {
		want        string
		credentials []Credential
	}{
		{"has no name", []Credential{credential("", "twilio", account, "x", "all")}},
		{`no source "twilo"`, []Credential{credential("a", "twilo", account, "x", "all")}},
		{"the secret is empty", []Credential{credential("a", "twilio", account, "", "all")}},
		{"is empty or contains a colon", []Credential{credential("a", "twilio", "a:b", "x", "all")}},
		{"is empty or contains a colon", []Credential{credential("a", "twilio", "", "x", "all")}},
		{"same user and secret as a", []Credential{credential("a", "twilio", account, "x", "all"),
			credential("b", "twilio", account, "x", "support")}},
		{"same user and secret as a", []Credential{credential("a", "forge", "u", "x", "all"), credential("b", "forge", "v", "x", "all")}},
		{"longer than", []Credential{credential("a", "twilio", account, strings.Repeat("x", 600), "all")}},
	} {
		_, err := New(Options{Credentials: test.credentials, Sources: []*spec.Source{source("twilio", "basic"), source("forge", "bearer")}})
		checktest.MustTrue(t, err != nil, "err is nil")
		checktest.Contains(t, err.Error(), test.want, "err.Error()")
		checktest.True(t, strings.HasPrefix(err.Error(), "callers: "), "err.Error() is %q", err.Error())
	}
}

// local is a request as net/http hands it over on a listener at 127.0.0.1:4114.
func local(remote, host string, headers ...string) *http.Request {
	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr, r.Host = remote, host
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	at := net.TCPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:4114"))
	return r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, at))
}

func TestPerson(t *testing.T) {
	credentials := []Credential{
		credential("demo", "twilio", account, "demotoken", "all"),
		credential("norole", "twilio", account, "noroletoken", ""),
		credential("forge", "forge", "", "ghtoken", "support"),
	}
	demo := book(t, Options{Credentials: credentials, Loopback: understudy.Grant{Role: "all", IssuedBy: "demo"}})
	bare := book(t, Options{Credentials: credentials})
	behind := book(t, Options{Credentials: credentials, Loopback: understudy.Grant{Role: "all"}, BehindProxy: true})
	local10 := func(remote, host string) *http.Request { // M9
		r := local(remote, host)
		r.Proto, r.ProtoMajor, r.ProtoMinor = "HTTP/1.0", 1, 0
		return r
	}
	here := "127.0.0.1:50000"
	for _, test := range []struct {
		name string
		book *Book
		r    *http.Request
		want string
		err  error
	}{
		{"local", demo, local(here, "127.0.0.1:4114"), "loopback", nil},
		{"localhost", demo, local(here, "LOCALHOST:4114"), "loopback", nil},
		{"IPv6", demo, local("[::1]:50000", "[::1]:4114"), "loopback", nil},
		{"mapped IPv4", demo, local("[::ffff:127.0.0.1]:50000", "127.0.0.1:4114"), "loopback", nil},
		{"from elsewhere", demo, local("192.0.2.7:50000", "127.0.0.1:4114"), "", understudy.ErrUnauthorized},
		{"no peer", demo, local("", "127.0.0.1:4114"), "", understudy.ErrUnauthorized},
		{"rebound name", demo, local(here, "evil.example:4114"), "", understudy.ErrUnauthorized},
		{"name that begins well", demo, local(here, "localhost.evil.example:4114"), "", understudy.ErrUnauthorized},
		{"address that begins well", demo, local(here, "127.0.0.1.evil.example:4114"), "", understudy.ErrUnauthorized},
		{"another port", demo, local(here, "127.0.0.1:80"), "", understudy.ErrUnauthorized},
		{"no port", demo, local(here, "localhost"), "", understudy.ErrUnauthorized},
		{"no host", demo, local(here, ""), "", understudy.ErrUnauthorized},
		{"behind a proxy", demo, local(here, "127.0.0.1:4114", "X-Forwarded-For", "127.0.0.1"), "", understudy.ErrUnauthorized},
		{"forwarded", demo, local(here, "127.0.0.1:4114", "Forwarded", "for=127.0.0.1"), "", understudy.ErrUnauthorized},
		{"by nginx's defaults", demo, local10(here, "127.0.0.1:4114"), "", understudy.ErrUnauthorized},
		{"X-Forwarded-Proto", demo, local(here, "127.0.0.1:4114", "X-Forwarded-Proto", "https"), "", understudy.ErrUnauthorized},
		{"CF-Connecting-IP", demo, local(here, "127.0.0.1:4114", "CF-Connecting-IP", "192.0.2.7"), "", understudy.ErrUnauthorized},
		{"True-Client-IP", demo, local(here, "127.0.0.1:4114", "True-Client-IP", "192.0.2.7"), "", understudy.ErrUnauthorized},
		{"X-Client-IP", demo, local(here, "127.0.0.1:4114", "X-Client-IP", "192.0.2.7"), "", understudy.ErrUnauthorized},
		{"public_url is set", behind, local(here, "127.0.0.1:4114"), "", understudy.ErrUnauthorized},
		{"a credential through the proxy", behind, local(here, "calls.example", "Authorization", basicHeader(account, "demotoken")), "demo", nil},
		{"spoofed from elsewhere", demo, local("192.0.2.7:50000", "127.0.0.1:4114", "X-Forwarded-For", "127.0.0.1"), "",
			understudy.ErrUnauthorized},
		{"credential from elsewhere", demo, local("192.0.2.7:50000", "x.example", "Authorization", basicHeader(account, "demotoken")), "demo",
			nil},
		{"bearer credential", demo, local(here, "127.0.0.1:4114", "Authorization", "bearer ghtoken"), "forge", nil},
		{"user and secret as a token", demo, local("192.0.2.7:1", "x.example", "Authorization", "Bearer "+account+":demotoken"), "demo", nil},
		{"user and wrong secret as a token", demo, local(here, "127.0.0.1:4114", "Authorization", "Bearer "+account+":nope"), "",
			understudy.ErrUnauthorized},
		{"wrong credential is not made up for", demo, local(here, "127.0.0.1:4114", "Authorization", basicHeader(account, "nope")), "",
			understudy.ErrUnauthorized},
		{"empty header is not made up for", demo, local(here, "127.0.0.1:4114", "Authorization", ""), "", understudy.ErrUnauthorized},
		{"credential without a role", demo, local(here, "127.0.0.1:4114", "Authorization", basicHeader(account, "noroletoken")), "",
			understudy.ErrForbidden},
		{"local without a role", bare, local(here, "127.0.0.1:4114"), "", understudy.ErrForbidden},
		{"elsewhere without a role", bare, local("192.0.2.7:1", "127.0.0.1:4114"), "", understudy.ErrUnauthorized},
		{"credential there", bare, local(here, "127.0.0.1:4114", "Authorization", basicHeader(account, "demotoken")), "demo", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, err := test.book.IdentifyPerson(test.r)
			checktest.MustEqual(t, c.Name, test.want, "c.Name; %v", err)
			checktest.MustTrue(t, errors.Is(err, test.err), "err is %v, want test.err", err)
			checktest.MustEqual(t, (err == nil), (test.err == nil), "(err == nil)")
		})
	}
	_, err := bare.IdentifyPerson(local(here, "127.0.0.1:4114"))
	if !strings.Contains(err.Error(), "viewer: {role: NAME}") {
		t.Errorf("%q does not say which line to add", err)
	}
}

func TestExpiry(t *testing.T) {
	now := start
	c := credential("a", "twilio", account, "x", "all")
	c.Grant.Expires = start.Add(time.Minute)
	b := book(t, Options{Credentials: []Credential{c}, Now: func() time.Time { return now },
		Loopback: understudy.Grant{Role: "all", Expires: start.Add(time.Minute)}})
	r := request(basicHeader(account, "x"))
	if _, err := b.Identify(r, "twilio"); err != nil {
		t.Fatal(err)
	}
	now = start.Add(time.Minute)
	if _, err := b.Identify(r, "twilio"); !errors.Is(err, understudy.ErrUnauthorized) {
		t.Fatalf("after its expiry: %v", err)
	}
	if _, err := b.IdentifyPerson(local("127.0.0.1:1", "127.0.0.1:4114")); !errors.Is(err, understudy.ErrForbidden) {
		t.Fatalf("loopback after its expiry: %v", err)
	}
}

func FuzzCaller(f *testing.F) {
	for _, seed := range []string{"", "Basic", "Basic ", basicHeader(account, "secret"), "basic eDp5", "Bearer x", "Basic Og==", "Basic ====",
		"Basic QUM6\n"} {
		f.Add(seed)
	}
	b := book(f, Options{Credentials: []Credential{credential("a", "twilio", account, "secret", "all"),
		credential("b", "forge", "", "ghtoken", "all")}})
	f.Fuzz(func(t *testing.T, header string) {
		for _, source := range []string{"twilio", "forge", "open"} {
			c, err := b.Identify(request(header), source)
			if (err == nil) != (c.Name != "") {
				t.Fatalf("%q: caller %q with error %v", header, c.Name, err)
			}
			if err != nil {
				continue
			}
			r := &http.Request{Header: http.Header{"Authorization": {header}}}
			user, secret, _ := r.BasicAuth()
			if !(source == "twilio" && user == account && secret == "secret") && !(source == "forge" && strings.Contains(header, "ghtoken")) {
				t.Fatalf("%q let %q in", header, c.Name)
			}
		}
	})
}

func BenchmarkCaller(b *testing.B) {
	bk := book(b, Options{Credentials: []Credential{credential("demo", "twilio", account, "understudydemotoken", "all")}, Now: time.Now})
	r := request(basicHeader(account, "understudydemotoken"))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := bk.Identify(r, "twilio"); err != nil {
			b.Fatal(err)
		}
	}
}

// Another book with the same salt knows who is the same as before.
func TestAgain(t *testing.T) {
	const other = "AC00000000000000000000000000000002"
	salt := []byte("salt")
	first := Options{Salt: salt, Loopback: understudy.Grant{Role: "all"}, Credentials: []Credential{
		credential("ann", "twilio", account, "anntoken", "support"), credential("bob", "forge", "", "bobtoken", "support"),
		credential("cid", "twilio", other, "cidtoken", ""),
	}}
	was := book(t, first)
	person := func(b *Book, header ...string) understudy.Caller {
		t.Helper()
		r := request(header...)
		r.RemoteAddr, r.Host = "127.0.0.1:5", "127.0.0.1"
		c, err := b.IdentifyPerson(r)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	ann, bob, local := person(was, basicHeader(account, "anntoken")), person(was, "Bearer bobtoken"), person(was)
	for name, c := range map[string]struct {
		change          func(*Options)
		ann, bob, local string // roles; "-": not known
	}{
		"nothing":       {func(*Options) {}, "support", "support", "all"},
		"roles":         {func(o *Options) { o.Credentials[0].Grant.Role = "all"; o.Loopback.Role = "support" }, "all", "support", "support"},
		"no people":     {func(o *Options) { o.Loopback.Role = "" }, "support", "support", "-"},
		"a secret":      {func(o *Options) { o.Credentials[0].Secret = understudy.NewSecret("newtoken") }, "-", "support", "all"},
		"a user":        {func(o *Options) { o.Credentials[0].User = "AC3" }, "-", "support", "all"},
		"gone":          {func(o *Options) { o.Credentials = o.Credentials[:1] }, "support", "-", "all"},
		"another name":  {func(o *Options) { o.Credentials[0].Name = "anna" }, "-", "support", "all"},
		"a user unread": {func(o *Options) { o.Credentials[1].User = "bob" }, "support", "support", "all"},
		"another salt":  {func(o *Options) { o.Salt = []byte("pepper") }, "-", "-", "all"},
		"no salt":       {func(o *Options) { o.Salt = nil }, "-", "-", "all"},
		"another source takes it": {func(o *Options) {
			o.Credentials = append([]Credential{credential("eve", "open", account, "anntoken", "support")}, o.Credentials...)
		}, "-", "support", "all"},
	} {
		o := first
		o.Credentials = slices.Clone(first.Credentials)
		c.change(&o)
		now := book(t, o)
		for who, want := range map[*understudy.Caller]string{&ann: c.ann, &bob: c.bob, &local: c.local} {
			got, ok := now.Recheck(*who)
			role := got.Role()
			if !ok {
				role = "-"
			}
			if role != want || ok && (got.Name != who.Name || got.Flow != who.Flow) {
				t.Errorf("%s: %s is %+v (%s), want %s", name, who.Name, got, role, want)
			}
		}
	}
	if _, ok := was.Recheck(understudy.Caller{Name: "run.json", Grant: &understudy.Grant{Role: "all"}}); ok {
		t.Error("a caller no book makes is known")
	}
	if c := ann; c.Flow == 0 || c.Flow == bob.Flow {
		t.Errorf("turns %d and %d", c.Flow, bob.Flow)
	}
}
