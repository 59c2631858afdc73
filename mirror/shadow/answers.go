// The setting that says whether lists are first composed from records or requested from upstream.

package shadow

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"understudy/kit/suggest"
)

// Answers says whether a list is first composed from records or requested from upstream.
type Answers string

// The values of Answers. With Auto, a list is requested from upstream until SamplesNeeded comparisons in a row found
// no difference. It is then composed from records, until a comparison finds a difference.
const (
	Auto     Answers = "auto" // the default; an empty Answers means the same
	Upstream Answers = "upstream"
	Records  Answers = "records"
)

// Check returns an error if the value is not known. The error suggests the most similar value.
func (a Answers) Check() error {
	known := []string{string(Auto), string(Upstream), string(Records)}
	if a == "" || slices.Contains(known, string(a)) {
		return nil
	}
	return fmt.Errorf("%q is not a value of lists_from%s", string(a), suggest.Hint(string(a), known))
}

// SetAnswers sets, for each kind of a source, whether its lists are first composed from records or requested from
// upstream. The key "" is for kinds without a key of their own. If the source, a kind or a value is not known, it
// returns an error and changes nothing.
func (r *Reads) SetAnswers(source string, by map[string]Answers) error {
	ls := r.sources[source]
	if ls == nil {
		return fmt.Errorf("mirror: answers: no source %q", source)
	}
	return ls.setAnswers(by)
}

// setAnswers is SetAnswers for the lists of one source.
func (ls *Lists) setAnswers(by map[string]Answers) error {
	for _, kind := range slices.Sorted(maps.Keys(by)) {
		if kind != "" && ls.src.Spec.Kind(kind) == nil {
			return fmt.Errorf("mirror: source %s: lists_from: %q is not a kind of %s", ls.src.Name, kind, ls.src.Spec.Name)
		}
		if err := by[kind].Check(); err != nil {
			return fmt.Errorf("mirror: source %s: lists_from: %w", ls.src.Name, err)
		}
	}
	for _, l := range ls.lists {
		set, named := by[l.kind.Name]
		if !named {
			set = by[""]
		}
		set = cmp.Or(set, Auto)
		l.answers.Store(set)
	}
	return nil
}
