package signin

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/sample"
)

// cookiesAt are cookies at a clock over some kv.
func cookiesAt(t *testing.T, kv understudy.SharedKV, now func() time.Time) *Cookies {
	t.Helper()
	c, err := NewCookies(now)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Load(t.Context(), kv); err != nil {
		t.Fatal(err)
	}
	return c
}

// sealed is what a browser keeps of a value.
func sealed(t *testing.T, c *Cookies, name, value string) string {
	t.Helper()
	w := httptest.NewRecorder()
	c.Set(w, name, []byte(value), time.Minute)
	cookies := w.Result().Cookies()
	if len(cookies) == 1 {
		cookie := cookies[0]
		checktest.True(t, cookie.Secure, "the cookie is: cookie.Secure is false")
		checktest.True(t, cookie.HttpOnly, "the cookie is: cookie.HttpOnly is false")
		checktest.Equal(t, cookie.SameSite, http.SameSiteLaxMode, "the cookie is: cookie.SameSite")
		checktest.Equal(t, cookie.MaxAge, 60, "the cookie is: cookie.MaxAge")
		checktest.True(t, len(cookie.Value) <= 4096, "the cookie is: len(cookie.Value) is %v, want <= 4096",
			len(cookie.Value))
		return cookie.Value
	}
	return ""
}

func TestCookies(t *testing.T) {
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	kv := newRefusing(t)
	c := cookiesAt(t, kv, func() time.Time { return now })
	for _, value := range []string{"", "saved", "\x00\x80\x00", strings.Repeat("x", maxCookie)} {
		text := sealed(t, c, "said", value)
		if got, ok := c.openValue("said", text); !ok || string(got) != value {
			t.Errorf("%.20q is opened as %.20q, %v", value, got, ok)
		}
		if value != "" && strings.Contains(text, value) {
			t.Errorf("the cookie shows %q", value)
		}
		if _, ok := c.openValue("flow", text); ok {
			t.Error("a cookie opens under another name")
		}
	}
	if text := sealed(t, c, "said", strings.Repeat("x", maxCookie+1)); text != "" {
		t.Errorf("a value that is too large is kept: %d bytes", len(text))
	}
	text := sealed(t, c, "said", "saved")
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("Cookie", "said="+text)
	w := httptest.NewRecorder()
	{
		got, ok := c.Take(w, r, "said")
		checktest.MustTrue(t, ok, "taken: ok is false; got %q", got)
		checktest.Equal(t, string(got), "saved", "taken: string(got)")
		checktest.Contains(t, w.Header().Get("Set-Cookie"), "Max-Age=0",
			`taken: w.Header().Get("Set-Cookie"); got %q`, got)
	}
	if _, ok := cookiesAt(t, kv, func() time.Time { return now }).openValue("said", text); !ok {
		t.Error("a cookie does not outlive a restart")
	}
	now = now.Add(time.Minute)
	if _, ok := c.openValue("said", text); ok {
		t.Error("a cookie opens after its end")
	}
}

// Of many altered cookies none opens.
func TestAlteredCookies(t *testing.T) {
	c := cookiesAt(t, newRefusing(t), time.Now)
	text := sealed(t, c, "said", "saved as anna")
	chance, n := rand.New(rand.NewPCG(sample.Seed(t), 1)), sample.Count(20_000, 1_000_000)
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	for range n {
		altered := []byte(text)
		switch chance.IntN(4) {
		case 0: // cut
			altered = altered[:chance.IntN(len(altered))]
		case 1: // longer
			altered = append(altered, letters[chance.IntN(64)])
		default: // other letters, in one place or a few
			for range 1 + chance.IntN(3) {
				altered[chance.IntN(len(altered))] = letters[chance.IntN(64)]
			}
		}
		if string(altered) == text {
			continue
		}
		if _, ok := c.openValue("said", string(altered)); ok {
			t.Fatalf("%s opens, altered from %s", altered, text)
		}
	}
}

// A key is replaced every day. What it sealed opens for another day, and not after.
func TestKeysTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newRefusing(t)
		c := cookiesAt(t, kv, time.Now)
		go func() { _ = c.Run(t.Context()) }()
		w := httptest.NewRecorder()
		c.Set(w, "said", []byte("saved"), 365*24*time.Hour)
		text := w.Result().Cookies()[0].Value
		keys := func() []datedKey {
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.keys
		}
		first := fmt.Sprint(keys()[0].Key)
		time.Sleep(keyLifetime + time.Hour)
		synctest.Wait()
		if now := keys(); fmt.Sprint(now[0].Key) == first || len(now) != 2 {
			t.Errorf("after %v there are %d keys", keyLifetime, len(now))
		}
		if _, ok := c.openValue("said", text); !ok {
			t.Error("a cookie of before the rotation does not open")
		}
		time.Sleep(keyLifetime)
		synctest.Wait()
		if _, ok := c.openValue("said", text); ok {
			t.Error("a cookie opens whose key is gone")
		}
		kv.refuses.Store(true) // then the keys stay as they are
		before := len(keys())
		time.Sleep(2 * keyLifetime)
		synctest.Wait()
		if n := len(keys()); n != before {
			t.Errorf("%d keys where none could be kept, %d before", n, before)
		}
		if _, ok := c.openValue("said", sealed(t, c, "said", "saved")); !ok {
			t.Error("no cookie opens")
		}
	})
}

// No cookie makes a panic, and none that was not made here opens.
func FuzzCookie(f *testing.F) {
	c, err := NewCookies(time.Now)
	if err != nil {
		f.Fatal(err)
	}
	f.Add("")
	f.Add(strings.Repeat("A", 4000))
	f.Fuzz(func(t *testing.T, text string) {
		if value, ok := c.openValue("said", text); ok {
			t.Fatalf("%q opens as %q", text, value)
		}
	})
}
