// Find: one answer to a search, and whether single records match it.

package search

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"understudy"
	"understudy/internal/query"
	"understudy/internal/search/lang"
	"understudy/kit/limiter"
	"understudy/spec"
)

// busyError is the error of too many searches at once. It is ErrUnavailable, but does not speak of upstream.
type busyError string

// Errors of searches and exports above the limits.
const (
	errBusy       busyError = "search: too many searches at once; try again in a moment"
	errOwnBusy    busyError = "search: as many searches of yours are under way as you may have; try again when one of them has ended"
	errExports    busyError = "search: too many exports at once; try again when one of them has ended"
	errOwnExports busyError = "search: as many exports of yours are under way as you may have; try again when one of them has ended"
)

// Error says what to do.
func (e busyError) Error() string { return string(e) }

// Unwrap is the error kind.
func (busyError) Unwrap() error { return understudy.ErrUnavailable }

// begin takes one of the places of searches that go on at once.
func (s *Searcher) begin(c understudy.Caller) (leave func(), err error) {
	leave, err = s.running.Take(c.Name)
	switch {
	case errors.Is(err, limiter.ErrEach):
		return nil, errOwnBusy
	case err != nil:
		return nil, errBusy
	}
	return leave, nil
}

// Find answers a search as the caller may see it. Errors: ErrInvalid (a *query.SyntaxError when it is the text),
// ErrForbidden, ErrUnavailable when too many searches run, of all callers or of one, and those of the store
// (ErrIndexing, ErrClosed). A search that takes too long is no error: its answer is Partial.
func (s *Searcher) Find(ctx context.Context, c understudy.Caller, a query.SearchRequest) (*query.SearchResult, error) {
	leave, err := s.begin(c)
	if err != nil {
		return nil, err
	}
	defer leave()
	v := &execution{s: s, c: c, request: &a, position: position{Now: s.o.Now().Unix()}}
	if a.Cursor != "" {
		if v.position, err = s.open(c, &a); err != nil {
			return nil, err
		}
	}
	if v.q, err = s.read(c, &a, time.Unix(v.position.Now, 0)); err != nil {
		return nil, err
	}
	if v.order, err = orderOf(v.q, a.Sort); err != nil {
		return nil, err
	}
	if v.limit = a.Limit; v.limit == 0 {
		v.limit = query.DefaultHits
	}
	return v.find(ctx)
}

func (v *execution) find(ctx context.Context) (*query.SearchResult, error) {
	limited, cancel := context.WithTimeout(ctx, v.s.o.Limits.Time)
	defer cancel()
	v.out = query.SearchResult{Query: v.q.Tree.String(), Hits: []query.SearchHit{}, Notes: []string{}}
	if v.request.CountOnly {
		if err := v.count(ctx); err != nil {
			return nil, err
		}
		return &v.out, nil
	}
	look := v.run
	if v.order.window {
		look = v.window
	}
	for _, step := range []func(context.Context) error{v.exact, look} {
		if err := v.failed(ctx, step(limited)); err != nil {
			return nil, err
		}
	}
	if v.q.Hint != "" && len(v.out.Hits) == 0 && !v.out.Partial && v.request.Cursor == "" {
		v.out.Notes = append(v.out.Notes, v.q.Hint)
	}
	if v.request.Facets {
		if err := v.count(ctx); err != nil {
			return nil, err
		}
	}
	if most := v.q.MaxMatches(); v.out.Next == "" && !v.out.Partial && (most == 0 || len(v.out.Hits) < most) {
		v.out.Incomplete = v.s.unheld(ctx, v.q.Views)
	}
	return &v.out, nil
}

// unheld says which kinds are not known to be held whole; "" when all are.
func (s *Searcher) unheld(ctx context.Context, views []*lang.KindView) string {
	if s.o.Held == nil {
		return ""
	}
	var names []string
	for _, view := range views {
		if complete, _ := s.o.Held(ctx, view.Source, view.Kind.Name); !complete {
			names = append(names, inSentence(cmp.Or(view.Kind.Title, view.Kind.Name)))
		}
	}
	switch len(names) {
	case 0:
		return ""
	case 1, 2, 3:
		return "not all " + strings.Join(names, " and ") + " are held here; only held records were searched"
	}
	return fmt.Sprintf("not all records of %d kinds are held here, %s among them; only held records were searched", len(names), names[0])
}

// inSentence returns a title as it is written within a sentence: "phone numbers", but "API keys".
func inSentence(title string) string {
	first, size := utf8.DecodeRuneInString(title)
	if second, _ := utf8.DecodeRuneInString(title[size:]); unicode.IsUpper(second) {
		return title
	}
	return string(unicode.ToLower(first)) + title[size:]
}

// failed is nil when the time of the search is over, which makes the answer partial.
func (v *execution) failed(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		v.part(0, "the time for one answer ran out")
		return nil
	}
	return fmt.Errorf("search: %w", err)
}

// part marks the answer as partial. The number of records read counts hidden ones too,
// so only a caller that sees everything gets it.
func (v *execution) part(looked int, why string) {
	if v.out.Partial {
		return // it is marked already
	}
	v.out.Partial = true
	note := "Only a part was looked through: " + why + ". Go on, or say more closely what you look for."
	if looked > 0 && seesAll(v.q.Views) {
		note = fmt.Sprintf("Looked at the newest %d: %s. Go on, or say more closely what you look for.", looked, why)
		if v.order.up || v.request.Cursor != "" {
			note = fmt.Sprintf("Looked at %d: %s. Go on, or say more closely what you look for.", looked, why)
		}
	}
	v.out.Notes = append(v.out.Notes, note)
}

