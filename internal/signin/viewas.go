// ViewAs: a caller who sees everything looks through another role for a while.

package signin

import (
	"net/http"
	"strings"
	"time"

	"understudy"
)

// The cookie of a role that is looked through.
const (
	viewAsCookie = "__Host-understudy-as"
	viewAsLasts  = 30 * time.Minute
)

// ViewAs keeps in sealed cookies through which role a caller looks. Safe for concurrent use.
type ViewAs struct{ Cookies *Cookies }

// Begin has the browser of a caller look through a role.
func (v ViewAs) Begin(w http.ResponseWriter, c understudy.Caller, role string) {
	v.Cookies.Set(w, viewAsCookie, []byte(c.Name+"\x00"+role), viewAsLasts)
}

// End has a browser look through no role any more.
func (v ViewAs) End(w http.ResponseWriter) { setCookie(w, viewAsCookie, "", -time.Second) }

// Role is the role through which the caller of that name looks; "": through none. The
// cookie counts for the caller alone who began it.
func (v ViewAs) Role(r *http.Request, name string) string {
	cookie, err := r.Cookie(viewAsCookie)
	if err != nil {
		return ""
	}
	value, ok := v.Cookies.open(viewAsCookie, cookie.Value)
	if of, role, named := strings.Cut(string(value), "\x00"); ok && named && of == name {
		return role
	}
	return ""
}
