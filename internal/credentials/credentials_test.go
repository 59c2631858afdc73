package credentials

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
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

// refusing is a store that refuses to keep changes.
type refusing struct{ KV }

func (refusing) ChangeDurably(context.Context, string, func([]byte) ([]byte, error)) error {
	return understudy.ErrNotStored
}
func (refusing) Delete(context.Context, string) (bool, error) { return false, understudy.ErrNotStored }

// What is not in the store did not happen.
func TestBookThatCannotBeKept(t *testing.T) {
	db := storetest.Open(t, store.Options{})
	value, err := json.Marshal(Credential{Name: "billing", Secrets: []Secret{{User: "SK1"}}})
	if err != nil {
		t.Fatal(err)
	}
	checktest.MustNoError(t, db.KV.SetValue(t.Context(), "credential/billing", value), "set")
	b, err := Open(t.Context(), refusing{db.KV}, form, time.Now)
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
		checktest.MustNoError(t, db.KV.SetValue(t.Context(), name, []byte(value)), "set")
		if _, err := Open(t.Context(), db.KV, form, time.Now); err == nil {
			t.Errorf("%s with %s is read", name, value)
		}
		checktest.MustNoError(t, db.KV.SetValue(t.Context(), name, nil), "delete")
	}
}

// openBooks opens the credentials in two processes on one database.
func openBooks(t *testing.T) (dbs [2]*store.DB, books [2]*Book) {
	t.Helper()
	dbs[0], dbs[1] = storetest.OpenTwo(t)
	for i, db := range dbs {
		b, err := Open(t.Context(), db.KV, form, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		books[i] = b
	}
	return dbs, books
}

func isRevoked(s Secret) bool {
	select {
	case <-s.Revoked:
		return true
	default:
		return false
	}
}

func TestTwoProcessesShareCredentials(t *testing.T) {
	dbs, books := openBooks(t)
	a, b := books[0], books[1]
	next := func() Credential {
		t.Helper()
		checktest.MustNoError(t, dbs[1].Refresh(t.Context()), "refresh")
		all := b.All()
		checktest.MustEqual(t, len(all), 1, "credentials in the other process")
		return all[0]
	}
	select { // the channel is full after Open
	case <-b.Changes():
	default:
	}
	made, err := a.Make(t.Context(), "billing", Scope{Source: "twilio", Role: "support"}, "")
	checktest.MustNoError(t, err, "make")
	version := b.Version()
	first := next().Secrets[0]
	checktest.Equal(t, first.User, made.User, "the user in the other process")
	checktest.True(t, b.Version() > version, "the version is still %d", version)
	select {
	case <-b.Changes():
	default:
		t.Error("the other process is not told of the change")
	}
	_, err = b.Make(t.Context(), "billing", Scope{}, "")
	checktest.True(t, errors.Is(err, understudy.ErrInvalid), "made twice: %v", err)

	_, err = a.Rotate(t.Context(), "billing", time.Hour)
	checktest.MustNoError(t, err, "rotate")
	second := next().Secrets[0]
	checktest.True(t, !isRevoked(first), "a secret in its overlap is revoked")
	third, err := b.Rotate(t.Context(), "billing", 0) // in the other process
	checktest.MustNoError(t, err, "rotate")
	checktest.True(t, isRevoked(first) && isRevoked(second), "rotated without an overlap: the former secrets are valid")
	checktest.MustNoError(t, dbs[0].Refresh(t.Context()), "refresh")
	checktest.Equal(t, a.All()[0].Secrets[0].User, third.User, "the user in the first process")

	last := next().Secrets[0]
	checktest.MustNoError(t, a.Revoke(t.Context(), "billing"), "revoke")
	checktest.MustNoError(t, dbs[1].Refresh(t.Context()), "refresh")
	checktest.Equal(t, len(b.All()), 0, "credentials in the other process after a revocation")
	checktest.True(t, isRevoked(last), "the revoked secret is valid in the other process")
	err = b.Revoke(t.Context(), "billing")
	checktest.True(t, errors.Is(err, understudy.ErrNotFound), "revoked twice: %v", err)
}

// A change in another process that has not been noticed yet is no reason to refuse or to lose anything.
func TestCredentialMadeUnnoticedIsRotatedAndRevoked(t *testing.T) {
	dbs, books := openBooks(t)
	made, err := books[0].Make(t.Context(), "billing", Scope{Source: "twilio", Role: "support"}, "")
	checktest.MustNoError(t, err, "make")
	rotated, err := books[1].Rotate(t.Context(), "billing", time.Hour)
	checktest.MustNoError(t, err, "rotate")
	all := books[1].All()[0].Secrets
	checktest.MustEqual(t, len(all), 2, "secrets")
	checktest.Equal(t, all[0].User+all[1].User, rotated.User+made.User, "the users")
	_, err = books[0].Make(t.Context(), "other", Scope{}, "")
	checktest.MustNoError(t, err, "make another")
	checktest.MustNoError(t, books[1].Revoke(t.Context(), "other"), "revoke")
	checktest.MustNoError(t, dbs[0].Refresh(t.Context()), "refresh")
	checktest.True(t, !books[0].Has("other") && books[0].Has("billing"), "the first process has %v", books[0].All())
}

func TestTwoProcessesChangeCredentialsAtOnce(t *testing.T) {
	dbs, books := openBooks(t)
	scope := Scope{Source: "twilio", Role: "support"}
	_, err := books[0].Make(t.Context(), "shared", scope, "")
	checktest.MustNoError(t, err, "make")
	const each = 10
	var wg sync.WaitGroup
	var same atomic.Int32
	for i, b := range books {
		wg.Go(func() {
			for n := range each {
				_, err := b.Rotate(t.Context(), "shared", time.Hour)
				checktest.NoError(t, err, "rotate")
				_, err = b.Make(t.Context(), fmt.Sprint(i, "-", n), scope, "")
				checktest.NoError(t, err, "make")
				if _, err := b.Make(t.Context(), fmt.Sprint("same-", n), scope, ""); err == nil {
					same.Add(1)
				}
			}
		})
	}
	wg.Wait()
	checktest.Equal(t, same.Load(), int32(each), "credentials of a name that both made")
	for i, b := range books {
		checktest.MustNoError(t, dbs[i].Refresh(t.Context()), "refresh")
		checktest.Equal(t, len(b.All()), 1+3*each, "credentials in process %d", i)
		shared := b.All()[slices.IndexFunc(b.All(), func(c Credential) bool { return c.Name == "shared" })]
		checktest.Equal(t, len(shared.Secrets), 1+2*each, "secrets in process %d", i)
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
