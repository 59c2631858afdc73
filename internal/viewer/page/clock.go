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
	"time"
	_ "time/tzdata" // the time zone database, for hosts that have none

	"understudy"
	"understudy/internal/viewer/plan"
	"understudy/kit/lockwatch"
)

const (
	zonePath            = "/-/timezone"
	ZoneCookie          = "understudy_zone"
	ChoiceCookieSeconds = 365 * 24 * 60 * 60 // the lifetime of the cookies for the time zone and the theme, in seconds
	maxZones            = 1000               // the maximum number of zones in memory, which is more than the time zone database has
)

// zoneNames are all zones of the IANA database that Go knows, with aliases.
//
//go:embed zones.txt
var zoneNames string

// zones caches the time zones that browsers have requested.
type zones struct {
	home   *time.Location
	mu     lockwatch.Mutex
	loaded map[string]*time.Location
	at     time.Time     // the moment for which the options of the zone menu were rendered
	drawn  template.HTML // the options of the menu, with the zones' offsets at that moment
}

func newZones(home *time.Location) *zones {
	return &zones{home: home, loaded: map[string]*time.Location{}}
}

// options returns the HTML options of the zone menu. It renders them once every quarter of an hour, because no zone
// changes its offset from UTC in between.
func (z *zones) options(now time.Time) template.HTML {
	now = now.Truncate(15 * time.Minute)
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.drawn != "" && z.at.Equal(now) {
		return z.drawn
	}
	var b strings.Builder
	for name := range strings.FieldsSeq(zoneNames) {
		if loc, err := time.LoadLocation(name); err == nil { // the time zone database of the host may lack the zone
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

// requestZone returns the time zone in which a request's page shows times. chosen is false if the reader has not chosen a zone.
func (z *zones) requestZone(r *http.Request) (loc *time.Location, chosen bool) {
	if c, err := r.Cookie(ZoneCookie); err == nil {
		if loc := z.find(c.Value); loc != nil {
			return loc, true
		}
	}
	return z.home, false
}

// ServeZone shows the forms for the time zone and the theme. The forms redirect to the page from which the reader came.
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
	SetChoiceCookie(w, r, ZoneCookie, name)
	Redirect(w, r, LocalPath(r.PostFormValue("back")))
}

// themeCookie is the cookie with the theme, light or dark. Without it the theme of the operating system is used.
const themeCookie = "understudy_theme"

// autoTheme is the choice to use the theme of the operating system. It deletes the cookie.
const autoTheme = "auto"

// themes are the choices in the form for the theme.
var themes = []string{autoTheme, "light", "dark"}

// themeOf returns the theme in a request's cookie, or "" if the reader has chosen none.
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

// NewThemeForm returns the form for the theme. The form redirects to the address back.
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
	SetChoiceCookie(w, r, themeCookie, name)
	Redirect(w, r, LocalPath(r.PostFormValue("back")))
}

// SetChoiceCookie stores a reader's choice in a cookie for a year. An empty value deletes the cookie.
func SetChoiceCookie(w http.ResponseWriter, r *http.Request, cookie, value string) {
	c := &http.Cookie{
		Name: cookie, Value: value, Path: "/", MaxAge: ChoiceCookieSeconds, HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: r.TLS != nil,
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

// LocalPath returns text if it is an address of this viewer, else "/", so that a form cannot redirect to another host. It
// accepts no backslashes, tabs and line breaks, because browsers read a backslash as a slash and drop the others.
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
	IsCanonical bool // whether the address has the moment in the viewer's own form, so that no redirect is needed
}

// Param returns the parameter that adds the moment to an address, in RFC 3339, UTC and full precision. It returns nil
// if the page shows the current data.
func (a AsOf) Param() understudy.Query {
	if a.At.IsZero() {
		return nil
	}
	return understudy.Query{{Name: understudy.OwnAsOf, Value: WriteMoment(a.At)}}
}

// WriteMoment returns a moment in the form that addresses use.
func WriteMoment(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// ReadAsOf sets AsOf from the parameters of the address. Without the parameter, or if it is empty, the page shows the
// current data.
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

// ParseMoment parses a time in RFC 3339, a date and time without a zone, or a date alone, which means the start of the day. A
// text without a zone is in the reader's zone. The plus sign of a zone may have become a space, as it does in some addresses.
func ParseMoment(text string, zone *time.Location) (t time.Time, ok bool) {
	for _, form := range []string{text, restorePlus(text)} {
		if t, err := understudy.ParseTime(form, time.UTC, time.RFC3339); err == nil {
			return t, isStorable(t)
		}
	}
	t, err := understudy.ParseTime(text, zone, append(localForms, time.DateOnly)...)
	return t, err == nil && isStorable(t)
}

// restorePlus replaces the space before a zone's offset by the plus sign that the address lost.
func restorePlus(text string) string {
	if i := strings.LastIndexByte(text, ' '); i > len(time.DateOnly) {
		return text[:i] + "+" + text[i+1:]
	}
	return text
}

// isStorable reports whether the store supports the year of a time.
func isStorable(t time.Time) bool { return t.Year() >= 1970 && t.Year() < 2200 }

// AddTo adds the moment that the page shows to an address of this viewer.
func (a AsOf) AddTo(href string) string {
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

// pastNotice is the remark at the top of a page that it shows the data of an earlier moment.
type pastNotice struct {
	When        When
	CurrentHref string // the address of the same page with current data
}

// AddressWith returns the address with the parameter for another moment, or without it if moment is nil.
func AddressWith(at *url.URL, moment understudy.Query) string {
	params, err := understudy.ParseQuery(at.RawQuery)
	if err != nil {
		params = nil
	}
	params = params.Remove(func(p understudy.Param) bool { return p.Name == understudy.OwnAsOf })
	return at.EscapedPath() + plan.WithQuery(append(params, moment...))
}

// RedirectMoment redirects to the viewer's own form of the address if the address writes the moment in another form.
// done is true if it has redirected.
func (q *Exchange) RedirectMoment() (done bool) {
	if q.Clock.AsOf.IsCanonical {
		return false
	}
	Redirect(q.Reply.W, q.R, AddressWith(q.R.URL, q.Clock.AsOf.Param()))
	return true
}

// ExplainPastError replaces the mirror's error about a page of an earlier moment by an error for people.
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
		Title: "There is no data about this from " + q.Clock.FormatMoment(q.Clock.AsOf.At, true).Text,
		Hint:  "It was not known yet, it was deleted, or its old versions were not kept.",
		Href:  AddressWith(q.R.URL, nil), Link: "See the current version", Kind: understudy.ErrNotFound,
	}
}

// Clock has the time and the time zone of a request, and the moment that its page shows.
type Clock struct {
	Start      time.Time
	Zone       *time.Location
	zoneChosen bool // whether the reader has chosen the time zone
	AsOf       AsOf // the moment that the page shows
}
