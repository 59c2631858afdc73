// This file changes users from the viewer: their passwords and roles, and the invitations with which people choose a password.

package signin

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"understudy"
	"understudy/kit/accesslog"
)

const (
	kvInvitations      = "invitations/all"
	invitationLifetime = 72 * time.Hour
	maxInvitations     = 200
)

// UserFile is the file of users of a running server. It is safe for concurrent use.
type UserFile interface {
	// Change changes the file as UpdateFile does, and makes the change take effect. Errors: those of change and CheckUser, before
	// anything has changed; ErrNotStored if the file cannot be written or the server cannot read its settings again.
	Change(ctx context.Context, change func(*Users) error) error
	// CheckUser returns an error for an unknown role, and for a name that somebody else has. It wraps ErrInvalid.
	CheckUser(name, role string) error
}

// Invitation is a link with which a person chooses a password, once. The person becomes a user with the role, or is a user already.
type Invitation struct {
	Name  string    `json:"name"`
	Role  string    `json:"role"`
	By    string    `json:"by"` // who invited the person
	Until time.Time `json:"until"`
	Hash  string    `json:"hash"` // the SHA-256 digest of the token, in hex
}

// Invite stores an invitation, which is valid for three days, and returns its token. It replaces an earlier invitation of the same person.
// The role of a person who is a user already stays.
// Errors: ErrInvalid.
func (p *People) Invite(ctx context.Context, name, role, by string) (token string, err error) {
	if err := CheckName(name); err != nil {
		return "", err
	}
	if user, ok := p.Users.find(name); ok {
		role = user.Role
	}
	if err := p.File.CheckUser(name, role); err != nil {
		return "", err
	}
	token = rand.Text() + rand.Text()
	err = p.changeInvitations(ctx, func(all []Invitation) ([]Invitation, error) {
		all = slices.DeleteFunc(all, func(i Invitation) bool { return i.Name == name })
		if len(all) >= maxInvitations {
			return nil, fmt.Errorf("signin: %w: %d invitations are open; withdraw one first", understudy.ErrInvalid, len(all))
		}
		until := p.Sessions.now().Add(invitationLifetime)
		return append(all, Invitation{Name: name, Role: role, By: by, Until: until, Hash: hashToken(token)}), nil
	})
	return token, err
}

func hashToken(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// ReadInvitations returns the open invitations, the oldest first.
func (p *People) ReadInvitations(ctx context.Context) (all []Invitation, err error) {
	err = understudy.ReadJSON(ctx, p.Sessions.kv, kvInvitations, &all)
	return slices.DeleteFunc(all, p.isOver), err
}

func (p *People) isOver(i Invitation) bool { return !p.Sessions.now().Before(i.Until) }

// changeInvitations changes the open invitations and drops those that are over.
func (p *People) changeInvitations(ctx context.Context, change func([]Invitation) ([]Invitation, error)) error {
	return p.Sessions.kv.Change(ctx, kvInvitations, func(old []byte) ([]byte, error) {
		var all []Invitation
		if old != nil {
			if err := json.Unmarshal(old, &all); err != nil {
				return nil, fmt.Errorf("signin: the value of %s has no invitations: %w", kvInvitations, err)
			}
		}
		all, err := change(slices.DeleteFunc(all, p.isOver))
		if err != nil {
			return nil, err
		}
		return json.Marshal(all)
	})
}

// RemoveInvitation removes the invitation of a person, if there is one.
func (p *People) RemoveInvitation(ctx context.Context, name string) error {
	return p.changeInvitations(ctx, func(all []Invitation) ([]Invitation, error) {
		return slices.DeleteFunc(all, func(i Invitation) bool { return i.Name == name }), nil
	})
}

// FindInvitation returns the open invitation of a token, or ErrNotFound.
func (p *People) FindInvitation(ctx context.Context, token string) (i Invitation, err error) {
	all, err := p.ReadInvitations(ctx)
	if err != nil {
		return i, err
	}
	at := slices.IndexFunc(all, isOf(token))
	if at < 0 {
		return i, errNoInvitation
	}
	return all[at], nil
}

var errNoInvitation = fmt.Errorf("signin: %w: no invitation", understudy.ErrNotFound)

// isOf returns a function that reports whether an invitation has a token. Digests are compared, so the time says nothing about a token.
func isOf(token string) func(Invitation) bool {
	hash := hashToken(token)
	return func(i Invitation) bool { return i.Hash == hash }
}

// Accept uses an invitation: it gives the person a password and begins a session. The role of a person who is a user already stays.
// Of several requests with the same token one succeeds. If the file cannot be written afterwards, the invitation is used up.
// Errors: ErrNotFound, ErrInvalid for a password that is easy to guess, ErrForbidden for a password sent without encryption.
func (p *People) Accept(w http.ResponseWriter, r *http.Request, token, password string) error {
	if err := p.CheckTransport(r); err != nil {
		return err
	}
	i, err := p.FindInvitation(r.Context(), token)
	if err != nil {
		return err
	}
	if err := CheckPassword(i.Name, password); err != nil {
		return err
	}
	if !p.Users.Has(i.Name) {
		if err := p.File.CheckUser(i.Name, i.Role); err != nil { // the settings may have changed since
			return err
		}
	}
	return p.changeUser(w, r, understudy.Caller{Name: i.Name}, "invitation", func(u *Users) error {
		err := p.changeInvitations(r.Context(), func(all []Invitation) ([]Invitation, error) {
			at := slices.IndexFunc(all, isOf(token))
			if at < 0 {
				return nil, errNoInvitation
			}
			return slices.Delete(all, at, at+1), nil
		})
		switch {
		case err != nil:
			return err
		case u.Has(i.Name):
			return u.SetPassword(i.Name, password)
		}
		return u.Add(i.Name, i.Role, password)
	})
}

// ChangePassword replaces the password of the person who sent a request. All sessions of the person end, and a new one begins in this
// browser. Errors: those of SignIn for the current password; ErrInvalid for a new password that is easy to guess.
func (p *People) ChangePassword(w http.ResponseWriter, r *http.Request, current, next string) error {
	s, role, ok := p.session(r)
	if !ok {
		return fmt.Errorf("signin: %w: nobody is signed in", understudy.ErrUnauthorized)
	}
	name := s.Session.Name
	if err := CheckPassword(name, next); err != nil {
		return err
	}
	if err := p.checkPassword(r, name, current); err != nil {
		return err
	}
	return p.changeUser(w, r, callerOf(&s, role), "password change", func(u *Users) error {
		if now, _ := u.find(name); now.signInID != s.Session.SignInID {
			return fmt.Errorf("signin: %w: the password was changed meanwhile", understudy.ErrConflict)
		}
		return u.SetPassword(name, next)
	})
}

// changeUser records what a person does, changes the file of users and begins a session for the person.
func (p *People) changeUser(w http.ResponseWriter, r *http.Request, who understudy.Caller, what string, change func(*Users) error) error {
	err := understudy.RecordAudit(r.Context(), p.Audit, understudy.AuditEntry{Caller: who, Action: understudy.ActionSignIn, What: what,
		AsPerson: true, Request: accesslog.LineOf(r.Context()).ID})
	if err != nil {
		return err
	}
	var user User
	err = p.File.Change(r.Context(), func(u *Users) error {
		err := change(u)
		user, _ = u.find(who.Name)
		return err
	})
	if err != nil {
		return err
	}
	return p.begin(w, r, Session{Name: who.Name, SignInID: user.signInID}, user.Role)
}
