package credentials

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
)

func form(source string) (user, secret string) {
	if source == "hub" {
		return "", "ghp_"
	}
	return "SK", ""
}

func TestBook(t *testing.T) {
	db := storetest.Open(t, store.Options{})
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	b, err := Open(t.Context(), db.KV, form, clock)
	if err != nil {
		t.Fatal(err)
	}
	scope := Scope{Source: "twilio", Role: "support", Rate: 2}
	first, err := b.Make(t.Context(), "billing", scope, "")
	checktest.MustNoError(t, err, "made")
	checktest.MustTrue(t, strings.HasPrefix(first.User, "SK"), "made: first.User is %q", first.User)
	checktest.MustEqual(t, len(first.User), 34, "made: len(first.User)")
	checktest.MustEqual(t, len(first.Secret), 48, "made: len(first.Secret)")
	token, err := b.Make(t.Context(), "hub", Scope{Source: "hub", Role: "support"}, "")
	if err != nil || !strings.HasPrefix(token.Secret, "ghp_") {
		t.Errorf("a token: %+v, %v", token, err)
	}
	if _, err := b.Make(t.Context(), "billing", scope, ""); !errors.Is(err, understudy.ErrInvalid) {
		t.Errorf("made twice: %v", err)
	}
	now = now.Add(time.Minute)
	second, err := b.Rotate(t.Context(), "billing", time.Hour)
	checktest.MustNoError(t, err, "rotated")
	checktest.MustTrue(t, second.Secret != first.Secret, "rotated: second.Secret is %v", second.Secret)
	checktest.MustTrue(t, second.User != first.User, "rotated: second.User is %v", second.User)
	again, err := Open(t.Context(), db.KV, form, clock) // after a restart
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range []*Book{b, again} {
		c := of.All()[0]
		checktest.MustEqual(t, c.Name, "billing", "c.Name")
		checktest.MustEqual(t, c.Rate, 2, "c.Rate")
		checktest.MustEqual(t, len(c.Secrets), 2, "len(c.Secrets)")
		for i, secret := range []string{second.Secret, first.Secret} {
			if sum := sha256.Sum256([]byte(secret)); !bytes.Equal(c.Secrets[i].Digest, sum[:]) {
				t.Errorf("the digest of secret %d is another", i)
			}
		}
		if c.Secrets[0].Until != nil || !c.Secrets[1].Until.Equal(now.Add(time.Hour)) {
			t.Errorf("the ends are %v, %v", c.Secrets[0].Until, c.Secrets[1].Until)
		}
	}
	now = now.Add(2 * time.Hour)
	if _, err = b.Rotate(t.Context(), "billing", 0); err != nil || len(b.All()[0].Secrets) != 1 {
		t.Errorf("rotated without an overlap: %v, %d secrets", err, len(b.All()[0].Secrets))
	}
	for _, overlap := range []time.Duration{-1, maxOverlap + 1} {
		if _, err := b.Rotate(t.Context(), "billing", overlap); !errors.Is(err, understudy.ErrInvalid) {
			t.Errorf("an overlap of %v: %v", overlap, err)
		}
	}
	if err := b.Revoke(t.Context(), "billing"); err != nil || len(b.All()) != 1 {
		t.Errorf("revoked: %v, %d are left", err, len(b.All()))
	}
	for _, err := range []error{b.Revoke(t.Context(), "billing"), errOf(b.Rotate(t.Context(), "billing", 0))} {
		if !errors.Is(err, understudy.ErrNotFound) {
			t.Errorf("one that is gone: %v", err)
		}
	}
	kept, err := db.KV.ReadValues(t.Context(), kvStart)
	if err != nil || len(kept) != 1 {
		t.Errorf("%d notes, %v", len(kept), err)
	}
}

func errOf[T any](_ T, err error) error { return err }

// broken refuses to keep notes.
type broken struct{ of map[string][]byte }

func (b broken) ReadValues(context.Context, string) (map[string][]byte, error) { return b.of, nil }
func (b broken) SetValueDurably(context.Context, string, []byte) error {
	return understudy.ErrNotStored
}

