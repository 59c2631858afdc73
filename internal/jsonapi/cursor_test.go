package jsonapi_test

import (
	"context"
	"testing"

	"understudy"
	"understudy/internal/jsonapi"
)

// values keep one value.
type values struct {
	understudy.KV
	name string
	data []byte
}

func (v *values) Value(_ context.Context, name string) ([]byte, error) {
	if name != v.name {
		return nil, understudy.ErrNotFound
	}
	return v.data, nil
}

func (v *values) SetValue(_ context.Context, name string, data []byte) error {
	v.name, v.data = name, data
	return nil
}

func TestCursorsOpenForTheirRoleAlone(t *testing.T) {
	kv := &values{}
	if _, err := jsonapi.LoadSealingKey(t.Context(), kv, "feed"); err != nil {
		t.Fatal(err)
	}
	key, err := jsonapi.LoadSealingKey(t.Context(), kv, "feed") // the one kept
	if err != nil || kv.name != "feed/key" {
		t.Fatalf("kept under %q: %v", kv.name, err)
	}
	own, err := jsonapi.NewCursorSealer(kv.data, "feed", "phone", "desk")
	if err != nil {
		t.Fatal(err)
	}
	text := string(own.Append(nil, []byte("position")))
	for _, c := range []struct {
		pkg, source, role string
		opens             bool
	}{
		{"feed", "phone", "desk", true}, {"feed", "phone", "all", false}, {"feed", "mail", "desk", false}, {"search", "phone", "desk", false},
	} {
		s, err := jsonapi.NewCursorSealer(key, c.pkg, c.source, c.role)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Open(text, len("position")); (err == nil) != c.opens {
			t.Errorf("%s, %s, %s: %v", c.pkg, c.source, c.role, err)
		}
	}
	if _, err := jsonapi.NewCursorSealer(key[1:], "feed", "phone", "desk"); err == nil {
		t.Error("a short key was taken")
	}
}
