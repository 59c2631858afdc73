// Spent: who has cost how many requests upstream.

package operation

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"understudy/e2e/rig"
	"understudy/internal/checktest"
)

// spent is what of /-/stats tells it.
type spent struct {
	Sources map[string]struct {
		Spent []struct {
			ByReason map[string]int64 `json:"by_reason"`
			ByCaller map[string]int64 `json:"by_caller"`
		} `json:"spent"`
	} `json:"sources"`
}

// Each credential is told what it has cost, the numbers add up to what upstream has counted, and
// nobody but who administers reads a name.
func TestSpentByCredential(t *testing.T) {
	t.Parallel()
	api := rig.StartAPI(t, "--latency", "0s", "--records", "300")
	house, _ := rig.StartServer(t, rig.Settings{
		Upstream: api.URL("slowapi"), Role: "all",
		More: `  - {name: billing, source: twilio, user: billing, secret: "file:masked.secret", role: support}` + "\n",
	})
	dropIn, web := house.URL("twilio"), house.URL("viewer")
	var before struct{ Requests int64 }
	counted := func() {
		t.Helper()
		if err := json.Unmarshal(rig.Get(t, "", api.URL("slowapi")+"/-/stats").Body, &before); err != nil {
			t.Fatal(err)
		}
	}
	counted()
	start := before.Requests
	list := func(user string, day int) {
		t.Helper()
		if r := rig.Get(t, user, fmt.Sprintf("%s%s/Messages.json?PageSize=5&DateSent=2026-05-%02d", dropIn, rig.Base, day)); r.Status != http.StatusOK {
			t.Fatalf("%d %s", r.Status, r.Body)
		}
	}
	const demo, billing = rig.Account + ":" + rig.DemoToken, "billing:" + rig.MaskedToken
	for day := 1; day <= 7; day++ {
		list(demo, day)
		list(billing, day) // it is held by then, and costs nothing
	}
	for day := 11; day <= 14; day++ {
		list(billing, day)
	}
	r, err := rig.Ask(http.MethodPost, demo, dropIn+rig.Base+"/Messages.json", "To=%2B15550100001&From=%2B15550100002&Body=Hello")
	if err != nil || r.Status != http.StatusCreated {
		t.Fatalf("%v, %d %s", err, r.Status, r.Body)
	}
	if r := rig.Get(t, "", web+"/twilio/messages?DateSent=2026-05-20"); r.Status != http.StatusOK {
		t.Fatalf("%d %s", r.Status, r.Body)
	}
	counted()

	var told spent
	if err := json.Unmarshal(rig.Get(t, demo, web+"/-/stats").Body, &told); err != nil {
		t.Fatal(err)
	}
	by, sent, waited := map[string]int64{}, int64(0), int64(0)
	for _, hour := range told.Sources["twilio"].Spent {
		for name, n := range hour.ByCaller {
			by[name] += n
			waited -= n
		}
		for _, n := range hour.ByReason {
			sent += n
		}
		waited += hour.ByReason["waiting"]
	}
	checktest.Equal(t, by["demo"], 8, `by caller: by["demo"]`)
	checktest.Equal(t, by["billing"], 4, `by caller: by["billing"]`)
	checktest.Equal(t, waited, 0, "by caller: waited")
	if came := before.Requests - start; sent != came || sent < 13 {
		t.Errorf("%d are told, and %d came", sent, came)
	}
	shown := string(rig.Get(t, demo, web+"/-/administration").Body)
	for _, want := range []string{`<th scope="row">demo</th><td>8</td><td>8</td>`, `<th scope="row">billing</th><td>4</td><td>4</td>`} {
		if !strings.Contains(shown, want) {
			t.Errorf("the page of administration lacks %s", want)
		}
	}
	{
		r := rig.Get(t, billing, web+"/-/stats")
		checktest.Equal(t, r.Status, http.StatusOK, "another caller reads: r.Status")
		checktest.Lacks(t, string(r.Body), "spent", "another caller reads: string(r.Body)")
		checktest.Lacks(t, string(r.Body), "demo", "another caller reads: string(r.Body)")
	}
}
