// Spent: who has cost how many requests upstream.

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
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
	api := startAPI(t, "--latency", "0s", "--records", "300")
	house, _ := startServer(t, settings{
		upstream: api.URL("slowapi"), role: "all",
		more: `  - {name: billing, source: twilio, user: billing, secret: "file:masked.secret", role: support}` + "\n",
	})
	dropIn, web := house.URL("twilio"), house.URL("viewer")
	var before struct{ Requests int64 }
	counted := func() {
		t.Helper()
		if err := json.Unmarshal(get(t, "", api.URL("slowapi")+"/-/stats").body, &before); err != nil {
			t.Fatal(err)
		}
	}
	counted()
	start := before.Requests
	list := func(user string, day int) {
		t.Helper()
		if r := get(t, user, fmt.Sprintf("%s%s/Messages.json?PageSize=5&DateSent=2026-05-%02d", dropIn, base, day)); r.status != http.StatusOK {
			t.Fatalf("%d %s", r.status, r.body)
		}
	}
	const demo, billing = account + ":" + demoToken, "billing:" + maskedToken
	for day := 1; day <= 7; day++ {
		list(demo, day)
		list(billing, day) // it is held by then, and costs nothing
	}
	for day := 11; day <= 14; day++ {
		list(billing, day)
	}
	r, err := ask(http.MethodPost, demo, dropIn+base+"/Messages.json", "To=%2B15550100001&From=%2B15550100002&Body=Hello")
	if err != nil || r.status != http.StatusCreated {
		t.Fatalf("%v, %d %s", err, r.status, r.body)
	}
	if r := get(t, "", web+"/twilio/messages?DateSent=2026-05-20"); r.status != http.StatusOK {
		t.Fatalf("%d %s", r.status, r.body)
	}
	counted()

	var told spent
	if err := json.Unmarshal(get(t, demo, web+"/-/stats").body, &told); err != nil {
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
	if by["demo"] != 8 || by["billing"] != 4 || waited != 0 {
		t.Errorf("by caller %v, and %d more by reason", by, waited)
	}
	if came := before.Requests - start; sent != came || sent < 13 {
		t.Errorf("%d are told, and %d came", sent, came)
	}
	shown := string(get(t, demo, web+"/-/administration").body)
	for _, want := range []string{`<th scope="row">demo</th><td>8</td><td>8</td>`, `<th scope="row">billing</th><td>4</td><td>4</td>`} {
		if !strings.Contains(shown, want) {
			t.Errorf("the page of administration lacks %s", want)
		}
	}
	if r := get(t, billing, web+"/-/stats"); r.status != http.StatusOK || strings.Contains(string(r.body), "spent") ||
		strings.Contains(string(r.body), "demo") {
		t.Errorf("another caller reads %d %s", r.status, r.body)
	}
}
