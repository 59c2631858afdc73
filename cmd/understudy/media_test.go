// What stories of contents need, and settings of them.

package main

import (
	"encoding/json"

	"github.com/rogpeppe/go-internal/testscript"
)

// cmdPlayable sets $recording to the sid of the first recording of a saved list
// that is complete:
//
//	playable FILE
func cmdPlayable(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: playable FILE")
	}
	var page struct {
		Recordings []struct{ Sid, Status string }
	}
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &page))
	for _, r := range page.Recordings {
		if r.Status == "completed" {
			ts.Setenv("recording", r.Sid)
			return
		}
	}
	ts.Fatalf("no recording in %s is complete", args[0])
}
