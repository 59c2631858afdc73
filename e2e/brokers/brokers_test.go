package brokers

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"understudy/e2e/rig"
	"understudy/internal/checktest"
)

const (
	patience = rig.Patience
	demo     = rig.Account + ":" + rig.DemoToken
	masked   = rig.Account + ":" + rig.MaskedToken
)

func plainAuth() sasl.Mechanism { return plain.Auth{User: "understudy", Pass: "secret"}.AsMechanism() }

func shortly(t *testing.T) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), 300*time.Millisecond)
}

// TestBrokersGetEveryChange publishes the changes that a role sees to each kind of receiver. They come in the order of the feed and are those
// of the feed for that role. While a receiver cannot be reached, its webhook is failing; afterwards it gets what it has missed, and nothing
// else twice.
func TestBrokersGetEveryChange(t *testing.T) {
	t.Parallel()
	receivers := map[string]receiver{"nats": startNATS(t), "mqtt": startMQTT(t), "kafka": startKafka(t), "s3": startS3(t)}
	settings := "{}\nfeed: {poll_every: 1s}\nwebhooks:\n"
	for _, name := range slices.Sorted(maps.Keys(receivers)) {
		r := receivers[name]
		settings += fmt.Sprintf("  - {name: %s, url: %q, secret: \"cmd:printf %s\", role: support, allow_private: true}\n", name, r.url, r.secret)
	}
	up := rig.StartAPI(t, "--latency", "2ms", "--records", "100").URL("slowapi")
	s, _ := rig.StartServer(t, rig.Settings{Upstream: up, Mirror: settings})
	const each = 10
	send := func(from int) {
		for i := range each {
			body := fmt.Sprintf("To=%%2B1555%07d&From=%%2B15005550006&Body=secret", from+i)
			r, err := rig.Ask(http.MethodPost, demo, s.URL("twilio")+rig.Base+"/Messages.json", body)
			checktest.MustTrue(t, err == nil && r.Status == http.StatusCreated, "send a message: %d %s %v", r.Status, r.Body, err)
		}
	}
	send(0)
	for name, r := range receivers {
		awaitChanges(t, s.URL("viewer"), name, r, each)
		r.cut.Store(true)
	}
	send(each)
	for name := range receivers {
		rig.Await(t, func() string {
			if state := stateOf(t, s.URL("viewer"), name); state != "failing" {
				return name + " is " + state + ", want failing"
			}
			return ""
		})
	}
	for _, r := range receivers {
		r.cut.Store(false)
	}
	for name, r := range receivers {
		awaitChanges(t, s.URL("viewer"), name, r, 2*each)
		test, err := rig.Ask(http.MethodPost, demo, s.URL("viewer")+"/-/webhooks/"+name, `{"test":true}`, "Content-Type", "application/json")
		checktest.MustNoError(t, err, "test")
		checktest.Contains(t, string(test.Body), `"delivered":true`, "test of %s", name)
	}
}

// awaitChanges waits until a receiver has the changes that the feed has for the role, each once by its id, and in their order.
func awaitChanges(t *testing.T, viewer, name string, r receiver, count int) {
	t.Helper()
	var page struct{ Changes []json.RawMessage }
	checktest.MustNoError(t, json.Unmarshal(rig.Get(t, masked, viewer+"/-/feed?after=0", "Accept", "application/json").Body, &page), "read the feed")
	checktest.MustEqual(t, len(page.Changes), count, "changes of the feed")
	var want []string
	for _, one := range page.Changes {
		want = append(want, withoutCursor(t, one))
	}
	rig.Await(t, func() string {
		var got []string
		seen := map[string]bool{}
		for _, m := range r.read() {
			if m.id == "" || !seen[m.id] {
				got = append(got, withoutCursor(t, []byte(m.data)))
			}
			seen[m.id] = true
		}
		if !slices.Equal(got, want) {
			n := 0
			for n < min(len(got), len(want)) && got[n] == want[n] {
				n++
			}
			return fmt.Sprintf("%s has %d changes of %d, and from number %d on %s\nwant %s", name, len(got), len(want), n+1, got[n:], want[n:])
		}
		return ""
	})
}

// withoutCursor returns a change without its cursor, which is sealed anew each time.
func withoutCursor(t *testing.T, change []byte) string {
	t.Helper()
	var fields map[string]any
	checktest.MustNoError(t, json.Unmarshal(change, &fields), "a change: "+string(change))
	delete(fields, "cursor")
	return rig.JSON(t, fields)
}

// stateOf returns the state of a webhook.
func stateOf(t *testing.T, viewer, name string) string {
	t.Helper()
	var all struct {
		Webhooks []struct{ Name, State string }
	}
	checktest.MustNoError(t, json.Unmarshal(rig.Get(t, demo, viewer+"/-/webhooks").Body, &all), "read the webhooks")
	for _, one := range all.Webhooks {
		if one.Name == name {
			return one.State
		}
	}
	return "missing"
}
