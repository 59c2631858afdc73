package store_test

import (
	"testing"

	"understudy/spec"
	"understudy/spec/spectest"
)

// specs are the specs the tests' sources have.
func specs(t testing.TB) map[string]*spec.Spec {
	t.Helper()
	sp := spectest.BuiltIn(t, "twilio")
	return map[string]*spec.Spec{"twilio": sp}
}
