// Searches in stored records: which search is equivalent to a list, and the rows that a search finds.

package page

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/query"
	"understudy/internal/viewer/plan"
	"understudy/kit/lockwatch"
	"understudy/spec"
)

// Search finds records by words and conditions. search.Searcher implements it.
type Search interface {
	// Find returns the records that match a search and that the caller may see. Its errors are a *query.SyntaxError,
	// ErrInvalid, ErrForbidden, and those of the store.
	Find(ctx context.Context, c understudy.Caller, ask query.SearchRequest) (*query.SearchResult, error)
}

// SumsPath is the path of the page that shows sums over the records of a search.
const SumsPath = "/search/sums"

// Sums computes sums over the records that match a search. search.Searcher implements it.
type Sums interface {
	// Sum computes one sum over the records that match a search. It returns the same errors as Search.Find.
	Sum(ctx context.Context, c understudy.Caller, r query.SumRequest) (*query.SumResult, error)
	// SumNames returns which sums can be computed for a search, and by which fields they can be grouped.
	SumNames(c understudy.Caller, a query.SearchRequest) (sums, by []string, err error)
	// PredefinedSearches returns the searches in the specs that use only fields the caller may see.
	PredefinedSearches(c understudy.Caller) []query.PredefinedSearch
}

// SearchLink is a link to a search that the spec defines or a person has saved.
type SearchLink struct{ Text, About, Href string }

// SpecSearches returns links to the searches in the specs that use only fields the caller may see.
func (r *Rights) SpecSearches() (all []SearchLink) {
	if r.v.Options.Sums == nil {
		return nil
	}
	for _, ready := range r.v.Options.Sums.PredefinedSearches(r.Caller) {
		path, more := "/search", understudy.Query(nil)
		if ready.Sum != "" {
			path, more = SumsPath, understudy.Query{{Name: "sum", Value: ready.Sum}}
			for _, by := range ready.By {
				more = append(more, understudy.Param{Name: "by", Value: by})
			}
		}
		all = append(all, SearchLink{ready.Title, ready.About, SearchAddress(path, ready.Search, more...)})
	}
	return all
}

// SavedSearches returns links to the searches that the caller has saved or that others share with the caller. It
// returns none if they can't be read.
func (r *Rights) SavedSearches(ctx context.Context) (all []SearchLink) {
	if r.v.Options.Shelf == nil {
		return nil
	}
	saved, err := r.v.Options.Shelf.ListSaved(ctx, r.Caller)
	if err != nil {
		r.v.Options.Logger.WarnContext(ctx, "viewer: saved searches", "error", err)
		return nil
	}
	for i := range saved {
		all = append(all, SearchLink{saved[i].Name, saved[i].Request.Text, SearchAddress("/search", saved[i].Request)})
	}
	return all
}

// SearchAddress returns the address of a search on the page at path. more are additional parameters.
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

// Search finds records of a kind. If the caller may see all records of the kind, the result is cached until a record
// changes. A text may depend on the time of day, so the result of a search with text is cached for at most a second.
func (q *Exchange) Search(ctx context.Context, s *plan.Source, k *plan.Kind, ask query.SearchRequest) (*query.SearchResult, error) {
	ask.Source, ask.Kinds = s.Name, []string{k.Spec.Name}
	records, known := q.records.edition(ctx, q.V.Options.History, s.Name)
	known = known && q.Rights.CanCount(k) // if the role may see only some records, the time may decide which they are, so nothing is cached
	of := q.Identity("search").With(q.V.Seed, records, s.Name, k.Spec.Name, ask.Text, ask.Where, ask.Sort, ask.Limit, ask.CountOnly)
	if ask.Text != "" {
		of = of.With(q.V.Seed, q.Clock.Start.Unix())
	}
	if found, ok := q.V.searchCache.Get(of); ok && known {
		return found, nil
	}
	found, err := q.V.Options.Search.Find(ctx, q.Rights.Caller, ask)
	if err == nil && known && !found.Partial && (found.Total == nil || !found.Total.AtLeast) {
		q.V.searchCache.Put(of, found, 1)
	}
	return found, err
}

// ListConditions returns the search conditions that select the records of a list. They come from the values of the
// path variables and from the fixed fields of the list. If everywhere is true, variables of the source's root path
// are left out. ok is false if the role may not see one of the variables.
func (r *Rights) ListConditions(l *plan.List, t *spec.Target, everywhere bool) (all []query.FieldCondition, ok bool) {
	root := l.Kind.Spec.Field(t.Spec.RootField(l.Kind.Spec))
	named := !everywhere && t.RootID() != "" && root != nil && root.RootPath() != "" && r.Level(l.Kind, root.Name) == access.See
	if named {
		all = append(all, query.FieldCondition{Field: root.Name, Comparison: query.CompareSame, Value: spec.FormatRoot(t.RootID())})
	}
	for _, v := range t.Vars {
		if (everywhere || named) && slices.Contains(t.Spec.Roots.Vars, v.Name) {
			continue
		}
		f := l.Kind.Spec.Field(spec.SnakeCase(v.Name))
		seen := f != nil && r.Level(l.Kind, f.Name) == access.See
		fill, own := l.Kind.Source.Config.PathVar(v.Name)
		switch {
		case seen:
			all = append(all, query.FieldCondition{Field: f.Name, Comparison: query.CompareSame, Value: v.Value})
		case !own || fill != v.Value: // otherwise every list of the source has this value, so no condition is needed
			return nil, false
		}
	}
	for _, field := range slices.Sorted(maps.Keys(l.Spec.FixedValues)) {
		all = append(all, query.FieldCondition{Field: field, Comparison: query.CompareSame, Value: l.Spec.FixedValues[field]})
	}
	return all, true
}

