// Changes: invitations work once, and a new password ends all sessions of the person.

package signin

import (
	"context"
	"errors"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
)

const newPassword = "battery staple of ben"

// ownFile is a file of users of a server that has only the role support.
type ownFile struct {
	path string
	mu   sync.Mutex
}

func (f *ownFile) Change(_ context.Context, change func(*Users) error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return UpdateFile(f.path, change)
}

func (f *ownFile) CheckUser(_, role string) error {
	if role != "support" {
		return understudy.ErrInvalid
	}
	return nil
}

// newHouse returns a browser before people whose file can be changed, and a function that reads the file again.
func newHouse(t *testing.T, now func() time.Time) (b *signer, reload func()) {
	t.Helper()
	b = newSigner(t, now, "anna")
	f := &ownFile{path: filepath.Join(t.TempDir(), "users")}
	checktest.MustNoError(t, UpdateFile(f.path, func(u *Users) error { return u.Add("anna", "support", annas) }), "create")
	b.File = f
	reload = func() {
		t.Helper()
		users, err := ReadUsers(f.path)
		checktest.MustNoError(t, err, "read")
		b.Users = users
		checktest.MustNoError(t, b.EndGone(t.Context()), "end")
	}
	reload()
	return b, reload
}

func TestInvitationWorksOnce(t *testing.T) {
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	b, reload := newHouse(t, func() time.Time { return now })
	for _, wrong := range [][2]string{{"b:n", "support"}, {"ben", "owner"}} {
		if _, err := b.Invite(t.Context(), wrong[0], wrong[1], "anna"); !errors.Is(err, understudy.ErrInvalid) {
			t.Errorf("%v: %v", wrong, err)
		}
	}
	first, err := b.Invite(t.Context(), "ben", "support", "anna")
	checktest.MustNoError(t, err, "invite")
	second, err := b.Invite(t.Context(), "ben", "support", "anna")
	checktest.MustNoError(t, err, "invite again")
	accept := func(token, password string) error {
		return b.Accept(httptest.NewRecorder(), b.request("127.0.0.1:1"), token, password)
	}
	if err := accept(first, newPassword); !errors.Is(err, understudy.ErrNotFound) {
		t.Errorf("the first link still works: %v", err)
	}
	if err := accept(second, "short"); !errors.Is(err, understudy.ErrInvalid) {
		t.Errorf("a short password: %v", err)
	}
	if err := b.Accept(httptest.NewRecorder(), b.request("192.0.2.1:1"), second, newPassword); !errors.Is(err, understudy.ErrForbidden) {
		t.Errorf("a password without encryption: %v", err)
	}
	var done atomic.Int64
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			switch err := accept(second, newPassword); {
			case err == nil:
				done.Add(1)
			case !errors.Is(err, understudy.ErrNotFound):
				t.Error(err)
			}
		})
	}
	all.Wait()
	checktest.Equal(t, done.Load(), 1, "accepted")
	reload()
	checktest.MustNoError(t, b.signIn("ben", newPassword), "sign in")
	if open, err := b.ReadInvitations(t.Context()); err != nil || len(open) != 0 {
		t.Errorf("open: %v %v", open, err)
	}
}

// A person who is a user already keeps the role, and loses all sessions.
func TestInvitationReplacesAForgottenPassword(t *testing.T) {
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	b, reload := newHouse(t, func() time.Time { return now })
	checktest.MustNoError(t, b.signIn("anna", annas), "sign in")
	token, err := b.Invite(t.Context(), "anna", "owner", "root")
	checktest.MustNoError(t, err, "invite")
	found, err := b.FindInvitation(t.Context(), token)
	checktest.MustNoError(t, err, "find")
	checktest.Equal(t, found.Role, "support", "the role of the invitation")
	checktest.MustNoError(t, b.Accept(httptest.NewRecorder(), b.request("127.0.0.1:1"), token, newPassword), "accept")
	reload()
	checktest.Equal(t, len(b.Sessions.PersonSessions("anna")), 1, "sessions")
	if err := b.signIn("anna", annas); !errors.Is(err, understudy.ErrUnauthorized) {
		t.Errorf("the old password: %v", err)
	}
	checktest.NoError(t, b.signIn("anna", newPassword), "the new password")
}

