package checktest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// recorder keeps the failure that a check reports.
type recorder struct{ failure string }

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) { r.failure = fmt.Sprintf(format, args...) }

func (r *recorder) Fatalf(format string, args ...any) {
	r.failure = "fatal: " + fmt.Sprintf(format, args...)
}

func TestAFailureNamesItsValue(t *testing.T) {
	long := strings.Repeat("a", maxShown)
	for want, check := range map[string]func(T){
		"":                               func(r T) { Equal(r, 1, 1, "n") },
		"n of x is 1, want 2":            func(r T) { Equal(r, 1, 2, "n of %s", "x") },
		`fatal: name is "a", want "b"`:   func(r T) { MustEqual(r, "a", "b", "name") },
		"ok is false":                    func(r T) { True(r, false, "ok is false") },
		"fatal: ok is false":             func(r T) { MustTrue(r, false, "ok is false") },
		"broken":                         func(r T) { NoError(r, errors.New("broken"), "") },
		"fatal: read: broken":            func(r T) { MustNoError(r, errors.New("broken"), "read") },
		`body lacks "b": "a"`:            func(r T) { Contains(r, "a", "b", "body") },
		`fatal: body lacks "b": "a"`:     func(r T) { MustContains(r, "a", "b", "body") },
		`body contains "a": "ab"`:        func(r T) { Lacks(r, "ab", "a", "body") },
		`fatal: body contains "a": "ab"`: func(r T) { MustLacks(r, "ab", "a", "body") },
		fmt.Sprintf("x is %q from byte %d on, want %q", long[:80]+"b", maxShown-80, long[:80]+"c"): func(r T) {
			Equal(r, long+"b", long+"c", "x")
		},
	} {
		var r recorder
		if check(&r); r.failure != want {
			t.Errorf("%q, want %q", r.failure, want)
		}
	}
}
