// The time zone and the theme, which the browser keeps in cookies, and the moment that a page shows.

package page

import (
	_ "embed"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // time zone data, for hosts without zone files

	"understudy"
	"understudy/internal/viewer/plan"
)

const (
	zonePath   = "/-/timezone"
	ZoneCookie = "understudy_zone"
	ZoneYear   = 365 * 24 * 60 * 60 // the lifetime of the cookies in seconds
	maxZones   = 1000               // the most zones kept in memory; the database has fewer
)

// zoneNames are all zones of the IANA database that Go knows, with aliases.
//
//go:embed zones.txt
var zoneNames string

// zones caches the time zones that browsers have requested.
type zones struct {
	home   *time.Location
	mu     sync.Mutex
	loaded map[string]*time.Location
	at     time.Time     // the moment for which drawn was rendered
	drawn  template.HTML // the options of the menu, with the zones' offsets at that moment
}

func newZones(home *time.Location) *zones {
	return &zones{home: home, loaded: map[string]*time.Location{}}
}

// options returns the options of the zone menu. Their offsets are those at the start of the quarter of an hour,
// because no zone changes its offset within one.
func (z *zones) options(now time.Time) template.HTML {
	now = now.Truncate(15 * time.Minute)
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.drawn != "" && z.at.Equal(now) {
		return z.drawn
	}
	var b strings.Builder
	for name := range strings.FieldsSeq(zoneNames) {
		if loc, err := time.LoadLocation(name); err == nil { // the host's zone files may lack a zone
			label := template.HTMLEscapeString(zoneLabel(now.In(loc)))
			b.WriteString(`<option value="` + template.HTMLEscapeString(name) + `">` + label + "</option>")
		}
	}
	z.at, z.drawn = now, template.HTML(b.String()) // safe HTML: the names come from zones.txt
	return z.drawn
}

// zoneLabel returns a label such as "Europe/Berlin (UTC+02:00)" for the zone of a moment.
func zoneLabel(t time.Time) string { return t.Location().String() + " (UTC" + t.Format("-07:00") + ")" }

// find returns the zone of an IANA name, or nil if there is none.
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

// requestZone returns the zone of a request. The result chosen is false if the browser has chosen none.
func (z *zones) requestZone(r *http.Request) (loc *time.Location, chosen bool) {
	if c, err := r.Cookie(ZoneCookie); err == nil {
		if loc := z.find(c.Value); loc != nil {
			return loc, true
		}
	}
	return z.home, false
}

// ServeZone shows the forms to choose a time zone and a theme. They redirect to the page from which the reader
// came.
func ServeZone(q *Exchange) error {
	back := LocalPath(q.R.FormValue("back"))
	return q.Render(http.StatusOK, "timezone", "Timezone and theme", struct {
		Name, Label, Back string
		Options           template.HTML
		Theme             ThemeForm
	}{q.Clock.Zone.String(), zoneLabel(q.Clock.Start.In(q.Clock.Zone)), back, q.V.zones.options(q.Clock.Start), NewThemeForm(q.R, back)})
}

// SetZone stores the chosen time zone in a cookie and redirects to the page that the form names.
func (v *Visitor) SetZone(w http.ResponseWriter, r *http.Request) {
	name := r.PostFormValue("zone")
	if v.zones.find(name) == nil {
		v.Refuse(w, r,
			NewBadRequest("There is no timezone "+understudy.Clip(name), "Write a name like Europe/Berlin.", nil))
		return
	}
	KeepChoice(w, r, ZoneCookie, name)
	Redirect(w, r, LocalPath(r.PostFormValue("back")))
}

// themeCookie has the value light or dark. Without it the browser follows the theme of its system.
const themeCookie = "understudy_theme"

// autoTheme is the choice to follow the system. It deletes the cookie.
const autoTheme = "auto"

// themes are the choices of the form.
var themes = []string{autoTheme, "light", "dark"}

