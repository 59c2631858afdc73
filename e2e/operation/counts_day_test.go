// Counts of a day: home says what was answered before a restart, too.

package operation

import (
	"regexp"
	"testing"

	"understudy/e2e/rig"
)

func TestHomeCountsADayOverARestart(t *testing.T) {
	t.Parallel()
	up := rig.StartAPI(t, "--latency", "0s", "--records", "30").URL("slowapi")
	first, dir := rig.StartServer(t, rig.Settings{Upstream: up})
	for range 3 {
		rig.Get(t, rig.Account+":"+rig.DemoToken, first.URL("twilio")+rig.Base+"/Calls.json")
	}
	answers := regexp.MustCompile(`<b class="figure">(\d+)</b> answers in 24 hours`)
	counted := func(viewer string) string {
		if m := answers.FindStringSubmatch(string(rig.Get(t, rig.Account+":"+rig.DemoToken, viewer+"/").Body)); m != nil {
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
	if got := counted(rig.StartAgain(t, dir).URL("viewer")); got != "3" {
		t.Errorf("after a restart %s answers are counted, want 3", got)
	}
}
