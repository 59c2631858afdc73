// This file contains the commands that create, rotate and revoke credentials.

package diagnostics

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"understudy"
	"understudy/internal/credentials"
	"understudy/internal/jsonapi"
)

// Credentials manages credentials; package app implements it. When a method returns, its change applies. The errors
// are those of credentials.Book.
type Credentials interface {
	All() []credentials.Credential
	Make(ctx context.Context, name string, s credentials.Scope, once string) (credentials.Shown, error)
	Rotate(ctx context.Context, name string, overlap time.Duration) (credentials.Shown, error)
	Revoke(ctx context.Context, name string) error
}

// MakeCredential is the body of POST /-/credentials.
type MakeCredential struct {
	Name    string `json:"name"`
	Expires string `json:"expires,omitempty"` // the expiry in place of the scope's expiry, see credentials.ParseDate
	credentials.Scope
}

// RotateCredential is the body of POST /-/credentials/{name}/rotate.
type RotateCredential struct {
	Overlap string `json:"overlap"` // how long the former secret stays valid, such as 12h or 2d
}

// CredentialList is the response to GET /-/credentials.
type CredentialList struct {
	Credentials []credentials.Credential `json:"credentials"`
}

// maxCredential is the maximum size of a request body in bytes.
const maxCredential = 64 << 10

// listCredentials returns the credentials that were created at run time, without the digests of their secrets.
func (d *Diagnostics) listCredentials(context.Context, understudy.Caller, *http.Request) (any, error) {
	list := CredentialList{Credentials: d.o.Credentials.All()}
	for _, c := range list.Credentials {
		for i := range c.Secrets {
			c.Secrets[i].Digest = nil
		}
	}
	return list, nil
}

func (d *Diagnostics) makeCredential(ctx context.Context, c understudy.Caller, _ *http.Request, m *MakeCredential) (any, error) {
	if m.Expires != "" {
		at, err := credentials.ParseDate(m.Expires, d.o.Now().Add)
		if err != nil {
			return nil, fmt.Errorf("%w: expires: %w", understudy.ErrInvalid, err)
		}
		m.Scope.Expires = &at
	}
	if err := jsonapi.RecordAudit(ctx, d.o.Audit, c, credentialEntry("make", m.Name, m.Source)); err != nil {
		return nil, err
	}
	return d.o.Credentials.Make(ctx, m.Name, m.Scope, "")
}

func (d *Diagnostics) rotateCredential(ctx context.Context, c understudy.Caller, r *http.Request, m *RotateCredential) (any, error) {
	overlap, err := understudy.ParseDuration(m.Overlap)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", understudy.ErrInvalid, err)
	}
	if err := jsonapi.RecordAudit(ctx, d.o.Audit, c, credentialEntry("rotate", r.PathValue("name"), "")); err != nil {
		return nil, err
	}
	return d.o.Credentials.Rotate(ctx, r.PathValue("name"), overlap)
}

func (d *Diagnostics) revokeCredential(ctx context.Context, c understudy.Caller, r *http.Request) (any, error) {
	if err := jsonapi.RecordAudit(ctx, d.o.Audit, c, credentialEntry("revoke", r.PathValue("name"), "")); err != nil {
		return nil, err
	}
	return struct{}{}, d.o.Credentials.Revoke(ctx, r.PathValue("name"))
}

// credentialEntry returns the audit entry of a change to a credential.
func credentialEntry(what, name, source string) understudy.AuditEntry {
	return understudy.AuditEntry{Action: understudy.ActionAdminister, What: "credentials " + what + " " + name, Source: source}
}

// command returns the options for a command. It admits only requests from this machine with the token of run.json.
func (d *Diagnostics) command(limit time.Duration, maxBody int64) *jsonapi.Options {
	return &jsonapi.Options{Identify: jsonapi.AuthorizeCommand(d.o.Token), Timeout: limit, MaxBody: maxBody}
}