// themeOf returns the theme in a request's cookie, or "" if the system decides.
func themeOf(r *http.Request) string {
	if c, err := r.Cookie(themeCookie); err == nil && c.Value != autoTheme && slices.Contains(themes, c.Value) {
		return c.Value
	}
	return ""
}

// ThemeForm is the data of the template "theme".
type ThemeForm struct {
	Back    string
	Choices []themeChoice
}

type themeChoice struct {
	Name, Text string
	Chosen     bool
}

// NewThemeForm returns the form. After the choice it redirects to back.
func NewThemeForm(r *http.Request, back string) ThemeForm {
	f := ThemeForm{Back: back}
	for _, name := range themes {
		chosen := name == themeOf(r) || name == autoTheme && themeOf(r) == ""
		f.Choices = append(f.Choices, themeChoice{name, plan.UpperFirst(name), chosen})
	}
	return f
}

// SetTheme stores the chosen theme in a cookie and redirects to the page that the form names.
func (v *Visitor) SetTheme(w http.ResponseWriter, r *http.Request) {
	name := r.PostFormValue("theme")
	if !slices.Contains(themes, name) {
		v.Refuse(w, r, NewBadRequest("There is no theme "+understudy.Clip(name), "The themes are "+strings.Join(themes, ", ")+".", nil))
		return
	}
	if name == autoTheme {
		name = ""
	}
	KeepChoice(w, r, themeCookie, name)
	Redirect(w, r, LocalPath(r.PostFormValue("back")))
}

// KeepChoice stores a choice in a cookie. An empty value deletes the cookie.
func KeepChoice(w http.ResponseWriter, r *http.Request, cookie, value string) {
	c := &http.Cookie{
		Name: cookie, Value: value, Path: "/", MaxAge: ZoneYear, HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: r.TLS != nil,
	}
	if value == "" {
		c.MaxAge = -1
	}
	http.SetCookie(w, c)
}

