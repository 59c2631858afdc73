// Tokens: exchanges with real servers.

package tokens

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
)

var start = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// memory is a KV.
type memory struct {
	understudy.KV // nothing lists values

	mu   sync.Mutex
	of   map[string][]byte
	full bool
}

func (m *memory) Change(_ context.Context, name string, change func([]byte) ([]byte, error)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	value, err := change(bytes.Clone(m.of[name]))
	switch {
	case err != nil || bytes.Equal(value, m.of[name]):
		return err
	case m.full:
		return errors.New("the disk is full")
	}
	m.of[name] = value
	return nil
}

// issuer is one whose tokens come from a handler.
func issuer(t testing.TB, o Options, handle http.HandlerFunc) *Issuer {
	t.Helper()
	srv := httptest.NewServer(handle)
	t.Cleanup(srv.Close)
	o.Source, o.URL, o.Now = "forge", srv.URL+"/token", func() time.Time { return start }
	if o.Client == "" {
		o.Client = "client 1"
	}
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestClientCredentials(t *testing.T) {
	s := issuer(t, Options{Kind: ClientCredentials, Scope: "read write"}, func(w http.ResponseWriter, r *http.Request) {
		user, pass, _ := r.BasicAuth()
		form := r.PostFormValue("grant_type") + ", " + r.PostFormValue("scope")
		if form != "client_credentials, read write" || user != "client+1" || pass != "s%3Acret" {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"error":"invalid_client","error_description":"%s"}`, pass)
			return
		}
		fmt.Fprint(w, `{"access_token":"abc","token_type":"bearer","expires_in":3600}`)
	})
	token, ends, err := s.Issue(t.Context(), understudy.NewSecret("s:cret"))
	checktest.MustNoError(t, err, "")
	checktest.Equal(t, token.Reveal(), "abc", "token.Reveal()")
	checktest.True(t, ends.Equal(start.Add(time.Hour)), "ends.Equal(start.Add(time.Hour)) is false")
	_, _, err = s.Issue(t.Context(), understudy.NewSecret("wrong-secret"))
	var refused *RefusedError
	checktest.MustTrue(t, errors.As(err, &refused), "errors.As(err, &refused) is false")
	checktest.Equal(t, refused.Code, "invalid_client", "refused.Code; %v", err)
	checktest.Lacks(t, err.Error(), "wrong", "err.Error()")
}

// Each refresh token may be used once. The newest is there after a restart, unless the
// settings have another first one.
func TestRefreshTokensAreKept(t *testing.T) {
	kv := &memory{of: map[string][]byte{}}
	valid, n := "first-token", 0
	handle := func(w http.ResponseWriter, r *http.Request) {
		user, pass, _ := r.BasicAuth()
		if r.PostFormValue("refresh_token") != valid || user != "client+1" || pass != "clientsecret" {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"error":"invalid_grant"}`)
			return
		}
		n++
		valid = fmt.Sprintf("rotated-token-%d", n)
		fmt.Fprintf(w, `{"access_token":"access-%d","expires_in":"60","refresh_token":"%s"}`, n, valid)
	}
	o := Options{Kind: RefreshToken, KV: kv, Secret: understudy.NewSecret("clientsecret")}
	first := understudy.NewSecret("first-token")
	for i := range 3 {
		s := issuer(t, o, handle) // a start anew
		for j := range 2 {
			token, _, err := s.Issue(t.Context(), first)
			if want := fmt.Sprintf("access-%d", 2*i+j+1); err != nil || token.Reveal() != want {
				t.Fatalf("%q, %v, want %s", token.Reveal(), err, want)
			}
		}
	}
	if len(kv.of) != 1 {
		t.Fatalf("%d values are kept", len(kv.of))
	}
	for name, value := range kv.of {
		if strings.Contains(string(value), "rotated") || strings.Contains(name, "first") {
			t.Errorf("%s: %q", name, value)
		}
		kv.of[name] = append(append([]byte{}, value[:len(value)-1]...), value[len(value)-1]^1)
	}
	s := issuer(t, o, handle)
	if _, _, err := s.Issue(t.Context(), first); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("a kept token that was changed: %v", err)
	}
	valid = "another-token"
	if _, _, err := s.Issue(t.Context(), understudy.NewSecret("another-token")); err != nil {
		t.Errorf("another first one: %v", err)
	}
	var refused *RefusedError
	if _, _, err := s.Issue(t.Context(), understudy.NewSecret("void-token")); !errors.As(err, &refused) || refused.Code != "invalid_grant" {
		t.Errorf("%v", err)
	}
	// What cannot be kept is no token: the next start would have none.
	kv.full = true
	valid = "third-token"
	if _, _, err := s.Issue(t.Context(), understudy.NewSecret("third-token")); err == nil || !strings.Contains(err.Error(), "disk is full") {
		t.Errorf("%v", err)
	}
}

