// Tests of what is told: each match once, as its owner sees it.

package watch

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"understudy/internal/checktest"
	"understudy/internal/sample"
)

// ids are the records that webhooks have told of.
func ids(all []got) string {
	var some []string
	for _, g := range all {
		some = append(some, g.ids...)
	}
	return strings.Join(some, " ")
}

func TestEachOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.put(message(1, "inbound", "failed"), message(2, "inbound", "queued"))
	r.watch(Webhook, "status:failed")
	for _, step := range []struct {
		what string
		put  []string
		want string
	}{
		{"nothing", nil, ""},
		{"one that matched before changes", []string{strings.Replace(message(1, "inbound", "failed"), "marker", "other", 1)}, ""},
		{"one begins to match", []string{message(2, "inbound", "failed")}, "2"},
		{"one comes and matches, another does not", []string{message(3, "inbound", "failed"), message(4, "inbound", "sent")}, "3"},
		{"what was told changes", []string{strings.Replace(message(3, "inbound", "failed"), "marker", "other", 1)}, ""},
		{"what was told matches no more", []string{message(3, "inbound", "sent")}, ""},
		{"and matches again", []string{message(3, "inbound", "failed")}, "3"},
		{"one that the role may not find", []string{message(5, "outbound-api", "failed")}, ""},
	} {
		if step.put != nil {
			r.put(step.put...)
		}
		if got := ids(r.told()); got != step.want {
			t.Errorf("%s: told %q, want %q", step.what, got, step.want)
		}
	}
	// Between two looks.
	r.put(message(3, "inbound", "sent"))
	r.put(message(3, "inbound", "failed"))
	r.put(message(6, "inbound", "failed"))
	r.put(message(6, "inbound", "sent"))
	if got := ids(r.told()); got != "3" {
		t.Errorf("of what went back and forth, told %q", got)
	}
	if got := ids(r.told()); got != "" {
		t.Errorf("then told %q", got)
	}
}

// Whatever crashes and fails, each beginning of a match is in the messages once, by their
// ids: a receiver that forgets what it has is none of ours.
func TestEachOnceWhateverFails(t *testing.T) {
	t.Parallel()
	rounds := uint64(sample.Count(4, 200))
	first := sample.Seed(t)
	for seed := range rounds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(first, seed))
			r := newRig(t)
			id := r.watch(Webhook, "status:failed")
			const records = 5
			matches, want := [records]bool{}, [records]int{}
			began := [records]bool{} // since the last look, if it still matches
			count := map[string]bool{}
			have := [records]int{}
			collect := func() {
				for _, g := range r.receiver.take() {
					if count[g.id] {
						continue
					}
					count[g.id] = true
					for _, one := range g.ids {
						var n int
						if _, err := fmt.Sscan(one, &n); err == nil {
							have[n-1]++
						}
					}
				}
			}
			settle := func() {
				for n := range records {
					if began[n] && matches[n] {
						want[n]++
					}
					began[n] = false
				}
			}
			for range 40 {
				switch n := random.IntN(records); random.IntN(5) {
				case 0, 1:
					status := "sent"
					if was := matches[n]; random.IntN(2) == 0 {
						status, matches[n] = "failed", true
						began[n] = began[n] || !was
					} else {
						matches[n] = false
					}
					r.put(strings.Replace(message(n+1, "inbound", status), "marker", fmt.Sprint("v", random.IntN(3), "x"), 1))
				case 2: // told and settled: what is left to tell of a record is told as it is
					settle()
					r.receiver.answers = nil
					_ = r.round()
					collect()
				case 3:
					settle()
					r.receiver.answers = []int{503}
					_ = r.round()
					r.receiver.answers = nil
					r.reopen()
					if err := r.round(); err != nil {
						t.Fatal(err)
					}
					collect()
				case 4:
					r.reopen()
				}
			}
			settle()
			r.receiver.answers = nil
			if err := r.round(); err != nil {
				t.Fatal(err)
			}
			collect()
			if s := r.status(id); have != want || s.State.Stopped != "" {
				t.Errorf("told %v, want %v; %q", have, want, s.State.Stopped)
			}
		})
	}
}

