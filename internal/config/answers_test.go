// What the settings say of how lists are answered.

package config

import (
	"maps"
	"strings"
	"testing"

	"understudy/mirror/shadow"
)

func TestAnswersInTheSettings(t *testing.T) {
	source := func(answers string) string {
		return "sources:\n  twilio:\n    spec: twilio\n    user: AC00000000000000000000000000000001\n    secret: \"file:x\"\n    lists_from: " +
			answers + "\n"
	}
	for text, want := range map[string]answersConfig{
		"records": {"": "records"}, "auto": {"": "auto"},
		`{calls: records, "*": upstream}`: {"calls": "records", "": "upstream"},
	} {
		c, err := Parse([]byte(source(text)), nil)
		if err != nil || !maps.Equal(c.Sources["twilio"].Answers, want) {
			t.Errorf("%s: %v, %v", text, c, err)
			continue
		}
		if _, err := c.ReadSources(""); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	for text, want := range map[string]answersConfig{
		"upstream": {"": "upstream"}, "own": nil, "upstream\n    lists_from: auto": {"": "auto"},
	} {
		c, err := Parse([]byte(strings.Replace(source(text), "lists_from:", "freshness:", 1)), nil)
		if err != nil || !maps.Equal(c.Sources["twilio"].Answers, want) {
			t.Fatalf("freshness: %s: %v, %v", text, c, err)
		}
		read, err := c.ReadSources("")
		if err != nil || read[0].UpstreamAges != strings.HasPrefix(text, "upstream") {
			t.Errorf("freshness: %s: %v, %v", text, read, err)
		}
	}
	for text, want := range map[string]string{
		"record":                        `line 6: "record" is not known; write auto, upstream or records; did you mean "records"?`,
		"[auto]":                        "line 6: write auto, upstream or records",
		"{calls: }":                     "line 6",
		"{calls: upstram}":              "upstream",
		"{calls: records, calls: auto}": "appears twice",
		"{cals: records}":               `no kind "cals"`,
	} {
		c, err := Parse([]byte(source(text)), nil)
		if err == nil {
			_, err = c.ReadSources("")
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	if shadow.Auto.Check() != nil {
		t.Error("auto is refused")
	}
}
