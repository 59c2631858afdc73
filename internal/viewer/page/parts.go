// Parts: the pieces of a page, each sent as soon as it is ready, in any order.
//
//	<div class="parts">
//	  #shadow-root ...... a slot for each part, in the order of the page, and
//	  |                   in it the text that is shown while the part is read
//	  |-- div slot=p1 ... a part that is ready at once, and what stands below it
//	  |-- div slot=p3 ... the first part to become ready
//	  '-- div slot=p2 ... the last part
//
// The shadow root is declared in HTML (WHATWG HTML, 4.12.3, shadowrootmode), so parts move to their places without
// a script. It contains only slots: style sheet, ids and headings belong to the document. A browser that does not
// support it shows the parts in the order of their arrival.

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

// partsTimeout is how long a page waits for its parts. firstByteTimeout is how long it waits for the record or list
// that it shows, before it sends its head. Both begin with the request.
const (
	partsTimeout     = 5 * time.Millisecond
	firstByteTimeout = 20 * time.Millisecond
)

// Future is a read that runs in the background while a page is made (Baker and Hewitt, 1977).
type Future struct {
	done chan struct{} // a channel that is closed when the read has ended
	Err  error         // the error of the read; it is set before done is closed
	Stop func()        // cancels the read, whose result is then not needed
}

// HasEnded reports whether the read has ended.
func (f *Future) HasEnded() bool { return understudy.IsClosed(f.done) }

// tasks are the reads that run in the background of one page.
type tasks struct {
	ctx                      context.Context
	r                        *http.Request
	logger                   *slog.Logger
	partsWait, firstByteWait context.Context // contexts that end when the page stops waiting: for its parts, and for its first byte
	background               sync.WaitGroup  // counts the reads that are running
	futures                  []*Future       // the reads that the parts of the page need
	ended                    chan struct{}   // receives a value when a read has ended
	slots                    chan struct{}   // a semaphore that limits how many reads run at once
}

// Part is a piece of a page that is sent when its reads have ended. Draw returns the name and the data of its
// template, or no name if there is nothing to show. It runs at most once, on the page's goroutine, after all reads in
// Needs have ended. Inputs runs before Draw and returns all values that the HTML depends on. They are the key under
// which the HTML is cached. If Inputs is nil or returns nothing, the HTML is not cached.
type Part struct {
	Title    string
	Needs    []*Future
	Inputs   func() []any
	Draw     func() (name string, data any)
	wasReady bool // whether the part was ready when the page began
	drawn    bool
	html     template.HTML
}

// Parts are the parts of one page. The template of the page calls Open where the parts stand, and SendRest after
// everything below them.
type Parts struct {
	q            *Exchange
	page         string
	all          []*Part
	PendingParts int // the number of parts that are sent after the rest of the page
}

// Begin starts a read in the background, which may take at most limit. f must return when its context ends, because
// the exchange waits for it.
func (t *tasks) Begin(what string, limit time.Duration, f func(context.Context) error) *Future {
	ctx, stop := context.WithTimeout(t.ctx, limit)
	own := &Future{done: make(chan struct{}), Stop: stop}
	t.futures = append(t.futures, own)
	t.background.Go(func() {
		defer func() {
			close(own.done)
			understudy.Wake(t.ended) // the waiting page then looks at all reads
		}()
		defer stop()
		select {
		case t.slots <- struct{}{}:
			defer func() { <-t.slots }()
			own.Err = recoverPanics(func() error { return f(ctx) })
		case <-ctx.Done():
			own.Err = ctx.Err()
		}
		if own.Err != nil && ctx.Err() != context.Canceled && !errors.Is(own.Err, understudy.ErrForbidden) && FindSyntaxError(own.Err) == nil {
			t.logger.WarnContext(ctx, "viewer: part of a page", "path", t.r.URL.Path, "part", what, "error", own.Err)
		}
	})
	return own
}

