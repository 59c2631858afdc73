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
	if len(all) != 4 || all[0].id != all[1].id || all[1].id != all[2].id || ids(all) != "1 1 1 2" || all[3].id == all[2].id {
		t.Errorf("it told %v", all)
	}
	s := r.status(id)
	if len(s.Log) != 2 || s.Log[1].Tries != 3 || s.Log[1].Outcome != Delivered || !s.State.Failing.IsZero() || s.State.Told != 2 {
		t.Errorf("after three tries: %v", s)
	}

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
	if s := r.status(id); s.State.Stopped != "" || s.State.Failing.IsZero() || s.Log[0].Outcome != Failed ||
		s.Log[0].Said != "it answered 500 said so" {
		t.Errorf("after 23 hours: %v", s)
	}
	r.clock = r.clock.Add(2 * time.Hour)
	if err := r.round(); err != nil {
		t.Errorf("the job of a watch that is stopped: %v", err)
	}
	if s := r.status(id); !strings.HasPrefix(s.State.Stopped, "Every try has failed since") {
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
		message, err := m.message(l)
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
