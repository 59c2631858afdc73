// This file answers a search, and tests whether single records match it.

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

// busyError is returned when too many searches or exports run. It wraps ErrUnavailable, and its text does not mention
// the upstream.
type busyError string

// Errors for searches and exports that exceed the number that may run at once.
const (
	errBusy       busyError = "search: too many searches at once; try again in a moment"
	errOwnBusy    busyError = "search: you have too many running searches; try again when one of them has ended"
	errExports    busyError = "search: too many exports are running; try again when one of them has ended"
	errOwnExports busyError = "search: you have too many running exports; try again when one of them has ended"
)

// Error returns a sentence that tells the caller what to do.
func (e busyError) Error() string { return string(e) }

// Unwrap returns ErrUnavailable.
func (busyError) Unwrap() error { return understudy.ErrUnavailable }

// begin reserves a place among the searches that run at once. The caller must call leave at the end.
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

// Find answers a search as the caller may see it. It returns ErrInvalid (a *query.SyntaxError for a wrong text),
// ErrForbidden, ErrUnavailable when too many searches run in total or for this caller, and errors of the store
// (ErrIndexing, ErrClosed). A search that reaches its time limit returns no error: its result is Partial.
func (s *Searcher) Find(ctx context.Context, c understudy.Caller, a query.SearchRequest) (*query.SearchResult, error) {
	leave, err := s.begin(c)
	if err != nil {
		return nil, err
	}
	defer leave()
	v := &execution{s: s, caller: c, request: &a, position: position{SearchedAt: s.o.Now().Unix()}}
	if a.Cursor != "" {
		if v.position, err = s.openCursor(c, &a); err != nil {
			return nil, err
		}
	}
	if v.q, err = s.read(c, &a, time.Unix(v.position.SearchedAt, 0)); err != nil {
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

// find runs a prepared search: first the record whose id is the text, then the matches, then the counts.
func (v *execution) find(ctx context.Context) (*query.SearchResult, error) {
	limited, cancel := context.WithTimeout(ctx, v.s.o.Limits.Time)
	defer cancel()
	v.result = query.SearchResult{Query: v.q.Tree.String(), Hits: []query.SearchHit{}, Notes: []string{}}
	if area := v.q.Cond.Area(); area != nil {
		v.result.Near = &area.Circle
	}
	if v.request.CountOnly {
		if err := v.count(ctx); err != nil {
			return nil, err
		}
		return &v.result, nil
	}
	look := v.run
	if v.order.window {
		look = v.runWindow
	}
	for _, step := range []func(context.Context) error{v.findByID, look} {
		if err := v.markTimeout(ctx, step(limited)); err != nil {
			return nil, err
		}
	}
	if v.q.Hint != "" && len(v.result.Hits) == 0 && !v.result.Partial && v.request.Cursor == "" {
		v.result.Notes = append(v.result.Notes, v.q.Hint)
	}
	if v.request.Facets {
		if err := v.count(ctx); err != nil {
			return nil, err
		}
	}
	if maxMatches := v.q.MaxMatches(); v.result.Next == "" && !v.result.Partial && (maxMatches == 0 || len(v.result.Hits) < maxMatches) {
		v.result.Incomplete = v.s.incompleteNote(ctx, v.q.Views)
	}
	return &v.result, nil
}

// incompleteNote returns a sentence that names the kinds whose records are not all stored, or "" if all kinds are complete.
func (s *Searcher) incompleteNote(ctx context.Context, views []*lang.KindView) string {
	if s.o.Completeness == nil {
		return ""
	}
	var names []string
	for _, view := range views {
		if complete, _ := s.o.Completeness(ctx, view.Source, view.Kind.Name); !complete {
			names = append(names, lowerTitle(cmp.Or(view.Kind.Title, view.Kind.Name)))
		}
	}
	switch len(names) {
	case 0:
		return ""
	case 1, 2, 3:
		return "not all " + strings.Join(names, " and ") + " are stored here; only stored records were searched"
	}
	return fmt.Sprintf("not all records of %d kinds are stored here, such as %s; only stored records were searched", len(names), names[0])
}

// lowerTitle returns a title as it is written within a sentence: "phone numbers", but "API keys".
func lowerTitle(title string) string {
	first, size := utf8.DecodeRuneInString(title)
	if second, _ := utf8.DecodeRuneInString(title[size:]); unicode.IsUpper(second) {
		return title
	}
	return string(unicode.ToLower(first)) + title[size:]
}

// markTimeout marks the result as partial and returns nil if err is the time limit of the search. It returns any
// other error unchanged.
func (v *execution) markTimeout(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		v.markPartial(0, "the time limit of one answer was reached")
		return nil
	}
	return fmt.Errorf("search: %w", err)
}

// markPartial marks the result as partial and notes why. The number of records read (looked) includes hidden
// records, so only a caller that sees everything gets this number.
func (v *execution) markPartial(looked int, why string) {
	if v.result.Partial {
		return // only the first reason is kept
	}
	v.result.Partial = true
	note := "Only a part was searched: " + why + ". Continue, or narrow the search."
	if looked > 0 && canSeeAll(v.q.Views) {
		note = fmt.Sprintf("Searched the newest %d: %s. Continue, or narrow the search.", looked, why)
		if v.order.oldestFirst || v.request.Cursor != "" {
			note = fmt.Sprintf("Searched %d: %s. Continue, or narrow the search.", looked, why)
		}
	}
	v.result.Notes = append(v.result.Notes, note)
}

// canSeeAll reports whether nothing in the kinds of the views is hidden from the caller.
func canSeeAll(views []*lang.KindView) bool {
	return !slices.ContainsFunc(views, func(s *lang.KindView) bool { return !s.AllFields && !s.Unnamed || s.Rule != nil })
}

// Annotations are the notes and marks that people wrote on records.
type Annotations interface {
	// CanSeeAnnotations reports whether a caller sees the annotations of a source's records.
	CanSeeAnnotations(c understudy.Caller, source string) bool
	// Annotation returns the annotation of a record, or nil if there is none.
	Annotation(source, kind, id string) *understudy.Annotation
	// Annotations returns all annotations of a kind.
	Annotations(source, kind string) []*understudy.Annotation
	// AnnotationsVersion returns a number that increases with every change of an annotation.
	AnnotationsVersion() int64
}

// annotationsVersion returns the version of the annotations if the query reads them, else 0.
func (s *Searcher) annotationsVersion(q *lang.BoundQuery) int64 {
	if !q.Annotations {
		return 0
	}
	return s.o.Annotations.AnnotationsVersion()
}

// newHit returns a record as the caller sees it.
func (s *Searcher) newHit(caller understudy.Caller, q *lang.BoundQuery, c *lang.Candidate) (query.SearchHit, error) {
	r := c.Record
	body, err := s.o.Gate.MakeView(caller, r)
	if err != nil {
		s.o.Logger.Debug("search: view", "source", r.Source, "kind", r.Kind, "err", err)
		return query.SearchHit{}, err
	}
	h := query.SearchHit{Source: r.Source, Kind: r.Kind, Shape: r.Shape, Body: body, Snippets: snippets(q, c)}
	if c.View.CanSeeID() {
		h.ID = r.ID
		h.URL = "/" + url.PathEscape(r.Source) + "/" + url.PathEscape(r.Kind) + "/" + url.PathEscape(r.ID)
	}
	if c.View.Annotations != nil {
		if a := c.View.Annotations.Find(r.ID); a != nil {
			h.Notes, h.Handled = a.Notes, a.Handled
		}
	}
	if _, ok := c.View.Fields[c.View.Kind.Clock]; ok {
		h.Clock = query.UnixTime(c.ClockField())
	}
	return h, nil
}

// setUses gives the view a function that reports whether a phone number of ours is in use. The function looks for a record
// that names the number. If a row rule hides records from the caller, the view gets the reason why it cannot tell.
func (s *Searcher) setUses(c understudy.Caller, src *spec.Source, view *lang.KindView) {
	why, used := "", view.Kind.UsedIn
	for _, name := range used {
		one := s.view(c, src, src.Spec.Kind(name))
		switch {
		case !s.o.Gate.CanSee(c, src.Name, name) || one.Rule != nil:
			why = "all " + name
		case !one.CanSeeNumbers():
			why = "every number and date of " + name
		}
	}
	var mu sync.Mutex
	known := map[string]bool{}
	view.SetUses(why, func(number string, since int64) bool {
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
			in = in || err != nil // if the store fails, the number counts as in use
			known[key] = in
		}
		return in
	})
}

