// Walk, in Go: every list by the provider's package and by the oldest other one.

package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"testing"
	"time"

	kevinburke "github.com/kevinburke/twilio-go/v2"
	"github.com/twilio/twilio-go"
	"github.com/twilio/twilio-go/client"
	api "github.com/twilio/twilio-go/rest/api/v2010"
	monitor "github.com/twilio/twilio-go/rest/monitor/v1"

	"understudy/e2e/rig"
)

// rewriteHosts sends what the package sends to any of its provider's hosts to
// one address.
type rewriteHosts struct {
	to   *url.URL
	next http.RoundTripper
}

func (r rewriteHosts) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.URL.Scheme, req.URL.Host, req.Host = r.to.Scheme, r.to.Host, ""
	return r.next.RoundTrip(req)
}

func walkWithTwilioGo(t *testing.T, address, token string, of parents) rig.Found {
	to, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	plain := &http.Transport{}
	defer plain.CloseIdleConnections()
	c := &client.Client{Credentials: client.NewCredentials(rig.Account, token), HTTPClient: &http.Client{Transport: rewriteHosts{to, plain}, Timeout: 10 * time.Second}}
	c.SetAccountSid(rig.Account)
	all := twilio.NewRestClientWithParams(twilio.ClientParams{Client: c})
	a, m, size, few := all.Api, all.MonitorV1, ptr(100), ptr(20)
	return rig.Found{
		"accounts":                 rig.Collect(a.ListAccount(&api.ListAccountParams{PageSize: size})),
		"addresses":                rig.Collect(a.ListAddress(&api.ListAddressParams{PageSize: size})),
		"alerts":                   rig.Collect(m.ListAlert(&monitor.ListAlertParams{PageSize: size})),
		"applications":             rig.Collect(a.ListApplication(&api.ListApplicationParams{PageSize: size})),
		"available_local":          rig.Collect(a.ListAvailablePhoneNumberLocal("US", &api.ListAvailablePhoneNumberLocalParams{Limit: few})),
		"call_events":              rig.Collect(a.ListCallEvent(of.Call, &api.ListCallEventParams{PageSize: size})),
		"call_notifications":       rig.Collect(a.ListCallNotification(of.Noticed, &api.ListCallNotificationParams{PageSize: size})),
		"call_recordings":          rig.Collect(a.ListCallRecording(of.Call, &api.ListCallRecordingParams{PageSize: size})),
		"calls":                    rig.Collect(a.ListCall(&api.ListCallParams{PageSize: size})),
		"conference_recordings":    rig.Collect(a.ListConferenceRecording(of.Recorded, &api.ListConferenceRecordingParams{PageSize: size})),
		"conferences":              rig.Collect(a.ListConference(&api.ListConferenceParams{PageSize: size})),
		"incoming_local":           rig.Collect(a.ListIncomingPhoneNumberLocal(&api.ListIncomingPhoneNumberLocalParams{PageSize: size})),
		"incoming_phone_numbers":   rig.Collect(a.ListIncomingPhoneNumber(&api.ListIncomingPhoneNumberParams{PageSize: size})),
		"keys":                     rig.Collect(a.ListKey(&api.ListKeyParams{PageSize: size})),
		"media":                    rig.Collect(a.ListMedia(of.Message, &api.ListMediaParams{PageSize: size})),
		"messages":                 rig.Collect(a.ListMessage(&api.ListMessageParams{PageSize: size})),
		"monitor_events":           rig.Collect(m.ListEvent(&monitor.ListEventParams{PageSize: size})),
		"notifications":            rig.Collect(a.ListNotification(&api.ListNotificationParams{PageSize: size})),
		"outgoing_caller_ids":      rig.Collect(a.ListOutgoingCallerId(&api.ListOutgoingCallerIdParams{PageSize: size})),
		"participants":             rig.Collect(a.ListParticipant(of.Conference, &api.ListParticipantParams{PageSize: size})),
		"queue_members":            rig.Collect(a.ListMember(of.Queue, &api.ListMemberParams{PageSize: size})),
		"queues":                   rig.Collect(a.ListQueue(&api.ListQueueParams{PageSize: size})),
		"recording_transcriptions": rig.Collect(a.ListRecordingTranscription(of.Transcribed, &api.ListRecordingTranscriptionParams{PageSize: size})),
		"recordings":               rig.Collect(a.ListRecording(&api.ListRecordingParams{PageSize: size})),
		"signing_keys":             rig.Collect(a.ListSigningKey(&api.ListSigningKeyParams{PageSize: size})),
		"transcriptions":           rig.Collect(a.ListTranscription(&api.ListTranscriptionParams{PageSize: size})),
		"usage_all_time":           rig.Collect(a.ListUsageRecordAllTime(&api.ListUsageRecordAllTimeParams{PageSize: size})),
		"usage_daily":              rig.Collect(a.ListUsageRecordDaily(&api.ListUsageRecordDailyParams{PageSize: size, Category: ptr("calls")})),
		"usage_records":            rig.Collect(a.ListUsageRecord(&api.ListUsageRecordParams{PageSize: size})),
	}
}

