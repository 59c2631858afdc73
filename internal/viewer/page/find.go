// Find: records by words and conditions, from those that are held: what a list
// asks of the search, and the rows of what it finds.

package page

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/query"
	"understudy/internal/viewer/plan"
	"understudy/spec"
)

// Search finds records by words and conditions; search.Searcher fills it.
type Search interface {
	// Find answers a search as its caller may see it. Errors: a
	// *understudy.SyntaxError, ErrInvalid, ErrForbidden, and those of the store.
	Find(ctx context.Context, c understudy.Caller, ask query.SearchRequest) (*query.SearchResult, error)
}

// SumsPath is the page of sums.
const SumsPath = "/search/sums"

// Sums adds up the matches of searches; search.Searcher fills it.
type Sums interface {
	// Sum adds up the matches of a search. Errors: as Search's.
	Sum(ctx context.Context, c understudy.Caller, r query.SumRequest) (*query.SumResult, error)
	// SumNames are what they can be summed up as, and by.
	SumNames(c understudy.Caller, a query.SearchRequest) (sums, by []string, err error)
	// Ready are the searches that the specs bring along, of which the caller may see all.
	Ready(c understudy.Caller) []query.ReadySearch
}

// Ready is a search that a spec brings along, as a link.
type Ready struct{ Text, About, Href string }

// ReadySearches are those of which the caller may see everything.
func (r *Rights) ReadySearches() (all []Ready) {
	if r.v.Options.Sums == nil {
		return nil
	}
	for _, ready := range r.v.Options.Sums.Ready(r.Caller) {
		path, more := "/search", understudy.Query(nil)
		if ready.Sum != "" {
			path, more = SumsPath, understudy.Query{{Name: "sum", Value: ready.Sum}}
			for _, by := range ready.By {
				more = append(more, understudy.Param{Name: "by", Value: by})
			}
		}
		all = append(all, Ready{ready.Title, ready.About, SearchAddress(path, ready.Search, more...)})
	}
	return all
}

// SavedSearches are the caller's own and those others share, as links; none where they cannot be
// read now.
func (r *Rights) SavedSearches(ctx context.Context) (all []Ready) {
	if r.v.Options.Shelf == nil {
		return nil
	}
	saved, err := r.v.Options.Shelf.Saved(ctx, r.Caller)
	if err != nil {
		r.v.Options.Logger.WarnContext(ctx, "viewer: saved searches", "error", err)
		return nil
	}
	for i := range saved {
		all = append(all, Ready{saved[i].Name, saved[i].Request.Text, SearchAddress("/search", saved[i].Request)})
	}
	return all
}

// SearchAddress returns the address of a search at a path.
func SearchAddress(path string, s query.SearchRequest, more ...understudy.Param) string {
	params := understudy.Query{{Name: "q", Value: s.Text}}
	if s.Source != "" {
		params = append(params, understudy.Param{Name: "source", Value: s.Source})
	}
	for _, kind := range s.Kinds {
		params = append(params, understudy.Param{Name: "kind", Value: kind})
	}
	if s.Sort != "" {
		params = append(params, understudy.Param{Name: "sort", Value: s.Sort})
	}
	return path + "?" + append(params, more...).String()
}

// Search finds records of a kind. What a caller who finds all of them found is kept
// while no record comes or goes; where a text was searched, which may speak of the time
// of day, for a second at most.
func (q *Exchange) Search(ctx context.Context, s *plan.Source, k *plan.Kind, ask query.SearchRequest) (*query.SearchResult, error) {
	ask.Source, ask.Kinds = s.Name, []string{k.Spec.Name}
	records, known := q.records.edition(ctx, q.V.Options.History, s.Name)
	known = known && q.Rights.Counts(k) // a row rule may look at the time
	of := q.Identity("search").With(q.V.Seed, records, s.Name, k.Spec.Name, ask.Text, ask.Where, ask.Sort, ask.Limit, ask.CountOnly)
	if ask.Text != "" {
		of = of.With(q.V.Seed, q.Clock.Start.Unix())
	}
	if found, ok := q.V.searched.Get(of); ok && known {
		return found, nil
	}
	found, err := q.V.Options.Search.Find(ctx, q.Rights.Caller, ask)
	if err == nil && known && !found.Partial && (found.Total == nil || !found.Total.AtLeast) {
		q.V.searched.Put(of, found, 1)
	}
	return found, err
}