// seesAll reports whether a caller with some views sees everything in their kinds.
func seesAll(views []*lang.KindView) bool {
	return !slices.ContainsFunc(views, func(s *lang.KindView) bool { return !s.Whole && !s.All || s.Rule != nil })
}

// Annotations are what people wrote on records, for those who see it.
type Annotations interface {
	// SeesAnnotations reports whether a caller sees what was written on records of a source.
	CanSeeAnnotations(c understudy.Caller, source string) bool
	// Annotation is what was written on a record; nil: nothing.
	Annotation(source, kind, id string) *understudy.Annotation
	// Annotations are those of a kind.
	Annotations(source, kind string) []*understudy.Annotation
	// AnnotationsVersion rises with every change of one.
	AnnotationsVersion() int64
}

// annotationsOf are those of one kind.
func annotationsOf(all Annotations, src *spec.Source, k *spec.Kind) *lang.Annotations {
	return &lang.Annotations{
		Of:  func(id string) *understudy.Annotation { return all.Annotation(src.Name, k.Name, id) },
		All: func() []*understudy.Annotation { return all.Annotations(src.Name, k.Name) },
	}
}

// written is the version of what people wrote on records, when a query asks for it, else 0.
func (s *Searcher) written(q *lang.BoundQuery) int64 {
	if !q.Annotations {
		return 0
	}
	return s.o.Annotations.AnnotationsVersion()
}

// hit is a record as the caller sees it.
func (s *Searcher) hit(caller understudy.Caller, q *lang.BoundQuery, c *lang.Candidate) (query.SearchHit, error) {
	r := c.Record
	body, err := s.o.Gate.MakeView(caller, r)
	if err != nil {
		s.o.Logger.Debug("search: view", "source", r.Source, "kind", r.Kind, "err", err)
		return query.SearchHit{}, err
	}
	h := query.SearchHit{Source: r.Source, Kind: r.Kind, Shape: r.Shape, Body: body, Snippets: snippets(q, c)}
	if c.View.SeesID() {
		h.ID = r.ID
		h.URL = "/" + url.PathEscape(r.Source) + "/" + url.PathEscape(r.Kind) + "/" + url.PathEscape(r.ID)
	}
	if c.View.Annotations != nil {
		if a := c.View.Annotations.Of(r.ID); a != nil {
			h.Notes, h.Handled = a.Notes, a.Handled
		}
	}
	if _, ok := c.View.Fields[c.View.Kind.Clock]; ok {
		h.Clock = query.UnixTime(c.ClockAlone())
	}
	return h, nil
}

// uses says how it is told that a number of our own is in use: a record that names it is
// looked for, by the indexes. A caller from whom a row rule hides records cannot tell.
func (s *Searcher) uses(c understudy.Caller, src *spec.Source, view *lang.KindView) {
	why, used := "", view.Kind.UsedIn
	for _, name := range used {
		one := s.view(c, src, src.Spec.Kind(name))
		switch {
		case !s.o.Gate.CanSee(c, src.Name, name) || one.Rule != nil:
			why = "all " + name
		case !one.Numbers():
			why = "every number and date of " + name
		}
	}
	var mu sync.Mutex
	known := map[string]bool{}
	view.Uses(why, func(number string, since int64) bool {
		mu.Lock()
		defer mu.Unlock()
		key := fmt.Sprint(number, " ", since)
		in, ok := known[key]
		if !ok {
			ctx, cancel := context.WithTimeout(s.sums.ctx, s.o.Limits.Time)
			defer cancel()
			q := query.RecordQuery{Source: src.Name, Kinds: used, Limit: 1, ExpectedRows: 1,
				Predicates: []query.Predicate{{Number: number}, {From: since}}}
			err := s.o.Store.Seek(ctx, q, func(query.Hit) bool { in = true; return false })
			in = in || err != nil // a number of which nothing is known is not called idle
			known[key] = in
		}
		return in
	})
}

// Test compiles a search to a test of one record: whether the caller may find it, and it matches. The text means the
// present time; compile it again when that has moved on. Errors: ErrInvalid (a *query.SyntaxError when it is the
// text), ErrForbidden. The test is for one goroutine.
func (s *Searcher) Test(c understudy.Caller, a query.SearchRequest) (func(*understudy.Record) bool, error) {
	q, err := s.read(c, &a, s.o.Now())
	if err != nil {
		return nil, err
	}
	var one lang.Candidate
	return func(r *understudy.Record) bool { return matching(q, &one, r) }, nil
}

// Show calls yield with the records of some ids that match a search, as the caller sees
// them, at most query.MaxValues of one kind. A hit is valid until yield returns. Errors:
// as Test, ErrForbidden when the grant is over, and those of the store.
func (s *Searcher) Show(ctx context.Context, c understudy.Caller, a query.SearchRequest, source, kind string, ids []string,
	yield func(query.SearchHit)) error {
	q, err := s.read(c, &a, s.o.Now())
	if err != nil {
		return err
	}
	var one lang.Candidate
	var told error
	err = s.o.Store.Seek(ctx, query.RecordQuery{Source: source, Kinds: []string{kind}, IDs: ids}, func(f query.Hit) bool {
		if !matching(q, &one, f.Record) {
			return true
		}
		var h query.SearchHit
		if h, told = s.hit(c, q, &one); told == nil {
			yield(h)
		}
		return told == nil
	})
	if err == nil {
		err = told
	}
	if err != nil {
		return fmt.Errorf("search: show: %w", err)
	}
	return nil
}

// matching makes c of a record and reports whether it matches.
func matching(q *lang.BoundQuery, c *lang.Candidate, r *understudy.Record) bool {
	for _, in := range q.Views {
		if in.Source == r.Source && in.Kind.Name == r.Kind {
			return in.See(c, r) && q.Cond.Holds(c)
		}
	}
	return false
}
