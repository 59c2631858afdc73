// SDK: the provider's own Go SDK, unchanged, reads and writes through the
// drop-in as it does directly.

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twilio/twilio-go"
	"github.com/twilio/twilio-go/client"
	api "github.com/twilio/twilio-go/rest/api/v2010"
)

// rewriteHost sends what the SDK sends to its provider elsewhere. It is all a
// program changes.
type rewriteHost struct {
	to   *url.URL
	next http.RoundTripper
}

func (r rewriteHost) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != "https" || req.URL.Host != "api.twilio.com" {
		return nil, fmt.Errorf("the SDK was led to %s, away from its provider", req.URL)
	}
	req = req.Clone(req.Context())
	req.URL.Scheme, req.URL.Host, req.Host = r.to.Scheme, r.to.Host, ""
	return r.next.RoundTrip(req)
}

// sdk is the SDK's client at an address.
func sdk(t testing.TB, address, token string) *api.ApiService {
	t.Helper()
	to, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	c := &client.Client{
		Credentials: client.NewCredentials(account, token),
		HTTPClient:  &http.Client{Transport: rewriteHost{to, &http.Transport{MaxIdleConnsPerHost: 8}}, Timeout: 10 * time.Second},
	}
	c.SetAccountSid(account)
	return twilio.NewRestClientWithParams(twilio.ClientParams{Client: c}).Api
}

// pair is the same SDK twice: through the drop-in and past it.
type pair struct{ through, direct *api.ApiService }

// startPair runs a house in front of a simulated API and makes the SDK ready
// for both.
func startPair(t testing.TB, args ...string) (pair, string, string) {
	t.Helper()
	up := startAPI(t, args...).URL("slowapi")
	house, _ := startHouse(t, settings{upstream: up})
	through := house.URL("twilio")
	return pair{sdk(t, through, demoToken), sdk(t, up, apiToken)}, through, up
}

// both compares what a call of the SDK gives through the drop-in, cold and
// then held, with what it gives directly.
func both[T any](t *testing.T, p pair, what string, call func(*api.ApiService) (T, error)) T {
	t.Helper()
	want, err := call(p.direct)
	if err != nil {
		t.Fatalf("%s, directly: %v", what, err)
	}
	for _, round := range []string{"cold", "held"} {
		have, err := call(p.through)
		if err != nil {
			t.Fatalf("%s, through, %s: %v", what, round, err)
		}
		if a, b := asJSON(t, want), asJSON(t, have); a != b || !reflect.DeepEqual(want, have) {
			t.Fatalf("%s, %s: %s", what, round, firstDifference([]byte(a), []byte(b)))
		}
	}
	return want
}