// ListConditions are what the path of a list asks of its records: the variables of
// a target, less those of its root where records everywhere are meant, and the fields that
// are the same in all of them. ok is false when the role does not see one of the variables.
func (r *Rights) ListConditions(l *plan.List, t *spec.Target, everywhere bool) (all []query.FieldCondition, ok bool) {
	root := l.Kind.Spec.Field(t.Spec.RootField(l.Kind.Spec))
	named := !everywhere && t.Root() != "" && root != nil && root.RootPath() != "" && r.Level(l.Kind, root.Name) == access.See
	if named {
		all = append(all, query.FieldCondition{Field: root.Name, Comparison: query.CompareSame, Value: spec.SpellRoot(t.Root())})
	}
	for _, v := range t.Vars {
		if (everywhere || named) && slices.Contains(t.Spec.Roots.Vars, v.Name) {
			continue
		}
		f := l.Kind.Spec.Field(plan.Words(v.Name))
		seen := f != nil && r.Level(l.Kind, f.Name) == access.See
		fill, own := l.Kind.Source.Config.PathVar(v.Name)
		switch {
		case seen:
			all = append(all, query.FieldCondition{Field: f.Name, Comparison: query.CompareSame, Value: v.Value})
		case !own || fill != v.Value: // else the source fills it for every caller, and nothing has to be asked
			return nil, false
		}
	}
	for _, field := range slices.Sorted(maps.Keys(l.Spec.Only)) {
		all = append(all, query.FieldCondition{Field: field, Comparison: query.CompareSame, Value: l.Spec.Only[field]})
	}
	return all, true
}

// Condition is a filter of upstream's as a condition of the search. ok is false when
// the search has none like it.
func Condition(field *spec.Field, f *spec.Filter, value string) (c query.FieldCondition, ok bool) {
	if field == nil || f.Op == "until" && f.Whole { // up to the end of a day, month or year: not what <= says
		return c, false
	}
	c = query.FieldCondition{Field: field.Name, Value: value, Prefix: f.Op == "contains"}
	switch f.Op {
	case "", "is":
		c.Comparison = query.CompareSame
		if field.Class == spec.ClassPhone {
			c.Comparison = query.CompareIs
		}
	case "day", "contains":
		c.Comparison = query.CompareIs
	case "since":
		c.Comparison = query.CompareAtLeast
	case "before":
		c.Comparison = query.CompareLess
	case "until":
		c.Comparison = query.CompareAtMost
	default:
		return c, false
	}
	return c, true
}

// quote is a value in the words of the search.
func quote(value string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value) + `"`
}

// plainValue is a value that needs no quotes in a condition.
var plainValue = regexp.MustCompile(`^-?[\pL\pN_]([\pL\pN_-]|\.[\pL\pN_])*$`)

// Quoted returns a value as a condition has it, in quotes where it needs them.
func Quoted(value string) string {
	if plainValue.MatchString(value) {
		return value
	}
	return quote(value)
}

// maxIDs is how many values a condition of the search takes.
const maxIDs = 50

// AnyID returns the condition that a record has one of some ids.
func AnyID(ids []string) string {
	var terms []string
	for part := range slices.Chunk(ids, maxIDs) {
		quoted := make([]string, len(part))
		for i, id := range part {
			quoted[i] = Quoted(id)
		}
		terms = append(terms, "id:"+strings.Join(quoted, ","))
	}
	return strings.Join(terms, " OR ")
}

// Grouped is a condition that others can be put beside: either-or is put in
// parentheses, and a phone number, which is one only where it stands alone, is
// said to be one.
func Grouped(text string) string {
	digits, _, ok := Dialled(text)
	switch {
	case ok && len(digits) >= leastDialled && len(digits) < len(text):
		return "number:" + quote(understudy.PlainNumber(text))
	case strings.Contains(text, "OR"):
		return "(" + text + ")"
	}
	return text
}

// leastDialled is how many digits the search takes for a whole number.
const leastDialled = 7

// Hit is one record found, as a row.
type Hit struct {
	SearchHit *query.SearchHit
	Kind      *plan.Kind
	Row       access.Row
}

