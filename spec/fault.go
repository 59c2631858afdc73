// Fault: an error in a spec, and its place.

package spec

import (
	"errors"
	"fmt"

	"understudy/kit/suggest"
)

// Fault is an error in a spec. Path is its place from the top of the spec, as far as known: keys (string) and
// list indexes (int), such as kinds, 3, lists, 0.
type Fault struct {
	Path []any
	err  error
}

// Error returns what is wrong, with the names of the surrounding parts.
func (f *Fault) Error() string { return f.err.Error() }

// Unwrap returns the cause.
func (f *Fault) Unwrap() error { return f.err }

// addPath prepends a path to the place of an error. A nil error stays nil.
func addPath(err error, path ...any) error {
	if err == nil {
		return nil
	}
	if inner, ok := errors.AsType[*Fault](err); ok {
		path = append(path, inner.Path...)
	}
	return &Fault{Path: path, err: err}
}

// describeUnknown returns an error that says that a name is not one of the known names, and which of those is
// most similar.
func describeUnknown(name, of string, known []string) error {
	return fmt.Errorf("%q is not %s%s", name, of, suggest.Hint(name, known))
}
