// Render: a page is written into a buffer whole, then sent with its times.

package page

import (
	"bytes"
	"encoding/json"
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

// pages are the templates, read once, and the buffers they are rendered into.
type pages struct {
	byName  map[string]*template.Template
	files   *files
	buffers sync.Pool
	packers sync.Pool
}

// keepBuffer is the largest buffer kept for the next page.
const keepBuffer = 1 << 20

func readPages(assets fs.FS, static *files) (*pages, error) {
	p := &pages{byName: map[string]*template.Template{}, files: static}
	funcs := template.FuncMap{"upper": plan.UpperFirst, "count": Thousands}
	layout, err := template.New("layout.html").Funcs(funcs).ParseFS(assets, "templates/layout.html", "templates/table.html",
		"templates/bar.html", "templates/timeline.html")
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"home", "list", "detail", "number", "conversation", "search", "failure", "compare", "jobs", "keys",
		"timezone"} {
		page, err := layout.Clone()
		if err != nil {
			return nil, err
		}
		if p.byName[name], err = page.ParseFS(assets, "templates/"+name+".html"); err != nil {
			return nil, err
		}
	}
	p.buffers.New = func() any { return new(bytes.Buffer) }
	p.packers.New = func() any {
		zw, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed+2) // the level is in range
		return zw
	}
	return p, nil
}

// frame is what every page has around its own content.
type frame struct {
	Title string
	pageFiles
	Hints string // the page of what keys do
	location
	Notices notices
	searchBox
	Zone    zoneMenu
	Footer  footer
	Main    any
	Version string
	Caller  string
	Kept    []template.HTML // what stands above the page's own content, as it was drawn before
}

// pageFiles are the addresses of the files of a page.
type pageFiles struct {
	CSS  string
	JS   string
	Keys string
	Icon string
}

// location is where in the viewer a page is.
type location struct {
	Where  string // which page this is: "home", "list"
	Source *plan.Source
	Nav    nav
}

// searchBox is the box above each page.
type searchBox struct {
	Typed string // what the search box holds
	Finds bool   // it takes words, too
}

// notices are what a reader should know of a page.
type notices struct {
	Banners []banner
	Asked   string // what is asked for the page's own content, while that is on its way
	Then    *then  // the earlier moment shown
	Notice  string // what a reader should know of the answer's age
}

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

// Total is the time since the request came.
func (f footer) Total() string { return Millis(f.q.since(f.q.Start)) }

// Render is the time since the template began.
func (f footer) Render() string { return Millis(f.q.since(f.began)) }

// Upstream is upstream's time for this answer, "" when it was not asked.
func (f footer) Upstream() string {
	if f.q.Answer == nil || f.q.Answer.Upstream == 0 {
		return ""
	}
	return Millis(f.q.Answer.Upstream)
}

// Render writes a page; what stands above its own content may be out already.
func (q *Exchange) Render(status int, page, title string, main any) error {
	l := layout{q}
	name, f := "layout.html", frame{}
	switch {
	case q.out != nil:
		name, f = "rest", l.frame(page, title)
	case status == http.StatusOK && q.Known:
		of := q.Identity("frame").With(q.V.Seed, page, title, q.Typed, q.Caller.Name, strconv.FormatBool(q.zoned))
		marks, err := q.Keep(page, of, func() any { return l.frame(page, title) }, "above")
		if err != nil {
			return err
		}
		f = frame{
			Kept: marks, Hints: l.hints(), Notices: notices{Banners: l.banners()},
			Version: q.V.Version, Caller: q.Caller.Name, Footer: l.footer(),
		}
	default:
		f = l.frame(page, title)
	}
	f.Notices.Then, f.Notices.Notice, f.Main = l.then(), l.notice(), main
	return l.fill(status, page, name, f)
}

// layout is what a page has around its own content.
type layout struct{ *Exchange }

func (q layout) footer() footer { return footer{q: q.Exchange, began: q.V.Now(), How: q.How()} }

// frame is what a page has around its own content, as far as it is known before
// that has been read.
func (q layout) frame(page, title string) frame {
	files := q.V.pages.files.Address
	return frame{
		Title: title, Version: q.V.Version, Hints: q.hints(),
		pageFiles: pageFiles{CSS: files["viewer.css"], JS: files["viewer.js"], Keys: files["keys.js"], Icon: files["icon.svg"]},
		location:  location{Where: page, Source: q.Source, Nav: q.nav()},
		Notices:   notices{Banners: q.banners()},
		searchBox: searchBox{Typed: q.Typed, Finds: q.Findable()},
		Zone: zoneMenu{Name: q.Zone.String(), Chosen: q.zoned, Menu: zonePath +
			plan.WithQuery(understudy.Query{{Name: "back", Value: q.R.URL.RequestURI()}})},
		Footer: q.footer(), Caller: q.Caller.Name,
	}
}

// fill writes a page's template into a buffer, then sends it, or what its parts
// have left of it.
func (q layout) fill(status int, page, name string, data any) error {
	p, began := q.V.pages, q.V.Now()
	q.page = p.buffers.Get().(*bytes.Buffer)
	q.page.Reset()
	defer func() {
		if q.page.Cap() <= keepBuffer {
			p.buffers.Put(q.page)
		}
		q.page = nil
	}()
	if err := p.byName[page].ExecuteTemplate(q.page, name, data); err != nil {
		return fmt.Errorf("viewer: render %s: %w", page, err)
	}
	if q.out != nil {
		return response(q).finish()
	}
	response(q).times(began)
	q.preload()
	response(q).write(status, htmlType, q.page.Bytes())
	return nil
}

