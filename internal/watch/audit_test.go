// Tests of what the audit log lists of messages.

package watch

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"understudy"
	"understudy/internal/checktest"
)

// ledger keeps audit entries, or fails.
type ledger struct {
	err  error
	all  []understudy.AuditEntry
	seen func() // called with each entry
}

func (l *ledger) RecordAction(_ context.Context, e understudy.AuditEntry) error {
	l.seen()
	if l.err == nil {
		l.all = append(l.all, e)
	}
	return l.err
}

func TestMessagesAreAudited(t *testing.T) {
	t.Parallel()
	for _, c := range []Channel{Webhook, Slack} {
		r := newRig(t)
		l := &ledger{err: understudy.ErrNotAudited, seen: func() {
			if n := len(r.receiver.take()); n > 0 {
				t.Errorf("%s: %d messages came before the entry", c, n)
			}
		}}
		r.options.Audit = l
		r.reopen()
		id := r.watch(c, "status:failed")

		// What cannot be listed is not sent, and the receiver is not to blame.
		r.put(message(1, "inbound", "failed"), message(2, "outbound-api", "failed"), message(3, "inbound", "failed"))
		if err := r.round(); !errors.Is(err, understudy.ErrNotAudited) {
			t.Errorf("%s: the job ends with %v", c, err)
		}
		s := r.status(id)
		checktest.MustEqual(t, len(r.receiver.take()), 0, "%s: len(r.receiver.take())", c)
		checktest.Equal(t, s.Pending, 2, "%s: s.Pending", c)
		checktest.Equal(t, s.State.Stopped, "", "%s: s.State.Stopped", c)
		checktest.True(t, s.State.Failing.IsZero(), "%s: s.State.Failing.IsZero() is false", c)
		checktest.Equal(t, len(s.Log), 0, "%s: len(s.Log)", c)

		l.err = nil
		if n := len(r.told()); n != 1 || len(l.all) != 1 {
			t.Fatalf("%s: then it sent %d messages and listed %v", c, n, l.all)
		}
		want := []understudy.AuditEntry{{Caller: l.all[0].Caller, Action: understudy.ActionExport, What: "watch " + id + " to " + string(c),
			Source: "twilio", Kind: "messages", IDs: []string{"SM00000000000000000000000000000001", "SM00000000000000000000000000000003"}, Rows: 2}}
		checktest.True(t, reflect.DeepEqual(l.all, want), "%s: l.all is %v, want %v", c, l.all, want)
		checktest.Equal(t, want[0].Caller.Name, "desk", "%s: want[0].Caller.Name", c)
		checktest.Equal(t, want[0].Caller.Role(), "support", "%s: want[0].Caller.Role()", c)

		// Each try takes the records away.
		r.receiver.answers = []int{503}
		r.put(message(4, "inbound", "failed"))
		if err := r.round(); err == nil || len(r.receiver.take()) != 1 {
			t.Errorf("%s: a try that fails: %v", c, err)
		}
		{
			n := len(r.told())
			checktest.Equal(t, n, 1, "%s: n", c)
			checktest.MustEqual(t, len(l.all), 3, "%s: len(l.all)", c)
			checktest.True(t, reflect.DeepEqual(l.all[1], l.all[2]), "%s: l.all[1] is %v, want %v", c, l.all[1],
				l.all[2])
			checktest.Equal(t, l.all[1].Rows, 1, "%s: l.all[1].Rows", c)
		}
	}
}