// CompileTest compiles a search to a test of one record: the caller may find the record, and the record matches.
// Relative times count from the compilation, so the test must be compiled again later. CompileTest returns
// ErrInvalid (a *query.SyntaxError for a wrong text) or ErrForbidden. The test is not safe for concurrent use.
func (s *Searcher) CompileTest(c understudy.Caller, a query.SearchRequest) (func(*understudy.Record) bool, error) {
	q, err := s.read(c, &a, s.o.Now())
	if err != nil {
		return nil, err
	}
	var one lang.Candidate
	return func(r *understudy.Record) bool { return matchRecord(q, &one, r) }, nil
}

// Show calls yield with those of the given records that match a search, as the caller sees them. At most
// query.MaxValues ids of one kind are allowed. A hit is valid until yield returns. Show returns the errors of
// CompileTest and of the store, and ErrForbidden when the grant ended.
func (s *Searcher) Show(ctx context.Context, c understudy.Caller, a query.SearchRequest, source, kind string, ids []string,
	yield func(query.SearchHit)) error {
	q, err := s.read(c, &a, s.o.Now())
	if err != nil {
		return err
	}
	var one lang.Candidate
	var yieldErr error
	err = s.o.Store.Seek(ctx, query.RecordQuery{Source: source, Kinds: []string{kind}, IDs: ids}, func(f query.Hit) bool {
		if !matchRecord(q, &one, f.Record) {
			return true
		}
		var h query.SearchHit
		if h, yieldErr = s.newHit(c, q, &one); yieldErr == nil {
			yield(h)
		}
		return yieldErr == nil
	})
	if err == nil {
		err = yieldErr
	}
	if err != nil {
		return fmt.Errorf("search: show: %w", err)
	}
	return nil
}

// matchRecord sets c to the record. It reports whether the caller may find the record and the record matches.
func matchRecord(q *lang.BoundQuery, c *lang.Candidate, r *understudy.Record) bool {
	for _, in := range q.Views {
		if in.Source == r.Source && in.Kind.Name == r.Kind {
			return in.Read(c, r) && q.Cond.Match(c)
		}
	}
	return false
}
