// Rendering: a page is rendered to a buffer, and then sent with headers that say how long it took.

package page

import (
	"bytes"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"

	"understudy"
	"understudy/internal/viewer/plan"
	"understudy/request"
)

// pages are the parsed templates, and the buffers to which pages are rendered. All templates are one set. A set for
// each page would contain the shared templates thirty times, and the garbage collector would scan each copy.
type pages struct {
	templates *template.Template
	files     *files
	buffers   sync.Pool
	packers   sync.Pool
}

// maxKeptBufferBytes is the capacity in bytes of the largest buffer that is kept for the next page.
const maxKeptBufferBytes = 1 << 20

func readPages(assets fs.FS, static *files) (*pages, error) {
	funcs := template.FuncMap{"upper": plan.UpperFirst, "count": Thousands}
	all, err := template.New("").Funcs(funcs).ParseFS(assets, "templates/*.html")
	if err != nil {
		return nil, err
	}
	p := &pages{templates: all, files: static}
	p.buffers.New = func() any { return new(bytes.Buffer) }
	p.packers.New = func() any {
		zw, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed+2) // an error would mean that the level is not valid
		return zw
	}
	return p, nil
}

// frame is everything on a page except its own content: the head, the navigation and the footer.
type frame struct {
	Title      string
	Files      frameFiles
	KeysHref   string // the address of the page that lists the keyboard shortcuts
	PageName   string // the name of the page, such as "home" or "list"
	Source     *plan.Source
	Nav        nav
	Notices    notices
	SearchText string // the text in the search box of the header
	HasSearch  bool   // whether the search box finds records by words
	HasLookup  bool   // whether the search box looks up whole phone numbers; it then sends them by POST, so that no log contains them
	Footer     footer
	Version    string
	CachedHTML []template.HTML // the rendered HTML above the content, if it was cached for an earlier request

	Zone        zoneMenu
	Theme       string // the theme, light or dark; empty if the operating system decides
	Caller      string
	SignedIn    bool
	Administers bool
}

// frameFiles are the addresses of the style sheets and the script of a page.
type frameFiles struct {
	CSS  string
	More string // the second style sheet; empty on lists and searches, which do not use it
	JS   string
	Icon string
}

// notices are remarks for the reader at the top of a page.
type notices struct {
	Banners    []Health
	WaitingFor string      // the name of the API for which the page is waiting; empty once the content is there
	Past       *pastNotice // the earlier moment that the page shows; nil for current data
	AgeNote    string      // a remark if the content may be older than upstream's current data
	Message    string      // the message that a form left for this page
	ViewedRole *viewedRole
}

// viewedRole is the other role as which an administrator views the pages, and the address to return to.
type viewedRole struct{ Role, Back string }

type zoneMenu struct {
	Name   string
	Chosen bool
	Menu   string // the address of the page on which the reader chooses the time zone
}

// footer shows how long the page took. The template calls its methods at the end of the page, when the times are known.
type footer struct {
	q      *Exchange
	began  time.Time
	Origin string
	Detail string
}

// HasTimes reports whether the caller may see in the footer how long the server took.
func (f footer) HasTimes() bool { return f.q.Rights.canSeeAll(f.q.Source) }

// TotalTime returns the time since the request arrived.
func (f footer) TotalTime() string { return FormatMillis(f.q.V.Options.Now().Sub(f.q.Clock.Start)) }

// RenderTime returns the time since the rendering of the page began.
func (f footer) RenderTime() string { return FormatMillis(f.q.V.Options.Now().Sub(f.began)) }

// UpstreamTime returns how long upstream took for the main answer of the page. It returns "" if no request was sent.
func (f footer) UpstreamTime() string {
	if f.q.Answer == nil || f.q.Answer.UpstreamTime == 0 {
		return ""
	}
	return FormatMillis(f.q.Answer.UpstreamTime)
}

