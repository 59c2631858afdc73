// Searcher: its parts, and the kinds a caller may search.

// Package search turns words into record lists, as a role may see them.
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

// Store finds records. store.DB does.
type Store interface {
	// Seek calls yield with the records of a query in the order of their places. It may
	// yield records that do not match.
	Seek(ctx context.Context, q query.RecordQuery, yield func(query.Hit) bool) error
	// Count counts them, most at most and not beyond a time.
	Count(ctx context.Context, q query.RecordQuery, most int64, by time.Time) (query.Count, error)
	// ReadEdition is a version of the records of a source: what is computed from them is right while both numbers stay.
	// change is the number of the last change. silent rises when records come or go without a change.
	ReadEdition(ctx context.Context, source string) (change, silent int64, err error)
	// Changes are a source's changes above a number, in order, limit at most.
	ReadChanges(ctx context.Context, source string, after int64, limit int) ([]understudy.Change, error)
}

// Masked finds values of which a caller is shown a part, or nothing. access.Gate does.
type Masked interface {
	// Equal is the condition that a field has the value of a hash, or the last four digits
	// of a number (…4176). ok is false when the caller may not ask for it, and for any other text.
	Equal(c understudy.Caller, source, kind, field, hash string) (e query.Equality, ok bool)
	// CheckPermission returns nil if a caller has a permission in a source, else ErrForbidden.
	CheckPermission(c understudy.Caller, source, word string) error
}

// lookup is the permission to find the records of a whole number, whatever is shown of it.
const lookup = "lookup"

// Limits bound searching; zero values are the defaults.
type Limits struct {
	Time      time.Duration // of one answer, default 5s; the matches until then are the answer
	Look      int           // records looked at for one answer, default 50000
	Window    int           // of the newest matches that are sorted by rank or a field, default 10000
	Count     time.Duration // of one count, default 50ms; then it is "at least"
	Facets    time.Duration // of all counts of an answer, default 300ms
	Sum       time.Duration // of waiting for a complete sum, default 400ms
	AtOnce    int           // searches at once, default 32; of one caller half of them
	Silence   time.Duration // of the store, that ends an export, default 30s
	Saved     int           // saved searches, default 1000
	SavedEach int           // of one owner, default 100
}

func (l Limits) withDefaults() Limits {
	l.Time = cmp.Or(max(l.Time, 0), 5*time.Second)
	l.Look = cmp.Or(max(l.Look, 0), 50_000)
	l.Window = cmp.Or(max(l.Window, 0), 10_000)
	l.Count = cmp.Or(max(l.Count, 0), 50*time.Millisecond)
	l.Facets = cmp.Or(max(l.Facets, 0), 300*time.Millisecond)
	l.Sum = cmp.Or(max(l.Sum, 0), 400*time.Millisecond)
	l.AtOnce = cmp.Or(max(l.AtOnce, 0), 32)
	l.Silence = cmp.Or(max(l.Silence, 0), 30*time.Second)
	l.Saved = cmp.Or(max(l.Saved, 0), 1000)
	l.SavedEach = cmp.Or(max(l.SavedEach, 0), 100)
	return l
}

// Options are what a Searcher is made of.
type Options struct {
	Sources []*spec.Source
	Store   Store
	Gate    lang.Gate
	Masked  Masked        // nil: what a caller is not shown whole is not found
	KV      understudy.KV // for saved searches; nil: there are none
	// Annotations are found and shown; nil: there are none.
	Annotations Annotations
	Key         []byte // cursors are sealed with keys made of it; see Key
	Limits      Limits
	Exports     *export.Exports // nil: 4 at once, 2 of one caller
	Columns     *columns.Set    // for sums; nil: one of its own
	// Held says whether all records of a kind are held, and when its newest were read. nil: all are.
	Held   func(ctx context.Context, source, kind string) (complete bool, caughtUp time.Time)
	Now    func() time.Time // nil: time.Now
	Logger *slog.Logger     // nil: discard
}

// Searcher answers searches under one policy. It is safe for concurrent use.
type Searcher struct {
	o       Options
	texts   map[*spec.Kind]lang.TextRule
	running *limiter.Limiter // by the caller's name
	saving  chan struct{}    // one saved search changes at a time
	counts  *memory
	sums    *memory
	tables  *columns.Set
	own     bool     // the columns are of this searcher alone
	seen    sync.Map // what roles see of kinds, by seenKey
	ready   sync.Map // the searches of the specs, by role and source
}

