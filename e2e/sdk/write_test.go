// Writes: what the SDK writes through the drop-in is what it reads next.

package sdk

import (
	"testing"

	api "github.com/twilio/twilio-go/rest/api/v2010"

	"understudy/e2e/rig"
	"understudy/internal/checktest"
)

// writing is a demo whose lists and instances are held before each write, so
// that an answer from memory would show.
func startWriting(t *testing.T) pair {
	t.Helper()
	demo := rig.StartDemo(t, "--latency", "10ms", "--records", "100")
	return pair{sdk(t, demo.URL("twilio"), rig.DemoToken), sdk(t, demo.URL("slowapi"), rig.APIToken)}
}

// newest reads the newest messages through the drop-in and directly.
func newestMessages(t *testing.T, p pair, what string) []api.ApiV2010Message {
	t.Helper()
	return both(t, p, what, func(c *api.ApiService) ([]api.ApiV2010Message, error) {
		return c.ListMessage((&api.ListMessageParams{}).SetPageSize(20).SetLimit(40))
	})
}

func newestCalls(t *testing.T, p pair, what string) []api.ApiV2010Call {
	t.Helper()
	return both(t, p, what, func(c *api.ApiService) ([]api.ApiV2010Call, error) {
		return c.ListCall((&api.ListCallParams{}).SetPageSize(20).SetLimit(20))
	})
}

func TestSDKWritesMessages(t *testing.T) {
	t.Parallel()
	p := startWriting(t)
	newestMessages(t, p, "before")
	made, err := p.through.CreateMessage((&api.CreateMessageParams{}).SetTo("+15005550006").SetFrom("+15005550001").SetBody("Schöne Grüße 👋"))
	if err != nil {
		t.Fatal(err)
	}
	if made.Body == nil || *made.Body != "Schöne Grüße 👋" {
		t.Errorf("created with body %v", made.Body)
	}
	if list := newestMessages(t, p, "after create"); *list[0].Sid != *made.Sid {
		t.Errorf("the newest message is %s, want %s", *list[0].Sid, *made.Sid)
	}
	found := both(t, p, "filtered after create", func(c *api.ApiService) ([]api.ApiV2010Message, error) {
		return c.ListMessage((&api.ListMessageParams{}).SetTo("+15005550006"))
	})
	if len(found) != 1 {
		t.Errorf("%d messages to it, want 1", len(found))
	}
	fetch := func(c *api.ApiService) (*api.ApiV2010Message, error) { return c.FetchMessage(*made.Sid, nil) }
	both(t, p, "fetched", fetch)

	updated, err := p.through.UpdateMessage(*made.Sid, (&api.UpdateMessageParams{}).SetBody(""))
	checktest.MustNoError(t, err, "redact")
	checktest.MustTrue(t, updated.Body != nil, "redact: updated.Body is nil")
	checktest.MustEqual(t, *updated.Body, "", "redact: *updated.Body")
	if one := both(t, p, "after redaction", fetch); *one.Body != "" {
		t.Errorf("the body is still %q", *one.Body)
	}
	if list := newestMessages(t, p, "list after redaction"); *list[0].Body != "" {
		t.Errorf("the body is still listed as %q", *list[0].Body)
	}
	if err := p.through.DeleteMessage(*made.Sid, nil); err != nil {
		t.Fatal(err)
	}
	_, err = fetch(p.through)
	if e := restError(t, "deleted", err); e.Code != 20404 {
		t.Errorf("deleted: code %d, want 20404", e.Code)
	}
	if list := newestMessages(t, p, "after delete"); *list[0].Sid == *made.Sid {
		t.Error("the deleted message is still listed")
	}
	if err := p.through.DeleteMessage(*made.Sid, nil); restError(t, "deleted twice", err).Code != 20404 {
		t.Error("deleted twice")
	}
}

