// The packages where answers are refused, masked or made while upstream is away.

package sdk

import (
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/twilio/twilio-go/client"
	api "github.com/twilio/twilio-go/rest/api/v2010"

	"understudy/e2e/rig"
	"understudy/internal/checktest"
)

// restError is the SDK's error of a call; it must be of the SDK's own type.
func restError(t testing.TB, what string, err error) *client.TwilioRestError {
	t.Helper()
	var e *client.TwilioRestError
	if !errors.As(err, &e) {
		t.Fatalf("%s: %v is no error of the SDK's", what, err)
	}
	return e
}

func TestSDKErrors(t *testing.T) {
	t.Parallel()
	p, through, up := startPair(t, "--latency", "2ms", "--records", "100")
	masked := sdk(t, through, rig.MaskedToken)
	missing := "CA" + strings.Repeat("0", 32)
	for _, try := range []struct {
		what         string
		status, code int
		direct       bool // upstream answers the same
		call         func(c *api.ApiService) error
	}{
		{"unknown call", 404, 20404, true, func(c *api.ApiService) error { _, err := c.FetchCall(missing, nil); return err }},
		{"page size 0", 400, 20001, true, func(c *api.ApiService) error {
			_, err := c.ListCall((&api.ListCallParams{}).SetPageSize(0))
			return err
		}},
		{"token of another list", 400, 20001, true, func(c *api.ApiService) error {
			_, err := c.PageMessage(&api.ListMessageParams{}, "PA"+missing, "1")
			return err
		}},
		{"bad number", 400, 21211, true, func(c *api.ApiService) error {
			_, err := c.CreateMessage((&api.CreateMessageParams{}).SetTo("+x").SetBody("hello"))
			return err
		}},
	} {
		have := restError(t, try.what, try.call(p.through))
		if have.Status != try.status || have.Code != try.code {
			t.Errorf("%s: status %d code %d, want %d and %d", try.what, have.Status, have.Code, try.status, try.code)
		}
		if want := restError(t, try.what, try.call(p.direct)); try.direct && !reflect.DeepEqual(want, have) {
			t.Errorf("%s: %#v, want as upstream says: %#v", try.what, have, want)
		}
	}
	_, err := sdk(t, through, "wrongtoken").ListCall(&api.ListCallParams{})
	if e := restError(t, "wrong token", err); e.Status != 401 || e.Code != 20003 {
		t.Errorf("wrong token: status %d code %d, want 401 and 20003", e.Status, e.Code)
	}
	_, err = sdk(t, through, rig.APIToken).ListCall(&api.ListCallParams{})
	if e := restError(t, "upstream's own token", err); e.Status != 401 {
		t.Errorf("upstream's own token opens the drop-in: %v", e)
	}

	before := rig.ReadAPIStats(t, up).ByTarget[rig.Base+"/Messages.json"]
	_, err = masked.CreateMessage((&api.CreateMessageParams{}).SetTo("+15005550006").SetFrom("+15005550001").SetBody("hello"))
	if e := restError(t, "masked write", err); e.Status != 403 {
		t.Errorf("masked write: status %d, want 403", e.Status)
	}
	_, err = masked.ListMessage((&api.ListMessageParams{}).SetTo("+15005550006"))
	if e := restError(t, "masked filter", err); e.Status != 403 {
		t.Errorf("masked filter: status %d, want 403", e.Status)
	}
	if after := rig.ReadAPIStats(t, up); after.ByTarget[rig.Base+"/Messages.json"] != before {
		t.Error("a refused write went upstream")
	} else if asked := after.ByTarget[rig.Base+"/Messages.json?To=%2B15005550006&PageSize=50"]; asked != 0 {
		t.Error("a refused filter went upstream")
	}
}

