// Tests of receivers that refuse, fail, or are silent.

package watch

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
)

func TestReceiversThatFail(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.watch(Webhook, "status:failed")
	r.receiver.answers = []int{503, 404}
	r.put(message(1, "inbound", "failed"))
	for range 2 {
		if err := r.round(); err == nil {
			t.Fatal("a failure is no error of the job")
		}
	}
	r.put(message(2, "inbound", "failed"))
	all := append(r.receiver.take(), r.told()...)
	checktest.MustEqual(t, len(all), 4, "it told: len(all)")
	checktest.Equal(t, all[0].id, all[1].id, "it told: all[0].id")
	checktest.Equal(t, all[1].id, all[2].id, "it told: all[1].id")
	checktest.Equal(t, ids(all), "1 1 1 2", "it told: ids(all)")
	checktest.True(t, all[3].id != all[2].id, "it told: all[3].id is %v", all[3].id)
	s := r.status(id)
	checktest.MustEqual(t, len(s.Log), 2, "after three tries: len(s.Log)")
	checktest.Equal(t, s.Log[1].Tries, 3, "after three tries: s.Log[1].Tries")
	checktest.Equal(t, s.Log[1].Outcome, Delivered, "after three tries: s.Log[1].Outcome")
	checktest.True(t, s.State.Failing.IsZero(), "after three tries: s.State.Failing.IsZero() is false")
	checktest.Equal(t, s.State.Told, 2, "after three tries: s.State.Told")

	r.receiver.answers, r.receiver.header = []int{429}, http.Header{"Retry-After": {"120"}}
	r.put(message(3, "inbound", "failed"))
	var later *understudy.Snooze
	if err := r.round(); !errors.As(err, &later) || later.Wait != 2*time.Minute {
		t.Errorf("429 with Retry-After: %v", err)
	}
	r.receiver.header = nil
	if got := ids(append(r.receiver.take(), r.told()...)); got != "3 3" {
		t.Errorf("then it told %q", got)
	}

	// A day without a success stops it, and it goes on where it stopped.
	r.receiver.answers = []int{500, 500, 500}
	r.put(message(4, "inbound", "failed"))
	_ = r.round()
	r.clock = r.clock.Add(23 * time.Hour)
	_ = r.round()
	{
		s := r.status(id)
		checktest.Equal(t, s.State.Stopped, "", "after 23 hours: s.State.Stopped")
		checktest.True(t, !s.State.Failing.IsZero(), "after 23 hours: s.State.Failing.IsZero() is true")
		checktest.Equal(t, s.Log[0].Outcome, Failed, "after 23 hours: s.Log[0].Outcome")
		checktest.Equal(t, s.Log[0].Said, "it answered 500 said so", "after 23 hours: s.Log[0].Said")
	}
	r.clock = r.clock.Add(2 * time.Hour)
	if err := r.round(); err != nil {
		t.Errorf("the job of a watch that is stopped: %v", err)
	}
	if s := r.status(id); !strings.HasPrefix(s.State.Stopped, "Every attempt has failed since") {
		t.Errorf("after 25 hours: %q", s.State.Stopped)
	}
	r.receiver.take()
	r.put(message(5, "inbound", "failed"))
	if got := ids(r.told()); got != "" {
		t.Errorf("stopped, it told %q", got)
	}
	if err := r.book.Resume(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if got := ids(append(r.told(), r.told()...)); got != "4 5" {
		t.Errorf("resumed, it told %q", got)
	}

	r.receiver.answers = []int{410}
	r.put(message(6, "inbound", "failed"))
	if err := r.round(); err != nil {
		t.Errorf("410: %v", err)
	}
	if s := r.status(id); !strings.Contains(s.State.Stopped, "410") || s.Log[0].Outcome != Refused {
		t.Errorf("410: %v", s)
	}

	// A person's pause begins with what comes after it.
	if err := r.book.Pause(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	r.put(message(7, "inbound", "failed"))
	if err := r.book.Resume(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	r.receiver.take()
	r.put(message(8, "inbound", "failed"))
	if got := ids(r.told()); got != "8" {
		t.Errorf("after a pause it told %q", got)
	}
	if err := r.book.Remove(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	r.put(message(9, "inbound", "failed"))
	r.asked[id] = true
	if got := ids(r.told()); got != "" {
		t.Errorf("removed, it told %q", got)
	}
	if r.reopen(); len(r.book.Watches(r.desk(), true)) != 0 {
		t.Error("it came back")
	}
}

// A server that takes the connection and says nothing holds nothing up that must end.
func TestMailServerThatIsSilent(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		if c, err := l.Accept(); err == nil {
			defer c.Close()
			cancel()
			_, _ = c.Read(make([]byte, 1)) // until the other side ends
		}
	}()
	m := &Mailer{Server: l.Addr().String(), From: "understudy@example.com"}
	if _, err := m.send(ctx, letter{to: "desk@example.com", subject: "s", text: "t", id: "msg_1", at: epoch}); err == nil {
		t.Error("it was sent")
	}
}

// Nothing that people name or records hold can add a header to a mail, or end one.
func FuzzLetter(f *testing.F) {
	f.Add("All failed", "status failed")
	f.Add("x\r\nBcc: all@example.com\r\n\r\nbody", "a\r\n.\r\nMAIL FROM:<x>")
	f.Add("=?utf-8?q?=0D=0ABcc:_x?=", "ä\x00\u2028")
	m := &Mailer{Server: "127.0.0.1:1", From: "Understudy <understudy@example.com>"}
	f.Fuzz(func(t *testing.T, name, text string) {
		n := notification{ID: "msg_1", Watch: Watch{ID: "w", Search: name, To: Destination{Channel: Mail, To: "desk@example.com"}}, At: epoch,
			URL: "https://desk.example.com", Test: true}
		l := n.letter()
		l.text += text
		message, err := m.newMessage(l)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		if _, err := message.WriteTo(&b); err != nil {
			t.Fatal(err)
		}
		head, _, ok := strings.Cut(b.String(), "\r\n\r\n")
		if !ok {
			t.Fatalf("no end of the head in %q", b.String())
		}
		known := []string{"Date", "MIME-Version", "Message-ID", "Subject", "User-Agent", "X-Mailer", "From", "To", "Content-Transfer-Encoding",
			"Content-Type", "Auto-Submitted"}
		seen := map[string]bool{}
		for line := range strings.SplitSeq(head, "\r\n") {
			if strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t") {
				continue
			}
			field, _, _ := strings.Cut(line, ":")
			if seen[field] || strings.ContainsAny(line, "\r\n") {
				t.Errorf("%q twice or odd in %q", field, head)
			}
			seen[field] = true
		}
		if len(seen) > len(known) || seen["Bcc"] {
			t.Errorf("the head is %q", head)
		}
		for _, field := range known {
			delete(seen, field)
		}
		if len(seen) > 0 {
			t.Errorf("unknown %v in %q", seen, head)
		}
	})
}
