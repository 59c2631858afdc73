// Forecasts: which alerts the settings describe, and where they say they are wrong.

package config

import (
	"os"
	"strings"
	"testing"
	"time"

	"understudy/internal/access"
	"understudy/internal/checktest"
	"understudy/spec"
	"understudy/upstream"
)

const hookBefore = `sources: {twilio: {spec: twilio, user: AC1}}
roles: {support: {twilio: {"*": see, price: hide}}, open: {twilio: {"*": see}}}
webhooks:
  - {name: crm, url: "https://crm.example.com/", secret: "file:s", role: open}
  - {name: blind, url: "https://crm.example.com/", secret: "file:s", role: support}
forecasts:
`

// alertsOf reads settings up to the check against roles.
func alertsOf(t *testing.T, line string) (*Settings, error) {
	t.Helper()
	c, err := Parse([]byte(hookBefore+"  - "+line+"\n"), os.LookupEnv)
	if err != nil {
		return nil, err
	}
	sp, err := upstream.ReadBuiltIn("twilio")
	if err != nil {
		t.Fatal(err)
	}
	o := c.Policy()
	o.Specs, o.Users, o.Now = map[string]*spec.Spec{"twilio": sp}, map[string]string{"twilio": "AC1"}, time.Now
	gate, err := access.NewWith(o)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.CheckAlerts(gate, []*spec.Source{{Name: "twilio", Spec: sp, User: "AC1"}})
	return c, err
}

func TestAlertsAreRead(t *testing.T) {
	c, err := alertsOf(t, `{of: twilio/balance.balance, level: 12.50, by: 2w, webhook: crm}`)
	if err != nil {
		t.Fatal(err)
	}
	alerts, err := c.ParseAlerts()
	if err != nil || len(alerts) != 1 {
		t.Fatal(alerts, err)
	}
	a := alerts[0]
	q := a.Question
	checktest.Equal(t, q.Level, "12.50", "q.Level")
	checktest.Equal(t, q.Within, 14*24*time.Hour, "q.Within")
	checktest.Equal(t, q.Percent, 0.5, "q.Percent")
	checktest.Equal(t, a.Webhook, "crm", "a.Webhook")
	checktest.Equal(t, q.Series.Field, "balance", "q.Series.Field")
}

func TestAlertsThatAreWrong(t *testing.T) {
	const of = "of: twilio/balance.balance, "
	for line, want := range map[string]string{
		`{webhook: crm}`:                                         `of: invalid request: "" does not name a number field`,
		`{` + of + `webhook: cram}`:                              `twilio is called "cram"; did you mean "crm"?`,
		`{` + of + `webhook: crm, by: soon}`:                     "write 30d or 12h",
		`{` + of + `webhook: crm, level: much}`:                  "write 0 or 12.50",
		`{` + of + `webhook: crm, percent: "95"}`:                "write 0.95",
		`{of: twilio/balance.balances, webhook: crm}`:            `is not sampled; did you mean "twilio/balance.balance"?`,
		`{of: twilio/calls.price, webhook: crm}`:                 "is not sampled",
		`{` + of + `webhook: blind}`:                             "the role support of the webhook blind does not see",
		`{` + of + `webhook: crm, when: now}`:                    "when",
		"{" + of + "webhook: crm}\n  - {" + of + "webhook: crm}": "it appears twice",
	} {
		if _, err := alertsOf(t, line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
}
