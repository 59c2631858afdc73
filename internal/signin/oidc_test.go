package signin

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
)

// provider is one of OpenID Connect that can be made to misbehave.
type provider struct {
	*httptest.Server
	key, published *ecdsa.PrivateKey
	authorized     url.Values // what the browser was sent with
	claims         map[string]any
	user           map[string]any
	alter          func(http.ResponseWriter, *http.Request) bool // answers in place of the provider
	sign           func(payload []byte) string
}

func newProvider(t *testing.T) *provider {
	t.Helper()
	p := &provider{claims: map[string]any{}, user: map[string]any{"sub": "u-1"}, sign: nil}
	p.newKey(t)
	p.published = p.key
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{
			"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys",
			"userinfo_endpoint": p.URL + "/user", "scopes_supported": []string{"openid", "groups"},
			"id_token_signing_alg_values_supported": []string{"ES256"},
		})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{jwk(&p.published.PublicKey)}})
	})
	mux.HandleFunc("POST /token", p.token)
	mux.HandleFunc("GET /user", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer access" {
			http.Error(w, "no token", http.StatusUnauthorized)
			return
		}
		_ = json.NewEncoder(w).Encode(p.user)
	})
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.alter == nil || !p.alter(w, r) {
			mux.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *provider) newKey(t *testing.T) {
	t.Helper()
	var err error
	if p.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
}

func jwk(key *ecdsa.PublicKey) jose.JSONWebKey {
	one := jose.JSONWebKey{Key: key, Algorithm: "ES256", Use: "sig"}
	sum, _ := one.Thumbprint(crypto.SHA256)
	one.KeyID = base64.RawURLEncoding.EncodeToString(sum)
	return one
}

// token gives tokens for the code, to our client that knows the verifier.
func (p *provider) token(w http.ResponseWriter, r *http.Request) {
	sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	user, secret, _ := r.BasicAuth()
	secret, _ = url.QueryUnescape(secret) // RFC 6749, 2.3.1
	switch {
	case user != "us" || secret != "our secret":
		http.Error(w, `{"error":"invalid_client"}`, http.StatusUnauthorized)
		return
	case r.PostFormValue("code") != "code-1" || base64.RawURLEncoding.EncodeToString(sum[:]) != p.authorized.Get("code_challenge"):
		http.Error(w, `{"error":"invalid_grant"}`, http.StatusBadRequest)
		return
	}
	claims := map[string]any{
		"iss": p.URL, "aud": "us", "sub": "u-1", "nonce": p.authorized.Get("nonce"), "iat": time.Now().Unix(),
		"exp": time.Now().Add(time.Minute).Unix(),
	}
	for name, value := range p.claims {
		if claims[name] = value; value == nil {
			delete(claims, name)
		}
	}
	payload, _ := json.Marshal(claims)
	answer := map[string]any{"access_token": "access", "token_type": "Bearer", "expires_in": 60, "id_token": p.signed(payload)}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

func (p *provider) signed(payload []byte) string {
	if p.sign != nil {
		return p.sign(payload)
	}
	key := jose.JSONWebKey{Key: p.key, KeyID: jwk(&p.key.PublicKey).KeyID}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key}, nil)
	if err != nil {
		panic(err)
	}
	signature, err := signer.Sign(payload)
	if err != nil {
		panic(err)
	}
	text, _ := signature.CompactSerialize()
	return text
}

// guest is a browser that signs in at a provider.
type guest struct {
	t *testing.T
	*People
	from    *provider
	cookies map[string]string
}

func newGuest(t *testing.T) *guest {
	t.Helper()
	from := newProvider(t)
	cookies, err := NewCookies(time.Now)
	if err != nil {
		t.Fatal(err)
	}
	p := &Provider{
		Issuer: from.URL, Client: "us", Secret: understudy.NewSecret("our secret"), Groups: "groups", Cookies: cookies,
		Roles: []Rule{{"ops", "all"}, {"helpers", "support"}}, Domains: []Rule{{"example.com", "desk"}},
		Callback: func() string { return "https://us.example.com/-/sign-in/callback" },
		Taken:    func(name string) bool { return name == "loopback" },
	}
	people := &People{Sessions: opened(t, storetest.Open(t, store.Options{}), time.Now), Provider: p}
	return &guest{t: t, People: people, from: from, cookies: map[string]string{}}
}

