package signin

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"understudy"
	"understudy/internal/callers"
	"understudy/internal/checktest"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
	"understudy/kit/token"
)

// signer is a browser before people of a file.
type signer struct {
	*People
	cookie string
}

func newSigner(t *testing.T, now func() time.Time, names ...string) *signer {
	t.Helper()
	u, err := ReadUsers(usersOf(t, names...))
	if err != nil {
		t.Fatal(err)
	}
	s := opened(t, storetest.Open(t, store.Options{}), now)
	return &signer{People: &People{Sessions: s, Users: u, Guesses: callers.NewGuesses([32]byte{1}, now)}}
}

func (b *signer) request(from string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1:4114/-/sign-in", nil)
	r.RemoteAddr = from
	if b.cookie != "" {
		r.Header.Set("Cookie", b.cookie)
	}
	return r
}

// signIn signs in and keeps the cookie.
func (b *signer) signIn(name, password string) error {
	w := httptest.NewRecorder()
	err := b.SignIn(w, b.request("127.0.0.1:1"), name, password)
	var kept []string
	for _, c := range w.Result().Cookies() {
		kept = append(kept, c.Name+"="+c.Value)
	}
	if len(kept) > 0 {
		b.cookie = strings.Join(kept, "; ")
	}
	return err
}

func TestSignIn(t *testing.T) {
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	b := newSigner(t, func() time.Time { return now }, "anna")
	if _, err := b.Identify(b.request("127.0.0.1:1")); !errors.Is(err, understudy.ErrUnauthorized) {
		t.Errorf("before: %v", err)
	}
	if err := b.signIn("anna", "wrong"); !errors.Is(err, understudy.ErrUnauthorized) || b.cookie != "" {
		t.Fatalf("a wrong password: %v, cookie %q", err, b.cookie)
	}
	if err := b.signIn("anna", annas); err != nil {
		t.Fatal(err)
	}
	c, err := b.Identify(b.request("127.0.0.1:1"))
	checktest.MustNoError(t, err, "signed in")
	checktest.MustEqual(t, c.Name, "anna", "signed in: c.Name")
	checktest.MustEqual(t, c.Role(), "support", "signed in: c.Role()")
	checktest.MustEqual(t, c.Source, "", "signed in: c.Source")
	checktest.MustTrue(t, !c.Grant.IsRevoked(), "signed in: c.Grant.IsRevoked() is true")
	former := b.cookie
	{
		err := b.signIn("anna", annas)
		checktest.MustNoError(t, err, "again")
		checktest.True(t, b.cookie != former, "again: b.cookie is %v", b.cookie)
		checktest.True(t, c.Grant.IsRevoked(), "again: c.Grant.IsRevoked() is false")
	}
	if c, err = b.Identify(b.request("127.0.0.1:1")); err != nil {
		t.Fatal(err)
	}
	{
		now, ok := b.Recheck(c)
		checktest.MustTrue(t, ok, "again: ok is false")
		checktest.Equal(t, now.Role(), "support", "again: now.Role()")
		checktest.Equal(t, now.Flow, c.Flow, "again: now.Flow")
	}
	w := httptest.NewRecorder()
	if err := b.SignOut(w, b.request("127.0.0.1:1")); err != nil || !strings.Contains(w.Header().Get("Set-Cookie"), "Max-Age=0") {
		t.Errorf("signing out: %v, %s", err, w.Header())
	}
	if _, err := b.Identify(b.request("127.0.0.1:1")); err == nil || !c.Grant.IsRevoked() {
		t.Errorf("signed out: %v, the session is over: %v", err, c.Grant.IsRevoked())
	}
	if _, ok := b.Recheck(c); ok {
		t.Error("who has signed out is known again")
	}
}

// Behind a proxy all visitors have one address. Whoever guesses there keeps a person out of
// new browsers alone, not out of one in which the person has signed in before.
func TestPersonSignsInFromAKnownBrowserWhileOthersGuess(t *testing.T) {
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	b := newSigner(t, func() time.Time { return now }, "anna", "ben")
	if err := b.signIn("anna", annas); err != nil {
		t.Fatal(err)
	}
	known := b.cookie
	guess := func(cookie, name string) error {
		b.cookie = cookie
		r := b.request("127.0.0.1:1")
		for range 20 {
			b.Guesses.CountWrong(r, b.Sessions.guessKeys(r, name)[0])
		}
		return b.SignIn(httptest.NewRecorder(), r, name, "wrong")
	}
	if err := guess("", "anna"); !errors.Is(err, understudy.ErrTooMany) {
		t.Fatalf("guesses are not bounded: %v", err)
	}
	b.cookie = ""
	if err := b.signIn("anna", annas); !errors.Is(err, understudy.ErrTooMany) {
		t.Errorf("from a new browser: %v", err)
	}
	b.cookie = known
	if err := b.signIn("anna", annas); err != nil {
		t.Errorf("from the known browser: %v", err)
	}
	if err := guess(known, "anna"); !errors.Is(err, understudy.ErrTooMany) {
		t.Errorf("guesses from a known browser are not bounded: %v", err)
	}
	if err := guess("", "ben"); !errors.Is(err, understudy.ErrTooMany) {
		t.Errorf("guesses of another name: %v", err)
	}
	b.cookie = known
	if err := b.signIn("ben", bens); !errors.Is(err, understudy.ErrTooMany) {
		t.Errorf("the browser of one person is known for another: %v", err)
	}
	b.cookie, now = known, now.Add(browserLifetime)
	if err := guess("", "anna"); !errors.Is(err, understudy.ErrTooMany) {
		t.Fatal(err)
	}
	b.cookie = known
	if err := b.signIn("anna", annas); !errors.Is(err, understudy.ErrTooMany) {
		t.Errorf("a browser is known for ever: %v", err)
	}
}

