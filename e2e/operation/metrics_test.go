// Metrics: what a monitoring system reads, and its rules.

package operation

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"understudy/e2e/rig"
	"understudy/internal/checktest"
)

// promtool runs promtool with an input. It fails the test if promtool complains.
func promtool(t *testing.T, input string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "promtool", args...) // of Debian's package prometheus; make setup installs it
	cmd.Stdin = strings.NewReader(input)
	if out, err := cmd.CombinedOutput(); err != nil || args[1] == "metrics" && len(out) > 0 {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// TestMetrics reads the metrics of a server with a few requests, in each way.
func TestMetrics(t *testing.T) {
	t.Parallel()
	up := rig.StartAPI(t, "--latency", "1ms", "--records", "200").URL("slowapi")
	house, _ := rig.StartServer(t, rig.Settings{Upstream: up, Mirror: "{newest: 1h, older: 1h, settled_age: 1h}",
		More: `  - {name: monitor, secret: "file:oidc.secret", allow: metrics}
  - {name: limited, source: twilio, user: limited, secret: "file:demo.secret", role: all, rate: 10, per: 1h}
`,
		Connect: "{listen: \"127.0.0.1:0\"}\nmetrics: {listen: \"127.0.0.1:0\"}",
	})
	page := house.URL("twilio") + rig.Base + "/Calls.json?PageSize=20"
	demo := rig.Account + ":" + rig.DemoToken
	for range 4 {
		checktest.Equal(t, rig.Get(t, demo, page).Status, 200, "a page: status")
	}
	checktest.Equal(t, rig.Get(t, "limited:"+rig.DemoToken, page).Status, 200, "the page by another: status")
	checktest.Equal(t, rig.Get(t, "limited:wrong", page).Status, 401, "a wrong secret: status")
	checktest.Equal(t, rig.Get(t, demo, house.URL("twilio")+"/nothing").Status, 403, "another path: status")

	web, own := house.URL("viewer")+"/-/metrics", house.URL("metrics")+"/-/metrics"
	for _, c := range []struct {
		who, user, url string
		headers        []string
		status         int
	}{
		{"a credential for metrics", "", web, []string{"Authorization", "Bearer secret"}, 200},
		{"the role all", demo, web, nil, 200},
		{"a role", rig.Account + ":" + rig.MaskedToken, web, nil, 403},
		{"nobody", "", web, nil, 403},
		{"this machine, at the own address", "", own, nil, 200},
		{"a proxy, at the own address", "", own, []string{"X-Forwarded-For", "192.0.2.1"}, 403},
		{"other paths of the own address", demo, house.URL("metrics") + "/-/stats", nil, 404},
		{"a credential for metrics elsewhere", "", house.URL("viewer") + "/-/stats", []string{"Authorization", "Bearer secret"}, 403},
		{"a credential for metrics at a source", "", page, []string{"Authorization", "Bearer secret"}, 401},
		{"load balancers", "", house.URL("viewer") + "/-/ready", nil, 200},
		{"load balancers of a drop-in port", "", house.URL("twilio") + "/-/ready", nil, 200},
	} {
		r := rig.Get(t, c.user, c.url, c.headers...)
		checktest.Equal(t, r.Status, c.status, "%s: status", c.who)
		if c.status == 200 && strings.HasSuffix(c.url, "metrics") {
			promtool(t, string(r.Body), "check", "metrics")
		}
	}
	text := "\n" + string(rig.Get(t, "", own).Body)
	for _, line := range []string{
		`understudy_requests_total{source="twilio",credential="demo",how="warm"} 3`,
		`understudy_requests_total{source="twilio",credential="demo",how="cold"} 1`,
		`understudy_requests_total{source="twilio",credential="demo",how="other"} 1`,
		`understudy_request_errors_total{source="twilio",credential="demo",result="rejected"} 1`,
		`understudy_requests_total{source="twilio",credential="limited",how="warm"} 1`,
		`understudy_requests_total{source="twilio",credential="connect",how="warm"} 0`,
		`understudy_request_errors_total{source="twilio",credential="",result="rejected"} 2`,
		`understudy_credential_rate_requests{source="twilio",credential="limited"} 10`,
		`understudy_credential_rate_left_requests{source="twilio",credential="limited"} 9`,
		`understudy_answers_total{source="twilio",how="warm"} 4`,
		`understudy_source_up{source="twilio"} 1`, "understudy_store_readable 1", "understudy_store_up 1", "understudy_dropped_series 0",
	} {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("the metrics lack %s; they have\n%s", line, linesOf(text, line[:strings.IndexAny(line, "{ ")]))
		}
	}
	checktest.NoError(t, house.Reload(), "reload")
	rig.Await(t, func() string {
		now := string(rig.Get(t, "", own).Body)
		if !strings.Contains(now, "understudy_policy_changes_total 2\n") {
			return "the settings are not read again: " + linesOf(now, "understudy_policy_changes_total")
		}
		if want := `understudy_requests_total{source="twilio",credential="demo",how="warm"} 3`; !strings.Contains(now, want) {
			t.Errorf("the counters of credentials begin again: %s", linesOf(now, "understudy_requests_total"))
		}
		return ""
	})
}

// linesOf returns the series of a metric.
func linesOf(text, name string) (lines string) {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, name) {
			lines += line
		}
	}
	return lines
}

// TestMonitoringFiles: Prometheus accepts the rules and each query of the dashboard.
func TestMonitoringFiles(t *testing.T) {
	t.Parallel()
	promtool(t, "", "check", "rules", "../../deploy/monitoring/alerts.yml")
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	checktest.MustNoError(t, json.Unmarshal([]byte(rig.ReadFile(t, "../../deploy/monitoring/dashboard.json")), &dashboard), "read the dashboard")
	rules := "groups:\n- name: dashboard\n  rules:\n"
	for _, p := range dashboard.Panels {
		for i, target := range p.Targets {
			rules += fmt.Sprintf("  - {record: query%d, labels: {panel: %q}, expr: %q}\n", i, p.Title, strings.ReplaceAll(target.Expr, "$__rate_interval", "5m"))
		}
	}
	if strings.Count(rules, "record") < 20 {
		t.Errorf("the dashboard has only these queries:\n%s", rules)
	}
	path := filepath.Join(t.TempDir(), "dashboard.yml")
	checktest.MustNoError(t, os.WriteFile(path, []byte(rules), 0o600), "write the queries")
	promtool(t, "", "check", "rules", path)
}