func TestInvitationsEnd(t *testing.T) {
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	b, _ := newHouse(t, func() time.Time { return now })
	var tokens []string
	for _, name := range []string{"ben", "carla"} {
		token, err := b.Invite(t.Context(), name, "support", "anna")
		checktest.MustNoError(t, err, "invite")
		tokens = append(tokens, token)
	}
	checktest.MustNoError(t, b.RemoveInvitation(t.Context(), "ben"), "withdraw")
	if _, err := b.FindInvitation(t.Context(), tokens[0]); !errors.Is(err, understudy.ErrNotFound) {
		t.Errorf("withdrawn: %v", err)
	}
	found, err := b.FindInvitation(t.Context(), tokens[1])
	checktest.MustNoError(t, err, "find")
	checktest.Equal(t, found.Name, "carla", "name")
	now = now.Add(invitationLifetime)
	if _, err := b.FindInvitation(t.Context(), tokens[1]); !errors.Is(err, understudy.ErrNotFound) {
		t.Errorf("after three days: %v", err)
	}
	stored, err := b.Sessions.kv.Value(t.Context(), kvInvitations)
	checktest.MustNoError(t, err, "stored")
	if slices.ContainsFunc(tokens, func(token string) bool { return strings.Contains(string(stored), token) }) {
		t.Error("a token is stored")
	}
	for i := range maxInvitations {
		_, err := b.Invite(t.Context(), "p"+strings.Repeat("x", i%60)+string(rune('a'+i/60)), "support", "anna")
		checktest.MustNoError(t, err, "invite")
	}
	if _, err := b.Invite(t.Context(), "onemore", "support", "anna"); !errors.Is(err, understudy.ErrInvalid) {
		t.Errorf("too many: %v", err)
	}
}

func TestPeopleChangeTheirPassword(t *testing.T) {
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	b, reload := newHouse(t, func() time.Time { return now })
	change := func(current, next string) error {
		return b.ChangePassword(httptest.NewRecorder(), b.request("127.0.0.1:1"), current, next)
	}
	if err := change(annas, newPassword); !errors.Is(err, understudy.ErrUnauthorized) {
		t.Errorf("nobody is signed in: %v", err)
	}
	checktest.MustNoError(t, b.signIn("anna", annas), "sign in")
	elsewhere := b.cookie
	checktest.MustNoError(t, b.signIn("anna", annas), "sign in elsewhere")
	if err := change(annas, "short"); !errors.Is(err, understudy.ErrInvalid) {
		t.Errorf("a short password: %v", err)
	}
	if err := change("wrong", newPassword); !errors.Is(err, understudy.ErrUnauthorized) {
		t.Errorf("a wrong password: %v", err)
	}
	checktest.MustNoError(t, change(annas, newPassword), "change")
	if err := change(annas, newPassword+"2"); !errors.Is(err, understudy.ErrConflict) && !errors.Is(err, understudy.ErrUnauthorized) {
		t.Errorf("the same form again: %v", err)
	}
	reload()
	checktest.Equal(t, len(b.Sessions.PersonSessions("anna")), 1, "sessions")
	b.cookie = elsewhere
	if _, err := b.Identify(b.request("127.0.0.1:1")); !errors.Is(err, understudy.ErrUnauthorized) {
		t.Errorf("another browser: %v", err)
	}
	checktest.NoError(t, b.signIn("anna", newPassword), "the new password")
	for range 25 {
		_ = change("guess", newPassword+"2")
	}
	if err := change(newPassword, newPassword+"2"); !errors.Is(err, understudy.ErrTooMany) {
		t.Errorf("after wrong passwords: %v", err)
	}
}