// Render renders a page and sends it. The head of the page may have been sent before.
func (q *Exchange) Render(status int, page, title string, main any) error {
	above, f := "layout.html", frame{}
	switch {
	case q.Reply.stream != nil:
		above, f = "between", q.frame(page, title)
	case status == http.StatusOK && q.Rights.HasCaller:
		of := q.Identity("frame").With(q.V.Seed, page, title, q.SearchText, q.Rights.Caller.Name,
			strconv.FormatBool(q.Clock.zoneChosen), themeOf(q.R))
		marks, err := q.Reply.RenderCached(of, func() any { return q.frame(page, title) }, "above")
		if err != nil {
			return err
		}
		f = frame{
			CachedHTML: marks, KeysHref: keysAddress(q.Source), Notices: notices{Banners: q.banners()},
			Version: q.V.Options.Version, Caller: q.Rights.Caller.Name,
		}
	default:
		f = q.frame(page, title)
	}
	if q.Rights.IsViewingAs() {
		f.Notices.ViewedRole = &viewedRole{q.Rights.Caller.Role(), "/"}
		if q.R.Method == http.MethodGet {
			f.Notices.ViewedRole.Back = q.R.URL.RequestURI()
		}
	}
	if as := q.Clock.AsOf; !as.At.IsZero() {
		f.Notices.Past = &pastNotice{When: q.Clock.FormatMoment(as.At, true), CurrentHref: AddressWith(q.R.URL, nil)}
	} else if q.Answer != nil {
		f.Notices.AgeNote = ageNotice(q.Answer, q.Source.Spec.Title)
	}
	f.Notices.Message, f.Footer = q.Reply.message, footer{q: q, began: q.V.Options.Now(), Origin: q.AnswerOrigin()}
	return q.renderPage(status, above, f, page, main)
}

// frame returns everything on the page except its content. It uses only what is known before the content is read.
func (q *Exchange) frame(page, title string) frame {
	files := q.V.pages.files.Address
	more := files["more.css"]
	if page == "list" || page == "search" {
		more = ""
	}
	return frame{
		Title: title, Version: q.V.Options.Version, KeysHref: keysAddress(q.Source),
		Files:    frameFiles{CSS: files["viewer.css"], More: more, JS: files["viewer.js"], Icon: files["icon.svg"]},
		PageName: page, Source: q.Source, Nav: q.Rights.nav(q.Source, q.Kind),
		Notices:    notices{Banners: q.banners()},
		SearchText: q.SearchText, HasSearch: q.V.Options.Search != nil, HasLookup: q.Rights.CanLookUp(),
		Zone: zoneMenu{Name: q.Clock.Zone.String(), Chosen: q.Clock.zoneChosen,
			Menu: zonePath + plan.WithQuery(understudy.Query{{Name: "back", Value: q.R.URL.RequestURI()}})},
		Theme: themeOf(q.R), Caller: q.Rights.Caller.Name, SignedIn: q.Rights.IsSignedIn(), Administers: q.Rights.HasCaller && IsAdministrator(q),
	}
}

// renderPage renders the head, the content and the end of a page to a buffer. It then sends what SendRest has not sent yet.
func (q *Exchange) renderPage(status int, above string, f frame, page string, main any) error {
	p, began := q.V.pages, q.V.Options.Now()
	q.Reply.page = p.buffers.Get().(*bytes.Buffer)
	q.Reply.page.Reset()
	defer func() {
		if q.Reply.page.Cap() <= maxKeptBufferBytes {
			p.buffers.Put(q.Reply.page)
		}
		q.Reply.page = nil
	}()
	for _, part := range []struct {
		name string
		data any
	}{{above, f}, {"page-" + page, main}, {"below-main", f}} {
		if err := p.templates.ExecuteTemplate(q.Reply.page, part.name, part.data); err != nil {
			return fmt.Errorf("viewer: render %s: %w", page, err)
		}
	}
	if q.Reply.stream != nil {
		if err := q.Reply.flush(q.Reply.page); err != nil || q.Reply.stream.zip == nil {
			return err
		}
		return q.Reply.sendPacked(q.Reply.stream.zip.end)
	}
	q.setTimes(began)
	q.Reply.W.Header().Set("Link", q.V.preloadLink())
	q.Reply.write(status, htmlType, q.Reply.page.Bytes())
	return nil
}

