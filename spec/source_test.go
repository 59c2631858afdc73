package spec_test

import (
	"errors"
	"strings"
	"testing"

	"understudy"
	"understudy/spec"
	"understudy/upstream"
)

func TestPollTarget(t *testing.T) {
	sp, err := upstream.BuiltIn("twilio")
	if err != nil {
		t.Fatal(err)
	}
	s := &spec.Source{Name: "twilio", Spec: sp, User: "AC00000000000000000000000000000001"}
	const p = "/2010-04-01/Accounts/AC00000000000000000000000000000001"
	for entry, want := range map[string]string{
		"calls":                                  p + "/Calls.json?PageSize=50",
		"/Calls.json":                            p + "/Calls.json?PageSize=50",
		p + "/Calls.json":                        p + "/Calls.json?PageSize=50",
		"/Calls.json?Status=failed":              p + "/Calls.json?Status=failed&PageSize=50",
		"/Calls.json?PageSize=20&Status=failed":  p + "/Calls.json?Status=failed&PageSize=20",
		"/Alerts":                                "/v1/Alerts?PageSize=50",
		"participants":                           `"participants" has no list that can be asked for without a record's id`,
		"cals":                                   `spec twilio has no list of "cals"`,
		"/Cals.json":                             `spec twilio has no list "/Cals.json"`,
		"/Calls.json?Stat=failed":                `the list has no filter "Stat"; it has To, From, ParentCallSid, Status, `,
		"/Calls.json?Page=2":                     "is not the newest page",
		"/Calls.json?understudy.q=x":             "upstream knows nothing of",
		"/json":                                  `no list "/json"`,
		"/Calls.json?%zz":                        "invalid request",
		"/Conferences/CF1/Participants.json":     "no list",
		"/2010-04-01/Accounts/AC9/Calls.json":    "no list",
		p + "/Conferences/CF1/Participants.json": p + "/Conferences/CF1/Participants.json?PageSize=50",
	} {
		target, err := s.PollTarget(entry)
		switch {
		case strings.HasPrefix(want, "/"):
			if err != nil || target.Key.URI != want || target.Whole() == strings.Contains(want, "Status") {
				t.Errorf("%s: %v, %v", entry, target, err)
			}
		case !errors.Is(err, understudy.ErrInvalid) || !strings.Contains(err.Error(), want):
			t.Errorf("%s: %v, want %s", entry, err, want)
		}
	}
}