func TestAppInstallation(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	s := issuer(t, Options{Kind: AppInstallation, Client: "12345"}, func(w http.ResponseWriter, r *http.Request) {
		parts := strings.Split(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), ".")
		if len(parts) != 3 {
			t.Errorf("%q", parts)
			return
		}
		signature, _ := base64.RawURLEncoding.DecodeString(parts[2])
		sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
		if err := rsa.VerifyPKCS1v15(&key.PublicKey, crypto.SHA256, sum[:], signature); err != nil {
			t.Error(err)
		}
		var claims struct {
			Iss      string
			Iat, Exp int64
		}
		text, _ := base64.RawURLEncoding.DecodeString(parts[1])
		err := json.Unmarshal(text, &claims)
		checktest.NoError(t, err, "%s", text)
		checktest.Equal(t, claims.Iss, "12345", "iss")
		checktest.True(t, claims.Iat < start.Unix(), "iat is %v, want before %v", claims.Iat, start.Unix())
		checktest.True(t, claims.Exp-claims.Iat <= 600, "exp is %v seconds after iat, want at most 600", claims.Exp-claims.Iat)
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, `{"token":"ghs_abc","expires_at":"2026-06-01T13:00:00Z","permissions":{}}`)
	})
	pkcs1 := x509.MarshalPKCS1PrivateKey(key)
	for _, block := range []*pem.Block{{Type: "RSA PRIVATE KEY", Bytes: pkcs1}, {Type: "PRIVATE KEY", Bytes: pkcs8}} {
		token, ends, err := s.Issue(t.Context(), understudy.NewSecret(string(pem.EncodeToMemory(block))))
		checktest.MustNoError(t, err, "%s", block.Type)
		checktest.Equal(t, token.Reveal(), "ghs_abc", "%s: token.Reveal()", block.Type)
		checktest.True(t, ends.Equal(start.Add(time.Hour)), "%s: ends.Equal(start.Add(time.Hour)) is false",
			block.Type)
	}
	for _, secret := range []string{"ghp_notakey", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("x")}))} {
		if _, _, err := s.Issue(t.Context(), understudy.NewSecret(secret)); err == nil || strings.Contains(err.Error(), "ghp_") {
			t.Errorf("%v", err)
		}
	}
}

func TestOddAnswers(t *testing.T) {
	answer, status := "", 0
	s := issuer(t, Options{Kind: ClientCredentials}, func(w http.ResponseWriter, r *http.Request) {
		if status == http.StatusFound {
			w.Header().Set("Location", "/elsewhere")
		}
		w.WriteHeader(status)
		fmt.Fprint(w, answer)
	})
	for _, c := range []struct {
		status  int
		answer  string
		want    string
		refused bool
	}{
		{200, `{}`, "has no token", false},
		{200, `<html>`, "has no token", false},
		{200, `{"access_token":"a b"}`, "has no token", false},
		{200, `{"access_token":"` + strings.Repeat("a", maxAnswer) + `"}`, "has no token", false},
		{302, ``, "status 302", false},
		{429, `{}`, "status 429", false},
		{503, `{}`, "status 503", false},
		{400, `{"error":"<script>"}`, "no token: status 400", true},
		{403, `no`, "no token: status 403", true},
	} {
		status, answer = c.status, c.answer
		_, _, err := s.Issue(t.Context(), understudy.NewSecret("x"))
		var refused *RefusedError
		checktest.MustTrue(t, err != nil, "%d %.40s: err is nil", c.status, c.answer)
		checktest.True(t, strings.HasSuffix(err.Error(), c.want), "%d %.40s: err.Error() is %q", c.status, c.answer,
			err.Error())
		checktest.Equal(t, errors.As(err, &refused), c.refused, "%d %.40s: errors.As(err, &refused)", c.status,
			c.answer)
	}
	for name, o := range map[string]Options{
		"url":      {Kind: ClientCredentials, Client: "x", URL: "ftp://x"},
		"client":   {Kind: ClientCredentials, URL: "https://x"},
		"no store": {Kind: RefreshToken, Client: "x", URL: "https://x"},
		"kind":     {Kind: "magic", Client: "x", URL: "https://x"},
	} {
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzAnswer: whatever an endpoint answers, a token is one word, and an error has none.
func FuzzAnswer(f *testing.F) {
	f.Add(200, `{"access_token":"abc","expires_in":3600}`)
	f.Add(201, `{"token":"abc","expires_at":"2026-06-01T13:00:00Z"}`)
	f.Add(400, `{"error":"invalid_grant"}`)
	var body string
	var status int
	round := func(*http.Request) (*http.Response, error) {
		w := httptest.NewRecorder()
		w.WriteHeader(status)
		_, _ = w.WriteString(body)
		return w.Result(), nil
	}
	s, err := New(Options{Kind: ClientCredentials, Client: "x", URL: "https://x.example", Transport: transport(round)})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, code int, text string) {
		if code < 200 || code > 599 {
			return
		}
		status, body = code, text
		token, _, err := s.Issue(t.Context(), understudy.NewSecret("s"))
		if (err == nil) == token.IsEmpty() || strings.ContainsFunc(token.Reveal(), isUnprintable) {
			t.Fatalf("%q, %v", token.Reveal(), err)
		}
	})
}

type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }
