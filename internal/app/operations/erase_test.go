package operations

import (
	"testing"

	"understudy/spec"
	"understudy/upstream"
)

// A number is ours when a record that shows it is one of our own numbers.
func TestErasingAnOwnNumberIsKnown(t *testing.T) {
	sp, err := upstream.ReadBuiltIn("twilio")
	if err != nil {
		t.Fatal(err)
	}
	sources := []*spec.Source{{Name: "twilio", Spec: sp}}
	for _, tt := range []struct {
		source string
		found  map[string]int
		want   bool
	}{
		{"twilio", map[string]int{"calls": 3, "messages": 2}, false},
		{"twilio", map[string]int{"calls": 3, "incoming_phone_numbers": 1}, true},
		{"other", map[string]int{"incoming_phone_numbers": 1}, false},
	} {
		if got := hasOwn(sources, tt.source, tt.found); got != tt.want {
			t.Errorf("%s %v: %v", tt.source, tt.found, got)
		}
	}
}
