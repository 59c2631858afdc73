// Counts of a day: home says what was answered before a restart, too.

package e2e

import (
	"regexp"
	"testing"
)

func TestHomeCountsADayOverARestart(t *testing.T) {
	t.Parallel()
	up := startAPI(t, "--latency", "0s", "--records", "30").URL("slowapi")
	first, dir := startServer(t, settings{upstream: up})
	for range 3 {
		get(t, account+":"+demoToken, first.URL("twilio")+base+"/Calls.json")
	}
	answers := regexp.MustCompile(`<b class="figure">(\d+)</b> answers in 24 hours`)
	counted := func(viewer string) string {
		if m := answers.FindStringSubmatch(string(get(t, account+":"+demoToken, viewer+"/").body)); m != nil {
			return m[1]
		}
		return "none"
	}
	if got := counted(first.URL("viewer")); got != "3" {
		t.Errorf("%s answers are counted, want 3", got)
	}
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	if got := counted(startAgain(t, dir).URL("viewer")); got != "3" {
		t.Errorf("after a restart %s answers are counted, want 3", got)
	}
}