func TestSDKWritesCalls(t *testing.T) {
	t.Parallel()
	p := startWriting(t)
	newestCalls(t, p, "before")
	made, err := p.through.CreateCall((&api.CreateCallParams{}).SetTo("+15005550006").SetFrom("+15005550001").SetUrl("https://example.com/twiml"))
	if err != nil {
		t.Fatal(err)
	}
	if *made.Status != "queued" || made.StartTime != nil {
		t.Errorf("created: %s, started %v", *made.Status, made.StartTime)
	}
	fetch := func(c *api.ApiService) (*api.ApiV2010Call, error) { return c.FetchCall(*made.Sid, nil) }
	both(t, p, "fetched", fetch) // the answer to the creation has no dates, the call has
	if list := newestCalls(t, p, "after create"); *list[0].Sid != *made.Sid {
		t.Errorf("the newest call is %s, want %s", *list[0].Sid, *made.Sid)
	}
	ended, err := p.through.UpdateCall(*made.Sid, (&api.UpdateCallParams{}).SetStatus("completed"))
	if err != nil || *ended.Status != "completed" {
		t.Fatalf("ended: %v, %v", ended, err)
	}
	if one := both(t, p, "after end", fetch); *one.Status != "completed" {
		t.Errorf("still %s", *one.Status)
	}
	newestCalls(t, p, "list after end")
	_, err = p.through.UpdateCall(*made.Sid, (&api.UpdateCallParams{}).SetStatus("canceled"))
	if e := restError(t, "end twice", err); e.Code != 21220 {
		t.Errorf("end twice: code %d, want 21220", e.Code)
	}
	if err := p.through.DeleteCall(*made.Sid, nil); err != nil {
		t.Fatal(err)
	}
	_, err = fetch(p.through)
	if e := restError(t, "deleted", err); e.Code != 20404 {
		t.Errorf("deleted: code %d, want 20404", e.Code)
	}
	newestCalls(t, p, "after delete")
}

func TestSDKWritesNumbersAndAccounts(t *testing.T) {
	t.Parallel()
	p := startWriting(t)
	list := func(what string) []api.ApiV2010IncomingPhoneNumber {
		return both(t, p, what, func(c *api.ApiService) ([]api.ApiV2010IncomingPhoneNumber, error) {
			return c.ListIncomingPhoneNumber(&api.ListIncomingPhoneNumberParams{})
		})
	}
	one := list("before")[2]
	fetch := func(c *api.ApiService) (*api.ApiV2010IncomingPhoneNumber, error) {
		return c.FetchIncomingPhoneNumber(*one.Sid, nil)
	}
	both(t, p, "fetched before", fetch)
	_, err := p.through.UpdateIncomingPhoneNumber(*one.Sid, (&api.UpdateIncomingPhoneNumberParams{}).
		SetFriendlyName("Front desk").SetVoiceUrl("https://example.com/voice"))
	if err != nil {
		t.Fatal(err)
	}
	if have := both(t, p, "fetched after update", fetch); *have.FriendlyName != "Front desk" || *have.VoiceUrl != "https://example.com/voice" {
		t.Errorf("after the update: %s", rig.JSON(t, have))
	}
	if have := list("list after update")[2]; *have.FriendlyName != "Front desk" {
		t.Errorf("listed after the update as %s", *have.FriendlyName)
	}
	bought, err := p.through.CreateIncomingPhoneNumber((&api.CreateIncomingPhoneNumberParams{}).SetPhoneNumber("+15005550042"))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(list("after buying")); n != 9 {
		t.Errorf("%d numbers, want 9", n)
	}
	if err := p.through.DeleteIncomingPhoneNumber(*bought.Sid, nil); err != nil {
		t.Fatal(err)
	}
	if n := len(list("after giving back")); n != 8 {
		t.Errorf("%d numbers, want 8", n)
	}

	named, err := p.through.UpdateAccount(rig.Account, (&api.UpdateAccountParams{}).SetFriendlyName("Night shift"))
	checktest.MustNoError(t, err, "account")
	checktest.MustEqual(t, *named.FriendlyName, "Night shift", "account: *named.FriendlyName")
	checktest.MustTrue(t, named.AuthToken != nil, "account: named.AuthToken is nil")
	checktest.MustEqual(t, *named.AuthToken, "", "account: *named.AuthToken")
	have, err := p.through.FetchAccount(rig.Account)
	checktest.MustNoError(t, err, "account read again")
	checktest.Equal(t, *have.FriendlyName, "Night shift", "account read again: *have.FriendlyName")
	checktest.Lacks(t, rig.JSON(t, have), rig.APIToken, "account read again: rig.JSON(t, have)")
}
