// Tests of how the command that syncs ends.

package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy/internal/crawl"
	"understudy/request"
)

// The command ends with nothing but completeness, or with the reason; whatever
// the server says, it does not wait for ever.
func TestASyncEnds(t *testing.T) {
	progress := &request.Progress{Done: 7}
	for name, c := range map[string]struct {
		says  func(began time.Time) crawl.Report
		after time.Duration // at most
		text  string        // of the error; "": it ends well
	}{
		"complete": {func(time.Time) crawl.Report { return crawl.Report{Kept: true, Complete: true, Progress: progress} }, 0, ""},
		"failed": {func(time.Time) crawl.Report { return crawl.Report{Kept: true, Failed: true, Why: "it is too heavy"} }, 0,
			"it is too heavy"},
		"dropped": {func(began time.Time) crawl.Report {
			return crawl.Report{Kept: time.Since(began) < time.Minute, Why: "the first sync has not finished"}
		}, 2 * time.Minute, "someone ended the sync"},
		"down": {func(time.Time) crawl.Report {
			return crawl.Report{Kept: true, Why: "not synced", Down: "the credential is refused"}
		}, syncPatience + time.Second, "the provider cannot be reached: the credential is refused"},
		"stuck": {func(began time.Time) crawl.Report {
			return crawl.Report{Kept: true, Why: "not synced: a page always fails", Stuck: began}
		}, syncPatience + time.Second, "a page always fails"},
		"stuck for a while, then not": {func(began time.Time) crawl.Report {
			now := time.Now()
			if now.Sub(began) > time.Hour {
				return crawl.Report{Kept: true, Complete: true, Progress: progress}
			}
			return crawl.Report{Kept: true, Why: "not synced", Stuck: now}
		}, time.Hour + time.Minute, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				var out bytes.Buffer
				err := watchSync(t.Context(), &process{stdout: &out, stderr: io.Discard}, outputFlag{}, crawl.Command{Source: "a", Kind: "b"},
					func(context.Context, bool) (crawl.Report, error) {
						return c.says(began), nil
					})
				if took := time.Since(began); took > c.after {
					t.Errorf("it ended after %v", took)
				}
				switch {
				case c.text == "" && (err != nil || !strings.Contains(out.String(), "a/b is complete: 7 records")):
					t.Errorf("%q, %v", out.String(), err)
				case c.text != "" && (err == nil || !strings.Contains(err.Error(), c.text) || out.Len() > 0):
					t.Errorf("error %v, %q", err, out.String())
				}
			})
		})
	}
	broken := errors.New("no answer")
	p := &process{stdout: &bytes.Buffer{}, stderr: io.Discard}
	if err := watchSync(t.Context(), p, outputFlag{}, crawl.Command{}, func(context.Context, bool) (crawl.Report, error) {
		return crawl.Report{}, broken
	}); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
}

func TestASyncSaysAtOnceWhatHoldsItUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, asked := time.Now(), 0
		var messages bytes.Buffer
		said := time.Hour
		_ = watchSync(t.Context(), &process{stdout: io.Discard, stderr: &messages, quiet: true}, outputFlag{},
			crawl.Command{Source: "a", Kind: "b"},
			func(context.Context, bool) (crawl.Report, error) {
				if asked++; messages.Len() > 0 {
					said = min(said, time.Since(began))
				}
				return crawl.Report{Kept: true, Why: "a page cannot be stored", Stuck: began}, nil
			})
		if said > 5*time.Second {
			t.Errorf("said after %v", said)
		}
		if got := messages.String(); got != "a/b waits: a page cannot be stored; it is tried again\n" {
			t.Errorf("%d reports: %q", asked, got)
		}
	})
}
