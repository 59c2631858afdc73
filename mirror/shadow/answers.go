// Answers: what lists are answered from first, as the settings say.

package shadow

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"understudy/kit/suggest"
)

// Answers says what lists are answered from first.
type Answers string

// The three ways. With Auto a list is upstream first until Enough samples in a
// row were equal, and again from the first that was not.
const (
	Auto     Answers = "auto" // and ""
	Upstream Answers = "upstream"
	Records  Answers = "records"
)

// Check refuses any other word than the three, and names the nearest.
func (a Answers) Check() error {
	known := []string{string(Auto), string(Upstream), string(Records)}
	if a == "" || slices.Contains(known, string(a)) {
		return nil
	}
	return fmt.Errorf("%q is no way to answer%s", string(a), suggest.Hint(string(a), known))
}

// SetAnswers says what the lists of a source are answered from first, by kind;
// "" is for kinds that are not named. Errors: an unknown source or kind, an
// unknown word; nothing is changed then.
func (r *Reads) SetAnswers(source string, by map[string]Answers) error {
	ls := r.sources[source]
	if ls == nil {
		return fmt.Errorf("mirror: answers: no source %q", source)
	}
	return ls.setAnswers(by)
}

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
		l.set.Store(set)
	}
	return nil
}
