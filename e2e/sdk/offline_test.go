// Offline: the provider's packages walk filtered lists that were never requested
// before, during an outage of upstream. They find what upstream would return.

package sdk

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/twilio/twilio-go"
	"github.com/twilio/twilio-go/client"
	api "github.com/twilio/twilio-go/rest/api/v2010"
	monitor "github.com/twilio/twilio-go/rest/monitor/v1"

	"understudy/e2e/rig"
)

// filters are values that lists are asked for.
type filters struct {
	To         string    `json:"to"`     // of a call
	From       string    `json:"from"`   // of many calls
	Parent     string    `json:"parent"` // of a call
	Texted     string    `json:"texted"` // of a message
	Conference string    `json:"conference"`
	Digits     string    `json:"digits"` // in one of our numbers
	Sent       time.Time `json:"sent"`   // when that message was
	Since      time.Time `json:"since"`
	Until      time.Time `json:"until"`
	Day        string    `json:"day"`
}

func TestPackagesWalkFilteredListsWithoutUpstream(t *testing.T) {
	t.Parallel()
	remote := rig.StartAPI(t, "--records", "400", "--latency", "0s", "--arrivals", "0")
	up := remote.URL("slowapi")
	house, _ := rig.StartServer(t, rig.Settings{Upstream: up, Source: rig.SyncSetting(t)})
	of := parents{Parents: rig.FindParents(t, up)}
	of.Filters = findFilters(t, up)
	walkers := []walker{
		{name: "twilio-go", walk: filteredWithTwilioGo},
		{name: "npm twilio", walk: walkWithNode},
		{name: "PyPI twilio", walk: walkWithPython},
	}
	direct := make([]rig.Found, len(walkers))
	for i, w := range walkers {
		direct[i] = w.walk(t, up, rig.APIToken, of)
	}
	rig.AwaitMirrored(t, house.URL("viewer"))
	if err := remote.Stop(); err != nil {
		t.Fatal(err)
	}
	for i, w := range walkers {
		w.Empty = []string{"calls_none"}
		w.Compare(t, "upstream is away", direct[i], w.walk(t, house.URL("twilio"), rig.DemoToken, of), up, house.URL("twilio"))
		t.Logf("%s: %d lists, %d records each way", w.name, len(direct[i]), direct[i].Records())
	}
}

// findFilters looks for values that pick some records of each list.
func findFilters(t *testing.T, up string) *filters {
	t.Helper()
	type row struct {
		SID          string
		From, To     string
		Parent       string `json:"parent_call_sid"`
		Start        string `json:"start_time"`
		Sent         string `json:"date_sent"`
		FriendlyName string `json:"friendly_name"`
		PhoneNumber  string `json:"phone_number"`
	}
	rows := func(list, key string) (out []row) {
		var body map[string]json.RawMessage
		if err := json.Unmarshal(rig.Get(t, rig.Account+":"+rig.APIToken, up+rig.Base+list+"?PageSize=1000").Body, &body); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(body[key], &out); err != nil || len(out) == 0 {
			t.Fatalf("%s: %v", list, err)
		}
		return out
	}
	f := &filters{}
	calls := rows("/Calls.json", "calls")
	times := map[string]int{}
	for _, c := range calls {
		if times[c.From]++; times[c.From] > times[f.From] {
			f.From = c.From
		}
		if c.Parent != "" {
			f.Parent = c.Parent
		}
	}
	f.To = calls[len(calls)/2].To
	moment := func(text string) time.Time {
		at, err := time.Parse(time.RFC1123Z, text)
		if err != nil {
			t.Fatal(err)
		}
		return at.UTC()
	}
	started := slices.DeleteFunc(calls, func(c row) bool { return c.Start == "" })
	f.Since, f.Until = moment(started[len(started)*2/3].Start), moment(started[len(started)/3].Start)
	f.Day = f.Since.Format(time.DateOnly)
	messages := rows("/Messages.json", "messages")
	f.Texted, f.Sent = messages[len(messages)/2].To, moment(messages[len(messages)/2].Sent)
	f.Conference = rows("/Conferences.json", "conferences")[3].FriendlyName
	f.Digits = rows("/IncomingPhoneNumbers.json", "incoming_phone_numbers")[1].PhoneNumber[2:6]
	return f
}

func filteredWithTwilioGo(t *testing.T, address, token string, of parents) rig.Found {
	to, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	plain := &http.Transport{}
	defer plain.CloseIdleConnections()
	c := &client.Client{Credentials: client.NewCredentials(rig.Account, token), HTTPClient: &http.Client{Transport: rewriteHosts{to, plain}, Timeout: 10 * time.Second}}
	c.SetAccountSid(rig.Account)
	all := twilio.NewRestClientWithParams(twilio.ClientParams{Client: c})
	a, m, by := all.Api, all.MonitorV1, of.Filters
	calls := func(p *api.ListCallParams, size int) json.RawMessage {
		return rig.Collect(a.ListCall(p.SetPageSize(size)))
	}
	messages := func(p *api.ListMessageParams, size int) json.RawMessage {
		return rig.Collect(a.ListMessage(p.SetPageSize(size)))
	}
	call := func() *api.ListCallParams { return &api.ListCallParams{} }
	message := func() *api.ListMessageParams { return &api.ListMessageParams{} }
	return rig.Found{
		"accounts_active":       rig.Collect(a.ListAccount((&api.ListAccountParams{}).SetStatus("active"))),
		"calls_to":              calls(call().SetTo(by.To), 7),
		"calls_from_since":      calls(call().SetFrom(by.From).SetStartTimeAfter(by.Since), 20),
		"calls_completed":       calls(call().SetStatus("completed"), 100),
		"calls_between":         calls(call().SetStartTimeAfter(by.Since).SetStartTimeBefore(by.Until), 13),
		"calls_ended":           calls(call().SetEndTimeAfter(by.Since).SetStatus("busy"), 50),
		"calls_of_moment":       calls(call().SetStartTime(by.Since), 3),
		"calls_of_parent":       calls(call().SetParentCallSid(by.Parent), 50),
		"calls_none":            calls(call().SetTo("+15005550000"), 50),
		"messages_to":           messages(message().SetTo(by.Texted), 5),
		"messages_between":      messages(message().SetDateSentAfter(by.Since).SetDateSentBefore(by.Until), 40),
		"messages_of_moment":    messages(message().SetDateSent(by.Sent), 9),
		"conferences_completed": rig.Collect(a.ListConference((&api.ListConferenceParams{}).SetStatus("completed").SetDateCreatedAfter(by.Day).SetPageSize(4))),
		"conferences_named":     rig.Collect(a.ListConference((&api.ListConferenceParams{}).SetFriendlyName(by.Conference))),
		"recordings_of_call":    rig.Collect(a.ListRecording((&api.ListRecordingParams{}).SetCallSid(of.Call))),
		"recordings_until":      rig.Collect(a.ListRecording((&api.ListRecordingParams{}).SetDateCreatedBefore(by.Until).SetPageSize(11))),
		"participants_unmuted":  rig.Collect(a.ListParticipant(of.Conference, (&api.ListParticipantParams{}).SetMuted(false))),
		"notifications_errors":  rig.Collect(a.ListNotification((&api.ListNotificationParams{}).SetLog(0).SetPageSize(6))),
		"numbers_like":          rig.Collect(a.ListIncomingPhoneNumber((&api.ListIncomingPhoneNumberParams{}).SetPhoneNumber(by.Digits))),
		"alerts_errors":         rig.Collect(m.ListAlert((&monitor.ListAlertParams{}).SetLogLevel("error").SetPageSize(2))),
	}
}
