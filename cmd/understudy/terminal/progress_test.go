// Tests of progress: lines where there is no terminal, a bar on one, and nothing when that is asked for.

package terminal

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// buffer may be written and read by several goroutines.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func TestProgressIsALineEveryTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out buffer
		p := NewProgress(&out, "twilio/calls", false)
		p.Set(State{Done: 1000, Total: 4000, Unit: "records"})
		time.Sleep(9 * time.Second)
		p.Set(State{Done: 2000, Total: 4000, Unit: "records", Note: "walk 1 of 2"})
		if got := out.String(); got != "" {
			t.Errorf("before ten seconds: %q", got)
		}
		time.Sleep(2 * time.Second)
		p.Print(&out, "a message")
		p.Set(State{Done: 2500, Total: 4000, Unit: "records", Ends: time.Now().Add(99 * time.Second)})
		time.Sleep(10 * time.Second)
		p.End()
		p.End()
		time.Sleep(time.Minute)
		want := "twilio/calls: 2000 of 4000 records, 50 %, 100/s, 20s left, walk 1 of 2\na message\n" +
			"twilio/calls: 2500 of 4000 records, 62 %, 75/s, 1m30s left\n"
		if got := out.String(); got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	})
}

func TestProgressIsSilentWhenQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out buffer
		p := NewProgress(&out, "a", true)
		p.Add(5, "lines")
		time.Sleep(time.Hour)
		p.Print(&out, "a message")
		p.End()
		if got := out.String(); got != "a message\n" {
			t.Errorf("got %q", got)
		}
	})
}

func TestProgressWithoutATotal(t *testing.T) {
	for want, s := range map[string]State{
		"12s so far":                                {},
		"12s so far, reading the document":          {Note: "reading the document"},
		"30 requests, 2.5/s, 12s so far":            {Done: 30, Unit: "requests"},
		"0 of 60 s, 0 %":                            {Total: 60, Unit: "s"},
		"60 of 60 records, 100 %, 5.0/s":            {Done: 60, Total: 60, Unit: "records"},
		"1 of 1000000000 records, 0 %, 0.1/s":       {Done: 1, Total: 1e9, Unit: "records"},
		"24 of 48 records, 50 %, 2.0/s, 12s left":   {Done: 24, Total: 48, Unit: "records"},
		"600 of 1200 records, 50 %, 50/s, 12s left": {Done: 600, Total: 1200, Unit: "records"},
	} {
		began := time.Unix(0, 0)
		p := Progress{state: s, began: began, since: began}
		if got := p.describe(began.Add(12 * time.Second)); got != want {
			t.Errorf("%+v: %q, want %q", s, got, want)
		}
	}
}

func TestProgressBeginsAgainWithAnotherWalk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewProgress(io.Discard, "work", false)
		defer p.End()
		p.Set(State{Done: 5000, Unit: "records", Note: "walk 1 of 2"})
		time.Sleep(100 * time.Second)
		p.Set(State{Done: 0, Unit: "records", Note: "walk 2 of 2"})
		time.Sleep(10 * time.Second)
		p.Set(State{Done: 1000, Total: 3000, Unit: "records", Note: "walk 2 of 2"})
		if got, want := p.describe(time.Now()), "1000 of 3000 records, 33 %, 100/s, 20s left, walk 2 of 2"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	})
}

func TestProgressHasABar(t *testing.T) {
	for want, s := range map[string]State{
		"":                        {Done: 5},
		"[--------------------] ": {Total: 10},
		"[##########----------] ": {Done: 5, Total: 10},
		"[####################] ": {Done: 12, Total: 10},
	} {
		if got := s.bar(); got != want {
			t.Errorf("%+v: %q, want %q", s, got, want)
		}
	}
}

// TestProgressOnATerminal runs this program again in a terminal of script(1).
func TestProgressOnATerminal(t *testing.T) {
	if os.Getenv("PROGRESS_ON_A_TERMINAL") != "" {
		p := NewProgress(os.Stdout, "work", false)
		p.Set(State{Total: 100, Unit: "records"})
		p.began = p.began.Add(-time.Minute)
		p.since = p.began
		p.Set(State{Done: 50, Total: 100, Unit: "records", Note: strings.Repeat("a long note ", 20)})
		p.draw(time.Now())
		p.Print(os.Stdout, "a message")
		p.draw(time.Now())
		p.End()
		return
	}
	script, err := exec.LookPath("script")
	if err != nil {
		t.Fatal("script(1) is not installed; on Debian: apt-get install bsdutils")
	}
	cmd := exec.CommandContext(t.Context(), script, "-qec", "stty cols 80; "+os.Args[0]+" -test.run ^TestProgressOnATerminal$", "/dev/null")
	cmd.Env, cmd.Stdin = append(os.Environ(), "PROGRESS_ON_A_TERMINAL=1"), io.MultiReader()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text := string(out)
	if !strings.Contains(text, "\rwork [##########----------] 50 of 100 records, 50 %, 0.8/s, 1m0s left, a long …") {
		t.Errorf("no bar of 79 columns in %q", text)
	}
	blank := "\r" + strings.Repeat(" ", 79) + "\r"
	if !strings.Contains(text, blank+"a message") {
		t.Errorf("the bar is not removed before a message: %q", text)
	}
	if !strings.Contains(text, blank+"PASS") {
		t.Errorf("the bar is not removed at the end: %q", text)
	}
}