// ReadFirst runs f, which reads the record or list that the page shows. If f takes longer than the page may wait,
// ReadFirst sends the head of the page. If the answer of f is not stored, it also calls beside, which may start other
// reads at the same time. beside may be nil.
func (q *Exchange) ReadFirst(f func(context.Context) error, beside func()) error {
	own := make(chan error, 1)
	q.Tasks.background.Go(func() { own <- recoverPanics(func() error { return f(q.Ctx) }) })
	select {
	case err := <-own:
		return err
	case <-time.After(partsTimeout):
	}
	if beside != nil {
		beside()
	}
	select {
	case err := <-own:
		return err
	case <-q.Tasks.firstByteWait.Done():
	}
	if canStream(q.R) && q.Ctx.Err() == nil {
		if h, ok := q.Reply.W.(*hinter); ok {
			h.sendHint() // if its timer is later than this one
		}
		if err := q.sendHead(); err != nil {
			return err
		}
	}
	return <-own
}

// waitForReads waits until all reads have ended, or until the context enough ends.
func (t *tasks) waitForReads(enough context.Context) {
	for slices.ContainsFunc(t.futures, func(f *Future) bool { return !f.HasEnded() }) {
		select {
		case <-t.ended:
		case <-enough.Done():
			return
		}
	}
}

// Parts waits for the parts of the page, as long as the page may wait. It returns them in the given order without the
// nil parts.
func (q *Exchange) Parts(page string, all ...*Part) *Parts {
	enough := q.Tasks.partsWait
	if !canStream(q.R) {
		enough = q.Ctx
	}
	q.Tasks.waitForReads(enough)
	p := &Parts{q: q, page: page}
	for _, one := range all {
		if one == nil {
			continue
		}
		if one.wasReady = one.isReady(); !one.wasReady {
			p.PendingParts++
		}
		p.all = append(p.all, one)
	}
	return p
}

// isReady reports whether all reads that the part needs have ended.
func (p *Part) isReady() bool {
	return !slices.ContainsFunc(p.Needs, func(f *Future) bool { return f != nil && !f.HasEnded() })
}

// Open returns the HTML of the parts that are ready. In the place of each other part it shows that the part is loading.
func (p *Parts) Open() template.HTML {
	if p == nil {
		return ""
	}
	for _, one := range p.all {
		if one.wasReady {
			p.drawPart(one)
		}
	}
	var b strings.Builder
	if p.PendingParts > 0 {
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
		case one.drawn && p.PendingParts > 0:
			p.writeSlot(&b, i)
		case one.drawn:
			b.WriteString(string(one.html))
		}
	}
	return template.HTML(b.String()) // this is safe HTML, because a template has escaped every text
}

// writeSlot writes a part into its place on the page. A part without content becomes a hidden element, which removes
// the text that the part is loading.
func (p *Parts) writeSlot(b *strings.Builder, i int) {
	hidden := ""
	if p.all[i].html == "" {
		hidden = " hidden"
	}
	b.WriteString(`<div slot="p` + strconv.Itoa(i) + `"` + hidden + ">\n" + string(p.all[i].html) + "</div>\n")
}

// SendRest sends the page as far as it is rendered. It then sends each part that is not ready yet, as soon as it is.
func (p *Parts) SendRest() (template.HTML, error) {
	if p == nil || p.PendingParts == 0 {
		return "", nil
	}
	q := p.q
	q.Reply.Started = true
	q.startStream()
	for p.PendingParts > 0 {
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
			if !one.drawn && one.isReady() {
				p.drawPart(one)
				p.writeSlot(&b, i)
				p.PendingParts--
			}
		}
		q.Reply.page.WriteString(b.String())
	}
	return "</div>\n", nil
}

// drawPart renders a part. If that fails, the part shows the error.
func (p *Parts) drawPart(one *Part) {
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
	err := recoverPanics(func() error {
		var of []any
		if one.Inputs != nil {
			of = one.Inputs()
		}
		if len(of) == 0 {
			return render(one.Draw())
		}
		kept, err := q.Reply.renderFragments(q.Identity("part "+p.page+" "+one.Title).With(q.V.Seed, of...), func() ([]string, any) {
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
		_ = render("broken", one.Title) // the template "broken" cannot fail
	}
}