// While others from the same address wait for all places and hashes that new browsers may take, a known browser signs in.
func TestPersonSignsInFromAKnownBrowserWhileOthersCrowd(t *testing.T) {
	b := newSigner(t, time.Now, "anna")
	if err := b.signIn("anna", annas); err != nil {
		t.Fatal(err)
	}
	for range cap(newBrowserHashSlots) {
		newBrowserHashSlots <- struct{}{}
	}
	stranger := &signer{People: b.People}
	refused := make(chan error, 32)
	var crowd sync.WaitGroup
	for i := range cap(refused) {
		crowd.Go(func() {
			refused <- stranger.SignIn(httptest.NewRecorder(), stranger.request("127.0.0.1:1"), fmt.Sprint("nobody", i), "guess")
		})
	}
	for range cap(refused) - 8 {
		if err := <-refused; !errors.Is(err, understudy.ErrTooMany) {
			t.Errorf("a stranger beyond the places of the address: %v", err)
		}
	}
	var again sync.WaitGroup
	for range 2 {
		again.Go(func() {
			if err := b.SignIn(httptest.NewRecorder(), b.request("127.0.0.1:1"), "anna", annas); err != nil {
				t.Errorf("the known browser: %v", err)
			}
		})
	}
	again.Wait()
	if got := newBrowserSlots.Load().Busiest; got != 8 {
		t.Errorf("%d strangers wait, want 8", got)
	}
	for range cap(newBrowserHashSlots) {
		<-newBrowserHashSlots
	}
	crowd.Wait()
	for range 8 {
		if err := <-refused; !errors.Is(err, understudy.ErrUnauthorized) || errors.Is(err, understudy.ErrTooMany) {
			t.Errorf("a stranger after the wait: %v", err)
		}
	}
}

// An address tries few names, and few passwords at once, and keeps out nobody elsewhere or in a
// browser that is known.
func TestOneAddressTriesFewNames(t *testing.T) {
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	b := newSigner(t, func() time.Time { return now }, "anna")
	from := func(at, name, password string) error {
		return b.SignIn(httptest.NewRecorder(), b.request(at), name, password)
	}
	if err := b.signIn("anna", annas); err != nil {
		t.Fatal(err)
	}
	known := b.cookie
	b.cookie = ""
	for range 96 {
		b.Guesses.CountWrong(b.request("127.0.0.1:1"), nil)
	}
	if err := from("127.0.0.1:2", "zoe", "guess"); !errors.Is(err, understudy.ErrTooMany) {
		t.Errorf("the next name from the address: %v", err)
	}
	if err := from("127.0.0.2:1", "zoe", "guess"); errors.Is(err, understudy.ErrTooMany) {
		t.Errorf("from another address: %v", err)
	}
	if err := from("127.0.0.2:1", "anna", annas); err != nil {
		t.Errorf("a right password from another address: %v", err)
	}
	b.cookie = known
	if err := from("127.0.0.1:1", "anna", annas); err != nil {
		t.Errorf("a browser that is known: %v", err)
	}
	b.cookie = ""
	for range 8 {
		leave, err := newBrowserSlots.Take("127.0.0.3")
		if err != nil {
			t.Fatal(err)
		}
		defer leave()
	}
	if err := from("127.0.0.3:1", "anna", annas); !errors.Is(err, understudy.ErrTooMany) {
		t.Errorf("with eight under way: %v", err)
	}
	for range 100 { // of one name and many
		_ = from("127.0.0.4:1", "nobody", "guess")
	}
	if err := from("127.0.0.4:1", "anna", annas); err != nil {
		t.Errorf("guesses of one name keep out another: %v", err)
	}
}

