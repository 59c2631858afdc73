// Credentials that are made while the server runs, and the policy that holds them.

package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"understudy"
	"understudy/internal/credentials"
	"understudy/spec/auth"
)

// issuer makes credentials and puts them in force.
type issuer struct{ *App }

// open reads those that were made.
func (h issuer) open(ctx context.Context) (err error) {
	h.made, err = credentials.Open(ctx, h.db, h.form, time.Now)
	return err
}

// form is how users and secrets of a source begin.
func (h issuer) form(source string) (user, secret string) {
	for _, src := range h.sources {
		taken, err := src.Spec.Auth.Taken()
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

// All are those that were made.
func (h issuer) All() []credentials.Credential { return h.made.All() }

// Make makes one, unless the settings have one of that name.
func (h issuer) Make(ctx context.Context, name string, s credentials.Scope, once string) (shown credentials.Shown, err error) {
	cfg := h.live.Load()
	if err := cfg.CheckMade(name, s); err != nil {
		return shown, err
	}
	if users, err := cfg.ReadUsers(h.opts.Folder); err == nil && users != nil && users.Has(name) {
		return shown, fmt.Errorf("%w: name: a user is called that, too", understudy.ErrInvalid)
	}
	if shown, err = h.made.Make(ctx, name, s, once); err != nil {
		return shown, err
	}
	return shown, h.enforce(context.WithoutCancel(ctx))
}

// Rotate gives one another secret.
func (h issuer) Rotate(ctx context.Context, name string, overlap time.Duration) (credentials.Shown, error) {
	shown, err := h.made.Rotate(ctx, name, overlap)
	if err != nil {
		return shown, err
	}
	return shown, h.enforce(context.WithoutCancel(ctx))
}

// Revoke removes one, with what it has open.
func (h issuer) Revoke(ctx context.Context, name string) error {
	if err := h.made.Revoke(ctx, name); err != nil {
		return err
	}
	return h.enforce(context.WithoutCancel(ctx))
}

// enforce puts a policy of the settings in force, and of the credentials as they are now,
// also when the reader who asked has left: the store has them already. A command without a
// server has none.
func (h issuer) enforce(ctx context.Context) error {
	if h.opts.Headless {
		return nil
	}
	h.reads.one.Lock()
	defer h.reads.one.Unlock()
	cfg := h.live.Load()
	p, err := h.withMade(h.installed.policy, cfg)
	if err != nil {
		return err
	}
	d, err := h.handlerSet(cfg, p)
	if err != nil {
		return err
	}
	if err := h.feed.SetPolicy(ctx, p.feed()); err != nil {
		return errors.Join(err, d.Close())
	}
	h.install(d)
	return nil
}
