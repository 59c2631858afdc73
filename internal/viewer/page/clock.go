// Clock: the timezone and the theme that a browser has chosen, kept in cookies, and the
// moment a page is asked for.

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
	_ "time/tzdata" // hosts without zone files still know every zone

	"understudy"
	"understudy/internal/viewer/plan"
)

const (
	zonePath   = "/-/timezone"
	ZoneCookie = "understudy_zone"
	ZoneYear   = 365 * 24 * 60 * 60 // the cookie's life in seconds
	maxZones   = 1000               // more than there are; bounds what is remembered
)

// zoneNames are all zones of the IANA database that Go has, aliases included.
//
//go:embed zones.txt
var zoneNames string

// zones remembers the zones browsers asked for.
type zones struct {
	home   *time.Location
	mu     sync.Mutex
	loaded map[string]*time.Location
	at     time.Time     // when the options were drawn
	drawn  template.HTML // the options of the menu, with their offsets then
}

func newZones(home *time.Location) *zones {
	return &zones{home: home, loaded: map[string]*time.Location{}}
}

// options returns the zones of the menu with their offsets at the beginning of the quarter of an hour: none changes within one.
func (z *zones) options(now time.Time) template.HTML {
	now = now.Truncate(15 * time.Minute)
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.drawn != "" && z.at.Equal(now) {
		return z.drawn
	}
	var b strings.Builder
	for name := range strings.FieldsSeq(zoneNames) {
		if loc, err := time.LoadLocation(name); err == nil { // files of the host may lack a zone
			label := template.HTMLEscapeString(zoneLabel(now.In(loc)))
			b.WriteString(`<option value="` + template.HTMLEscapeString(name) + `">` + label + "</option>")
		}
	}
	z.at, z.drawn = now, template.HTML(b.String()) // names of our own list
	return z.drawn
}

// zoneLabel is "Europe/Berlin (UTC+02:00)" for a moment there.
func zoneLabel(t time.Time) string { return t.Location().String() + " (UTC" + t.Format("-07:00") + ")" }

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
	if c, err := r.Cookie(ZoneCookie); err == nil {
		if loc := z.find(c.Value); loc != nil {
			return loc, true
		}
	}
	return z.home, false
}

// ServeZone offers the timezones and the themes. Its forms lead back to the page of the reader.
func ServeZone(q *Exchange) error {
	back := LocalPath(q.R.FormValue("back"))
	return q.Render(http.StatusOK, "timezone", "Timezone and theme", struct {
		Name, Label, Back string
		Options           template.HTML
		Theme             ThemeForm
	}{q.Clock.Zone.String(), zoneLabel(q.Clock.Start.In(q.Clock.Zone)), back, q.V.zones.options(q.Clock.Start), NewThemeForm(q.R, back)})
}

// SetZone keeps the zone of the form in a cookie and goes back to the page it
// came from.
func (v *Visitor) SetZone(w http.ResponseWriter, r *http.Request) {
	name := r.PostFormValue("zone")
	if v.zones.find(name) == nil {
		v.Refuse(w, r,
			BadRequest("There is no timezone "+understudy.Clip(name), "Names are those of the IANA database, such as Europe/Berlin.", nil))
		return
	}
	KeepChoice(w, r, ZoneCookie, name)
	Redirect(w, r, LocalPath(r.PostFormValue("back")))
}

// themeCookie holds light or dark. A browser without it is shown what its system asks for.
const themeCookie = "understudy_theme"

// autoTheme is the choice that the cookie does not hold.
const autoTheme = "auto"

// themes are the choices of the form.
var themes = []string{autoTheme, "light", "dark"}

// themeOf returns the theme of a request's cookie, "" where the system decides.
func themeOf(r *http.Request) string {
	if c, err := r.Cookie(themeCookie); err == nil && c.Value != autoTheme && slices.Contains(themes, c.Value) {
		return c.Value
	}
	return ""
}

// ThemeForm is what the template "theme" shows.
type ThemeForm struct {
	Back    string
	Choices []themeChoice
}

type themeChoice struct {
	Name, Text string
	Chosen     bool
}

// NewThemeForm returns the form that leads to the address back.
func NewThemeForm(r *http.Request, back string) ThemeForm {
	f := ThemeForm{Back: back}
	for _, name := range themes {
		chosen := name == themeOf(r) || name == autoTheme && themeOf(r) == ""
		f.Choices = append(f.Choices, themeChoice{name, plan.UpperFirst(name), chosen})
	}
	return f
}

// SetTheme keeps the theme of the form in a cookie and redirects to the page that the form names.
func (v *Visitor) SetTheme(w http.ResponseWriter, r *http.Request) {
	name := r.PostFormValue("theme")
	if !slices.Contains(themes, name) {
		v.Refuse(w, r, BadRequest("There is no theme "+understudy.Clip(name), "The themes are "+strings.Join(themes, ", ")+".", nil))
		return
	}
	if name == autoTheme {
		name = ""
	}
	KeepChoice(w, r, themeCookie, name)
	Redirect(w, r, LocalPath(r.PostFormValue("back")))
}

// KeepChoice has the browser remember a choice in a cookie, or with an empty value forget it.
func KeepChoice(w http.ResponseWriter, r *http.Request, cookie, value string) {
	c := &http.Cookie{
		Name: cookie, Value: value, Path: "/", MaxAge: ZoneYear, HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: r.TLS != nil,
	}
	if value == "" {
		c.MaxAge = -1
	}
	http.SetCookie(w, c)
}

