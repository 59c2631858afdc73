// What stories of contents need, and settings of them.

package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"understudy"
	"understudy/upstream"
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

func TestMediaSettings(t *testing.T) {
	spec, err := upstream.BuiltIn("twilio")
	if err != nil {
		t.Fatal(err)
	}
	if err := checkMedia(&understudy.Source{Spec: spec, Media: []string{"recordings", "media"}}); err != nil {
		t.Error(err)
	}
	err = checkMedia(&understudy.Source{Spec: spec, Media: []string{"recording"}})
	if err == nil || !strings.Contains(err.Error(), `no contents of "recording"; did you mean "recordings"?`) {
		t.Errorf("%v", err)
	}
	c, err := parseConfig([]byte("sources: {web: {spec: s, media: [recordings], max_media: 2GiB}}\nstore: {media: 5GiB, media_file: 10MiB}\n"), noEnv)
	if err != nil {
		t.Fatal(err)
	}
	if s := c.Sources["web"]; len(s.Media) != 1 || s.MaxMedia != 2<<30 || c.Store.Media != 5<<30 || c.Store.MediaFile != 10<<20 {
		t.Errorf("%+v %+v", s, c.Store)
	}
}
