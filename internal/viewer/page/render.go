// Render: a page is written into a buffer whole, then sent with its times.

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

// pages are the templates, read once, and the buffers they are rendered into. All templates are
// one set: the collector of garbage goes through each again and again, and a set for each page
// would have what all share thirty times.
type pages struct {
	templates *template.Template
	files     *files
	buffers   sync.Pool
	packers   sync.Pool
}

// keepBuffer is the largest buffer kept for the next page.
const keepBuffer = 1 << 20

func readPages(assets fs.FS, static *files) (*pages, error) {
	funcs := template.FuncMap{"upper": plan.UpperFirst, "count": Thousands}
	all, err := template.New("").Funcs(funcs).ParseFS(assets, "templates/*.html")
	if err != nil {
		return nil, err
	}
	p := &pages{templates: all, files: static}
	p.buffers.New = func() any { return new(bytes.Buffer) }
	p.packers.New = func() any {
		zw, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed+2) // the level is in range
		return zw
	}
	return p, nil
}

// frame is what every page has around its own content.
type frame struct {
	Title   string
	Files   frameFiles
	Hints   string // the page of what keys do
	Where   string // which page this is: "home", "list"
	Source  *plan.Source
	Nav     nav
	Notices notices
	Typed   string // what the search box holds
	Finds   bool   // the box takes words, too
	Looks   bool   // numbers are looked up by the box, and sent where no log has them
	Footer  footer
	Version string
	Kept    []template.HTML // what stands above the page's own content, as it was drawn before

	Zone        zoneMenu
	Theme       string // light or dark; "" where the browser's system decides
	Caller      string
	SignedIn    bool
	Administers bool
}

// frameFiles are the addresses of the files of a page.
type frameFiles struct {
	CSS  string
	More string // the second style sheet; "" on lists and the search, which do without
	JS   string
	Icon string
}

// notices are what a reader should know of a page.
type notices struct {
	Banners []Health
	Asked   string // what is asked for the page's own content, while that is on its way
	Then    *then  // the earlier moment shown
	Notice  string // what a reader should know of the answer's age
	Said    string // what a form has done
	Through *through
}

// through is the role that an administrator looks through.
type through struct{ Role, Back string }

type zoneMenu struct {
	Name   string
	Chosen bool
	Menu   string // the page to choose another
}

// footer says how long the answer took; its methods run when the template
// reaches it, at the end of the page.
type footer struct {
	q      *Exchange
	began  time.Time
	How    string
	Detail string
}

// Timed reports whether the footer says how long the answer took here.
func (f footer) Timed() bool { return f.q.Rights.seesWhole(f.q.Source) }

// Total is the time since the request came.
func (f footer) Total() string { return Millis(f.q.V.Options.Now().Sub(f.q.Clock.Start)) }

// Render is the time since the template began.
func (f footer) Render() string { return Millis(f.q.V.Options.Now().Sub(f.began)) }

// Upstream is upstream's time for this answer, "" when it was not asked.
func (f footer) Upstream() string {
	if f.q.Answer == nil || f.q.Answer.Upstream == 0 {
		return ""
	}
	return Millis(f.q.Answer.Upstream)
}

// Render writes a page; what stands above its own content may be out already.
func (q *Exchange) Render(status int, page, title string, main any) error {
	above, f := "layout.html", frame{}
	switch {
	case q.Reply.out != nil:
		above, f = "between", q.frame(page, title)
	case status == http.StatusOK && q.Rights.Known:
		of := q.Identity("frame").With(q.V.Seed, page, title, q.Typed, q.Rights.Caller.Name, strconv.FormatBool(q.Clock.zoned), themeOf(q.R))
		marks, err := q.Reply.Keep(of, func() any { return q.frame(page, title) }, "above")
		if err != nil {
			return err
		}
		f = frame{
			Kept: marks, Hints: keysOf(q.Source), Notices: notices{Banners: q.banners()},
			Version: q.V.Options.Version, Caller: q.Rights.Caller.Name,
		}
	default:
		f = q.frame(page, title)
	}
	if q.Rights.ViewsAs() {
		f.Notices.Through = &through{q.Rights.Caller.Role(), "/"}
		if q.R.Method == http.MethodGet {
			f.Notices.Through.Back = q.R.URL.RequestURI()
		}
	}
	if as := q.Clock.AsOf; !as.At.IsZero() {
		f.Notices.Then = &then{When: q.Clock.Say(as.At, true), Now: AddressWith(q.R.URL, nil)}
	} else if q.Answer != nil {
		f.Notices.Notice = notice(q.Answer)
	}
	f.Notices.Said, f.Footer = q.Reply.said, footer{q: q, began: q.V.Options.Now(), How: q.How()}
	return q.fill(status, above, f, page, main)
}