// Hits are the rows of what was found; what the gate does not let through any
// more is left out.
func (r *Rights) Hits(ctx context.Context, found *query.SearchResult) []Hit {
	all := make([]Hit, 0, len(found.Hits))
	for i := range found.Hits {
		h := &found.Hits[i]
		s := r.v.ByName[h.Source]
		if s == nil || s.ByName[h.Kind] == nil || !r.Sees(s) {
			continue
		}
		row, err := r.Gate.Seen(r.Caller, h.Source, h.Kind, h.Body)
		if err != nil {
			r.v.Options.Logger.WarnContext(ctx, "viewer: a record found is not shown", "kind", h.Kind, "error", err)
			continue
		}
		all = append(all, Hit{h, s.ByName[h.Kind], row})
	}
	return all
}

// Dialled takes the marks off a number as people write it; ok is false for
// anything else. plus says that a country code comes first.
func Dialled(text string) (digits string, plus, ok bool) {
	var b strings.Builder
	for i, r := range understudy.PlainNumber(text) {
		switch {
		case r >= '0' && r <= '9':
			b.WriteRune(r)
		case r == '+' && b.Len() == 0 && !plus:
			plus = true
		case strings.ContainsRune(" -./()", r):
		default:
			return "", false, false
		}
		if i > 40 {
			return "", false, false
		}
	}
	digits = b.String()
	if rest, international := strings.CutPrefix(digits, "00"); international && !plus {
		digits, plus = rest, true
	}
	return digits, plus, len(digits) >= 3
}

// edition returns the edition of a source, which is asked once a page; known is false
// without a history.
func (e *recordEditions) edition(ctx context.Context, h History, source string) (of [2]int64, known bool) {
	if h == nil {
		return of, false
	}
	e.editing.Lock()
	defer e.editing.Unlock()
	if of, known = e.editions[source]; known {
		return of, true
	}
	change, silent, err := h.ReadEdition(ctx, source)
	if err != nil {
		return of, false
	}
	if e.editions == nil {
		e.editions = map[string][2]int64{}
	}
	of = [2]int64{change, silent}
	e.editions[source] = of
	return of, true
}

// recordEditions say which records of each source there are, as the page at hand found it.
type recordEditions struct {
	editing  sync.Mutex // guards what follows
	editions map[string][2]int64
}

// MeaningOf is what a code of upstream's means; "" for a field that holds no codes, and a code of
// which the spec says nothing. k may be nil: the field is of any kind.
func (v *Visitor) MeaningOf(field, code string, k *plan.Kind) string {
	for _, s := range v.Planned {
		for _, other := range s.Kinds {
			if c := other.ByField[field]; c != nil && c.Spec.Type == spec.TypeCode && (k == nil || other == k) {
				return s.Reason(code).Meaning
			}
		}
	}
	return ""
}

// ShowValue returns a value of a field in words: of a code what it means, too. k may be nil: the field is of any kind.
func (v *Visitor) ShowValue(name, value string, k *plan.Kind) string {
	if why := v.MeaningOf(name, value, k); why != "" {
		return understudy.Clip(value + " " + why)
	}
	switch name {
	case "kind":
		for _, s := range v.Planned {
			if k := s.ByName[value]; k != nil {
				return plan.UpperFirst(k.Spec.Title)
			}
		}
	case "day", "month":
		if t, err := understudy.ParseTime(value, time.UTC, time.DateOnly, "2006-01"); err == nil {
			return t.Format(map[string]string{"day": "2 Jan 2006", "month": "Jan 2006"}[name])
		}
	}
	if value == "" {
		return "none"
	}
	return understudy.Clip(plan.GroupPhone(value))
}

// WordsOf returns what a field, or what is made of one, is called. k may be nil: the field is of any kind.
func (v *Visitor) WordsOf(name string, k *plan.Kind) string {
	field, country := strings.CutSuffix(name, ".country")
	for _, s := range v.Planned {
		for _, other := range s.Kinds {
			if k != nil && other != k {
				continue
			}
			e := other.Spec.ElapsedNamed(name)
			switch c := other.ByField[field]; {
			case e != nil:
				return e.Title
			case c != nil && country:
				return "country of " + c.Words
			case c != nil:
				return c.Words
			}
		}
	}
	return plan.Spell(name)
}

// AppendNew adds a value unless it is empty or is there.
func AppendNew(all []string, one string) []string {
	if one == "" || slices.Contains(all, one) {
		return all
	}
	return append(all, one)
}
