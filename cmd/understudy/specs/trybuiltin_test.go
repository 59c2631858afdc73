package specs

import (
	"cmp"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/slowapi"
)

// What the specs that come with the product say is what their APIs answer.
func TestTryFindsNothingWrongWithBuiltInSpecs(t *testing.T) {
	for name, api := range map[string]struct {
		as     Caller
		vars   map[string]string
		has    string
		secret string
	}{
		"twilio": {as: Caller{User: "AC00000000000000000000000000000001"}},
		"stripe": {secret: "sk_test_slowapitoken"},
		// An issue is found by its number and a label by its name, which are not their ids.
		"github": {vars: map[string]string{"owner": "acme", "repo": "tracker"}, has: "/repos/{owner}/{repo}/issues/{number}/labels\n"},
	} {
		t.Run(name, func(t *testing.T) {
			world, err := slowapi.New(slowapi.Options{Shape: name, Records: 200, Epoch: time.Now().Add(-time.Hour)})
			if err != nil {
				t.Fatal(err)
			}
			srv := httptest.NewServer(world)
			t.Cleanup(func() {
				srv.Close()
				if err := world.Close(); err != nil {
					t.Error(err)
				}
			})
			api.as.Secret = understudy.NewSecret(cmp.Or(api.secret, "slowapitoken"))
			var out strings.Builder
			err = Try(t.Context(), Trial{Spec: name, Upstream: srv.URL, As: api.as, Vars: api.vars, Rate: 1000}, &out)
			if err != nil || !strings.Contains(out.String(), api.has) {
				t.Errorf("%v:\n%s", err, out.String())
			}
		})
	}
}