func TestMessages(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.watch(Webhook, "status:failed")
	r.watch(Slack, "status:failed")
	r.put(message(7, "inbound", "failed"))
	all := r.told()
	slices.SortFunc(all, func(x, y got) int { return strings.Compare(x.path, y.path) })
	if len(all) != 2 {
		t.Fatalf("%d messages", len(all))
	}
	slack, hook := all[0].body, all[1].body
	for _, want := range []string{`"type":"watch.matches"`, `"q":"status:failed"`, `"count":1`, `"from":"********0007"`, `"body":null`,
		`"url":"https://desk.example.com/twilio/messages/SM00000000000000000000000000000007"`, `"url":"https://desk.example.com/-/watches/`} {
		if !strings.Contains(hook, want) {
			t.Errorf("no %s in the webhook %s", want, hook)
		}
	}
	for _, want := range []string{"has a new match*", "|message SM00000000000000000000000000000007", "from ********0007"} {
		if !strings.Contains(slack, want) {
			t.Errorf("no %q in Slack's %s", want, slack)
		}
	}
	if strings.Contains(hook+slack, "marker") || strings.Contains(hook+slack, "+1555123") {
		t.Errorf("what the role does not see is told: %s %s", hook, slack)
	}
	page, err := os.ReadFile("../../docs/how-to/watches.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(page), "```json\n")
	example, _, _ = strings.Cut(example, "```")
	var want, have any
	if err := errors.Join(json.Unmarshal([]byte(example), &want), json.Unmarshal([]byte(hook), &have)); err != nil {
		t.Fatal(err)
	}
	requireMembers(t, "", want, have)
}

// requireMembers checks that a message has each member that the document shows, except for the fields of a record.
func requireMembers(t *testing.T, path string, want, have any) {
	t.Helper()
	switch want := want.(type) {
	case map[string]any:
		have, _ := have.(map[string]any)
		for name, value := range want {
			if _, ok := have[name]; !ok {
				t.Errorf("docs/how-to/watches.md shows %s.%s, which a message does not have", path, name)
			} else if name != "record" {
				requireMembers(t, path+"."+name, value, have[name])
			}
		}
	case []any:
		have, _ := have.([]any)
		for i := range min(len(want), len(have)) {
			requireMembers(t, path, want[i], have[i])
		}
	}
}

func TestTest(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.watch(Webhook, "status:failed")
	d, err := r.book.Test(t.Context(), id)
	if err != nil || d.Outcome != Delivered {
		t.Fatalf("%v, %v", d, err)
	}
	all := r.receiver.take()
	key, err := standardwebhooks.NewWebhook(testSecret)
	checktest.MustNoError(t, err, "")
	checktest.MustEqual(t, len(all), 1, "len(all)")
	checktest.MustContains(t, all[0].body, `"type":"watch.test"`, "all[0].body")
	if err := key.VerifyIgnoringTimestamp([]byte(all[0].body), all[0].header); err != nil {
		t.Errorf("the signature: %v", err)
	}
	if _, err := r.book.Test(t.Context(), id); err == nil {
		t.Error("two tests in a moment")
	}
	r.clock = r.clock.Add(time.Minute)
	r.receiver.answers = []int{500}
	d, err = r.book.Test(t.Context(), id)
	checktest.MustNoError(t, err, "a test that fails")
	checktest.Equal(t, d.Outcome, Refused, "a test that fails: d.Outcome")
	checktest.Equal(t, d.Said, "it answered 500 said so", "a test that fails: d.Said")
	s := r.status(id)
	checktest.MustEqual(t, len(s.Log), 2, "the log is: len(s.Log)")
	checktest.True(t, s.Log[0].Test, "the log is: s.Log[0].Test is false")
	checktest.Equal(t, s.Log[0].Outcome, Refused, "the log is: s.Log[0].Outcome")
	checktest.Equal(t, s.State.Stopped, "", "the log is: s.State.Stopped")
}

func TestBurst(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	hook, slack := r.watch(Webhook, "status:failed"), r.watch(Slack, "status:failed")
	const many = 1700
	for from := 0; from < many; from += 100 {
		var some []string
		for n := from; n < from+100; n++ {
			some = append(some, message(n+1, "inbound", "failed"))
		}
		r.put(some...)
	}
	if err := r.book.readChanges(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{hook, slack} {
		if n := r.status(id).Pending; n != maxPending {
			t.Errorf("%d wait to be told", n)
		}
	}
	var all []got
	for range 5 {
		all = append(all, r.told()...)
	}
	seen, texts := map[string]int{}, 0
	for _, g := range all {
		for _, id := range g.ids {
			seen[id]++
		}
		if g.path == "/slack" {
			if texts++; strings.Count(g.body, "•") != maxListed {
				t.Errorf("a text lists %d", strings.Count(g.body, "•"))
			}
		} else if len(g.ids) > 100 {
			t.Errorf("a webhook lists %d", len(g.ids))
		}
	}
	if len(seen) != many || texts > 6 {
		t.Errorf("told of %d, in %d texts", len(seen), texts)
	}
	for id, n := range seen {
		if n != 1 {
			t.Fatalf("%s was told %d times", id, n)
		}
	}
	if s := r.status(slack); s.State.Told != many || s.Pending != 0 {
		t.Errorf("told %d, %d left", s.State.Told, s.Pending)
	}
}

func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.watch(Webhook, "status:failed")
	var wg sync.WaitGroup
	defer wg.Wait()
	for _, do := range []func(){
		func() { r.book.NoteOwner(r.desk()) },
		func() { _ = r.book.Watches(r.desk(), true) },
		func() { _ = r.book.Pause(t.Context(), id) },
		func() { _ = r.book.Resume(t.Context(), id) },
		func() { _ = r.book.readChanges(t.Context()) },
		func() { _ = r.book.Deliver(t.Context(), job(id)) },
		func() {
			to := Destination{Channel: Slack, To: r.url}
			if one, err := r.book.Make(t.Context(), r.desk(), "webhook status:failed", to); err == nil {
				_ = r.book.Remove(t.Context(), one)
			}
		},
	} {
		wg.Go(func() {
			for range 20 {
				do()
			}
		})
	}
}
