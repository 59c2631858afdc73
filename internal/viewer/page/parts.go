// Parts: the pieces of a page that are sent as they come, whichever is first.
//
//	<div class="parts">
//	  #shadow-root ...... a slot for each part, in the order of the page, and
//	  |                   in it what is said while the part is on its way
//	  |-- div slot=p1 ... what is there, and what stands below the parts: at once
//	  |-- div slot=p3 ... the first part that comes
//	  '-- div slot=p2 ... the last
//
// The shadow root is declared in HTML (WHATWG HTML, 4.12.3, shadowrootmode), so
// that parts take their places without a script. It holds slots and nothing
// else: style sheet, ids and headings are the document's. A browser that does
// not know it shows the parts in the order they came.

package page

import (
	"context"
	"errors"
	"html/template"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"understudy"
)

// patience is how long a page waits for what may be late, from its beginning;
// firstByte for what it is nothing without.
const (
	patience  = 5 * time.Millisecond
	firstByte = 20 * time.Millisecond
)

// Future is a read behind a page (Baker and Hewitt, 1977).
type Future struct {
	done chan struct{} // closed at its end
	Err  error         // set before
	Stop func()        // ends it: what it reads is not needed
}

// Over reports whether the read has ended.
func (f *Future) Over() bool {
	select {
	case <-f.done:
		return true
	default:
		return false
	}
}

// tasks are the reads behind one page.
type tasks struct {
	ctx        context.Context
	r          *http.Request
	logger     *slog.Logger
	soon, late context.Context // over when the page waits no more for its parts; for its first byte
	behind     sync.WaitGroup  // what runs behind the page
	futures    []*Future       // of it, those that parts need
	ended      chan struct{}   // told when one of them has ended
	slots      chan struct{}   // bounds how many run at once
}

// Part is one piece of a page. draw runs once at most, when everything it needs has
// ended, on the goroutine of the page; no name: there is nothing to show. of, which
// runs before it, is all that draw makes it of beside what every identity has: what
// was drawn of the same is not drawn again. nil, or of nothing: it is.
type Part struct {
	Title string
	Needs []*Future
	Of    func() []any
	Draw  func() (name string, data any)
	held  bool // it is there when the page begins
	drawn bool
	html  template.HTML
}

// Parts are those of one page. Its template calls Open where they stand and Rest
// at the end of what stands below them.
type Parts struct {
	q    *Exchange
	page string
	all  []*Part
	Late int // places that were left for parts
}

// Begin starts a read behind the page, for at most limit. f must end when its
// context does; the exchange waits for it.
func (t *tasks) Begin(what string, limit time.Duration, f func(context.Context) error) *Future {
	ctx, stop := context.WithTimeout(t.ctx, limit)
	own := &Future{done: make(chan struct{}), Stop: stop}
	t.futures = append(t.futures, own)
	t.behind.Go(func() {
		defer func() {
			close(own.done)
			select {
			case t.ended <- struct{}{}:
			default: // the waiter has been told already
			}
		}()
		defer stop()
		select {
		case t.slots <- struct{}{}:
			defer func() { <-t.slots }()
			own.Err = contain(func() error { return f(ctx) })
		case <-ctx.Done():
			own.Err = ctx.Err()
		}
		if own.Err != nil && ctx.Err() != context.Canceled && !errors.Is(own.Err, understudy.ErrForbidden) && SyntaxOf(own.Err) == nil {
			t.logger.WarnContext(ctx, "viewer: part of a page", "path", t.r.URL.Path, "part", what, "error", own.Err)
		}
	})
	return own
}

// First runs what the page is nothing without. When that is not held, beside (nil:
// nothing) begins what can be read at the same time. When it takes longer than the
// first byte may, what stands above it goes out.
func (q *Exchange) First(f func(context.Context) error, beside func()) error {
	own := make(chan error, 1)
	q.Tasks.behind.Go(func() { own <- contain(func() error { return f(q.Ctx) }) })
	held := time.NewTimer(patience)
	defer held.Stop()
	select {
	case err := <-own:
		return err
	case <-held.C:
	}
	if beside != nil {
		beside()
	}
	select {
	case err := <-own:
		return err
	case <-q.Tasks.late.Done():
	}
	if streams(q.R) && q.Ctx.Err() == nil {
		if err := q.above(); err != nil {
			return err
		}
	}
	return <-own
}

