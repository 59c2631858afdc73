package spec

import (
	"testing"

	"understudy"
)

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

// A write may change records of several kinds, and the one that its path names.
func TestAWriteChangesOtherKinds(t *testing.T) {
	s := &Spec{Name: "x", Hosts: []Host{{URL: "http://x"}}, Auth: Auth{Style: "none"}, Kinds: []*Kind{
		{Name: "tickets", ID: []string{"id"}, Fields: []*Field{{Name: "id"}},
			Instances:      []*Instance{{Path: "/b/{board}/t/{ticket}", ID: []string{"ticket"}}},
			ChangingWrites: ChangingWrites{Writes: []string{"/b/{board}/t/{ticket}/notes", "/notes/{note}"}}},
		{Name: "boards", ID: []string{"id"}, Fields: []*Field{{Name: "id"}},
			Instances:      []*Instance{{Path: "/b/{board}", ID: []string{"board"}}},
			ChangingWrites: ChangingWrites{Writes: []string{"/b/{board}/t/{ticket}/notes"}}},
	}}
	if err := s.Compile(); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"/b/1/t/2/notes": "tickets 2, boards 1, ", "/notes/3": "tickets , ", "/b/1": "", "/%zz": ""} {
		got := ""
		for _, one := range s.ChangedTargets(understudy.Key{Source: "x", URI: path}, nil) {
			got += one.Kind.Name + " " + one.ID + ", "
		}
		if got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}