// seenKey names a role and a kind. Under one policy these two decide which fields a caller sees.
type seenKey struct {
	role string
	kind *spec.Kind
}

// New makes a Searcher and starts nothing. Close ends what goes on behind its searches.
func New(o Options) (*Searcher, error) {
	if o.Store == nil || o.Gate == nil || len(o.Sources) == 0 || len(o.Key) != token.KeySize {
		return nil, fmt.Errorf("search: options need sources, a store, a gate and a key")
	}
	understudy.SetDefaults(&o.Logger, &o.Now)
	if o.Exports == nil {
		o.Exports = export.New(limiter.New(4, 2), nil)
	}
	o.Limits = o.Limits.withDefaults()
	s := &Searcher{
		o: o, texts: map[*spec.Kind]lang.TextRule{}, running: limiter.New(o.Limits.AtOnce, (o.Limits.AtOnce+1)/2),
		saving: make(chan struct{}, 1), counts: newMemory(maxCounts), sums: newMemory(maxSums), tables: o.Columns,
	}
	if s.tables == nil {
		s.tables, s.own = columns.NewSet(o.Store, 0, o.Logger), true
	}
	for _, src := range o.Sources {
		for _, k := range src.Spec.Kinds {
			s.texts[k] = lang.TextRuleOf(k)
		}
	}
	return s, nil
}

// Close ends what goes on behind searches and waits for it.
func (s *Searcher) Close() error {
	s.counts.close()
	s.sums.close()
	if s.own {
		return s.tables.Close()
	}
	return nil
}