// settle waits until all that was begun has ended, or enough is over.
func (t *tasks) settle(enough context.Context) {
	for slices.ContainsFunc(t.futures, func(f *Future) bool { return !f.Over() }) {
		select {
		case <-t.ended:
		case <-enough.Done():
			return
		}
	}
}

// Parts are the page's pieces, in its order, once it has waited for them as long as
// it may. A nil part is passed over.
func (q *Exchange) Parts(page string, all ...*Part) *Parts {
	enough := q.Tasks.soon
	if !streams(q.R) {
		enough = q.Ctx
	}
	q.Tasks.settle(enough)
	p := &Parts{q: q, page: page}
	for _, one := range all {
		if one == nil {
			continue
		}
		if one.held = one.ready(); !one.held {
			p.Late++
		}
		p.all = append(p.all, one)
	}
	return p
}

// ready reports whether everything a part needs has ended.
func (p *Part) ready() bool {
	for _, f := range p.Needs {
		if f != nil && !f.Over() {
			return false
		}
	}
	return true
}

// Open is the parts that are there; with places for the others, when there are
// any.
func (p *Parts) Open() template.HTML {
	if p == nil {
		return ""
	}
	for _, one := range p.all {
		if one.held {
			p.fill(one)
		}
	}
	var b strings.Builder
	if p.Late > 0 {
		b.WriteString(`<div class="parts"><template shadowrootmode="open">`)
		for i, one := range p.all {
			b.WriteString(`<slot name="p` + strconv.Itoa(i) + `">`)
			if !one.drawn {
				b.WriteString(`<p part="waiting" role="status">` + template.HTMLEscapeString(one.Title) + ` …</p>`)
			}
			b.WriteString(`</slot>`)
		}
		b.WriteString("<slot></slot></template>\n")
	}
	for i, one := range p.all {
		switch {
		case one.drawn && p.Late > 0:
			p.place(&b, i)
		case one.drawn:
			b.WriteString(string(one.html))
		}
	}
	return template.HTML(b.String()) // every text of it went through a template
}

// place is a part that goes to its slot; of one with nothing to show, what takes
// the place of the words that it is on its way.
func (p *Parts) place(b *strings.Builder, i int) {
	hidden := ""
	if p.all[i].html == "" {
		hidden = " hidden"
	}
	b.WriteString(`<div slot="p` + strconv.Itoa(i) + `"` + hidden + ">\n" + string(p.all[i].html) + "</div>\n")
}

// Rest sends the page as far as it is, then each part when it has come.
func (p *Parts) Rest() (template.HTML, error) {
	if p == nil || p.Late == 0 {
		return "", nil
	}
	q := p.q
	q.Reply.Sent = true
	q.begin()
	for p.Late > 0 {
		if err := q.Reply.flush(q.Reply.page); err != nil {
			return "", err
		}
		select {
		case <-q.Tasks.ended:
		case <-q.R.Context().Done():
			return "", q.R.Context().Err()
		}
		var b strings.Builder
		for i, one := range p.all {
			if !one.drawn && one.ready() {
				p.fill(one)
				p.place(&b, i)
				p.Late--
			}
		}
		q.Reply.page.WriteString(b.String())
	}
	return "</div>\n", nil
}

// fill draws a part. One that cannot be drawn says so in its place.
func (p *Parts) fill(one *Part) {
	one.drawn = true
	q := p.q
	render := func(name string, data any) (err error) {
		var b strings.Builder
		if name != "" {
			err = q.V.pages.templates.ExecuteTemplate(&b, name, data)
		}
		one.html = template.HTML(b.String())
		return err
	}
	err := contain(func() error {
		var of []any
		if one.Of != nil {
			of = one.Of()
		}
		if len(of) == 0 {
			return render(one.Draw())
		}
		kept, err := q.Reply.fragmentsOf(q.Identity("part "+p.page+" "+one.Title).With(q.V.Seed, of...), func() ([]string, any) {
			name, data := one.Draw()
			if name == "" {
				return nil, nil
			}
			return []string{name}, data
		})
		if len(kept) > 0 {
			one.html = kept[0]
		}
		return err
	})
	if err != nil {
		q.V.Options.Logger.ErrorContext(q.Ctx, "viewer: part of a page", "path", q.R.URL.Path, "part", one.Title, "error", err)
		_ = render("broken", one.Title) // a template without conditions
	}
}
