// This file contains the Searcher with its options and limits, and selects the kinds that a caller may search.

// Package search finds records by words and conditions, as the caller's role may see them.
package search

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"understudy"
	"understudy/internal/export"
	"understudy/internal/query"
	"understudy/internal/search/columns"
	"understudy/internal/search/lang"
	"understudy/kit/limiter"
	"understudy/kit/token"
	"understudy/spec"
)

// Store finds records. store.DB implements it.
type Store interface {
	// Seek calls yield with the records of a query, ordered by place. It may also yield records that do not match.
	Seek(ctx context.Context, q query.RecordQuery, yield func(query.Hit) bool) error
	// Count counts the records of a query. It stops when the count reaches limit, or at the time by.
	Count(ctx context.Context, q query.RecordQuery, limit int64, by time.Time) (query.Count, error)
	// ReadEdition returns two numbers that say whether a source's records have changed. A result computed from the
	// records stays valid while both numbers stay the same. change is the number of the last change. silent
	// increases when records are added or deleted without a change.
	ReadEdition(ctx context.Context, source string) (change, silent int64, err error)
	// ReadChanges returns a source's changes above a number, in order, at most limit.
	ReadChanges(ctx context.Context, source string, after int64, limit int) ([]understudy.Change, error)
}

// Masked compares values that a caller sees only in part or not at all. access.Gate implements it.
type Masked interface {
	// Equal returns the condition that a field has the value behind a hash, or a number that ends in four given
	// digits (…4176). ok is false for any other text, and if the caller may not ask for the value.
	Equal(c understudy.Caller, source, kind, field, hash string) (e query.Equality, ok bool)
	// CheckPermission returns nil if the caller has a permission in a source, else ErrForbidden.
	CheckPermission(c understudy.Caller, source, word string) error
}

// lookupPermission is the permission to find records by a complete number, even if the role sees only part of it.
const lookupPermission = "lookup"

// Limits bound the work of searches. A zero value means the default.
type Limits struct {
	Time          time.Duration // the time limit of one answer, default 5s; after it the result is Partial
	MaxRecords    int           // the maximum number of records read for one answer, default 50000
	MaxSorted     int           // the number of newest matches that are sorted by rank or by a field, default 10000
	Count         time.Duration // the time limit of one count, default 50ms; after it the count is a minimum
	Facets        time.Duration // the time limit of all counts of an answer, default 300ms
	Sum           time.Duration // how long a caller waits for a complete sum, default 400ms
	MaxConcurrent int           // the maximum number of concurrent searches, default 32; half of them for one caller
	Silence       time.Duration // the time after which an export ends because the store yields nothing, default 30s
	MaxSaved      int           // the maximum number of saved searches, default 1000
	MaxSavedEach  int           // the maximum number of saved searches of one person, default 100
}

func (l Limits) withDefaults() Limits {
	l.Time = cmp.Or(max(l.Time, 0), 5*time.Second)
	l.MaxRecords = cmp.Or(max(l.MaxRecords, 0), 50_000)
	l.MaxSorted = cmp.Or(max(l.MaxSorted, 0), 10_000)
	l.Count = cmp.Or(max(l.Count, 0), 50*time.Millisecond)
	l.Facets = cmp.Or(max(l.Facets, 0), 300*time.Millisecond)
	l.Sum = cmp.Or(max(l.Sum, 0), 400*time.Millisecond)
	l.MaxConcurrent = cmp.Or(max(l.MaxConcurrent, 0), 32)
	l.Silence = cmp.Or(max(l.Silence, 0), 30*time.Second)
	l.MaxSaved = cmp.Or(max(l.MaxSaved, 0), 1000)
	l.MaxSavedEach = cmp.Or(max(l.MaxSavedEach, 0), 100)
	return l
}

// Options are the dependencies and limits of a Searcher.
type Options struct {
	Sources []*spec.Source
	Store   Store
	Gate    lang.Gate
	Masked  Masked        // compares hidden values; if nil, only fully visible values can be found
	KV      understudy.KV // stores saved searches; if nil, searches cannot be saved
	// Annotations are the notes and marks to search and show. If nil, there are none.
	Annotations Annotations
	Key         []byte // the secret from which the keys of cursors are derived; see func Key
	Limits      Limits
	Exports     *export.Exports // the limit of concurrent exports; if nil, 4 in total and 2 for each caller
	Columns     *columns.Set    // the columns for sums; if nil, the Searcher creates a set
	// Completeness reports whether all records of a kind are stored, and when the newest records were read. If nil,
	// all records count as stored.
	Completeness func(ctx context.Context, source, kind string) (complete bool, caughtUp time.Time)
	Now          func() time.Time // the clock; nil means time.Now
	Logger       *slog.Logger     // the logger; if nil, nothing is logged
}

