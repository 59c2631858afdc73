package viewer

import (
	"regexp"
	"strings"
	"testing"
)

func TestListShowsValuesAsPeopleReadThem(t *testing.T) {
	h := open(t, searched(t))
	calls := h.page("/twilio/calls", all)
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
	alerts := h.page("/twilio/alerts", all)
	if !strings.Contains(alerts, "Msg: ") || strings.Contains(alerts, "Msg=") {
		t.Error("the texts of alerts are not decoded")
	}
	if !regexp.MustCompile(`<bdi>[0-9]{5} [A-Z][^<]+</bdi> <span class="n">`).MatchString(h.page("/twilio/messages", all)) {
		t.Error("the counts by code do not say what the codes mean")
	}
	if balance := h.page("/twilio/balance", all); !strings.Contains(balance, ">$") {
		t.Error("the balance is no amount in dollars")
	}
	_, raw, _ := h.get("/twilio/calls.json", all)
	if !strings.Contains(raw, `"price":"-0.`) && !strings.Contains(raw, `"price": "-0.`) {
		t.Error("data answers show another price than upstream's")
	}
}

func TestMessageWithoutTextSaysSo(t *testing.T) {
	h := open(t)
	list := h.page("/twilio/messages?PageSize=1000", all)
	row := regexp.MustCompile(`<tr><td class="when"><a href="(/twilio/messages/[A-Z0-9a-f]+)">[^\n]*>no text<`).FindStringSubmatch(list)
	if row == nil {
		t.Fatal("no message is without text")
	}
	shown := h.page(row[1], all)
	if !strings.Contains(shown, `<span class="none">no text</span>`) || strings.Contains(shown, "segment, ") {
		t.Error("the page of a message without text counts its segments")
	}
}
