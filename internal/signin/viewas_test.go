// View-as: whose cookie counts, and for how long.

package signin

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"understudy"
)

func TestViewAs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cookies, err := NewCookies(time.Now)
		if err != nil {
			t.Fatal(err)
		}
		other, err := NewCookies(time.Now)
		if err != nil {
			t.Fatal(err)
		}
		v := ViewAs{cookies}
		w := httptest.NewRecorder()
		v.Begin(w, understudy.Caller{Name: "anna"}, "support")
		set := w.Result().Cookies()[0]
		ask := func(value string) *http.Request {
			r := httptest.NewRequest("GET", "/", nil)
			r.AddCookie(&http.Cookie{Name: set.Name, Value: value})
			return r
		}
		if got := v.Role(ask(set.Value), "anna"); got != "support" {
			t.Errorf("anna looks through %q", got)
		}
		altered := "A"
		if set.Value[0] == 'A' {
			altered = "B"
		}
		for what, role := range map[string]string{
			"another caller":  v.Role(ask(set.Value), "ben"),
			"another key":     ViewAs{other}.Role(ask(set.Value), "anna"),
			"an altered one":  v.Role(ask(altered+set.Value[1:]), "anna"),
			"a plain text":    v.Role(ask("anna\x00support"), "anna"),
			"no cookie":       v.Role(httptest.NewRequest("GET", "/", nil), "anna"),
			"one of the said": v.Role(said(cookies), "anna"),
		} {
			if role != "" {
				t.Errorf("%s looks through %q", what, role)
			}
		}
		time.Sleep(viewAsLifetime)
		if got := v.Role(ask(set.Value), "anna"); got != "" {
			t.Errorf("after %s anna looks through %q", viewAsLifetime, got)
		}
	})
}

// said is a request with the cookie of view-as that was sealed under another name.
func said(c *Cookies) *http.Request {
	w := httptest.NewRecorder()
	c.Set(w, "__Host-understudy-said", []byte("anna\x00all"), time.Minute)
	r := httptest.NewRequest("GET", "/", nil)
	r.AddCookie(&http.Cookie{Name: viewAsCookie, Value: w.Result().Cookies()[0].Value})
	return r
}
