// Parameters that the spec does not name.

package upstream_test

import (
	"strings"
	"testing"

	"understudy/upstream"
)

// D4: what a parameter does that the spec does not name is not known.
func TestUnnamedParameters(t *testing.T) {
	spec, err := upstream.ReadBuiltIn("twilio")
	if err != nil {
		t.Fatal(err)
	}
	const calls = "/2010-04-01/Accounts/AC00000000000000000000000000000001/Calls"
	for target, want := range map[string]string{
		calls + ".json": "",
		calls + ".json?Status=failed&PageSize=5&Page=1&PageToken=PACA": "",
		calls + ".json?expand[]=recordings":                            "expand[]",
		calls + ".json?understudy.q=x":                                 "",
		calls + "/CA00000000000000000000000000000001.json?fields=sid":  "fields",
		calls + "/CA00000000000000000000000000000001.json":             "",
		"/v1/NoSuchKind?expand=x":                                      "",
	} {
		path, query, _ := strings.Cut(target, "?")
		asked, err := spec.Resolve("twilio", path, query)
		if err != nil {
			t.Fatal(target, err)
		}
		if got := asked.UnknownParam(); got != want {
			t.Errorf("%s: %q, want %q", target, got, want)
		}
	}
}
