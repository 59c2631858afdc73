// Package checktest compares values in tests. Each function checks one value, and its failure names that value. The functions report a
// failure and let the test go on; those that begin with Must end the test. Must functions belong to the goroutine of the
// test, as testing.T.FailNow does.
package checktest

import (
	"fmt"
	"strings"
)

// maxShown is how many bytes of a text a failure shows.
const maxShown = 4000

// T is the part of testing.TB that a check needs.
type T interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// True reports a failure with the message unless ok is true.
func True(t T, ok bool, format string, args ...any) {
	t.Helper()
	if !ok {
		t.Errorf(format, args...)
	}
}

// MustTrue ends the test with the message unless ok is true.
func MustTrue(t T, ok bool, format string, args ...any) {
	t.Helper()
	if !ok {
		t.Fatalf(format, args...)
	}
}

// Equal reports a failure unless got equals want. The message names the value that got is.
func Equal[V comparable](t T, got, want V, format string, args ...any) {
	t.Helper()
	if got != want {
		t.Errorf("%s is %s", fmt.Sprintf(format, args...), difference(got, want))
	}
}

// MustEqual ends the test unless got equals want.
func MustEqual[V comparable](t T, got, want V, format string, args ...any) {
	t.Helper()
	if got != want {
		t.Fatalf("%s is %s", fmt.Sprintf(format, args...), difference(got, want))
	}
}

// NoError reports a failure unless err is nil.
func NoError(t T, err error, format string, args ...any) {
	t.Helper()
	if err != nil {
		t.Errorf("%s", prefix(format, args)+err.Error())
	}
}

// MustNoError ends the test unless err is nil.
func MustNoError(t T, err error, format string, args ...any) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s", prefix(format, args)+err.Error())
	}
}

// Contains reports a failure unless text contains part.
func Contains(t T, text, part, format string, args ...any) {
	t.Helper()
	if !strings.Contains(text, part) {
		t.Errorf("%s lacks %q: %s", fmt.Sprintf(format, args...), part, shown(text))
	}
}

// MustContains ends the test unless text contains part.
func MustContains(t T, text, part, format string, args ...any) {
	t.Helper()
	if !strings.Contains(text, part) {
		t.Fatalf("%s lacks %q: %s", fmt.Sprintf(format, args...), part, shown(text))
	}
}

// Lacks reports a failure if text contains part.
func Lacks(t T, text, part, format string, args ...any) {
	t.Helper()
	if strings.Contains(text, part) {
		t.Errorf("%s contains %q: %s", fmt.Sprintf(format, args...), part, shown(text))
	}
}

// MustLacks ends the test if text contains part.
func MustLacks(t T, text, part, format string, args ...any) {
	t.Helper()
	if strings.Contains(text, part) {
		t.Fatalf("%s contains %q: %s", fmt.Sprintf(format, args...), part, shown(text))
	}
}

// difference returns both values. Of two long texts it returns what begins shortly before their first difference.
func difference(got, want any) string {
	a, isText := got.(string)
	b, _ := want.(string)
	if !isText || max(len(a), len(b)) <= maxShown {
		return shown(got) + ", want " + shown(want)
	}
	i := 0
	for i < min(len(a), len(b)) && a[i] == b[i] {
		i++
	}
	at := max(0, i-80)
	return fmt.Sprintf("%q from byte %d on, want %q", a[at:min(len(a), i+200)], at, b[at:min(len(b), i+200)])
}

// shown returns a value as a failure shows it: texts are quoted and cut after maxShown bytes.
func shown(v any) string {
	s, ok := v.(string)
	if !ok {
		return fmt.Sprintf("%+v", v)
	}
	if len(s) > maxShown {
		return fmt.Sprintf("%q and %d bytes more", s[:maxShown], len(s)-maxShown)
	}
	return fmt.Sprintf("%q", s)
}

// prefix returns the message with a colon, or nothing if there is none.
func prefix(format string, args []any) string {
	if format == "" {
		return ""
	}
	return fmt.Sprintf(format, args...) + ": "
}