// What is not in the store did not happen.
func TestBookThatCannotBeKept(t *testing.T) {
	value, err := json.Marshal(Credential{Name: "billing", Secrets: []Secret{{User: "SK1"}}})
	if err != nil {
		t.Fatal(err)
	}
	b, err := Open(t.Context(), broken{map[string][]byte{"credential/billing": value}}, form, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"make": errOf(b.Make(t.Context(), "x", Scope{}, "")), "rotate": errOf(b.Rotate(t.Context(), "billing", 0)),
		"revoke": b.Revoke(t.Context(), "billing"),
	} {
		if !errors.Is(err, understudy.ErrNotStored) {
			t.Errorf("%s: %v", what, err)
		}
	}
	all := b.All()
	checktest.MustEqual(t, len(all), 1, "len(all)")
	checktest.MustEqual(t, len(all[0].Secrets), 1, "len(all[0].Secrets)")
	checktest.Equal(t, all[0].Secrets[0].User, "SK1", "all[0].Secrets[0].User")
	for name, value := range map[string]string{"credential/x": "{}", "credential/y": `{"name":"z"}`, "credential/z": "no"} {
		if _, err := Open(t.Context(), broken{map[string][]byte{name: []byte(value)}}, form, time.Now); err == nil {
			t.Errorf("%s with %s is read", name, value)
		}
	}
}

// Of many who make one of a name at once, one does.
func TestCredentialThatWouldHaveExpiredIsRefused(t *testing.T) {
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	b, err := Open(t.Context(), storetest.Open(t, store.Options{}).KV, form, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	later := now.Add(time.Second)
	scope := Scope{Source: "twilio", Role: "support", Expires: &now}
	if _, err := b.Make(t.Context(), "billing", scope, ""); !errors.Is(err, understudy.ErrInvalid) {
		t.Errorf("that expires now: %v", err)
	}
	scope.Expires = &later
	if _, err := b.Make(t.Context(), "billing", scope, ""); err != nil {
		t.Errorf("that expires in a second: %v", err)
	}
}

func TestMadeOnce(t *testing.T) {
	b, err := Open(t.Context(), storetest.Open(t, store.Options{}).KV, form, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	made := 0
	for range 20 {
		wg.Go(func() {
			if _, err := b.Make(t.Context(), "billing", Scope{Source: "twilio", Role: "support"}, ""); err == nil {
				mu.Lock()
				defer mu.Unlock()
				made++
			}
		})
	}
	wg.Wait()
	if made != 1 {
		t.Errorf("%d were made", made)
	}
}

func TestNames(t *testing.T) {
	for name, want := range map[string]bool{
		"billing": true, "a.b_c-d@E9": true, "": false, "a b": false, "a/b": false, "ä": false,
		strings.Repeat("x", maxName+1): false, "a\n": false,
	} {
		if err := CheckName(name); (err == nil) != want {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// A second click on the button of a form gets what the first made, for a minute.
func TestMadeOnceByAForm(t *testing.T) {
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	b, err := Open(t.Context(), storetest.Open(t, store.Options{}).KV, form, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	scope := Scope{Source: "twilio", Role: "support"}
	first, err := b.Make(t.Context(), "billing", scope, "FORM1")
	if err != nil {
		t.Fatal(err)
	}
	{
		again, err := b.Make(t.Context(), "billing", scope, "FORM1")
		checktest.MustNoError(t, err, "a second click")
		checktest.Equal(t, again, first, "a second click: again")
		checktest.Equal(t, len(b.All()[0].Secrets), 1, "a second click: len(b.All()[0].Secrets)")
	}
	for _, once := range []string{"FORM2", ""} {
		if _, err := b.Make(t.Context(), "billing", scope, once); !errors.Is(err, understudy.ErrInvalid) {
			t.Errorf("another form %q: %v", once, err)
		}
	}
	if other, err := b.Make(t.Context(), "other", scope, "FORM1"); err != nil || other.Secret == first.Secret {
		t.Errorf("another name: %+v, %v", other, err)
	}
	now = now.Add(time.Minute)
	if _, err := b.Make(t.Context(), "billing", scope, "FORM1"); !errors.Is(err, understudy.ErrInvalid) {
		t.Errorf("a minute later: %v", err)
	}
	if err := b.Revoke(t.Context(), "other"); err != nil {
		t.Fatal(err)
	}
	if anew, err := b.Make(t.Context(), "other", scope, "FORM1"); err != nil || anew.Secret == first.Secret {
		t.Errorf("after it was revoked: %+v, %v", anew, err)
	} else if again, err := b.Make(t.Context(), "other", scope, "FORM1"); err != nil || again != anew {
		t.Errorf("a second click on that: %+v, %v", again, err)
	}
}
