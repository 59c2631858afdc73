package jsonapi_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/jsonapi"
	"understudy/internal/store/storetest"
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

func (v *values) Change(_ context.Context, name string, change func([]byte) ([]byte, error)) (err error) {
	v.name = name
	v.data, err = change(v.data)
	return err
}

func TestProcessesThatStartAtOnceGetTheSameKey(t *testing.T) {
	var stores [2]understudy.KV
	a, b := storetest.OpenTwo(t)
	stores[0], stores[1] = a.KV, b.KV
	for round := range 10 {
		var keys [2][]byte
		var wg sync.WaitGroup
		for i, kv := range stores {
			wg.Go(func() {
				var err error
				keys[i], err = jsonapi.LoadSealingKey(t.Context(), kv, fmt.Sprint("feed", round))
				checktest.NoError(t, err, "load the key")
			})
		}
		wg.Wait()
		checktest.Equal(t, string(keys[0]), string(keys[1]), "the keys of round %d", round)
	}
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