func walkWithKevinburke(t *testing.T, address, token string, of parents) rig.Found {
	ctx, plain := t.Context(), &http.Transport{}
	defer plain.CloseIdleConnections()
	kevinburke.MonitorBaseURL = address // read when a client is made
	c := kevinburke.NewClient(rig.Account, token, &http.Client{Transport: plain, Timeout: 10 * time.Second})
	c.Base = address
	in := url.Values{"PageSize": {"100"}}
	one := func(p any, err error) json.RawMessage { return rig.Collect([]any{p}, err) }
	events, err := c.Calls.GetEvents(ctx, of.Call, in)
	local, err2 := c.AvailableNumbers.Local.GetPage(ctx, "US", nil)
	media, err3 := c.Media.GetPage(ctx, of.Message, in)
	return rig.Found{
		"accounts":            pagesOf(ctx, c.Accounts.GetPageIterator(in).Next, func(p *kevinburke.AccountPage) any { return p.Accounts }),
		"addresses":           pagesOf(ctx, c.Addresses.GetPageIterator(in).Next, func(p *kevinburke.AddressPage) any { return p.Addresses }),
		"alerts":              pagesOf(ctx, c.Monitor.Alerts.GetPageIterator(in).Next, func(p *kevinburke.AlertPage) any { return p.Alerts }),
		"applications":        pagesOf(ctx, c.Applications.GetPageIterator(in).Next, func(p *kevinburke.ApplicationPage) any { return p.Applications }),
		"available_local":     one(local, err2),
		"call_events":         one(events, err),
		"call_notifications":  pagesOf(ctx, c.Calls.GetNotificationsIterator(of.Noticed, in).Next, func(p *kevinburke.CallNotificationPage) any { return p.Notifications }),
		"call_recordings":     pagesOf(ctx, c.Calls.GetCallRecordingsIterator(of.Call, in).Next, func(p *kevinburke.CallRecordingPage) any { return p.Recordings }),
		"calls":               pagesOf(ctx, c.Calls.GetPageIterator(in).Next, func(p *kevinburke.CallPage) any { return p.Calls }),
		"conferences":         pagesOf(ctx, c.Conferences.GetPageIterator(in).Next, func(p *kevinburke.ConferencePage) any { return p.Conferences }),
		"keys":                pagesOf(ctx, c.Keys.GetPageIterator(in).Next, func(p *kevinburke.KeyPage) any { return p.Keys }),
		"media":               one(media, err3),
		"messages":            pagesOf(ctx, c.Messages.GetPageIterator(in).Next, func(p *kevinburke.MessagePage) any { return p.Messages }),
		"numbers":             pagesOf(ctx, c.IncomingNumbers.GetPageIterator(in).Next, func(p *kevinburke.IncomingPhoneNumberPage) any { return p.IncomingPhoneNumbers }),
		"outgoing_caller_ids": pagesOf(ctx, c.OutgoingCallerIDs.GetPageIterator(in).Next, func(p *kevinburke.OutgoingCallerIDPage) any { return p.OutgoingCallerIDs }),
		"participants":        pagesOf(ctx, c.Conferences.Participants(of.Conference).GetPageIterator(in).Next, func(p *kevinburke.ParticipantPage) any { return p.Participants }),
		"queues":              pagesOf(ctx, c.Queues.GetPageIterator(in).Next, func(p *kevinburke.QueuePage) any { return p.Queues }),
		"recordings":          pagesOf(ctx, c.Recordings.GetPageIterator(in).Next, func(p *kevinburke.RecordingPage) any { return p.Recordings }),
		"transcriptions":      pagesOf(ctx, c.Transcriptions.GetPageIterator(in).Next, func(p *kevinburke.TranscriptionPage) any { return p.Transcriptions }),
	}
}

// pages walks a list to its end and keeps each page's records.
func pagesOf[P any](ctx context.Context, next func(context.Context) (P, error), records func(P) any) json.RawMessage {
	var all []any
	for range 1000 {
		p, err := next(ctx)
		if errors.Is(err, kevinburke.NoMoreResults) {
			return rig.Collect(all, nil)
		}
		if err != nil {
			return rig.Collect[any](nil, err)
		}
		all = append(all, records(p))
	}
	return rig.Collect[any](nil, errors.New("the list does not end"))
}
