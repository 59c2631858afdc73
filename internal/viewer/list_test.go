package viewer

import "testing"

func TestSmoke(t *testing.T) {
	h := open(t)
	for _, p := range []string{"/", "/twilio/calls", "/twilio/messages", "/twilio/incoming_phone_numbers", "/twilio/accounts"} {
		body := h.page(p, all)
		t.Log(p, len(body))
	}
}