// frame is what a page has around its own content, as far as it is known before
// that has been read.
func (q *Exchange) frame(page, title string) frame {
	files := q.V.pages.files.Address
	more := files["more.css"]
	if page == "list" || page == "search" {
		more = ""
	}
	return frame{
		Title: title, Version: q.V.Options.Version, Hints: keysOf(q.Source),
		Files: frameFiles{CSS: files["viewer.css"], More: more, JS: files["viewer.js"], Icon: files["icon.svg"]},
		Where: page, Source: q.Source, Nav: q.Rights.nav(q.Source, q.Kind),
		Notices: notices{Banners: q.banners()},
		Typed:   q.Typed, Finds: q.V.Options.Search != nil, Looks: q.Rights.Looks(),
		Zone: zoneMenu{Name: q.Clock.Zone.String(), Chosen: q.Clock.zoned,
			Menu: zonePath + plan.WithQuery(understudy.Query{{Name: "back", Value: q.R.URL.RequestURI()}})},
		Theme: themeOf(q.R), Caller: q.Rights.Caller.Name, SignedIn: q.Rights.SignedIn(), Administers: q.Rights.Known && Administers(q),
	}
}

// fill writes the template above, that of a page and the one below it into a buffer, then sends
// it, or what its parts have left of it.
func (q *Exchange) fill(status int, above string, f frame, page string, main any) error {
	p, began := q.V.pages, q.V.Options.Now()
	q.Reply.page = p.buffers.Get().(*bytes.Buffer)
	q.Reply.page.Reset()
	defer func() {
		if q.Reply.page.Cap() <= keepBuffer {
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
	if q.Reply.out != nil {
		return q.Reply.finish()
	}
	q.times(began)
	q.Reply.preload()
	q.Reply.write(status, htmlType, q.Reply.page.Bytes())
	return nil
}

// preload tells browsers of the style sheet before they read the page (RFC 8288;
// HTML, 4.6.8, preload).
func (y *Reply) preload() {
	y.W.Header().Set("Link", "<"+y.v.pages.files.Address["viewer.css"]+">; rel=preload; as=style")
}

// How says how an answer came, in words.
func (q *Exchange) How() string {
	if q.Found {
		return "found in held records"
	}
	if q.Answer == nil {
		return ""
	}
	if !q.Clock.AsOf.At.IsZero() {
		return "made from what was known then"
	}
	age := LongAgo(q.Answer.CurrentAge())
	switch q.Answer.Outcome {
	case request.Cold:
		if q.Answer.Page.InitialAge > 0 {
			return "from upstream, where it was " + LongAgo(q.Answer.Page.InitialAge) + " old"
		}
		return "fresh from upstream"
	case request.Stale:
		return "held, " + age + " old, being refreshed"
	case request.Composed:
		if newest := LongAgo(q.Answer.Newest); q.Answer.Newest > 0 && newest != age {
			return "made from held records; their newest page came " + newest + " ago, all of them were walked " + age + " ago"
		}
		return "made from held records, " + age + " old"
	}
	return "held, " + age + " old"
}

// notice is a word to the reader where the answer is not what upstream would
// say now: in an outage, or when it could not be kept.
func notice(a *request.Response) string {
	if a.Detail == "" || a.Detail == "composed" {
		return ""
	}
	if why, ok := strings.CutPrefix(a.Detail, "stale: "); ok {
		return "Upstream has not answered (" + why + "). This is what was held " + LongAgo(a.Age) + " ago."
	}
	return plan.UpperFirst(a.Detail) + "."
}

// Thousands writes a count with a thin mark between thousands.
func Thousands(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// TimeRow is a row of the table of answer times.
type TimeRow struct {
	Who, Reason                string
	Answers, Lost              int64
	Mean, Range, Half, Slowest string
}

// NewTimeRow is a row of the table of answer times.
func NewTimeRow(who, reason string, t Times) TimeRow {
	row := TimeRow{Who: who, Reason: reason, Answers: t.Answers, Lost: t.Lost}
	if t.Answers > 0 {
		row.Mean, row.Range = Millis(t.Mean)+" ± "+Millis(t.Deviation), Millis(t.Min)+" – "+Millis(t.Max)
		row.Half, row.Slowest = Millis(t.P50), Millis(t.P99)
	}
	return row
}

// Usual is how long upstream takes for the page's kind: for answers to readers that
// wait when that is known, else for all answers of the source. It is nil for a caller
// that does not see everything, when nothing is known, and on lists, which must stay
// small.
func (f footer) Usual() *TimeRow {
	q := f.q
	list := q.Kind != nil && q.R.PathValue("id") == ""
	if q.Source == nil || list || q.Rights.Caller.Role() != understudy.RoleAll {
		return nil
	}
	snap, _ := q.V.Snapshots.known(q.Source.Name, q.Clock.Start)
	of, who := snap.Latencies.TheirTimes, q.Source.Spec.Title
	for _, t := range snap.Latencies.Times {
		if q.Kind != nil && t.Kind == q.Kind.Spec.Name && t.Answers > 0 && (of.Kind == "" || t.Reason == request.Waiting.String()) {
			of, who = t, plan.UpperFirst(q.Kind.Spec.Title)
		}
	}
	if of.Answers == 0 {
		return nil
	}
	row := NewTimeRow(who, of.Reason, of)
	return &row
}
