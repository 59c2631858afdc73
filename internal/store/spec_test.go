package store_test

import (
	"testing"

	"understudy"
	"understudy/upstream"
)

// specs are the specs the tests' sources have.
func specs(t testing.TB) map[string]*understudy.Spec {
	t.Helper()
	spec, err := upstream.BuiltIn("twilio")
	if err != nil {
		t.Fatal(err)
	}
	return map[string]*understudy.Spec{"twilio": spec}
}
