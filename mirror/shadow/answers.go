// Answers: whether lists are answered from records or from upstream first.

package shadow

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"understudy/kit/suggest"
)

// Answers says whether lists are answered from records or from upstream first.
type Answers string

// The values of Answers. With Auto a list is answered from upstream first until SamplesNeeded samples in a
// row were equal. After a different sample it is answered from upstream first again.
const (
	Auto     Answers = "auto" // the default; "" means the same
	Upstream Answers = "upstream"
	Records  Answers = "records"
)

// Check returns an error for any other value and suggests the nearest one.
func (a Answers) Check() error {
	known := []string{string(Auto), string(Upstream), string(Records)}
	if a == "" || slices.Contains(known, string(a)) {
		return nil
	}
	return fmt.Errorf("%q is no way to answer%s", string(a), suggest.Hint(string(a), known))
}

// SetAnswers sets by kind whether the lists of a source are answered from records or from upstream first. The
// key "" stands for kinds without an entry. After an error (an unknown source, kind or value) nothing has
// changed.
func (r *Reads) SetAnswers(source string, by map[string]Answers) error {
	ls := r.sources[source]
	if ls == nil {
		return fmt.Errorf("mirror: answers: no source %q", source)
	}
	return ls.setAnswers(by)
}

// setAnswers is SetAnswers for one source.
func (ls *Lists) setAnswers(by map[string]Answers) error {
	for _, kind := range slices.Sorted(maps.Keys(by)) {
		if kind != "" && ls.src.Spec.Kind(kind) == nil {
			return fmt.Errorf("mirror: source %s: answers: %q is not a kind of %s", ls.src.Name, kind, ls.src.Spec.Name)
		}
		if err := by[kind].Check(); err != nil {
			return fmt.Errorf("mirror: source %s: answers: %w", ls.src.Name, err)
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