func (v *guest) keep(w *httptest.ResponseRecorder) {
	for _, c := range w.Result().Cookies() {
		if v.cookies[c.Name] = c.Value; c.MaxAge < 0 {
			delete(v.cookies, c.Name)
		}
	}
}

func (v *guest) request(path string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for name, value := range v.cookies {
		r.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	return r
}

// begin is the way to the provider; the answer is the query of the way back.
func (v *guest) begin() url.Values {
	v.t.Helper()
	w := httptest.NewRecorder()
	if err := v.Provider.Begin(w, v.request("/-/sign-in/provider"), "/twilio/calls?Status=busy"); err != nil {
		v.t.Fatal(err)
	}
	v.keep(w)
	to, err := url.Parse(w.Header().Get("Location"))
	checktest.MustNoError(v.t, err, "sent with")
	checktest.MustEqual(v.t, w.Code, http.StatusSeeOther, "sent with: w.Code")
	checktest.MustTrue(v.t, strings.HasPrefix(to.String(), v.from.URL+"/authorize?"), "sent with: to.String() is %q",
		to.String())
	v.from.authorized = to.Query()
	return url.Values{"state": {to.Query().Get("state")}, "code": {"code-1"}, "iss": {v.from.URL}}
}

func (v *guest) finish(back url.Values) (string, error) {
	w := httptest.NewRecorder()
	name, to, err := v.Finish(w, v.request("/-/sign-in/callback?"+back.Encode()))
	v.keep(w)
	if err == nil && to != "/twilio/calls?Status=busy" {
		v.t.Errorf("the way back leads to %s", to)
	}
	return name, err
}

func TestProvider(t *testing.T) {
	for _, c := range []struct {
		what         string
		claims, user map[string]any
		name, role   string
		want         error
	}{
		{"a group in the token", map[string]any{"groups": []string{"x", "helpers"}}, nil, "u-1", "support", nil},
		{"the first rule counts", map[string]any{"groups": []string{"helpers", "ops"}}, nil, "u-1", "all", nil},
		{"one group as a text", map[string]any{"groups": "helpers"}, nil, "u-1", "support", nil},
		{"a group of the user", nil, map[string]any{"groups": []string{"ops"}}, "u-1", "all", nil},
		{"the token counts before the user", map[string]any{"groups": []string{"helpers"}}, map[string]any{"groups": []string{"ops"}},
			"u-1", "support", nil},
		{"a domain", map[string]any{"email": "Anna@Example.com", "email_verified": true}, nil, "anna@example.com", "desk", nil},
		{"a domain, verified as a text", nil, map[string]any{"email": "anna@example.com", "email_verified": "true"},
			"anna@example.com", "desk", nil},
		{"a group before a domain", map[string]any{"email": "anna@example.com", "email_verified": true, "groups": []string{"ops"}}, nil,
			"anna@example.com", "all", nil},
		{"an unverified domain", map[string]any{"email": "anna@example.com", "email_verified": false}, nil, "", "", understudy.ErrForbidden},
		{"a domain below", map[string]any{"email": "anna@x.example.com", "email_verified": true}, nil, "", "", understudy.ErrForbidden},
		{"a subject that is an address", map[string]any{"sub": "anna@example.com", "groups": "ops"}, map[string]any{"sub": "anna@example.com"},
			"", "", understudy.ErrForbidden},
		{"another address is verified", map[string]any{"email": "anna@example.com"}, map[string]any{"email": "eve@example.com",
			"email_verified": true}, "", "", understudy.ErrForbidden},
		{"no address is verified", map[string]any{"email_verified": true}, map[string]any{"email": "anna@example.com"}, "", "",
			understudy.ErrForbidden},
		{"the same address is verified", map[string]any{"email": "Anna@example.com"}, map[string]any{"email": "anna@example.com",
			"email_verified": true}, "anna@example.com", "desk", nil},
		{"two at", map[string]any{"email": "anna@example.com@evil.com", "email_verified": true}, nil, "", "", understudy.ErrForbidden},
		{"nothing", nil, nil, "", "", understudy.ErrForbidden},
		{"groups of an odd shape", map[string]any{"groups": map[string]any{"ops": true}}, nil, "", "", understudy.ErrForbidden},
		{"a name that is taken", map[string]any{"sub": "loopback", "groups": "ops"}, map[string]any{"sub": "loopback"},
			"", "", understudy.ErrForbidden},
		{"no name", map[string]any{"sub": "a b", "groups": "ops"}, map[string]any{"sub": "a b"}, "", "", understudy.ErrForbidden},
	} {
		t.Run(c.what, func(t *testing.T) {
			v := newGuest(t)
			v.from.claims = c.claims
			for name, value := range c.user {
				v.from.user[name] = value
			}
			name, err := v.finish(v.begin())
			if !errors.Is(err, c.want) || name != c.name {
				t.Fatalf("%q, %v; want %q, %v", name, err, c.name, c.want)
			}
			if v.cookies[flowCookie] != "" {
				t.Error("the browser keeps the cookie of the flow")
			}
			caller, err := v.Identify(v.request("/"))
			if (err == nil) != (c.want == nil) || caller.Role() != c.role {
				t.Errorf("the caller is %+v, %v; want %s", caller, err, c.role)
			}
		})
	}
}

// What fits not together begins no session.
func TestProviderMisbehaves(t *testing.T) {
	hmac := func(v *guest) func([]byte) string {
		return func(payload []byte) string { // keyed with what everybody knows
			key, _ := json.Marshal(jwk(&v.from.key.PublicKey))
			signer, _ := jose.NewSigner(jose.SigningKey{Algorithm: jose.HS256, Key: key}, nil)
			signature, _ := signer.Sign(payload)
			text, _ := signature.CompactSerialize()
			return text
		}
	}
	claim := func(name string, value any) func(*guest, url.Values) {
		return func(v *guest, _ url.Values) { v.from.claims[name] = value }
	}
	instead := func(path string, answer http.HandlerFunc) func(*guest, url.Values) {
		return func(v *guest, _ url.Values) {
			v.from.alter = func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path == path {
					answer(w, r)
				}
				return r.URL.Path == path
			}
		}
	}
	for what, c := range map[string]struct {
		do   func(v *guest, back url.Values)
		want error
	}{
		"another issuer":       {claim("iss", "https://evil.example.com"), ErrProvider},
		"another audience":     {claim("aud", "them"), ErrProvider},
		"two audiences":        {claim("aud", []string{"us", "them"}), understudy.ErrUnauthorized},
		"another party":        {claim("azp", "them"), understudy.ErrUnauthorized},
		"another nonce":        {claim("nonce", "x"), understudy.ErrUnauthorized},
		"no nonce":             {claim("nonce", nil), understudy.ErrUnauthorized},
		"expired":              {claim("exp", time.Now().Add(-time.Hour).Unix()), ErrProvider},
		"no end":               {claim("exp", nil), ErrProvider},
		"not yet":              {claim("nbf", time.Now().Add(time.Hour).Unix()), ErrProvider},
		"different users":      {claim("sub", "u-2"), understudy.ErrUnauthorized},
		"an unsigned token":    {func(v *guest, _ url.Values) { v.from.sign = unsigned }, ErrProvider},
		"a public key as hmac": {func(v *guest, _ url.Values) { v.from.sign = hmac(v) }, ErrProvider},
		"no token":             {func(v *guest, _ url.Values) { v.from.sign = func([]byte) string { return "" } }, ErrProvider},
		"another key":          {func(v *guest, _ url.Values) { v.from.newKey(v.t) }, ErrProvider},
		"another state":        {func(_ *guest, back url.Values) { back.Set("state", "x") }, understudy.ErrUnauthorized},
		"no state":             {func(_ *guest, back url.Values) { back.Del("state") }, understudy.ErrUnauthorized},
		"another code":         {func(_ *guest, back url.Values) { back.Set("code", "code-2") }, ErrProvider},
		"no code":              {func(_ *guest, back url.Values) { back.Del("code") }, understudy.ErrUnauthorized},
		"an error":             {func(_ *guest, back url.Values) { back.Set("error", "access_denied") }, understudy.ErrUnauthorized},
		"another provider":     {func(_ *guest, back url.Values) { back.Set("iss", "https://evil.example.com") }, understudy.ErrUnauthorized},
		"another browser":      {func(v *guest, _ url.Values) { clear(v.cookies) }, understudy.ErrUnauthorized},
		"another verifier":     {func(v *guest, _ url.Values) { v.from.authorized.Set("code_challenge", "x") }, ErrProvider},
		"another client":       {func(v *guest, _ url.Values) { v.Provider.Secret = understudy.NewSecret("x") }, ErrProvider},
		"no answer":            {instead("/token", func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) }), ErrProvider},
		"a huge answer": {instead("/token", func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"access_token":"%s","id_token":"x"}`, strings.Repeat("x", 2*maxProvider))
		}), ErrProvider},
		"redirected": {instead("/token", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://192.0.2.1/", http.StatusTemporaryRedirect)
		}), ErrProvider},
		"html": {instead("/user", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }), ErrProvider},
	} {
		t.Run(what, func(t *testing.T) {
			v := newGuest(t)
			v.from.claims["groups"] = "ops"
			back := v.begin()
			c.do(v, back)
			{
				name, err := v.finish(back)
				checktest.True(t, errors.Is(err, c.want), "err is %v, want c.want", err)
				checktest.Equal(t, name, "", "name; %v", err)
				checktest.Lacks(t, err.Error(), "our secret", "err.Error()")
			}
			if v.cookies[cookieName] != "" || len(v.Sessions.all) != 0 {
				t.Error("a session began")
			}
		})
	}
}

func unsigned(payload []byte) string {
	text := base64.RawURLEncoding.EncodeToString
	return text([]byte(`{"alg":"none"}`)) + "." + text(payload) + "."
}

// A provider replaces its keys, a browser comes back twice, and a provider is down at first.
func TestProviderChanges(t *testing.T) {
	v := newGuest(t)
	v.from.claims["groups"] = "ops"
	v.from.alter = func(w http.ResponseWriter, _ *http.Request) bool {
		http.Error(w, "down", http.StatusBadGateway)
		return true
	}
	if err := v.Provider.Begin(httptest.NewRecorder(), v.request("/"), "/"); !errors.Is(err, ErrProvider) {
		t.Errorf("a provider that is down: %v", err)
	}
	v.from.alter = nil
	back := v.begin()
	cookies := v.cookies[flowCookie]
	if _, err := v.finish(back); err != nil {
		t.Fatal(err)
	}
	c, err := v.Identify(v.request("/"))
	if err != nil {
		t.Fatal(err)
	}
	v.cookies[flowCookie] = cookies
	v.from.alter = func(w http.ResponseWriter, r *http.Request) bool { // a code is good once
		if r.URL.Path == "/token" {
			http.Error(w, `{"error":"invalid_grant"}`, http.StatusBadRequest)
			return true
		}
		return false
	}
	if _, err := v.finish(back); !errors.Is(err, ErrProvider) {
		t.Errorf("the same way back again: %v", err)
	}
	v.from.alter = nil
	v.from.newKey(t)
	v.from.published = v.from.key
	if _, err := v.finish(v.begin()); err != nil {
		t.Errorf("with a new key: %v", err)
	}
	if !c.Grant.IsRevoked() {
		t.Error("the browser's former session goes on")
	}
	if c, err = v.Identify(v.request("/")); err != nil {
		t.Fatal(err)
	}
	v.Provider.Roles = []Rule{{"ops", "desk"}}
	if now, ok := v.Recheck(c); !ok || now.Role() != "desk" {
		t.Errorf("with another role for the group: %+v, %v", now, ok)
	}
	v.Provider.Roles = nil
	if _, err := v.Identify(v.request("/")); err == nil {
		t.Error("a group without a role has access")
	}
	if err := v.EndGone(t.Context()); err != nil || !c.Grant.IsRevoked() {
		t.Errorf("the session without a role: %v, over %v", err, c.Grant.IsRevoked())
	}
}