// Searcher answers searches under one policy. It is safe for concurrent use.
type Searcher struct {
	o          Options
	texts      map[*spec.Kind]lang.TextRule
	running    *limiter.Limiter // limits concurrent searches by caller name
	saving     chan struct{}    // a lock: only one request at a time changes saved searches
	counts     *resultCache
	sums       *resultCache
	tables     *columns.Set
	ownsTables bool     // whether the Searcher has created tables, so that Close must close them
	visible    sync.Map // the fields that roles see of kinds, by seenKey
	predefined sync.Map // the searches of the specs, by role and source
}

// seenKey is a role and a kind. Within one policy, the role and the kind decide which fields a caller sees.
type seenKey struct {
	role string
	kind *spec.Kind
}

// New returns a Searcher. It starts no goroutines. Close ends the background work of searches.
func New(o Options) (*Searcher, error) {
	if o.Store == nil || o.Gate == nil || len(o.Sources) == 0 || len(o.Key) != token.KeySize {
		return nil, fmt.Errorf("search: options need sources, a store, a gate and a key")
	}
	understudy.SetDefaults(&o.Logger, &o.Now)
	o.Exports = cmp.Or(o.Exports, export.New(limiter.New(4, 2), nil))
	o.Limits = o.Limits.withDefaults()
	s := &Searcher{
		o: o, texts: map[*spec.Kind]lang.TextRule{}, running: limiter.New(o.Limits.MaxConcurrent, (o.Limits.MaxConcurrent+1)/2),
		saving: make(chan struct{}, 1), counts: newMemory(maxCounts), sums: newMemory(maxSums), tables: o.Columns,
	}
	if s.tables == nil {
		s.tables, s.ownsTables = columns.NewSet(o.Store, 0, o.Logger), true
	}
	for _, src := range o.Sources {
		for _, k := range src.Spec.Kinds {
			s.texts[k] = lang.TextRuleOf(k)
		}
	}
	return s, nil
}

// Close ends the background work of searches and waits for it.
func (s *Searcher) Close() error {
	s.counts.close()
	s.sums.close()
	if s.ownsTables {
		return s.tables.Close()
	}
	return nil
}

// searchableKinds yields the kinds whose records have ids, in the caller's sources or in the named source only.
func (s *Searcher) searchableKinds(c understudy.Caller, source string) func(yield func(*spec.Source, *spec.Kind) bool) {
	return func(yield func(*spec.Source, *spec.Kind) bool) {
		for _, src := range s.o.Sources {
			if c.Source != "" && c.Source != src.Name || source != "" && source != src.Name {
				continue
			}
			for _, k := range src.Spec.Kinds {
				if len(k.ID) > 0 && !yield(src, k) {
					return
				}
			}
		}
	}
}