// kinds are the kinds with records of their own, of the sources of a caller or of the one that is named.
func (s *Searcher) kinds(c understudy.Caller, source string) func(yield func(*spec.Source, *spec.Kind) bool) {
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

// views are the kinds a caller asks for and sees.
func (s *Searcher) views(c understudy.Caller, source string, kinds []string) ([]*lang.KindView, error) {
	if source != "" && !slices.ContainsFunc(s.o.Sources, func(src *spec.Source) bool { return src.Name == source }) {
		var known []string
		for _, src := range s.o.Sources {
			known = append(known, src.Name)
		}
		return nil, invalid("no source is called %q%s", understudy.Clip(source), lang.Hint(source, known))
	}
	var all []*lang.KindView
	seen, named := map[string]bool{}, map[string]bool{}
	for src, k := range s.kinds(c, source) {
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
			return nil, invalid("there is no kind %q%s", understudy.Clip(name), lang.Hint(name, slices.Sorted(maps.Keys(seen))))
		case !seen[name]:
			return nil, fmt.Errorf("search: %w: role %s may not see %s", understudy.ErrForbidden, c.Role(), name)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("search: %w: %s may see nothing there", understudy.ErrForbidden, who(c))
	}
	return all, nil
}

// view is what a caller sees of a kind.
func (s *Searcher) view(c understudy.Caller, src *spec.Source, k *spec.Kind) *lang.KindView {
	v := s.fieldsSeen(c, src, k)
	v.Rule = s.o.Gate.Rule(c, src.Name, k.Name)
	if s.o.Masked != nil {
		v.Equal = func(field, hash string) (query.Equality, bool) {
			return s.o.Masked.Equal(c, src.Name, k.Name, field, hash)
		}
	}
	if all := s.o.Annotations; all != nil && all.CanSeeAnnotations(c, src.Name) && v.SeesID() {
		v.Annotations = annotationsOf(all, src, k)
	}
	if len(k.UsedIn) > 0 {
		s.uses(c, src, v)
	}
	return v
}

// fieldsSeen returns a view of a kind with nothing but the fields that a caller sees. They are looked
// up once for each role that sees the kind.
func (s *Searcher) fieldsSeen(c understudy.Caller, src *spec.Source, k *spec.Kind) *lang.KindView {
	key := seenKey{c.Role(), k}
	kept, ok := s.seen.Load(key)
	if !ok {
		kept = lang.NewKindView(s.o.Gate, c, src, k, s.texts[k])
		if s.o.Gate.CanSee(c, src.Name, k.Name) { // its grant did not end meanwhile
			s.seen.Store(key, kept)
		}
	}
	v := *kept.(*lang.KindView)
	return &v
}

func who(c understudy.Caller) string {
	if c.Role() == "" {
		return c.Name + ", who has no role,"
	}
	return "role " + c.Role()
}

// Bounds of an ask beside its text.
const (
	maxKinds = 50
	maxName  = 100 // bytes of a kind, source or sort
)

// read checks a request and binds its text; now is the time of its first page.
func (s *Searcher) read(c understudy.Caller, a *query.SearchRequest, now time.Time) (*lang.BoundQuery, error) {
	switch {
	case a.Limit < 0 || a.Limit > query.MaxHits:
		return nil, invalid("limit=%d: want 1 to %d", a.Limit, query.MaxHits)
	case len(a.Kinds) > maxKinds:
		return nil, invalid("more than %d kinds", maxKinds)
	case len(a.Sort) > maxName || len(a.Source) > maxName:
		return nil, invalid("sort or source is too long")
	}
	tree, err := lang.Parse(a.Text)
	if err != nil {
		return nil, err
	}
	if tree, err = lang.Where(tree, a.Where); err != nil {
		return nil, err
	}
	views, err := s.views(c, a.Source, a.Kinds)
	if err != nil {
		return nil, err
	}
	if a.Number != "" {
		return s.lookup(c, a, views, now)
	}
	every := func(yield func(*spec.Kind, bool) bool) {
		for src, k := range s.kinds(c, "") {
			if !yield(k, s.o.Gate.CanSee(c, src.Name, k.Name)) {
				return
			}
		}
	}
	return lang.Bind(a.Text, tree, views, every, now)
}

// lookup binds a request for the records of a whole number.
func (s *Searcher) lookup(c understudy.Caller, a *query.SearchRequest, views []*lang.KindView, now time.Time) (*lang.BoundQuery, error) {
	if a.Text != "" || len(a.Where) > 0 {
		return nil, invalid("a number is looked up by itself, without other conditions")
	}
	views = slices.DeleteFunc(views, func(v *lang.KindView) bool {
		return s.o.Masked == nil || s.o.Masked.CheckPermission(c, v.Source, lookup) != nil
	})
	if len(views) > 0 {
		return lang.Lookup(a.Number, views, now)
	}
	return nil, fmt.Errorf("search: %w: %s may look up no numbers", understudy.ErrForbidden, who(c))
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("search: %w: %w", understudy.ErrInvalid, fmt.Errorf(format, args...))
}

// Check reads a request as Find does, without a search. Errors: as Find.
func (s *Searcher) Check(c understudy.Caller, a query.SearchRequest) error {
	q, err := s.read(c, &a, s.o.Now())
	if err == nil {
		_, err = orderOf(q, a.Sort)
	}
	return err
}

// Text compiles a text for the records that a target lists: a condition for the index of a store, and a test of a
// record. The condition is nil when the index cannot help, and TextNone when no record of the kind can match. Names
// in the text are of that kind. Errors: a *query.SyntaxError, ErrInvalid, ErrForbidden.
func (s *Searcher) Text(c understudy.Caller, t *spec.Target, text string) (*query.Text, func(*understudy.Record) bool, error) {
	if t.Kind == nil {
		return nil, nil, fmt.Errorf("search: %w: the path lists no records", understudy.ErrInvalid)
	}
	q, err := s.read(c, &query.SearchRequest{Text: text, Source: t.Key.Source, Kinds: []string{t.Kind.Name}}, s.o.Now())
	if err != nil {
		return nil, nil, err
	}
	if len(q.Views) == 0 || !q.Cond.Possible(q.Views[0]) {
		return &query.Text{Op: query.TextNone}, func(*understudy.Record) bool { return false }, nil
	}
	in := q.Views[0]
	test := func(r *understudy.Record) bool {
		var c lang.Candidate
		return in.See(&c, r) && q.Cond.Holds(&c)
	}
	if in.Rule != nil {
		return nil, test, nil // what may not be found must not say how much is read
	}
	return q.Cond.Text(q.Views), test, nil
}

// sourceOf is the source of a name.
func (s *Searcher) sourceOf(name string) *spec.Source {
	for _, src := range s.o.Sources {
		if src.Name == name {
			return src
		}
	}
	return nil
}