func asJSON(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func ptr[T any](v T) *T { return &v }

// moment reads one of the provider's times.
func moment(t testing.TB, text *string) time.Time {
	t.Helper()
	if text == nil {
		t.Fatal("no time there")
	}
	at, err := time.Parse(time.RFC1123Z, *text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// find is the first record a condition holds for.
func find[T any](t testing.TB, all []T, holds func(T) bool) T {
	t.Helper()
	for _, r := range all {
		if holds(r) {
			return r
		}
	}
	t.Fatalf("none of %d records fits", len(all))
	panic("unreachable")
}

func TestSDKCallFilters(t *testing.T) {
	t.Parallel()
	p, _, _ := startPair(t, "--latency", "2ms", "--records", "600")
	all := both(t, p, "all calls", func(c *api.ApiService) ([]api.ApiV2010Call, error) {
		return c.ListCall((&api.ListCallParams{}).SetPageSize(200))
	})
	child := find(t, all, func(c api.ApiV2010Call) bool { return c.ParentCallSid != nil })
	middle := find(t, all[len(all)/2:], func(c api.ApiV2010Call) bool { return c.StartTime != nil && c.EndTime != nil })
	started, ended := moment(t, middle.StartTime), moment(t, middle.EndTime)
	zoned := started.In(time.FixedZone("", 2*3600+1800))
	lists := map[string]api.ListCallParams{
		"To":              {To: middle.To},
		"From":            {From: middle.From},
		"To and From":     {To: middle.To, From: middle.From},
		"ParentCallSid":   {ParentCallSid: child.ParentCallSid},
		"StartTime":       {StartTime: &started},
		"StartTime<":      {StartTimeBefore: &started},
		"StartTime>":      {StartTimeAfter: &started},
		"StartTime> zone": {StartTimeAfter: &zoned},
		"StartTime range": {StartTimeAfter: ptr(started.Add(-72 * time.Hour)), StartTimeBefore: &started},
		"EndTime":         {EndTime: &ended},
		"EndTime<":        {EndTimeBefore: &ended},
		"EndTime>":        {EndTimeAfter: &ended},
		"EndTime range":   {EndTimeAfter: ptr(ended.Add(-72 * time.Hour)), EndTimeBefore: &ended},
		"all of them":     {To: middle.To, From: middle.From, Status: middle.Status, StartTimeAfter: &started, EndTimeBefore: &ended},
	}
	for _, status := range []string{"completed", "busy", "failed", "no-answer", "canceled"} {
		lists["Status="+status] = api.ListCallParams{Status: ptr(status)}
	}
	for name, params := range lists {
		found := both(t, p, name, func(c *api.ApiService) ([]api.ApiV2010Call, error) {
			mine := params
			return c.ListCall(mine.SetPageSize(60).SetLimit(150))
		})
		if len(found) == 0 || len(found) == len(all) {
			t.Errorf("%s finds %d of %d calls: that tests nothing", name, len(found), len(all))
		}
	}
}

func TestSDKMessageFilters(t *testing.T) {
	t.Parallel()
	p, _, _ := startPair(t, "--latency", "2ms", "--records", "400")
	all := both(t, p, "all messages", func(c *api.ApiService) ([]api.ApiV2010Message, error) {
		return c.ListMessage((&api.ListMessageParams{}).SetPageSize(300))
	})
	middle := find(t, all[len(all)/2:], func(m api.ApiV2010Message) bool { return m.DateSent != nil && *m.From != "" })
	sent := moment(t, middle.DateSent)
	for name, params := range map[string]api.ListMessageParams{
		"To":             {To: middle.To},
		"From":           {From: middle.From},
		"DateSent":       {DateSent: &sent},
		"DateSent<":      {DateSentBefore: &sent},
		"DateSent>":      {DateSentAfter: &sent},
		"DateSent range": {DateSentAfter: ptr(sent.Add(-96 * time.Hour)), DateSentBefore: &sent},
		"all of them":    {To: middle.To, From: middle.From, DateSentAfter: &sent, DateSentBefore: &sent},
	} {
		found := both(t, p, name, func(c *api.ApiService) ([]api.ApiV2010Message, error) {
			mine := params
			return c.ListMessage(mine.SetPageSize(70).SetLimit(200))
		})
		if len(found) == 0 || len(found) == len(all) {
			t.Errorf("%s finds %d of %d messages: that tests nothing", name, len(found), len(all))
		}
	}
}

func TestSDKNumbersAndAccounts(t *testing.T) {
	t.Parallel()
	p, _, _ := startPair(t, "--latency", "2ms", "--records", "100")
	numbers := both(t, p, "all numbers", func(c *api.ApiService) ([]api.ApiV2010IncomingPhoneNumber, error) {
		return c.ListIncomingPhoneNumber(&api.ListIncomingPhoneNumberParams{})
	})
	if len(numbers) != 8 {
		t.Fatalf("%d numbers, want the world's 8", len(numbers))
	}
	one := numbers[3]
	for name, params := range map[string]api.ListIncomingPhoneNumberParams{
		"PhoneNumber":           {PhoneNumber: one.PhoneNumber},
		"PhoneNumber with star": {PhoneNumber: ptr((*one.PhoneNumber)[:5] + "*" + (*one.PhoneNumber)[6:])},
		"FriendlyName":          {FriendlyName: one.FriendlyName},
		"Beta":                  {Beta: ptr(false)},
		"Beta true":             {Beta: ptr(true)},
		"Origin":                {Origin: one.Origin},
	} {
		both(t, p, name, func(c *api.ApiService) ([]api.ApiV2010IncomingPhoneNumber, error) {
			mine := params
			return c.ListIncomingPhoneNumber(mine.SetPageSize(3))
		})
	}
	both(t, p, "local numbers", func(c *api.ApiService) ([]api.ApiV2010IncomingPhoneNumberLocal, error) {
		return c.ListIncomingPhoneNumberLocal((&api.ListIncomingPhoneNumberLocalParams{}).SetPageSize(2))
	})
	both(t, p, "mobile numbers", func(c *api.ApiService) ([]api.ApiV2010IncomingPhoneNumberMobile, error) {
		return c.ListIncomingPhoneNumberMobile(&api.ListIncomingPhoneNumberMobileParams{})
	})
	both(t, p, "toll-free numbers", func(c *api.ApiService) ([]api.ApiV2010IncomingPhoneNumberTollFree, error) {
		return c.ListIncomingPhoneNumberTollFree(&api.ListIncomingPhoneNumberTollFreeParams{})
	})

	// An account carries its secret: directly it is there, through the drop-in it is "".
	for name, params := range map[string]api.ListAccountParams{
		"all accounts": {}, "Status": {Status: ptr("active")}, "FriendlyName": {FriendlyName: ptr("Field office")},
	} {
		accounts := both(t, p, name, func(c *api.ApiService) ([]api.ApiV2010Account, error) {
			mine := params
			list, err := c.ListAccount(mine.SetPageSize(1))
			return withoutSecrets(t, c == p.through, list), err
		})
		if len(accounts) == 0 {
			t.Errorf("%s: no account", name)
		}
	}
	both(t, p, "one account", func(c *api.ApiService) ([]api.ApiV2010Account, error) {
		one, err := c.FetchAccount(account)
		if err != nil {
			return nil, err
		}
		return withoutSecrets(t, c == p.through, []api.ApiV2010Account{*one}), nil
	})
}

// withoutSecrets checks that secrets are there directly and empty through the
// drop-in, and takes them off.
func withoutSecrets(t *testing.T, through bool, list []api.ApiV2010Account) []api.ApiV2010Account {
	t.Helper()
	for i := range list {
		if list[i].AuthToken == nil || (*list[i].AuthToken == "") != through {
			t.Errorf("auth_token %v, through the drop-in: %v", list[i].AuthToken, through)
		}
		list[i].AuthToken = nil
	}
	return list
}

func TestSDKPaging(t *testing.T) {
	t.Parallel()
	p, _, _ := startPair(t, "--latency", "1ms", "--records", "400")
	for _, size := range []int{1, 7, 50, 333, 1000} {
		limit := min(1000, 60*size)
		both(t, p, fmt.Sprintf("calls listed by %d", size), func(c *api.ApiService) ([]api.ApiV2010Call, error) {
			return c.ListCall((&api.ListCallParams{}).SetPageSize(size).SetLimit(limit))
		})
		walk := both(t, p, fmt.Sprintf("messages streamed by %d", size), func(c *api.ApiService) ([]api.ApiV2010Message, error) {
			records, errs := c.StreamMessage((&api.ListMessageParams{}).SetPageSize(size).SetLimit(limit))
			var all []api.ApiV2010Message
			for m := range records {
				all = append(all, m)
			}
			return all, <-errs
		})
		seen := map[string]bool{}
		for _, m := range walk {
			if seen[*m.Sid] {
				t.Fatalf("by %d: %s is there twice", size, *m.Sid)
			}
			seen[*m.Sid] = true
		}
		if want := min(limit, 800); len(walk) != want {
			t.Errorf("by %d: %d messages, want %d", size, len(walk), want)
		}
	}
	// Pages one by one, there and back.
	both(t, p, "pages", func(c *api.ApiService) ([]*api.ListCallResponse, error) {
		params := (&api.ListCallParams{}).SetPageSize(30)
		first, err := c.PageCall(params, "", "")
		if err != nil {
			return nil, err
		}
		second, err := c.PageCall(params, token(t, *first.NextPageUri), "1")
		if err != nil {
			return nil, err
		}
		back, err := c.PageCall(params, token(t, *second.PreviousPageUri), "0")
		return []*api.ListCallResponse{first, second, back}, err
	})
}

func token(t testing.TB, uri string) string {
	t.Helper()
	u, err := url.Parse(uri)
	if err != nil || u.IsAbs() || u.Query().Get("PageToken") == "" {
		t.Fatalf("%q is no relative link with a token: %v", uri, err)
	}
	return u.Query().Get("PageToken")
}

func TestSDKInstances(t *testing.T) {
	t.Parallel()
	p, _, _ := startPair(t, "--latency", "2ms", "--records", "100")
	fetchAll := func(order string) {
		calls, err := p.direct.ListCall((&api.ListCallParams{}).SetLimit(20))
		if err != nil {
			t.Fatal(err)
		}
		messages, err := p.direct.ListMessage((&api.ListMessageParams{}).SetLimit(20))
		if err != nil {
			t.Fatal(err)
		}
		numbers, err := p.direct.ListIncomingPhoneNumber(&api.ListIncomingPhoneNumberParams{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 20 {
			both(t, p, order+" call", func(c *api.ApiService) (*api.ApiV2010Call, error) { return c.FetchCall(*calls[i].Sid, nil) })
			both(t, p, order+" message", func(c *api.ApiService) (*api.ApiV2010Message, error) { return c.FetchMessage(*messages[i].Sid, nil) })
			both(t, p, order+" number", func(c *api.ApiService) (*api.ApiV2010IncomingPhoneNumber, error) {
				return c.FetchIncomingPhoneNumber(*numbers[i%8].Sid, nil)
			})
		}
	}
	fetchAll("cold")
	if _, err := p.through.ListCall((&api.ListCallParams{}).SetLimit(50)); err != nil {
		t.Fatal(err)
	}
	if _, err := p.through.ListMessage((&api.ListMessageParams{}).SetLimit(50)); err != nil {
		t.Fatal(err)
	}
	fetchAll("listed")
}

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
	masked := sdk(t, through, maskedToken)
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
	_, err = sdk(t, through, apiToken).ListCall(&api.ListCallParams{})
	if e := restError(t, "upstream's own token", err); e.Status != 401 {
		t.Errorf("upstream's own token opens the drop-in: %v", e)
	}

	before := statsOf(t, up).ByTarget[base+"/Messages.json"]
	_, err = masked.CreateMessage((&api.CreateMessageParams{}).SetTo("+15005550006").SetFrom("+15005550001").SetBody("hello"))
	if e := restError(t, "masked write", err); e.Status != 403 {
		t.Errorf("masked write: status %d, want 403", e.Status)
	}
	_, err = masked.ListMessage((&api.ListMessageParams{}).SetTo("+15005550006"))
	if e := restError(t, "masked filter", err); e.Status != 403 {
		t.Errorf("masked filter: status %d, want 403", e.Status)
	}
	if after := statsOf(t, up); after.ByTarget[base+"/Messages.json"] != before {
		t.Error("a refused write went upstream")
	} else if asked := after.ByTarget[base+"/Messages.json?To=%2B15005550006&PageSize=50"]; asked != 0 {
		t.Error("a refused filter went upstream")
	}
}

// The masked credential reads the same pages and sees less in them.
func TestSDKMasked(t *testing.T) {
	t.Parallel()
	p, through, _ := startPair(t, "--latency", "2ms", "--records", "120")
	masked := sdk(t, through, maskedToken)
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
		m.Body, m.From, m.To = plain[i].Body, plain[i].From, plain[i].To
		if !reflect.DeepEqual(m, plain[i]) {
			t.Fatalf("%s: masking changed more than it should: %s", *m.Sid, firstDifference([]byte(asJSON(t, plain[i])), []byte(asJSON(t, m))))
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

// In an outage a program that asks for what is not held is told so in the
// provider's own words, before the SDK's patience of ten seconds ends.
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
	control(t, up, "/-/faults", `{"rules":[{"match":"","status":503}]}`)
	var wg sync.WaitGroup
	for _, m := range messages {
		wg.Go(func() {
			_, err := p.through.FetchMessage(*m.Sid, nil)
			var e *client.TwilioRestError
			if !errors.As(err, &e) || e.Status != 503 || e.Code != 20500 && e.Code != 20503 { // ours, or the 503 upstream itself sent
				t.Errorf("what is not held: %v, want the provider's 503", err)
			}
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
