package feed

import (
	"context"
	"encoding/base64"
	"errors"
	"reflect"
	"strings"
	"testing"

	"understudy"
)

// auditor keeps audit entries, or fails.
type auditor struct {
	err error
	all []understudy.AuditEntry
}

func (a *auditor) RecordAction(_ context.Context, e understudy.AuditEntry) error {
	if a.err == nil {
		a.all = append(a.all, e)
	}
	return a.err
}

// What cannot be listed is not sent, and the receiver is not to blame. Each try takes the changes away.
func TestMessagesOfWebhooksAreAudited(t *testing.T) {
	t.Parallel()
	to := receive(t, 503)
	f, _ := hooked(t, some(), Hook{URL: to.server.URL, Role: "support", Kinds: []string{"messages"}})
	log := &auditor{err: understudy.ErrNotAudited}
	f.o.Audit = log
	f.from(t, 0)
	if err := f.Deliver(t.Context(), task{"crm"}); !errors.Is(err, understudy.ErrNotAudited) {
		t.Errorf("without an entry the job ends with %v", err)
	}
	if n := len(to.all()); n != 0 {
		t.Errorf("without an entry: %d messages", n)
	}
	if s := f.stat(t); s.State != "ok" || !s.Failing.IsZero() {
		t.Errorf("without an entry the receiver is to blame: %+v", s)
	}
	log.err = nil
	if err := f.Deliver(t.Context(), task{"crm"}); err == nil {
		t.Error("a try that fails ends the job without an error")
	}
	if err := f.Deliver(t.Context(), task{"crm"}); err != nil || len(to.all()) != 2 {
		t.Errorf("%d messages came, %v", len(to.all()), err)
	}
	want := understudy.AuditEntry{
		Caller: understudy.Caller{Name: "webhook crm", Source: "twilio", Grant: &understudy.Grant{Role: "support"}},
		Action: understudy.ActionList, What: "feed", Source: "twilio", IDs: []string{"SM1", "SM1"}, Rows: 2}
	if !reflect.DeepEqual(log.all, []understudy.AuditEntry{want, want}) {
		t.Errorf("listed is %+v", log.all)
	}
}

// The secret is in no error, and an ended job is no failure of the receiver.
func TestEndedDelivery(t *testing.T) {
	t.Parallel()
	to := receive(t)
	f, _ := hooked(t, some(), Hook{URL: to.server.URL, Role: "all"})
	f.from(t, 0)
	to.mu.Lock()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- f.Deliver(ctx, task{"crm"}) }()
	one := f.hooks.get("crm")
	for until := int64(0); until == 0; {
		one.progress.mu.Lock()
		until = one.progress.state.BatchEnd
		one.progress.mu.Unlock()
	}
	cancel()
	err := <-done
	to.mu.Unlock()
	if !errors.Is(err, context.Canceled) || f.stat(t).State != "ok" {
		t.Errorf("an ended delivery: %v, %+v", err, f.stat(t))
	}
	raw, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(hookSecret, "whsec_"))
	for name, note := range f.o.KV.(*table).notes {
		if strings.Contains(string(note), hookSecret) || strings.Contains(string(note), string(raw)) {
			t.Errorf("note %s holds the secret", name)
		}
	}
}