// The masked credential reads the same pages and sees less in them.
func TestSDKMasked(t *testing.T) {
	t.Parallel()
	p, through, _ := startPair(t, "--latency", "2ms", "--records", "120")
	masked := sdk(t, through, rig.MaskedToken)
	params := func() *api.ListMessageParams { return (&api.ListMessageParams{}).SetPageSize(40) }
	plain, err := p.through.ListMessage(params())
	if err != nil {
		t.Fatal(err)
	}
	shown, err := masked.ListMessage(params())
	if err != nil {
		t.Fatal(err)
	}
	if len(plain) != 240 || len(shown) != len(plain) {
		t.Fatalf("%d messages, %d masked, want 240 of each", len(plain), len(shown))
	}
	for i, m := range shown {
		if m.Body != nil {
			t.Fatalf("%s: the body shows", *m.Sid)
		}
		checkMask(t, *plain[i].From, *m.From)
		checkMask(t, *plain[i].To, *m.To)
		if m.NumSegments != nil || m.Price != nil {
			t.Fatalf("%s: what tells of its body shows: %v %v", *m.Sid, m.NumSegments, m.Price)
		}
		m.Body, m.From, m.To, m.NumSegments, m.Price = plain[i].Body, plain[i].From, plain[i].To, plain[i].NumSegments, plain[i].Price
		if !reflect.DeepEqual(m, plain[i]) {
			t.Fatalf("%s: masking changed more than it should: %s", *m.Sid, rig.FirstDifference([]byte(rig.JSON(t, plain[i])), []byte(rig.JSON(t, m))))
		}
	}
	one, err := masked.FetchMessage(*plain[5].Sid, nil)
	if err != nil || one.Body != nil {
		t.Fatalf("%v, body shown: %v", err, one)
	}
	checkMask(t, *plain[5].To, *one.To)
	calls, err := masked.ListCall((&api.ListCallParams{}).SetLimit(120).SetStatus("completed"))
	if err != nil || len(calls) < 60 {
		t.Fatalf("%d calls, %v", len(calls), err)
	}
	for _, c := range calls {
		for _, shown := range []*string{c.From, c.To, c.FromFormatted, c.ToFormatted} {
			if !strings.HasPrefix(*shown, "****") {
				t.Fatalf("%s: %s shows", *c.Sid, *shown)
			}
		}
	}
	accounts, err := masked.ListAccount(&api.ListAccountParams{})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range accounts {
		if a.AuthToken != nil && *a.AuthToken != "" {
			t.Errorf("auth_token %q", *a.AuthToken)
		}
	}
}

// checkMask wants a number as stars and its last four digits, and anything
// else as stars.
func checkMask(t testing.TB, plain, shown string) {
	t.Helper()
	digits := 0
	for _, c := range plain {
		if c >= '0' && c <= '9' {
			digits++
		}
	}
	want := "********"
	if digits >= 8 && strings.HasPrefix(plain, "+") {
		want += plain[len(plain)-4:]
	}
	if strings.HasPrefix(plain, "whatsapp:") || strings.HasPrefix(plain, "sip:") || strings.HasPrefix(plain, "client:") {
		want = "********"
	}
	if shown != want {
		t.Fatalf("%q is shown as %q, want %q", plain, shown, want)
	}
}

// In an outage a program that requests what is not held gets an error in the
// provider's own format, before the SDK's timeout of ten seconds.
func TestSDKInOutage(t *testing.T) {
	t.Parallel()
	p, _, up := startPair(t, "--latency", "2ms", "--records", "100")
	held, err := p.through.ListCall((&api.ListCallParams{}).SetLimit(20))
	if err != nil {
		t.Fatal(err)
	}
	messages, err := p.direct.ListMessage((&api.ListMessageParams{}).SetLimit(20))
	if err != nil {
		t.Fatal(err)
	}
	rig.Control(t, up, "/-/faults", `{"rules":[{"match":"","status":503}]}`)
	var wg sync.WaitGroup
	for _, m := range messages {
		wg.Go(func() {
			_, err := p.through.FetchMessage(*m.Sid, nil)
			var e *client.TwilioRestError
			if !errors.As(err, &e) {
				t.Errorf("what is not held: %v, want the provider's error", err)
				return
			}
			checktest.Equal(t, e.Status, 503, "what is not held: status; %v", err)
			checktest.True(t, e.Code == 20500 || e.Code == 20503, "the code is %d, want our 20500 or upstream's 20503", e.Code)
		})
	}
	wg.Go(func() {
		again, err := p.through.ListCall((&api.ListCallParams{}).SetLimit(20))
		if err != nil || !reflect.DeepEqual(again, held) {
			t.Errorf("what is held: %v", err)
		}
	})
	wg.Wait()
}

// The SDK is safe for concurrent use; so is what answers it.
func TestSDKManyAtOnce(t *testing.T) {
	t.Parallel()
	p, _, _ := startPair(t, "--latency", "20ms", "--records", "200")
	want, err := p.direct.ListCall((&api.ListCallParams{}).SetPageSize(25))
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			have, err := p.through.ListCall((&api.ListCallParams{}).SetPageSize(25))
			if err != nil || !reflect.DeepEqual(have, want) {
				t.Errorf("%d calls of %d: %v", len(have), len(want), err)
			}
		})
	}
	wg.Wait()
}
