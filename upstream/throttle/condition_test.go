// Condition: waits of keys are bounded, and what health says names no addresses.

package throttle

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"understudy"
)

func TestPausesAreBounded(t *testing.T) {
	g := NewBreaker(Options{Now: time.Now, Logger: slog.New(slog.DiscardHandler)})
	for i := range 5000 {
		g.Pause(fmt.Sprint(i), &understudy.UpstreamError{Why: understudy.FailServer})
	}
	if len(g.pauses) > maxPauses {
		t.Errorf("%d pauses", len(g.pauses))
	}
}

// A key that failed is no probe. It waits for another's, without a time that is over: a
// waiting request would look again and again until then.
func TestAFailedKeyDoesNotWaitForATimeThatIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewBreaker(Options{Now: time.Now, Logger: slog.New(slog.DiscardHandler)})
		for range 20 {
			g.RecordFailure("a", &understudy.UpstreamError{Why: understudy.FailServer}, false)
		}
		if a := g.Admit("a", "", true); a.Err == nil || !a.Until.After(time.Now()) {
			t.Fatalf("at first: %v until %v", a.Err, a.Until)
		}
		time.Sleep(time.Hour)
		if a := g.Admit("a", "", true); a.Err == nil || !a.Until.IsZero() {
			t.Errorf("an hour later: %v until %v", a.Err, a.Until)
		}
	})
}

// wrapped is an error in another that adds no text.
type wrapped struct{ error }

func (e wrapped) Unwrap() error { return e.error }

func TestHealthNamesNoAddresses(t *testing.T) {
	at := &net.TCPAddr{IP: net.IPv4(10, 1, 2, 3), Port: 443}
	op := func(op string, err error) error { return &net.OpError{Op: op, Net: "tcp", Addr: at, Err: err} }
	for want, cause := range map[string]error{
		"upstream unreachable: connection refused":       op("dial", os.NewSyscallError("connect", syscall.ECONNREFUSED)),
		"upstream unreachable: connection reset by peer": wrapped{op("read", os.NewSyscallError("read", syscall.ECONNRESET))},
		"upstream unreachable: no connection in time":    op("dial", os.ErrDeadlineExceeded),
		"upstream unreachable: the answer stalled":       errors.New("the answer stalled"),
		"upstream unreachable":                           nil,
	} {
		if have := describe(&understudy.UpstreamError{Why: understudy.FailUnreachable, Err: cause}); have != want {
			t.Errorf("%q, want %q", have, want)
		}
	}
}
