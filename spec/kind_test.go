package spec

import "testing"

// The digits of an id are no phone number, but a number behind a prefix still is one.
func TestHasID(t *testing.T) {
	s := &Spec{Kinds: []*Kind{{Name: "calls", Prefixes: []string{"CA"}}, {Name: "customers", Prefixes: []string{"cus_"}}}}
	for text, want := range map[string]bool{
		"CA0123456789abcdef0123456789abcdef": true, "cus_NffrFeUfNV2Hib": true, "cus_123456a789012b": true,
		"CA4155550106": false, "cus_4155550106": false, "XX0123456789abcdef0123456789abcdef": false, "CA": false, "cus_": false, "": false,
	} {
		if s.HasID(text) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}