// preloadLink returns a Link header that names the style sheet, so that browsers load it before they parse the page (RFC
// 8288; HTML, 4.6.8, preload). It is the same for all pages and callers.
func (v *Visitor) preloadLink() string {
	return "<" + v.pages.files.Address["viewer.css"] + ">; rel=preload; as=style"
}

// AnswerOrigin returns a text that says where the main answer of the page came from, such as the cache.
func (q *Exchange) AnswerOrigin() string {
	if q.ShowsSearch {
		return "found in stored records"
	}
	if q.Answer == nil {
		return ""
	}
	if !q.Clock.AsOf.At.IsZero() {
		return "assembled from the versions of that time"
	}
	age := FormatDuration(q.Answer.CurrentAge())
	switch q.Answer.Outcome {
	case request.Cold:
		if q.Answer.Page.InitialAge > 0 {
			return "fetched just now, " + FormatDuration(q.Answer.Page.InitialAge) + " old"
		}
		return "fetched just now"
	case request.Stale:
		return "cached, " + age + " old, refreshing in the background"
	case request.Composed:
		if newest := FormatDuration(q.Answer.Newest); q.Answer.Newest > 0 && newest != age {
			return "assembled from records; newest page fetched " + newest + " ago, full check " + age + " ago"
		}
		return "assembled from records, " + age + " old"
	}
	return "cached, " + age + " old"
}

// ageNotice returns a remark if the answer may differ from upstream's current data: during an outage of upstream, or if
// the answer could not be stored. It returns "" otherwise. title is the name of the API.
func ageNotice(a *request.Response, title string) string {
	if a.Detail == "" || a.Detail == "composed" {
		return ""
	}
	if why, ok := strings.CutPrefix(a.Detail, "stale: "); ok {
		return title + " has not answered (" + why + "). This is the copy from " + FormatDuration(a.Age) + " ago."
	}
	return plan.UpperFirst(a.Detail) + "."
}

// Thousands returns a number with commas between groups of three digits.
func Thousands(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// TimeRow is a row of a table that shows how long answers took.
type TimeRow struct {
	Who, Reason                  string
	Answers, Unanswered          int64
	Mean, Range, Median, Slowest string
}

// NewTimeRow returns a row of a table that shows how long answers took.
func NewTimeRow(who, reason string, t Times) TimeRow {
	row := TimeRow{Who: who, Reason: reason, Answers: t.Answers, Unanswered: t.Unanswered}
	if t.Answers > 0 {
		row.Mean, row.Range = FormatMillis(t.Mean)+" ± "+FormatMillis(t.Deviation), FormatMillis(t.Min)+" – "+FormatMillis(t.Max)
		row.Median, row.Slowest = FormatMillis(t.P50), FormatMillis(t.P99)
	}
	return row
}

// UsualTimes returns how long upstream usually takes for the kind of the page. It uses the answers for which a reader
// waited, or if there are none, all answers of the source. It returns nil if the times are not known, if the caller
// may not see everything, and on lists, because their HTML must stay small.
func (f footer) UsualTimes() *TimeRow {
	q := f.q
	list := q.Kind != nil && q.R.PathValue("id") == ""
	if q.Source == nil || list || q.Rights.Caller.Role() != understudy.RoleAll {
		return nil
	}
	snap, _ := q.V.Snapshots.lastSnapshot(q.Source.Name, q.Clock.Start)
	of, who := snap.Latencies.UpstreamTimes, q.Source.Spec.Title
	for _, t := range snap.Latencies.Times {
		if q.Kind != nil && t.Kind == q.Kind.Spec.Name && t.Answers > 0 && (of.Kind == "" || t.Reason == request.ReasonWaiting.String()) {
			of, who = t, plan.UpperFirst(q.Kind.Spec.Title)
		}
	}
	if of.Answers == 0 {
		return nil
	}
	row := NewTimeRow(who, of.Reason, of)
	return &row
}