// Condition returns the search condition that selects the same records as a filter of upstream. ok is false if there is none.
func Condition(field *spec.Field, f *spec.Filter, value string) (c query.FieldCondition, ok bool) {
	if field == nil || f.Op == "until" && f.WholePeriod { // the filter includes the whole day, month or year, which <= cannot express
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

// quote returns a value in quotes for the text of a search.
func quote(value string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value) + `"`
}

// plainValue matches values that can stand in the text of a search without quotes.
var plainValue = regexp.MustCompile(`^-?[\pL\pN_]([\pL\pN_-]|\.[\pL\pN_])*$`)

// QuoteValue returns a value for the text of a search, in quotes if they are needed.
func QuoteValue(value string) string {
	if plainValue.MatchString(value) {
		return value
	}
	return quote(value)
}

// maxConditionValues is the maximum number of values in one search condition.
const maxConditionValues = 50

// IDCondition returns the search condition that the id of a record is one of ids.
func IDCondition(ids []string) string {
	var terms []string
	for part := range slices.Chunk(ids, maxConditionValues) {
		quoted := make([]string, len(part))
		for i, id := range part {
			quoted[i] = QuoteValue(id)
		}
		terms = append(terms, "id:"+strings.Join(quoted, ","))
	}
	return strings.Join(terms, " OR ")
}

// GroupCondition returns a text of a search to which other conditions can be added. A text with OR gets parentheses. A phone
// number gets the prefix "number:", because the search recognizes it without the prefix only if it is the whole text.
func GroupCondition(text string) string {
	digits, _, ok := ParseDialled(text)
	switch {
	case ok && len(digits) >= minDialledDigits && len(digits) < len(text):
		return "number:" + quote(understudy.NormalizeNumber(text))
	case strings.Contains(text, "OR"):
		return "(" + text + ")"
	}
	return text
}

// minDialledDigits is the number of digits from which the search treats a text as a phone number.
const minDialledDigits = 7

// Hit is a row with a record that a search found.
type Hit struct {
	SearchHit *query.SearchHit
	Kind      *plan.Kind
	Row       access.Row
}

// Hits returns the rows of a search result. It leaves out records that the caller may no longer see, because the
// policy has changed.
func (r *Rights) Hits(ctx context.Context, found *query.SearchResult) []Hit {
	all := make([]Hit, 0, len(found.Hits))
	for i := range found.Hits {
		h := &found.Hits[i]
		s := r.v.ByName[h.Source]
		if s == nil || s.ByName[h.Kind] == nil || !r.CanSee(s) {
			continue
		}
		row, err := r.Gate.ParseShownRow(r.Caller, h.Source, h.Kind, h.Body)
		if err != nil {
			r.v.Options.Logger.WarnContext(ctx, "viewer: a record found is not shown", "kind", h.Kind, "error", err)
			continue
		}
		all = append(all, Hit{h, s.ByName[h.Kind], row})
	}
	return all
}

// ParseDialled returns the digits of a phone number as people write it. plus is true if the number begins with a
// country code. ok is false if the text is no phone number.
func ParseDialled(text string) (digits string, plus, ok bool) {
	var b strings.Builder
	for i, r := range understudy.NormalizeNumber(text) {
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

// edition returns the edition of a source's records. It reads it at most once for each page. known is false if the
// server has no history.
func (e *recordEditions) edition(ctx context.Context, h History, source string) (of [2]int64, known bool) {
	if h == nil {
		return of, false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
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

// recordEditions caches the edition of each source's records for one page.
type recordEditions struct {
	mu       lockwatch.Mutex // guards the map of editions
	editions map[string][2]int64
}

// MeaningOf returns what an error code means. It returns "" if the field has no error codes or the spec does not
// explain this code. If k is nil, it looks in all kinds.
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

// FormatValue returns a value of a field in words. If the value is an error code, its meaning follows. If k is nil, it
// looks for the field in all kinds.
func (v *Visitor) FormatValue(name, value string, k *plan.Kind) string {
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

// FieldTitle returns the title of a field, or of a value computed from a field. If k is nil, it looks for the field in all kinds.
func (v *Visitor) FieldTitle(name string, k *plan.Kind) string {
	field, country := strings.CutSuffix(name, ".country")
	for _, s := range v.Planned {
		for _, other := range s.Kinds {
			if k != nil && other != k {
				continue
			}
			e := other.Spec.ElapsedTime(name)
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

// AppendUnique appends a value unless it is empty or already in the list.
func AppendUnique(all []string, one string) []string {
	if one == "" || slices.Contains(all, one) {
		return all
	}
	return append(all, one)
}
