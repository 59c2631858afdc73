// ViewAs: a caller who sees everything views as another role for a while.

package signin

import (
	"net/http"
	"strings"
	"time"

	"understudy"
)

// The cookie of the role that a caller views as.
const (
	viewAsCookie = "__Host-understudy-as"
	viewAsLasts  = 30 * time.Minute
)

// ViewAs stores in sealed cookies as which role a caller views. It is safe for concurrent use.
type ViewAs struct{ Cookies *Cookies }

// Begin makes the browser of a caller view as a role.
func (v ViewAs) Begin(w http.ResponseWriter, c understudy.Caller, role string) {
	v.Cookies.Set(w, viewAsCookie, []byte(c.Name+"\x00"+role), viewAsLasts)
}

// End makes a browser view as the caller's own role again.
func (v ViewAs) End(w http.ResponseWriter) { setCookie(w, viewAsCookie, "", -time.Second) }

// Role returns the role as which the caller of that name views, or "". The cookie is only valid for the caller who began it.
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
