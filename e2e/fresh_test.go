// Fresh: every caller gets the newest known data, under every key.

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// callsPage is as much of a page of calls as these tests look at.
type callsPage struct {
	Next  string `json:"next_page_uri"`
	Calls []struct{ Sid, Status string }
}

func readCalls(t testing.TB, r reply) (p callsPage) {
	t.Helper()
	if err := json.Unmarshal(r.body, &p); err != nil || r.status != 200 {
		t.Fatalf("%d %.300s: %v", r.status, r.body, err)
	}
	return p
}

// A page that shows an older version of a record than one that is known is
// never again answered as fresh, though by its own age it would be.
func TestSupersededEverywhere(t *testing.T) {
	t.Parallel()
	up := startAPI(t, "--latency", "20ms", "--records", "200").URL("slowapi")
	house, _ := startServer(t, settings{upstream: up, mirror: "{newest: 1s, older: 10m, final: 10m}"})
	user, direct := account+":"+demoToken, account+":"+apiToken
	through := house.URL("twilio")
	newest := base + "/Calls.json?PageSize=50"

	first := readCalls(t, get(t, user, through+newest))
	var held []string // pages and instances that are fresh for ten minutes
	path := base + "/Calls.json?PageSize=2"
	for range 5 {
		p := readCalls(t, get(t, user, through+path))
		if path = p.Next; path == "" {
			t.Fatal("no next page")
		}
		held = append(held, path)
	}
	for _, c := range first.Calls[:10] {
		held = append(held, base+"/Calls/"+c.Sid+".json")
	}
	for _, path := range held {
		if r := get(t, user, through+path); r.status != 200 {
			t.Fatalf("%s: %d", path, r.status)
		}
	}
	before := map[string]string{}
	for _, path := range held {
		before[path] = string(get(t, direct, up+path).body)
	}
	control(t, up, "/-/advance", `{"seconds":30}`)
	changed := 0
	after := map[string]string{}
	for _, path := range held {
		after[path] = string(get(t, direct, up+path).body)
		if after[path] != before[path] {
			changed++
		}
	}
	if changed < 4 {
		t.Fatalf("only %d of %d keys changed: nothing would be superseded", changed, len(held))
	}
	want := string(get(t, direct, up+newest).body)
	await(t, func() string {
		if r := get(t, user, through+newest); string(r.body) != want {
			return "the newest page is still the old one: " + r.header.Get("Cache-Status")
		}
		return ""
	})
	for _, path := range held {
		r := get(t, user, through+path)
		if string(r.body) != after[path] {
			t.Errorf("%s is answered as of before, %s; %s", path, r.header.Get("Cache-Status"), firstDifference([]byte(after[path]), r.body))
		}
	}
}

// Whoever writes reads it next, while others read and refreshes are under way.
func TestReadYourWritesAmongReaders(t *testing.T) {
	t.Parallel()
	up := startAPI(t, "--latency", "30ms", "--records", "100").URL("slowapi")
	house, _ := startServer(t, settings{upstream: up, mirror: "{newest: 1s, older: 1s}", polls: "[messages]"})
	user, through := account+":"+demoToken, house.URL("twilio")
	list := base + "/Messages.json?PageSize=100"
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
				if r, err := ask(http.MethodGet, user, through+list, ""); err != nil || r.status != 200 {
					t.Errorf("a reader: %d %v", r.status, err)
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
				made, err := ask(http.MethodPost, user, through+base+"/Messages.json", form)
				if err != nil || made.status != 201 {
					t.Errorf("%s: %d %.200s %v", text, made.status, made.body, err)
					return
				}
				for _, path := range []string{list, base + "/Messages.json?PageSize=100&To=%2B15005550006"} {
					r, err := ask(http.MethodGet, user, through+path, "")
					if err != nil || !strings.Contains(string(r.body), text) {
						t.Errorf("%s is not in %s, answered %d %q %v", text, path, r.status, r.header.Get("Cache-Status"), err)
					}
				}
			}
		})
	}
	writers.Wait()
	close(done)
	readers.Wait()
	// In the end the mirror holds what upstream holds.
	await(t, func() string {
		have, want := get(t, user, through+list), get(t, account+":"+apiToken, up+list)
		if string(have.body) != string(want.body) {
			return firstDifference(want.body, have.body)
		}
		return ""
	})
}