// Redirect sends a browser to another page of ours.
func Redirect(w http.ResponseWriter, r *http.Request, to string) {
	w.Header().Set("Cache-Control", "no-store")
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// LocalPath is an address of this viewer, "/" when text is anything else: a
// form must not send its reader to another host. Browsers take a backslash for a slash and
// leave out tabs and line ends, so neither may be in it.
func LocalPath(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "" || u.Host != "" || !strings.HasPrefix(text, "/") || strings.HasPrefix(text, "//") ||
		strings.ContainsFunc(text, func(r rune) bool { return r == '\\' || r < ' ' || r == 0x7f }) {
		return "/"
	}
	text, _, _ = strings.Cut(text, "#")
	return text
}

// AsOf is the moment a page is asked for; the zero value is now.
type AsOf struct {
	At   time.Time
	Tidy bool // the address was already written as ours are
}

// Param is the moment as our addresses write it: RFC 3339 in UTC, as exact as
// it was given.
func (a AsOf) Param() understudy.Query {
	if a.At.IsZero() {
		return nil
	}
	return understudy.Query{{Name: understudy.OwnAsOf, Value: WriteMoment(a.At)}}
}

// WriteMoment is a moment in an address.
func WriteMoment(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// ReadAsOf reads the parameter. An empty one is none.
func (c *Clock) ReadAsOf(params understudy.Query) error {
	c.AsOf = AsOf{Tidy: true}
	seen := 0
	for _, p := range params {
		if p.Name != understudy.OwnAsOf {
			continue
		}
		if seen++; seen > 1 {
			return BadRequest(understudy.OwnAsOf+" is given twice", "Give one moment.", nil)
		}
		if p.Value == "" {
			c.AsOf.Tidy = false
			continue
		}
		at, ok := ParseMoment(p.Value, c.Zone)
		switch {
		case !ok:
			return BadRequest("“"+understudy.Clip(p.Value)+"” is no moment", "Give "+understudy.OwnAsOf+" as 2026-06-01T12:00:00Z; "+
				"without a zone it is in "+
				c.Zone.String()+", and a day alone means its beginning.", nil)
		case at.After(c.Start):
			return BadRequest("“"+understudy.Clip(p.Value)+"” is yet to come", "Give "+understudy.OwnAsOf+" a moment in the past.", nil)
		}
		c.AsOf = AsOf{At: at, Tidy: WriteMoment(at) == p.Value}
	}
	return nil
}

// ParseMoment reads RFC 3339, and without a zone a date and time or a day, which
// means its beginning, in the reader's zone. A plus that an address made a space
// of is read as one.
func ParseMoment(text string, zone *time.Location) (t time.Time, ok bool) {
	for _, form := range []string{text, plusAgain(text)} {
		if t, err := understudy.ParseTime(form, time.UTC, time.RFC3339); err == nil {
			return t, within(t)
		}
	}
	t, err := understudy.ParseTime(text, zone, append(localForms, time.DateOnly)...)
	return t, err == nil && within(t)
}

// plusAgain puts the plus of a zone back where an address made a space of it.
func plusAgain(text string) string {
	if i := strings.LastIndexByte(text, ' '); i > len(time.DateOnly) {
		return text[:i] + "+" + text[i+1:]
	}
	return text
}

// within keeps to the years that times are kept in.
func within(t time.Time) bool { return t.Year() >= 1970 && t.Year() < 2200 }

// Keep is an address of this viewer at the moment the page at hand shows.
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

// then is what a page of an earlier moment says at its top.
type then struct {
	When When
	Now  string // the same page, now
}

// AddressWith is an address with another moment, nil for now.
func AddressWith(at *url.URL, moment understudy.Query) string {
	params, err := understudy.ParseQuery(at.RawQuery)
	if err != nil {
		params = nil
	}
	params = params.Without(func(p understudy.Param) bool { return p.Name == understudy.OwnAsOf })
	return at.EscapedPath() + plan.WithQuery(append(params, moment...))
}

// TidyMoment sends a reader whose address spells the moment in another way to
// the one that can be passed on; done then is true.
func (q *Exchange) TidyMoment() (done bool) {
	if q.Clock.AsOf.Tidy {
		return false
	}
	Redirect(q.Reply.W, q.R, AddressWith(q.R.URL, q.Clock.AsOf.Param()))
	return true
}

// RefusedThen is an error of the mirror's about an earlier moment, for people.
func RefusedThen(q *Exchange, err error) error {
	switch {
	case errors.Is(err, understudy.ErrInvalid):
		_, why, _ := strings.Cut(err.Error(), understudy.ErrInvalid.Error()+": ")
		return &Problem{
			Title: "This cannot be shown as it was known then", Hint: plan.UpperFirst(strings.TrimSuffix(why, ".")) + ".",
			Href: AddressWith(q.R.URL, nil), Link: "See it as it is now", Kind: understudy.ErrInvalid,
		}
	case !errors.Is(err, understudy.ErrNotFound) && !errors.Is(err, understudy.ErrNotHeld):
		return err
	}
	return &Problem{
		Title: "Nothing of this was known on " + q.Clock.Say(q.Clock.AsOf.At, true).Text,
		Hint:  "It had not been seen yet, or it was gone. What is not kept of the past cannot be shown.",
		Href:  AddressWith(q.R.URL, nil), Link: "See it as it is now", Kind: understudy.ErrNotFound,
	}
}

// Clock is the time of a request, as its reader has it.
type Clock struct {
	Start time.Time
	Zone  *time.Location
	zoned bool // the browser has said its zone
	AsOf  AsOf // the moment the page is asked for
}
