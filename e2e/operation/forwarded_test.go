// Clients behind a reverse proxy.

package operation

import (
	"net/http"
	"testing"

	"understudy/e2e/rig"
)

// One client's guesses hold up that client alone where the settings name the proxy, on every
// port; elsewhere what a client says of its address counts for nothing.
func TestGuessesCountByTheClientBehindAProxy(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, settings string
		other          int // the status of a right secret from another client
	}{
		{"a proxy that is named", "{}\nproxies: [127.0.0.1/32]", http.StatusOK},
		{"a proxy that is not", "{}\nproxies: [10.0.0.0/8]", http.StatusTooManyRequests},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			up := rig.StartAPI(t, "--latency", "0s", "--records", "5").URL("slowapi")
			s, _ := rig.StartServer(t, rig.Settings{Upstream: up, Search: c.settings})
			for port, path := range map[string]string{"twilio": "/2010-04-01/Accounts/" + rig.Account + "/Calls.json", "viewer": "/"} {
				from := func(client, secret string) int {
					t.Helper()
					r, err := rig.Ask(http.MethodGet, rig.Account+":"+secret, s.URL(port)+path, "", "X-Forwarded-For", client)
					if err != nil {
						t.Fatal(err)
					}
					return r.Status
				}
				for range 20 {
					from("198.51.100.7", "a wrong secret")
				}
				if got := from("198.51.100.7", rig.DemoToken); got != http.StatusTooManyRequests {
					t.Errorf("%s: the client that guessed: %d", port, got)
				}
				if got := from("203.0.113.9, 198.51.100.8", rig.DemoToken); got != c.other {
					t.Errorf("%s: another client: %d, want %d", port, got, c.other)
				}
			}
		})
	}
}
