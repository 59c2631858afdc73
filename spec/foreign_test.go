package spec

import "testing"

// Records that do not tell whose they are, are kept by themselves.
func TestKeptAs(t *testing.T) {
	s := &Spec{
		Name: "x", Hosts: []Host{{URL: "http://x"}}, Auth: Auth{Style: "none"},
		Vars: map[string]string{"Who": "user"}, VarFields: map[string]string{"Who": "whose", "Box": "box"},
		Kinds: []*Kind{
			{Name: "boxes", ID: []string{"id"}, Fields: []*Field{{Name: "id"}, {Name: "whose"}}, Lists: []*List{{Path: "/{Who}/boxes"}}},
			{Name: "keys", ID: []string{"id"}, Fields: []*Field{{Name: "id"}}, Lists: []*List{{Path: "/{Who}/keys"}},
				Instances: []*Instance{{Path: "/{Who}/keys/{Id}", ID: []string{"Id"}, Shape: "key"}}},
			{Name: "things", ID: []string{"id"}, Fields: []*Field{{Name: "id"}, {Name: "box"}}, Lists: []*List{{Path: "/{Who}/boxes/{Box}/things"}}},
			{Name: "sums", Fields: []*Field{{Name: "id"}}, Lists: []*List{{Path: "/{Who}/sums"}}},
		},
	}
	if err := s.Compile(); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/me/keys": "keys", "/you/keys": "keys@elsewhere", "/me/keys/K1": "key", "/you/keys/K1": "key@elsewhere",
		"/you/boxes": "boxes", "/you/boxes/B1/things": "things", "/you/sums": "sums", "/you/nothing": "",
	} {
		target, err := s.Resolve("x", path, "")
		if err != nil {
			t.Fatal(err)
		}
		if got := target.StorageShape("me"); got != want {
			t.Errorf("%s is kept as %q, want %q", path, got, want)
		}
	}
	if got := s.Kind("keys").UnscopedVar(); got != "Who" {
		t.Errorf("keys do not tell %q", got)
	}
}
