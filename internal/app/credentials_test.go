// Credentials that another process changes on the same database.

package app

import (
	"context"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"

	"understudy/internal/checktest"
	"understudy/internal/credentials"
	"understudy/internal/store"
	"understudy/spec"
)

func TestCredentialsOfAnotherProcessAreAccepted(t *testing.T) {
	e := openExporting(t)
	specs := map[string]*spec.Spec{}
	for _, src := range e.h.sources {
		specs[src.Name] = src.Spec
	}
	other, err := store.Open(t.Context(), store.Options{Path: e.h.opts.Dir.DatabasePath(e.h.opts.Settings.Store.DSN), Specs: specs})
	checktest.MustNoError(t, err, "open the database again")
	t.Cleanup(func() { checktest.NoError(t, other.Close(), "close") })
	book, err := credentials.Open(t.Context(), other.KV, e.h.policies.credentialForm, time.Now)
	checktest.MustNoError(t, err, "open the credentials again")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- e.h.enforcer.followCredentials(ctx) }()
	t.Cleanup(func() { cancel(); checktest.NoError(t, <-ended, "follow") })

	policies := e.h.settings.policies.Load()
	made, err := book.Make(t.Context(), "billing", credentials.Scope{Source: "twilio", Role: "support"}, "")
	checktest.MustNoError(t, err, "make")
	status := func() int {
		t.Helper()
		r := e.request("", "/2010-04-01/Accounts/AC00000000000000000000000000000001/Messages.json?PageSize=1000")
		r.SetBasicAuth(made.User, made.Secret)
		w := httptest.NewRecorder()
		e.h.ports.servers[1].ServeHTTP(w, r)
		return w.Code
	}
	checktest.MustNoError(t, e.h.db.Refresh(t.Context()), "refresh")
	for e.h.settings.policies.Load() == policies { // until there is a policy with the credential
		runtime.Gosched()
	}
	checktest.Equal(t, status(), 200, "status with the new credential")
	policies = e.h.settings.policies.Load()
	checktest.MustNoError(t, e.h.enforcer.updateCredentials(t.Context()), "update")
	checktest.Equal(t, e.h.settings.policies.Load(), policies, "policies after an update without a change")

	checktest.MustNoError(t, book.Revoke(t.Context(), "billing"), "revoke")
	checktest.MustNoError(t, e.h.db.Refresh(t.Context()), "refresh")
	checktest.Equal(t, status(), 401, "status after the revocation")
}

// A grant ends with its secret, before a policy without the credential is current.
func TestRevokedSecretEndsItsGrant(t *testing.T) {
	e := openExporting(t)
	made, err := e.h.policies.credentials.Make(t.Context(), "billing", credentials.Scope{Source: "twilio", Role: "support"}, "")
	checktest.MustNoError(t, err, "make")
	all, skipped := e.h.opts.Settings.MadeCredentials(e.h.policies.credentials.All())
	checktest.MustEqual(t, len(all), 1, "credentials; skipped %v", skipped)
	checktest.Equal(t, all[0].User, made.User, "the user")
	checktest.True(t, all[0].Grant.IsActive(time.Now()), "the grant is not active")
	checktest.MustNoError(t, e.h.policies.credentials.Revoke(t.Context(), "billing"), "revoke")
	checktest.True(t, !all[0].Grant.IsActive(time.Now()), "the grant is active after the revocation")
}