// Redirect redirects a browser to another page of the viewer.
func Redirect(w http.ResponseWriter, r *http.Request, to string) {
	w.Header().Set("Cache-Control", "no-store")
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// LocalPath returns text if it is an address of this viewer, else "/". A form must not redirect its reader to
// another host. Browsers read a backslash as a slash and drop tabs and line breaks, so a text with any of them is
// refused.
func LocalPath(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "" || u.Host != "" || !strings.HasPrefix(text, "/") || strings.HasPrefix(text, "//") ||
		strings.ContainsFunc(text, func(r rune) bool { return r == '\\' || r < ' ' || r == 0x7f }) {
		return "/"
	}
	text, _, _ = strings.Cut(text, "#")
	return text
}

// AsOf is the moment that a page shows. The zero value means now.
type AsOf struct {
	At          time.Time
	IsCanonical bool // the address already has the form that the viewer itself writes
}

// Param returns the parameter with the moment in RFC 3339 and UTC, with all of its digits. It returns nil for now.
func (a AsOf) Param() understudy.Query {
	if a.At.IsZero() {
		return nil
	}
	return understudy.Query{{Name: understudy.OwnAsOf, Value: WriteMoment(a.At)}}
}

// WriteMoment returns a moment in the form that addresses use.
func WriteMoment(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// ReadAsOf reads the parameter with the page's moment. An empty value means now.
func (c *Clock) ReadAsOf(params understudy.Query) error {
	c.AsOf = AsOf{IsCanonical: true}
	seen := 0
	for _, p := range params {
		if p.Name != understudy.OwnAsOf {
			continue
		}
		if seen++; seen > 1 {
			return NewBadRequest(understudy.OwnAsOf+" is given twice", "Give one time.", nil)
		}
		if p.Value == "" {
			c.AsOf.IsCanonical = false
			continue
		}
		at, ok := ParseMoment(p.Value, c.Zone)
		switch {
		case !ok:
			return NewBadRequest("“"+understudy.Clip(p.Value)+"” is not a time", "Write "+understudy.OwnAsOf+" as 2026-06-01T12:00:00Z; "+
				"without a timezone it is in "+
				c.Zone.String()+", and a date alone means the start of that day.", nil)
		case at.After(c.Start):
			return NewBadRequest("“"+understudy.Clip(p.Value)+"” is in the future", "Give "+understudy.OwnAsOf+" a time in the past.", nil)
		}
		c.AsOf = AsOf{At: at, IsCanonical: WriteMoment(at) == p.Value}
	}
	return nil
}

// ParseMoment parses RFC 3339. It also parses a date and time without a zone, and a day, which means its start;
// both are in the reader's zone. A space at the place of the zone's plus sign is accepted, as addresses may turn
// the plus into a space.
func ParseMoment(text string, zone *time.Location) (t time.Time, ok bool) {
	for _, form := range []string{text, restorePlus(text)} {
		if t, err := understudy.ParseTime(form, time.UTC, time.RFC3339); err == nil {
			return t, isStorable(t)
		}
	}
	t, err := understudy.ParseTime(text, zone, append(localForms, time.DateOnly)...)
	return t, err == nil && isStorable(t)
}

// restorePlus replaces the space before a zone's offset by a plus sign.
func restorePlus(text string) string {
	if i := strings.LastIndexByte(text, ' '); i > len(time.DateOnly) {
		return text[:i] + "+" + text[i+1:]
	}
	return text
}

// isStorable reports whether a time is within the years that the store supports.
func isStorable(t time.Time) bool { return t.Year() >= 1970 && t.Year() < 2200 }

// Keep adds the page's moment to an address of this viewer.
func (a AsOf) Keep(href string) string {
	if a.At.IsZero() || href == "" {
		return href
	}
	href, anchor, marked := strings.Cut(href, "#")
	if strings.Contains(href, "?") {
		href += "&" + a.Param().String()
	} else {
		href += "?" + a.Param().String()
	}
	if marked {
		href += "#" + anchor
	}
	return href
}

// pastNotice says at the top of a page that it shows an earlier moment.
type pastNotice struct {
	When        When
	CurrentHref string // the address of the same page as of now
}

// AddressWith returns an address with another moment, or as of now if moment is nil.
func AddressWith(at *url.URL, moment understudy.Query) string {
	params, err := understudy.ParseQuery(at.RawQuery)
	if err != nil {
		params = nil
	}
	params = params.Remove(func(p understudy.Param) bool { return p.Name == understudy.OwnAsOf })
	return at.EscapedPath() + plan.WithQuery(append(params, moment...))
}

// RedirectMoment redirects to the usual form of the address if it spells the moment in another way. It then returns
// true.
func (q *Exchange) RedirectMoment() (done bool) {
	if q.Clock.AsOf.IsCanonical {
		return false
	}
	Redirect(q.Reply.W, q.R, AddressWith(q.R.URL, q.Clock.AsOf.Param()))
	return true
}

// ExplainPastError turns an error of the mirror about an earlier moment into one for people.
func ExplainPastError(q *Exchange, err error) error {
	switch {
	case errors.Is(err, understudy.ErrInvalid):
		_, why, _ := strings.Cut(err.Error(), understudy.ErrInvalid.Error()+": ")
		return &Problem{
			Title: "This can't be shown as it was at that time", Hint: plan.UpperFirst(strings.TrimSuffix(why, ".")) + ".",
			Href: AddressWith(q.R.URL, nil), Link: "See the current version", Kind: understudy.ErrInvalid,
		}
	case !errors.Is(err, understudy.ErrNotFound) && !errors.Is(err, understudy.ErrNoStoredAnswer):
		return err
	}
	return &Problem{
		Title: "There is no data about this from " + q.Clock.Say(q.Clock.AsOf.At, true).Text,
		Hint:  "It was not known yet, it was deleted, or its old versions were not kept.",
		Href:  AddressWith(q.R.URL, nil), Link: "See the current version", Kind: understudy.ErrNotFound,
	}
}

// Clock has the time and the time zone of a request.
type Clock struct {
	Start      time.Time
	Zone       *time.Location
	zoneChosen bool // the browser has chosen its zone
	AsOf       AsOf // the moment that the page shows
}
