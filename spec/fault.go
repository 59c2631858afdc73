// Fault: what is wrong with a spec, and where it stands.

package spec

import (
	"errors"
	"fmt"

	"understudy/kit/suggest"
)

// Fault is what is wrong with a spec, and where: Path leads there from the spec itself,
// by keys (string) and places of lists (int), as far as is known: kinds, 3, lists, 0.
type Fault struct {
	Path []any
	err  error
}

// Error says what is wrong, with the names of what it is in.
func (f *Fault) Error() string { return f.err.Error() }

// Unwrap gives the cause.
func (f *Fault) Unwrap() error { return f.err }

// in adds to an error where the thing stands that it is about. A nil error stays nil.
func in(err error, path ...any) error {
	if err == nil {
		return nil
	}
	var inner *Fault
	if errors.As(err, &inner) {
		path = append(path, inner.Path...)
	}
	return &Fault{Path: path, err: err}
}

// none says that a name is not one of those known, and which of them is nearest.
func none(name, of string, known []string) error {
	return fmt.Errorf("%q is not %s%s", name, of, suggest.Hint(name, known))
}