// FuzzBrowser: no cookie that was not sealed here names a browser.
func FuzzBrowser(f *testing.F) {
	f.Add("")
	f.Add("AAAA")
	s := NewSessions(time.Now)
	var err error
	if s.browsers, err = token.New(make([]byte, token.KeySize), "browser"); err != nil {
		f.Fatal(err)
	}
	w := httptest.NewRecorder()
	s.rememberBrowser(w, "ben")
	f.Add(w.Result().Cookies()[0].Value)
	f.Fuzz(func(t *testing.T, value string) {
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.AddCookie(&http.Cookie{Name: browserCookie, Value: value})
		got := s.guessKeys(r, "anna")
		checktest.MustEqual(t, len(got), 2, "len(got)")
		checktest.Equal(t, string(got[0]), "anna", "string(got[0])")
		checktest.True(t, got[1] == nil, "got[1] is %v", got[1])
	})
}

// What the file says now holds for sessions that began before.
func TestUsersChange(t *testing.T) {
	b := newSigner(t, time.Now, "anna")
	if err := b.signIn("anna", annas); err != nil {
		t.Fatal(err)
	}
	c, err := b.Identify(b.request("127.0.0.1:1"))
	if err != nil {
		t.Fatal(err)
	}
	former, user := b.Users, b.Users.all[0]
	for _, s := range []struct {
		what string
		now  []User
		want string // the role; "": nobody
	}{
		{"the same", []User{user}, "support"},
		{"another role", []User{{Name: "anna", Role: "all", hash: user.hash}}, "all"},
		{"another password", []User{{Name: "anna", Role: "support", hash: hashOf(bens)}}, ""},
		{"nobody", nil, ""},
		{"another name", []User{{Name: "ben", Role: "support", hash: user.hash}}, ""},
	} {
		b.Users = &Users{byName: map[string]int{}}
		for _, one := range s.now {
			if err := b.Users.add(one); err != nil {
				t.Fatal(err)
			}
		}
		got, err := b.Identify(b.request("127.0.0.1:1"))
		if (err == nil) != (s.want != "") || err == nil && got.Role() != s.want {
			t.Errorf("%s: %+v, %v", s.what, got, err)
		}
	}
	b.Users = former
	if err := b.EndGone(t.Context()); err != nil || c.Grant.IsRevoked() {
		t.Errorf("nothing has changed: %v, over %v", err, c.Grant.IsRevoked())
	}
	b.Users = &Users{byName: map[string]int{}}
	if err := b.EndGone(t.Context()); err != nil || !c.Grant.IsRevoked() {
		t.Errorf("anna is gone: %v, over %v", err, c.Grant.IsRevoked())
	}
}

// A password is taken from this machine, over TLS, and behind a proxy that speaks it.
func TestPasswordsAreEncrypted(t *testing.T) {
	for _, c := range []struct {
		from        string
		tls, secure bool
		want        error
	}{
		{"127.0.0.1:1", false, false, nil}, {"[::1]:1", false, false, nil}, {"192.0.2.1:1", false, false, understudy.ErrForbidden},
		{"192.0.2.1:1", true, false, nil}, {"192.0.2.1:1", false, true, nil}, {"", false, false, understudy.ErrForbidden},
	} {
		b := newSigner(t, time.Now, "anna")
		r := b.request(c.from)
		if c.tls {
			r.TLS = &tls.ConnectionState{}
		}
		b.Secure = c.secure
		w := httptest.NewRecorder()
		err := b.SignIn(w, r, "anna", annas)
		if !errors.Is(err, c.want) || (err == nil) != (w.Header().Get("Set-Cookie") != "") {
			t.Errorf("from %q, tls %v, proxy %v: %v, cookie %q", c.from, c.tls, c.secure, err, w.Header().Get("Set-Cookie"))
		}
	}
}

// Guesses are bounded for a name, known or not, and what is refused is not looked at.
func TestGuessedPasswords(t *testing.T) {
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	b := newSigner(t, func() time.Time { return now }, "anna", "ben")
	for _, name := range []string{"anna", "nobody"} {
		refused := 0
		for range 30 {
			err := b.signIn(name, "guess")
			if !errors.Is(err, understudy.ErrUnauthorized) {
				t.Fatal(err)
			}
			if errors.Is(err, understudy.ErrTooMany) {
				refused++
			}
		}
		if refused != 10 {
			t.Errorf("%s: %d of 30 guesses are refused", name, refused)
		}
	}
	if err := b.signIn("anna", annas); !errors.Is(err, understudy.ErrTooMany) || b.cookie != "" {
		t.Errorf("the right password after too many: %v", err)
	}
	if err := b.signIn("ben", annas); err != nil {
		t.Errorf("ben: %v", err)
	}
	now = now.Add(time.Minute)
	if err := b.signIn("anna", annas); err != nil {
		t.Errorf("a minute later: %v", err)
	}
}
