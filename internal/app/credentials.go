// This file creates, rotates and revokes credentials while the server runs, and applies the change at once.

package app

import (
	"context"
	"fmt"
	"time"

	"understudy"
	"understudy/internal/credentials"
	"understudy/spec/auth"
)

// issuer changes credentials and applies the change.
type issuer struct {
	credentials *credentials.Book
	settings    *liveSettings
	folder      string                          // the folder of the settings file
	enforce     func(ctx context.Context) error // applies the credentials of the book to the policy
}

// openCredentials reads the credentials that were created at run time. A command has no server, so its issuer has
// nothing to enforce.
func (a *App) openCredentials(ctx context.Context) error {
	made, err := credentials.Open(ctx, a.db.KV, a.policies.credentialForm, time.Now)
	a.policies.credentials = made
	a.issuer = &issuer{credentials: made, settings: a.settings, folder: a.opts.Folder, enforce: func(context.Context) error { return nil }}
	return err
}

// credentialForm returns the beginnings that users and secrets of a source have.
func (r *policyReader) credentialForm(source string) (user, secret string) {
	for _, src := range r.sources {
		taken, err := src.Spec.Auth.ParseAccepted()
		switch {
		case src.Name != source:
		case err == nil && !auth.HasUser(taken):
			return "", src.Spec.Auth.Prefix
		default:
			return src.Spec.Auth.Prefix, ""
		}
	}
	return "", ""
}

// All returns the credentials that were created at run time.
func (h *issuer) All() []credentials.Credential { return h.credentials.All() }

// Make creates a credential, unless the settings have a credential or user of that name.
func (h *issuer) Make(ctx context.Context, name string, s credentials.Scope, once string) (shown credentials.Shown, err error) {
	cfg := h.settings.current.Load()
	if err := cfg.CheckMade(name, s); err != nil {
		return shown, err
	}
	if users, err := cfg.ReadUsers(h.folder); err == nil && users != nil && users.Has(name) {
		return shown, fmt.Errorf("%w: name: a user has the same name", understudy.ErrInvalid)
	}
	if shown, err = h.credentials.Make(ctx, name, s, once); err != nil {
		return shown, err
	}
	return shown, h.enforce(context.WithoutCancel(ctx))
}

// Rotate gives a credential a new secret.
func (h *issuer) Rotate(ctx context.Context, name string, overlap time.Duration) (credentials.Shown, error) {
	shown, err := h.credentials.Rotate(ctx, name, overlap)
	if err != nil {
		return shown, err
	}
	return shown, h.enforce(context.WithoutCancel(ctx))
}

// Revoke removes a credential. Streams and exports that its callers have open end.
func (h *issuer) Revoke(ctx context.Context, name string) error {
	if err := h.credentials.Revoke(ctx, name); err != nil {
		return err
	}
	return h.enforce(context.WithoutCancel(ctx))
}