// selectViews returns views of the requested kinds that the caller sees. It returns ErrInvalid for an unknown name and
// ErrForbidden for a kind that the caller may not see.
func (s *Searcher) selectViews(c understudy.Caller, source string, kinds []string) ([]*lang.KindView, error) {
	if source != "" && spec.FindSource(s.o.Sources, source) == nil {
		var known []string
		for _, src := range s.o.Sources {
			known = append(known, src.Name)
		}
		return nil, newInvalid("no source is called %q%s", understudy.Clip(source), lang.Hint(source, known))
	}
	var all []*lang.KindView
	seen, named := map[string]bool{}, map[string]bool{}
	for src, k := range s.searchableKinds(c, source) {
		named[k.Name] = true
		if !s.o.Gate.CanSee(c, src.Name, k.Name) {
			continue
		}
		seen[k.Name] = true
		if len(kinds) == 0 || slices.Contains(kinds, k.Name) {
			all = append(all, s.view(c, src, k))
		}
	}
	for _, name := range kinds {
		switch {
		case !named[name]:
			return nil, newInvalid("there is no kind %q%s", understudy.Clip(name), lang.Hint(name, slices.Sorted(maps.Keys(seen))))
		case !seen[name]:
			return nil, fmt.Errorf("search: %w: your role (%s) can't see %s", understudy.ErrForbidden, c.Role(), name)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("search: %w: %s can't see anything there", understudy.ErrForbidden, describeCaller(c))
	}
	return all, nil
}

// view returns what a caller sees of a kind.
func (s *Searcher) view(c understudy.Caller, src *spec.Source, k *spec.Kind) *lang.KindView {
	v := s.visibleFields(c, src, k)
	v.Rule = s.o.Gate.Rule(c, src.Name, k.Name)
	if s.o.Masked != nil {
		v.Equal = func(field, hash string) (query.Equality, bool) {
			return s.o.Masked.Equal(c, src.Name, k.Name, field, hash)
		}
	}
	if all := s.o.Annotations; all != nil && all.CanSeeAnnotations(c, src.Name) && v.CanSeeID() {
		v.Annotations = &lang.Annotations{
			Find: func(id string) *understudy.Annotation { return all.Annotation(src.Name, k.Name, id) },
			All:  func() []*understudy.Annotation { return all.Annotations(src.Name, k.Name) },
		}
	}
	if len(k.UsedIn) > 0 {
		s.setUses(c, src, v)
	}
	return v
}

// visibleFields returns a view with only the fields that a caller sees. The view is computed once for each role and kind.
func (s *Searcher) visibleFields(c understudy.Caller, src *spec.Source, k *spec.Kind) *lang.KindView {
	key := seenKey{c.Role(), k}
	kept, ok := s.visible.Load(key)
	if !ok {
		kept = lang.NewKindView(s.o.Gate, c, src, k, s.texts[k])
		if s.o.Gate.CanSee(c, src.Name, k.Name) { // the view is kept only if the grant did not end during the computation
			s.visible.Store(key, kept)
		}
	}
	v := *kept.(*lang.KindView)
	return &v
}

func describeCaller(c understudy.Caller) string {
	if c.Role() == "" {
		return c.Name + ", who has no role,"
	}
	return "role " + c.Role()
}

// Limits of a request apart from its text.
const (
	maxKinds = 50
	maxName  = 100 // the maximum length of a kind, source or sort in bytes
)

// read checks a request and binds its text. now is the time of the first page of hits.
func (s *Searcher) read(c understudy.Caller, a *query.SearchRequest, now time.Time) (*lang.BoundQuery, error) {
	switch {
	case a.Limit < 0 || a.Limit > query.MaxHits:
		return nil, newInvalid("limit=%d is not allowed; write a number from 1 to %d", a.Limit, query.MaxHits)
	case len(a.Kinds) > maxKinds:
		return nil, newInvalid("more than %d kinds", maxKinds)
	case len(a.Sort) > maxName || len(a.Source) > maxName:
		return nil, newInvalid("sort or source is too long")
	}
	tree, err := lang.Parse(a.Text)
	if err != nil {
		return nil, err
	}
	if tree, err = lang.AddConditions(tree, a.Where); err != nil {
		return nil, err
	}
	views, err := s.selectViews(c, a.Source, a.Kinds)
	if err != nil {
		return nil, err
	}
	if a.Number != "" {
		return s.bindLookup(c, a, views, now)
	}
	every := func(yield func(*spec.Kind, bool) bool) {
		for src, k := range s.searchableKinds(c, "") {
			if !yield(k, s.o.Gate.CanSee(c, src.Name, k.Name)) {
				return
			}
		}
	}
	return lang.Bind(a.Text, tree, views, every, now)
}

// bindLookup binds a request for the records that contain a complete phone number.
func (s *Searcher) bindLookup(c understudy.Caller, a *query.SearchRequest, views []*lang.KindView,
	now time.Time) (*lang.BoundQuery, error) {
	if a.Text != "" || len(a.Where) > 0 {
		return nil, newInvalid("look up a number alone, without other conditions")
	}
	views = slices.DeleteFunc(views, func(v *lang.KindView) bool {
		return s.o.Masked == nil || s.o.Masked.CheckPermission(c, v.Source, lookupPermission) != nil
	})
	if len(views) > 0 {
		return lang.BindLookup(a.Number, views, now)
	}
	return nil, fmt.Errorf("search: %w: %s can't look up numbers", understudy.ErrForbidden, describeCaller(c))
}

func newInvalid(format string, args ...any) error {
	return fmt.Errorf("search: %w: %w", understudy.ErrInvalid, fmt.Errorf(format, args...))
}

// Check validates a request as Find does, without searching. It returns the errors of Find.
func (s *Searcher) Check(c understudy.Caller, a query.SearchRequest) error {
	q, err := s.read(c, &a, s.o.Now())
	if err == nil {
		_, err = orderOf(q, a.Sort)
	}
	return err
}

// CompileText compiles a text that filters the list of a target. It returns a condition for the store's index and a
// test of a record. The condition is nil if the index cannot help, and TextNone if no record of the kind can match.
// Names in the text are fields of that kind. It returns a *query.SyntaxError, ErrInvalid or ErrForbidden.
func (s *Searcher) CompileText(c understudy.Caller, t *spec.Target, text string) (*query.Text, func(*understudy.Record) bool, error) {
	if t.Kind == nil {
		return nil, nil, fmt.Errorf("search: %w: this path has no list of records", understudy.ErrInvalid)
	}
	q, err := s.read(c, &query.SearchRequest{Text: text, Source: t.Key.Source, Kinds: []string{t.Kind.Name}}, s.o.Now())
	if err != nil {
		return nil, nil, err
	}
	if len(q.Views) == 0 || !q.Cond.CanMatch(q.Views[0]) {
		return &query.Text{Op: query.TextNone}, func(*understudy.Record) bool { return false }, nil
	}
	in := q.Views[0]
	test := func(r *understudy.Record) bool {
		var c lang.Candidate
		return in.Read(&c, r) && q.Cond.Match(&c)
	}
	if in.Rule != nil {
		return nil, test, nil // no index is used under a row rule, because the amount of work must not reveal hidden records
	}
	return q.Cond.Text(q.Views), test, nil
}
