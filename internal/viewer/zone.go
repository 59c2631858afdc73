// Zone: the timezone a browser asked for, kept in a cookie.

package viewer

import (
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // hosts without zone files still know every zone
)

const (
	zonePath   = "/-/timezone"
	zoneCookie = "understudy_zone"
	zoneYear   = 365 * 24 * 60 * 60 // the cookie's life in seconds
	maxZones   = 1000               // more than there are; bounds what is remembered
)

// offered are the zones of the menu, one or more for every offset in use; any
// other IANA name a browser sends is taken as well.
var offered = strings.Fields(`
UTC
Africa/Cairo Africa/Casablanca Africa/Johannesburg Africa/Lagos Africa/Nairobi
America/Anchorage America/Argentina/Buenos_Aires America/Bogota America/Caracas America/Chicago America/Denver
America/Halifax America/Lima America/Los_Angeles America/Mexico_City America/New_York America/Phoenix
America/Santiago America/Sao_Paulo America/St_Johns America/Toronto America/Vancouver
Asia/Almaty Asia/Baghdad Asia/Bangkok Asia/Colombo Asia/Dhaka Asia/Dubai Asia/Hong_Kong Asia/Jakarta Asia/Jerusalem
Asia/Kabul Asia/Karachi Asia/Kathmandu Asia/Kolkata Asia/Manila Asia/Riyadh Asia/Seoul Asia/Shanghai Asia/Singapore
Asia/Taipei Asia/Tehran Asia/Tokyo Asia/Yangon
Atlantic/Azores Atlantic/Reykjavik Australia/Adelaide Australia/Brisbane Australia/Darwin Australia/Perth Australia/Sydney
Europe/Amsterdam Europe/Athens Europe/Berlin Europe/Brussels Europe/Bucharest Europe/Dublin Europe/Helsinki
Europe/Istanbul Europe/Kyiv Europe/Lisbon Europe/London Europe/Madrid Europe/Moscow Europe/Paris Europe/Prague
Europe/Rome Europe/Stockholm Europe/Vienna Europe/Warsaw Europe/Zurich
Pacific/Auckland Pacific/Chatham Pacific/Fiji Pacific/Honolulu Pacific/Kiritimati Pacific/Marquesas Pacific/Pago_Pago`)

// zones remembers the zones browsers asked for.
type zones struct {
	home    *time.Location
	options template.HTML // of the menu, without the chosen one
	mu      sync.Mutex
	loaded  map[string]*time.Location
}

func newZones(home *time.Location) *zones {
	var b strings.Builder
	for _, name := range offered {
		b.WriteString("<option>" + template.HTMLEscapeString(name) + "</option>")
	}
	return &zones{home: home, options: template.HTML(b.String()), loaded: map[string]*time.Location{}} // names of our own list
}

// find is the zone of an IANA name, nil when there is none.
func (z *zones) find(name string) *time.Location {
	if name == "" || name == "Local" || len(name) > 64 {
		return nil
	}
	z.mu.Lock()
	defer z.mu.Unlock()
	if loc := z.loaded[name]; loc != nil {
		return loc
	}
	loc, err := time.LoadLocation(name)
	if err != nil {
		return nil
	}
	if len(z.loaded) < maxZones {
		z.loaded[name] = loc
	}
	return loc
}

// of is the zone of a request; chosen is false when the browser has said none.
func (z *zones) of(r *http.Request) (loc *time.Location, chosen bool) {
	if c, err := r.Cookie(zoneCookie); err == nil {
		if loc := z.find(c.Value); loc != nil {
			return loc, true
		}
	}
	return z.home, false
}

// zonePage offers the zones of the menu; its form leads back to where the reader was.
func serveZone(q *exchange) error {
	return q.render(http.StatusOK, "timezone", "Timezone", struct {
		Name, Back string
		Options    template.HTML
	}{q.zone.String(), localPath(q.r.FormValue("back")), q.v.zones.options})
}

// setZone keeps the zone of the form in a cookie and goes back to the page it
// came from.
func (v *Visitor) setZone(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
	name := r.PostFormValue("zone")
	if v.zones.find(name) == nil {
		v.exchange(w, r, func(*exchange) error {
			return badRequest("There is no timezone "+clip(name), "Names are those of the IANA database, such as Europe/Berlin.", slices.Clone(offered))
		})
		return
	}
	http.SetCookie(w, &http.Cookie{
		Name: zoneCookie, Value: name, Path: "/", MaxAge: zoneYear, HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: r.TLS != nil,
	})
	w.Header().Set("Cache-Control", "no-store")
	http.Redirect(w, r, localPath(r.PostFormValue("back")), http.StatusSeeOther)
}

// localPath is an address of this viewer, "/" when text is anything else: a
// form must not send its reader to another host. Browsers take a backslash for a slash and
// leave out tabs and line ends, so neither may be in it.
func localPath(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "" || u.Host != "" || !strings.HasPrefix(text, "/") || strings.HasPrefix(text, "//") ||
		strings.ContainsFunc(text, func(r rune) bool { return r == '\\' || r < ' ' || r == 0x7f }) {
		return "/"
	}
	text, _, _ = strings.Cut(text, "#")
	return text
}
