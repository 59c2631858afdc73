// SDK: the provider's own Go SDK, unchanged, reads and writes through the
// drop-in as it does directly.

package sdk

import (
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"testing"
	"time"

	"github.com/twilio/twilio-go"
	"github.com/twilio/twilio-go/client"
	api "github.com/twilio/twilio-go/rest/api/v2010"

	"understudy/e2e/rig"
	"understudy/internal/checktest"
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
		Credentials: client.NewCredentials(rig.Account, token),
		HTTPClient:  &http.Client{Transport: rewriteHost{to, &http.Transport{MaxIdleConnsPerHost: 8}}, Timeout: 10 * time.Second},
	}
	c.SetAccountSid(rig.Account)
	return twilio.NewRestClientWithParams(twilio.ClientParams{Client: c}).Api
}

// pair is the same SDK twice: through the drop-in and past it.
type pair struct{ through, direct *api.ApiService }

// startPair runs a server in front of a simulated API and makes the SDK ready
// for both.
func startPair(t testing.TB, args ...string) (pair, string, string) {
	t.Helper()
	up := rig.StartAPI(t, args...).URL("slowapi")
	house, _ := rig.StartServer(t, rig.Settings{Upstream: up})
	through := house.URL("twilio")
	return pair{sdk(t, through, rig.DemoToken), sdk(t, up, rig.APIToken)}, through, up
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
		if a, b := rig.JSON(t, want), rig.JSON(t, have); a != b || !reflect.DeepEqual(want, have) {
			t.Fatalf("%s, %s: %s", what, round, rig.FirstDifference([]byte(a), []byte(b)))
		}
	}
	return want
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
		one, err := c.FetchAccount(rig.Account)
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
				t.Fatalf("by %d: %s appears twice", size, *m.Sid)
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
	checktest.MustNoError(t, err, "%q is no relative link with a token", uri)
	checktest.MustTrue(t, !u.IsAbs(), "%q is no relative link with a token: u.IsAbs() is true", uri)
	checktest.MustTrue(t, u.Query().Get("PageToken") != "",
		`%q is no relative link with a token: u.Query().Get("PageToken") is empty`, uri)
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
