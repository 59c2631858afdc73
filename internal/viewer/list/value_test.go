// Values of a list, as people read them.

package list_test

import (
	"regexp"
	"strings"
	"testing"

	"understudy/internal/viewer/viewertest"
)

func TestListShowsValuesAsPeopleReadThem(t *testing.T) {
	h := viewertest.Open(t, viewertest.WithSearch(t))
	calls := h.Page("/twilio/calls", viewertest.All)
	for _, want := range []string{
		`<td class="dir in">inbound</td>`, `data-t="Price ($)">0.`, `<td class="len" data-t="Duration">`,
		`">created` + "\u00a0" + `12:00:00</time>`, `<time datetime="2026-05-31T`,
	} {
		if !strings.Contains(calls, want) {
			t.Errorf("calls: no %s", want)
		}
	}
	if strings.Contains(calls, "no time") {
		t.Error("a call that has not begun has no time")
	}
	alerts := h.Page("/twilio/alerts", viewertest.All)
	if !strings.Contains(alerts, "Msg: ") || strings.Contains(alerts, "Msg=") {
		t.Error("the texts of alerts are not decoded")
	}
	if !regexp.MustCompile(`<bdi>[0-9]{5} [A-Z][^<]+</bdi> <span class="n">`).MatchString(h.Page("/twilio/messages", viewertest.All)) {
		t.Error("the counts by code do not say what the codes mean")
	}
	if balance := h.Page("/twilio/balance", viewertest.All); !strings.Contains(balance, ">$") {
		t.Error("the balance is no amount in dollars")
	}
	_, raw, _ := h.Get("/twilio/calls.json", viewertest.All)
	if !strings.Contains(raw, `"price":"-0.`) && !strings.Contains(raw, `"price": "-0.`) {
		t.Error("data answers show another price than upstream's")
	}
}
