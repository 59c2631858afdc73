// Callbacks: judged as the provider's own validator does, and only a hint.

package answers

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/twilio/twilio-go/client"

	"understudy/e2e/rig"
)

// signed is a signature made by hand.
func signed(text, secret string) string {
	mac := hmac.New(sha1.New, []byte(secret))
	mac.Write([]byte(text))
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// TestHookAsTheValidatorSays: each callback is taken when the SDK's validator
// finds its signature right, and refused when not.
func TestHookAsTheValidatorSays(t *testing.T) {
	t.Parallel()
	s := rig.StartDemo(t, "--records", "200", "--latency", "20ms")
	validator := client.NewRequestValidator(rig.APIToken)
	at := s.URL("viewer") + "/-/hook/twilio"
	bare := at[:strings.LastIndex(at, ":")] + "/-/hook/twilio"
	for _, c := range []struct{ query, form, text string }{
		{"", "CallSid=CA1", at + "CallSidCA1"},
		{"", "CallSid=CA1", bare + "CallSidCA1"},
		{"?foo=1&bar=2", "CallStatus=completed&CallSid=CA1&To=%2B15005550006", at + "?foo=1&bar=2CallSidCA1CallStatuscompletedTo+15005550006"},
		{"", "Body=a+b%26%C3%A9&MessageSid=SM1", at + "Bodya b&éMessageSidSM1"},
		{"", "MessageSid=SM1", at + "MessageSid=SM1"},
		{"?foo=1", "MessageSid=SM1", at + "MessageSidSM1"},
		{"", "MessageSid=SM1&SmsSid=SM2", at + "MessageSidSM1"},
		{"", "MessageSid=SM1", "https://elsewhere.example.comMessageSidSM1"},
	} {
		for _, key := range []string{rig.APIToken, "understudydemotoken", ""} {
			signature := signed(c.text, key)
			right := validator.ValidateBody(at+c.query, []byte(c.form), signature)
			r, err := rig.Ask(http.MethodPost, "", at+c.query, c.form, "X-Twilio-Signature", signature)
			if err != nil {
				t.Fatal(err)
			}
			if want := map[bool]int{true: 204, false: 403}[right]; r.Status != want || len(r.Body) > 0 {
				t.Errorf("%s %s signed over %s: %d %q, the validator says %v", c.query, c.form, c.text, r.Status, r.Body, right)
			}
		}
	}
	for path, want := range map[string]int{"/-/hook/none": 404, "/-/hook/": 404} {
		if r, err := rig.Ask(http.MethodPost, "", s.URL("viewer")+path, "a=b"); err != nil || r.Status != want {
			t.Errorf("%s: %d %v", path, r.Status, err)
		}
	}
}

// TestHookExampleOfTheDocument: the validator takes what docs/how-to/hooks.md shows.
func TestHookExampleOfTheDocument(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../docs/how-to/hooks.md")
	if err != nil {
		t.Fatal(err)
	}
	has := map[string]string{}
	for line := range strings.Lines(string(data)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ": "); ok {
			has[name] = value
		}
	}
	validator := client.NewRequestValidator(has["secret"])
	if !validator.ValidateBody(has["public URL"]+has["path"], []byte(has["form"]), has["signature"]) {
		t.Errorf("the validator refuses the example: %v", has)
	}
	if signed(has["signed text"], has["secret"]) != has["signature"] {
		t.Error("the signed text of the example is another")
	}
}

// TestHookIsAHint: a hundred callbacks about a record that was not read cause one
// fetch of it. The callbacks that come during that fetch may cause one more.
// The record that upstream returns is a change.
func TestHookIsAHint(t *testing.T) {
	t.Parallel()
	up := rig.StartAPI(t, "--latency", "200ms", "--records", "300").URL("slowapi")
	house, _ := rig.StartServer(t, rig.Settings{Upstream: up})
	page := readCalls(t, rig.Get(t, rig.Account+":"+rig.APIToken, up+rig.Base+"/Calls.json?PageSize=300"))
	id := page.Calls[len(page.Calls)-1].Sid
	instance := rig.Base + "/Calls/" + id + ".json"
	at := house.URL("viewer") + "/-/hook/twilio"
	form := "CallSid=" + id + "&CallStatus=madeup"
	signature := signed(at+"CallSid"+id+"CallStatusmadeup", rig.APIToken)
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			if r, err := rig.Ask(http.MethodPost, "", at, form, "X-Twilio-Signature", signature); err != nil || r.Status != http.StatusNoContent {
				t.Errorf("callback: %d %v", r.Status, err)
			}
		})
	}
	all.Wait()
	user := rig.Account + ":" + rig.DemoToken
	rig.Await(t, func() string {
		r := rig.Get(t, user, house.URL("twilio")+instance, "Cache-Control", "only-if-cached")
		if r.Status != http.StatusOK {
			return fmt.Sprintf("the record: %d", r.Status)
		}
		if strings.Contains(string(r.Body), "madeup") {
			t.Fatal("the callback's own text is answered")
		}
		return ""
	})
	if n := rig.ReadAPIStats(t, up).ByTarget[instance]; n < 1 || n > 2 {
		t.Errorf("%d fetches for a hundred callbacks", n)
	}
	if log := house.Log(); strings.Contains(log, "madeup") || strings.Contains(log, signature) {
		t.Error("the log holds what the callback said")
	}
}
