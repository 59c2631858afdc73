// Fresh: every caller gets the newest known data, under every key.

package answers

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"understudy/e2e/rig"
)

// callsPage is as much of a page of calls as these tests look at.
type callsPage struct {
	Next  string `json:"next_page_uri"`
	Calls []struct{ Sid, Status string }
}

func readCalls(t testing.TB, r rig.Reply) (p callsPage) {
	t.Helper()
	if err := json.Unmarshal(r.Body, &p); err != nil || r.Status != 200 {
		t.Fatalf("%d %.300s: %v", r.Status, r.Body, err)
	}
	return p
}

// A page that shows an older version of a record than one that is known is
// never again answered as fresh, though by its own age it would be.
func TestSupersededEverywhere(t *testing.T) {
	t.Parallel()
	up := rig.StartAPI(t, "--latency", "20ms", "--records", "200").URL("slowapi")
	house, _ := rig.StartServer(t, rig.Settings{Upstream: up, Mirror: "{newest: 1s, older: 10m, settled_age: 10m}"})
	user, direct := rig.Account+":"+rig.DemoToken, rig.Account+":"+rig.APIToken
	through := house.URL("twilio")
	newest := rig.Base + "/Calls.json?PageSize=50"

	first := readCalls(t, rig.Get(t, user, through+newest))
	var held []string // pages and instances that are fresh for ten minutes
	path := rig.Base + "/Calls.json?PageSize=2"
	for range 5 {
		p := readCalls(t, rig.Get(t, user, through+path))
		if path = p.Next; path == "" {
			t.Fatal("no next page")
		}
		held = append(held, path)
	}
	for _, c := range first.Calls[:10] {
		held = append(held, rig.Base+"/Calls/"+c.Sid+".json")
	}
	for _, path := range held {
		if r := rig.Get(t, user, through+path); r.Status != 200 {
			t.Fatalf("%s: %d", path, r.Status)
		}
	}
	before := map[string]string{}
	for _, path := range held {
		before[path] = string(rig.Get(t, direct, up+path).Body)
	}
	rig.Control(t, up, "/-/advance", `{"seconds":30}`)
	changed := 0
	after := map[string]string{}
	for _, path := range held {
		after[path] = string(rig.Get(t, direct, up+path).Body)
		if after[path] != before[path] {
			changed++
		}
	}
	if changed < 4 {
		t.Fatalf("only %d of %d keys changed: nothing would be superseded", changed, len(held))
	}
	want := string(rig.Get(t, direct, up+newest).Body)
	rig.Await(t, func() string {
		if r := rig.Get(t, user, through+newest); string(r.Body) != want {
			return "the newest page is still the old one: " + r.Header.Get("Cache-Status")
		}
		return ""
	})
	for _, path := range held {
		r := rig.Get(t, user, through+path)
		if string(r.Body) != after[path] {
			t.Errorf("%s is answered as of before, %s; %s", path, r.Header.Get("Cache-Status"), rig.FirstDifference([]byte(after[path]), r.Body))
		}
	}
}

// Whoever writes reads it next, while others read and refreshes are under way.
func TestReadYourWritesAmongReaders(t *testing.T) {
	t.Parallel()
	up := rig.StartAPI(t, "--latency", "30ms", "--records", "100").URL("slowapi")
	house, _ := rig.StartServer(t, rig.Settings{Upstream: up, Mirror: "{newest: 1s, older: 1s}", Polls: "[messages]"})
	user, through := rig.Account+":"+rig.DemoToken, house.URL("twilio")
	list := rig.Base + "/Messages.json?PageSize=100"
	done := make(chan struct{})
	var readers, writers sync.WaitGroup
	for range 6 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if r, err := rig.Ask(http.MethodGet, user, through+list, ""); err != nil || r.Status != 200 {
					t.Errorf("a reader: %d %v", r.Status, err)
					return
				}
			}
		})
	}
	for w := range 4 {
		writers.Go(func() {
			for i := range 8 {
				text := fmt.Sprintf("writer %d, message %d", w, i)
				form := url.Values{"To": {"+15005550006"}, "From": {"+15005550001"}, "Body": {text}}.Encode()
				made, err := rig.Ask(http.MethodPost, user, through+rig.Base+"/Messages.json", form)
				if err != nil || made.Status != 201 {
					t.Errorf("%s: %d %.200s %v", text, made.Status, made.Body, err)
					return
				}
				for _, path := range []string{list, rig.Base + "/Messages.json?PageSize=100&To=%2B15005550006"} {
					r, err := rig.Ask(http.MethodGet, user, through+path, "")
					if err != nil || !strings.Contains(string(r.Body), text) {
						t.Errorf("%s is not in %s, answered %d %q %v", text, path, r.Status, r.Header.Get("Cache-Status"), err)
					}
				}
			}
		})
	}
	writers.Wait()
	close(done)
	readers.Wait()
	// In the end the mirror holds what upstream holds.
	rig.Await(t, func() string {
		have, want := rig.Get(t, user, through+list), rig.Get(t, rig.Account+":"+rig.APIToken, up+list)
		if string(have.Body) != string(want.Body) {
			return rig.FirstDifference(want.Body, have.Body)
		}
		return ""
	})
}
