package store_test

import (
	"testing"

	"understudy/spec"
	"understudy/upstream"
)

// specs are the specs the tests' sources have.
func specs(t testing.TB) map[string]*spec.Spec {
	t.Helper()
	sp, err := upstream.BuiltIn("twilio")
	if err != nil {
		t.Fatal(err)
	}
	return map[string]*spec.Spec{"twilio": sp}
}
