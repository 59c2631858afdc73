// Audit: a log of entries in memory, and the real audit log.

package viewertest

import (
	"context"
	"sync"
	"testing"
	"time"

	"understudy"
	"understudy/internal/audit"
	"understudy/internal/viewer/page"
)

// AuditLog keeps the entries it is given, or fails with Err.
type AuditLog struct {
	mu  sync.Mutex
	all []understudy.AuditEntry
	err error
}

// RecordAction keeps an entry.
func (a *AuditLog) RecordAction(_ context.Context, e understudy.AuditEntry) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err != nil {
		return a.err
	}
	a.all = append(a.all, e)
	return nil
}

// Fail makes the log refuse every entry from now on.
func (a *AuditLog) Fail(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.err = err
}

// Entries returns all entries, the oldest first.
func (a *AuditLog) Entries() []understudy.AuditEntry {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]understudy.AuditEntry{}, a.all...)
}

// Lines returns the action of each entry and what was done.
func (a *AuditLog) Lines() (lines []string) {
	for _, e := range a.Entries() {
		lines = append(lines, string(e.Action)+" "+e.What)
	}
	return lines
}

// Last returns the newest entry, the zero value when there is none.
func (a *AuditLog) Last() understudy.AuditEntry {
	all := a.Entries()
	if len(all) == 0 {
		return understudy.AuditEntry{}
	}
	return all[len(all)-1]
}

// Done returns the entries of what was done; what was looked at is left out.
func (a *AuditLog) Done() (all []understudy.AuditEntry) {
	for _, e := range a.Entries() {
		switch e.Action {
		case understudy.ActionSend, understudy.ActionDelete, understudy.ActionNote, understudy.ActionAdminister:
			all = append(all, e)
		}
	}
	return all
}

// WithAudit gives a viewer the real audit log, in a folder.
func WithAudit(t *testing.T, dir string) func(*page.Options) {
	t.Helper()
	key, err := audit.ParseKey(understudy.NewSecret("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="))
	Must(t, err)
	l := audit.New(audit.Options{Dir: dir, Key: key, Now: func() time.Time { return Noon }})
	t.Cleanup(func() { Must(t, l.Close()) })
	return func(o *page.Options) { o.Audit, o.Trail = l, l }
}
