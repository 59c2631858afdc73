// Seen: what was masked once is not masked again.

package access

import (
	"errors"
	"testing"

	"understudy"
)

// A record that was masked once reads as masked, its last digits still there.
func TestSeen(t *testing.T) {
	g := gate(t, Roles{"support": {"twilio": support["twilio"]}})
	support := as("support")
	view, err := g.MakeView(support, page("twilio", "calls", false, 200, `{"sid":"CA1","from":"+15551234567","status":"busy","price":null}`))
	if err != nil {
		t.Fatal(err)
	}
	row, err := g.ParseShownRow(support, "twilio", "calls", view.Body)
	if err != nil || row.ID != "CA1" {
		t.Fatalf("%+v, %v", row, err)
	}
	for name, want := range map[string]Value{"from": {Text: "********4567", State: Masked}, "status": {Text: "busy", State: Seen},
		"price": {State: Null}, "to": {State: Absent}} {
		if v := row.Field(name); v.Text != want.Text || v.State != want.State {
			t.Errorf("%s: %+v, want %+v", name, v, want)
		}
	}
	if _, err := g.ParseShownRow(understudy.Caller{Name: "n", Source: "twilio"}, "twilio", "calls", view.Body); !errors.Is(err,
		understudy.ErrForbidden) {
		t.Errorf("nobody: %v", err)
	}
	for _, body := range []string{"", "[]", "x"} {
		if _, err := g.ParseShownRow(support, "twilio", "calls", []byte(body)); !errors.Is(err, understudy.ErrInvalid) {
			t.Errorf("%q: %v", body, err)
		}
	}
}
