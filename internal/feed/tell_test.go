// Tell: a message that is no change is signed, has one id for all its tries, and ends
// when the receiver wants no more.

package feed

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"understudy"
	"understudy/internal/checktest"
)

func TestTell(t *testing.T) {
	t.Parallel()
	key, err := standardwebhooks.NewWebhook(hookSecret)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	answers := []int{500, 429, 204, 204, 410}
	to := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		checktest.NoError(t, key.VerifyIgnoringTimestamp(body, r.Header), "signature of %s", body)
		checktest.Contains(t, string(body), `"data":{"left":"3.20"}`, "body")
		checktest.Contains(t, string(body), `"type":"forecast"`, "body")
		ids = append(ids, r.Header.Get("webhook-id"))
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(answers[len(ids)-1])
	}))
	t.Cleanup(to.Close)
	f, _ := hooked(t, some(), Hook{URL: to.URL, Role: "all"})
	tell := func(key string) error {
		return f.SendMessage(t.Context(), "crm", "forecast", key, map[string]string{"left": "3.20"})
	}
	for range 2 {
		var later *understudy.Snooze
		if err := tell("a"); !errors.As(err, &later) || later.Wait != 7*time.Second {
			t.Errorf("a receiver that asks for a pause: %v", err)
		}
	}
	if err := errors.Join(tell("a"), tell("b")); err != nil {
		t.Error(err)
	}
	if err := tell("c"); !errors.Is(err, understudy.ErrInvalid) {
		t.Errorf("after 410: %v", err)
	}
	checktest.Equal(t, ids[0], ids[1], "ids: ids[0]")
	checktest.Equal(t, ids[0], ids[2], "ids: ids[0]")
	checktest.True(t, ids[2] != ids[3], "ids: ids[2] is %v", ids[2])
	checktest.True(t, ids[3] != ids[4], "ids: ids[3] is %v", ids[3])
	if err := f.SendMessage(t.Context(), "nobody", "forecast", "a", nil); !errors.Is(err, understudy.ErrInvalid) {
		t.Errorf("no such webhook: %v", err)
	}
}

func TestATestMessageIsSignedAndMovesNothing(t *testing.T) {
	t.Parallel()
	key, err := standardwebhooks.NewWebhook(hookSecret)
	if err != nil {
		t.Fatal(err)
	}
	answers := []int{204, 500}
	to := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if err := key.VerifyIgnoringTimestamp(body, r.Header); err != nil {
			t.Error(err)
		}
		if !strings.Contains(string(body), `"type":"test"`) {
			t.Errorf("body: %s", body)
		}
		w.WriteHeader(answers[0])
		answers = answers[1:]
	}))
	t.Cleanup(to.Close)
	f, _ := hooked(t, some(), Hook{URL: to.URL, Role: "all"})
	before := f.stat(t)
	if err := f.Pause(t.Context(), "crm", "anna"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []HookTest{{Webhook: "crm", Delivered: true, Status: 204}, {Webhook: "crm", Status: 500, Why: "answered 500"}} {
		got, err := f.sendTest(t.Context(), "crm")
		if err != nil {
			t.Fatal(err)
		}
		if got.Milliseconds = 0; *got != want {
			t.Errorf("%+v, want %+v", *got, want)
		}
	}
	after := f.stat(t)
	if after.State != "paused" {
		t.Errorf("state %q after a test", after.State)
	}
	if after.After != before.After {
		t.Errorf("position %d, before it was %d", after.After, before.After)
	}
}
