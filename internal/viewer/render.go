// Render: a page is written into a buffer whole, then sent with its times.

package viewer

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"

	"understudy"
)

//go:embed templates/*.html
var templateFiles embed.FS

// pages are the templates, read once, and the buffers they are rendered into.
type pages struct {
	byName  map[string]*template.Template
	files   *files
	buffers sync.Pool
	packers sync.Pool
}

// keepBuffer is the largest buffer kept for the next page.
const keepBuffer = 1 << 20

func readPages(fs *files) (*pages, error) {
	p := &pages{byName: map[string]*template.Template{}, files: fs}
	funcs := template.FuncMap{"upper": upperFirst, "count": thousands}
	layout, err := template.New("layout.html").Funcs(funcs).ParseFS(templateFiles, "templates/layout.html", "templates/table.html", "templates/bar.html", "templates/timeline.html")
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"home", "list", "detail", "number", "conversation", "search", "failure", "compare", "jobs"} {
		page, err := layout.Clone()
		if err != nil {
			return nil, err
		}
		if p.byName[name], err = page.ParseFS(templateFiles, "templates/"+name+".html"); err != nil {
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
	Title   string
	CSS     string
	JS      string
	Keys    string
	Jumps   []jump
	Icon    string
	Where   string // which page this is: "home", "list"
	Source  *sourcePlan
	Nav     nav
	Banners []banner
	Typed   string // what the search box holds
	Finds   bool   // it takes words, too
	Zone    zoneMenu
	Then    *then  // the earlier moment shown
	Notice  string // what a reader should know of the answer's age
	Footer  footer
	Main    any
	Version string
	Caller  string
}

type zoneMenu struct {
	Name    string
	Chosen  bool
	Back    string
	Options template.HTML
}

// footer says how long the answer took; its methods run when the template
// reaches it, at the end of the page.
type footer struct {
	q      *visit
	began  time.Time
	How    string
	Detail string
}

// Total is the time since the request came.
func (f footer) Total() string { return millis(f.q.since(f.q.start)) }

// Render is the time since the template began.
func (f footer) Render() string { return millis(f.q.since(f.began)) }

// Upstream is upstream's time for this answer, "" when it was not asked.
func (f footer) Upstream() string {
	if f.q.answer == nil || f.q.answer.Upstream == 0 {
		return ""
	}
	return millis(f.q.answer.Upstream)
}

// render writes a page.
func (q *visit) render(status int, page, title string, main any) error {
	p, began := q.v.pages, q.v.Now()
	f := frame{
		Title: title, Where: page, Main: main, Source: q.source, Nav: q.nav(), Banners: q.banners(), Typed: q.typed, Finds: q.findable(), Then: q.then(), Notice: q.notice(), Version: q.v.Version,
		CSS: p.files.address["viewer.css"], JS: p.files.address["viewer.js"], Keys: p.files.address["keys.js"], Jumps: q.jumps(), Icon: p.files.address["icon.svg"],
		Zone:   zoneMenu{Name: q.zone.String(), Chosen: q.zoned, Back: q.r.URL.RequestURI(), Options: q.v.zones.options},
		Footer: footer{q: q, began: began, How: q.how()}, Caller: q.caller.Name,
	}
	return q.fill(status, page, "layout.html", f, began)
}

// renderPart answers with a part of a page.
func (q *visit) renderPart(page, part string, data any) error {
	return q.fill(http.StatusOK, page, part, data, q.v.Now())
}

// fill writes a page's template into a buffer, then sends it.
func (q *visit) fill(status int, page, name string, data any, began time.Time) error {
	p := q.v.pages
	buf := p.buffers.Get().(*bytes.Buffer)
	buf.Reset()
	defer func() {
		if buf.Cap() <= keepBuffer {
			p.buffers.Put(buf)
		}
	}()
	if err := p.byName[page].ExecuteTemplate(buf, name, data); err != nil {
		return fmt.Errorf("viewer: render %s: %w", page, err)
	}
	q.times(began)
	q.write(status, "text/html; charset=utf-8", buf.Bytes())
	return nil
}

// send writes data.
func (q *visit) send(status int, contentType string, body []byte) {
	q.times(time.Time{})
	q.write(status, contentType, body)
}

// times sets Server-Timing.
func (q *visit) times(began time.Time) {
	var b strings.Builder
	add := func(name string, d time.Duration) {
		if b.Len() > 0 {
			b.WriteString(", ")
		}
		b.WriteString(name + ";dur=" + strconv.FormatFloat(float64(d)/1e6, 'f', 3, 64))
	}
	if q.answer != nil {
		add("upstream", q.answer.Upstream)
		add("store", q.answer.Store)
	}
	if !began.IsZero() {
		add("render", q.since(began))
	}
	add("total", q.since(q.start))
	if how := q.how(); how != "" {
		b.WriteString(`, cache;desc="` + how + `"`)
	}
	q.w.Header().Set("Server-Timing", b.String())
}

// smallest is the body from which compressing pays.
const smallest = 1 << 10

func (q *visit) write(status int, contentType string, body []byte) {
	h := q.w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Cache-Control", "private, no-store")
	h.Set("Vary", "Accept-Encoding, Authorization, Cookie")
	if len(body) >= smallest && acceptsGzip(q.r) {
		packed := q.v.pages.buffers.Get().(*bytes.Buffer)
		defer q.v.pages.buffers.Put(packed)
		packed.Reset()
		zw := q.v.pages.packers.Get().(*gzip.Writer)
		defer q.v.pages.packers.Put(zw)
		zw.Reset(packed)
		if _, err := zw.Write(body); err == nil && zw.Close() == nil {
			h.Set("Content-Encoding", "gzip")
			body = packed.Bytes()
		}
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	q.w.WriteHeader(status)
	if q.r.Method != http.MethodHead {
		_, _ = q.w.Write(body) // the reader has gone; nobody is left to tell
	}
}

// how says how an answer came, in words.
func (q *visit) how() string {
	if q.found {
		return "found in held records"
	}
	if q.answer == nil {
		return ""
	}
	if !q.asOf.at.IsZero() {
		return "made from what was known then"
	}
	age := longAgo(q.answer.Age)
	switch q.answer.How {
	case understudy.Cold:
		return "fresh from upstream"
	case understudy.Stale:
		return "cached, " + age + " old, being refreshed"
	case understudy.Composed:
		return "made from held records, " + age + " old"
	}
	return "cached, " + age + " old"
}

// notice is a word to the reader where the answer is not what upstream would
// say now: in an outage, or when it could not be kept.
func (q *visit) notice() string {
	a := q.answer
	if a == nil || a.Detail == "" || a.Detail == "composed" || !q.asOf.at.IsZero() {
		return ""
	}
	if why, ok := strings.CutPrefix(a.Detail, "stale: "); ok {
		return "Upstream has not answered (" + why + "). This is what was held " + longAgo(a.Age) + " ago."
	}
	return upperFirst(a.Detail) + "."
}

// thousands writes a count with a thin mark between thousands.
func thousands(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
