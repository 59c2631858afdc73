// This file lets a caller who sees everything view as another role for a while.

package signin

import (
	"net/http"
	"strings"
	"time"

	"understudy"
)

// The name and the lifetime of the cookie with the role as which a caller views.
const (
	viewAsCookie   = "__Host-understudy-as"
	viewAsLifetime = 30 * time.Minute
)

// ViewAs stores the role as which a caller views in an encrypted cookie. It is safe for concurrent use.
type ViewAs struct{ Cookies *Cookies }

// Begin makes the browser of a caller view as a role.
func (v ViewAs) Begin(w http.ResponseWriter, c understudy.Caller, role string) {
	v.Cookies.Set(w, viewAsCookie, []byte(c.Name+"\x00"+role), viewAsLifetime)
}

// End makes a browser view as the caller's own role again.
func (v ViewAs) End(w http.ResponseWriter) { setCookie(w, viewAsCookie, "", -time.Second) }

// Role returns the role as which the caller with a name views, or "" for the caller's own role. The cookie is valid
// only for the caller who began to view as the role.
func (v ViewAs) Role(r *http.Request, name string) string {
	cookie, err := r.Cookie(viewAsCookie)
	if err != nil {
		return ""
	}
	value, ok := v.Cookies.openValue(viewAsCookie, cookie.Value)
	if of, role, named := strings.Cut(string(value), "\x00"); ok && named && of == name {
		return role
	}
	return ""
}
