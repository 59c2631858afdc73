// Stripe headers: what its SDKs send is taken, and what says whose data are asked for arrives.

package vendorsdk

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"understudy/e2e/rig"
)

// stripeHeaders are those of the SDKs' requests, with whether they reach Stripe: of a read, of a write.
var stripeHeaders = map[string]struct {
	value       string
	read, write bool
}{
	"Stripe-Version": {"2020-08-27", true, true}, "Stripe-Account": {"acct_9", true, true}, "Stripe-Context": {"wksp_9", true, true},
	"Idempotency-Key": {"k-9", false, true}, "Stripe-Request-Trigger": {"event=evt_9", false, false},
	"X-Stripe-Client-User-Agent": {`{"lang":"node"}`, false, false},
	"X-Stripe-Client-Telemetry":  {`{"last_request_metrics":{"request_id":"req_1"}}`, false, false},
}

// Names in the SDKs that are no header of a request to the API: of answers, of callbacks and
// of nothing.
var stripeOthers = regexp.MustCompile(`^(Stripe-(Should-Retry|Signature|Notice|Rate-Limited-Reason)|X-Stripe-)$`)

func TestStripeTakesEveryHeaderOfItsSDKs(t *testing.T) {
	t.Parallel()
	goSDK, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/stripe/stripe-go/v85").Output()
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, pattern := range []string{
		strings.TrimSpace(string(goSDK)) + "/*.go", "../sdks/node/node_modules/stripe/esm/*.js",
		"../sdks/python/.venv/lib/*/site-packages/stripe/_*.py", "../sdks/python/.venv/lib/*/site-packages/stripe/v2/core/_*.py",
	} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v (is the package installed? `make setup`)", pattern, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			for _, m := range regexp.MustCompile(`["']((?:X-)?Stripe-[A-Za-z-]*|Idempotency-Key)["']`).FindAllSubmatch(text, -1) {
				found++
				if _, known := stripeHeaders[string(m[1])]; !known && !stripeOthers.Match(m[1]) {
					t.Errorf("%s: the header %s is sent by no test", file, m[1])
				}
			}
		}
	}
	if found < len(stripeHeaders) {
		t.Errorf("only %d names of headers in the SDKs", found)
	}
	m, _, drop := startStripe(t)
	var all []string
	for name, h := range stripeHeaders {
		all = append(all, name, h.value)
	}
	for i, method := range []string{http.MethodGet, http.MethodPost} {
		body := strings.Repeat("name=A", i)
		if r, err := rig.Ask(method, rig.StripeToken+":", drop+"/v1/customers/cus_1", body, all...); err != nil || r.Status != http.StatusOK {
			t.Errorf("%s: %v, %d %s", method, err, r.Status, r.Body)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.headers) < 2 {
		t.Fatalf("%d requests reached stripe-mock", len(m.headers))
	}
	for i, got := range m.headers[:2] { // the record may be fetched again behind the write
		for name, h := range stripeHeaders {
			if arrives := i == 0 && h.read || i == 1 && h.write; arrives && got.Get(name) != h.value || !arrives && got.Get(name) != "" {
				t.Errorf("request %d: %s came as %q", i, name, got.Get(name))
			}
		}
	}
}