// htmlType is the media type of pages.
const htmlType = "text/html; charset=utf-8"

// preload tells browsers of the style sheet before they read the page (RFC 8288;
// HTML, 4.6.8, preload).
func (q layout) preload() {
	q.W.Header().Set("Link", "<"+q.V.pages.files.Address["viewer.css"]+">; rel=preload; as=style")
}

// send writes data.
func (q *Exchange) send(status int, contentType string, body []byte) {
	response{q}.times(time.Time{})
	response{q}.write(status, contentType, body)
}

// response sends an answer, whole or in pieces.
type response struct{ *Exchange }

// times sets Server-Timing.
func (q response) times(began time.Time) {
	var b strings.Builder
	add := func(name string, d time.Duration) {
		if b.Len() > 0 {
			b.WriteString(", ")
		}
		b.WriteString(name + ";dur=" + strconv.FormatFloat(float64(d)/1e6, 'f', 3, 64))
	}
	if q.Answer != nil {
		add("upstream", q.Answer.Upstream)
		add("store", q.Answer.Store)
	}
	if !began.IsZero() {
		add("render", q.since(began))
	}
	add("total", q.since(q.Start))
	if how := q.How(); how != "" {
		b.WriteString(`, cache;desc="` + how + `"`)
	}
	q.W.Header().Set("Server-Timing", b.String())
}

// smallest is the body from which compressing pays.
const smallest = 1 << 10

// headers sets those of every answer's body.
func (q response) headers(contentType string) http.Header {
	h := q.W.Header()
	h.Set("Content-Type", contentType)
	h.Set("Cache-Control", "private, no-store")
	h.Set("Vary", "Accept-Encoding, Authorization, Cookie")
	return h
}

func (q response) write(status int, contentType string, body []byte) {
	h := q.headers(contentType)
	if (len(body) >= smallest || len(q.Fragments) > 0) && AcceptsGzip(q.R) {
		packed := q.V.pages.buffers.Get().(*bytes.Buffer)
		defer q.V.pages.buffers.Put(packed)
		packed.Reset()
		if err := q.pack(packed, body); err == nil {
			h.Set("Content-Encoding", "gzip")
			body = packed.Bytes()
		}
	} else if len(q.Fragments) > 0 {
		var whole bytes.Buffer
		if err := q.writePlain(&whole, body); err == nil { // no write into it fails
			body = whole.Bytes()
		}
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	q.W.WriteHeader(status)
	if q.R.Method != http.MethodHead {
		_, _ = q.W.Write(body) // the reader has gone
	}
}

// pack compresses an answer.
func (q response) pack(into *bytes.Buffer, body []byte) error {
	if len(q.Fragments) > 0 {
		return q.writeGzip(into, body)
	}
	zw := q.V.pages.packers.Get().(*gzip.Writer)
	defer q.V.pages.packers.Put(zw)
	zw.Reset(into)
	if _, err := zw.Write(body); err != nil {
		return err
	}
	return zw.Close()
}

// How says how an answer came, in words.
func (q *Exchange) How() string {
	if q.Found {
		return "found in held records"
	}
	if q.Answer == nil {
		return ""
	}
	if !q.AsOf.At.IsZero() {
		return "made from what was known then"
	}
	age := longAgo(q.Answer.CurrentAge())
	switch q.Answer.Outcome {
	case request.Cold:
		if q.Answer.Page.InitialAge > 0 {
			return "from upstream, where it was " + longAgo(q.Answer.Page.InitialAge) + " old"
		}
		return "fresh from upstream"
	case request.Stale:
		return "cached, " + age + " old, being refreshed"
	case request.Composed:
		if newest := longAgo(q.Answer.Newest); q.Answer.Newest > 0 && newest != age {
			return "made from held records; their newest page came " + newest + " ago, all of them were walked " + age + " ago"
		}
		return "made from held records, " + age + " old"
	}
	return "cached, " + age + " old"
}

// notice is a word to the reader where the answer is not what upstream would
// say now: in an outage, or when it could not be kept.
func (q layout) notice() string {
	a := q.Answer
	if a == nil || a.Detail == "" || a.Detail == "composed" || !q.AsOf.At.IsZero() {
		return ""
	}
	if why, ok := strings.CutPrefix(a.Detail, "stale: "); ok {
		return "Upstream has not answered (" + why + "). This is what was held " + longAgo(a.Age) + " ago."
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

// SendJSON sends a value as data.
func (q *Exchange) SendJSON(v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("viewer: %s: %w", q.R.URL.Path, err)
	}
	q.send(http.StatusOK, "application/json", append(body, '\n'))
	return nil
}

// GoBack leads a form's reader to a page of ours.
func (q *Exchange) GoBack(to string) {
	q.W.Header().Set("Cache-Control", "no-store")
	http.Redirect(q.W, q.R, to, http.StatusSeeOther)
}
