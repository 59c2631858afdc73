// Tests of arrivals: a world that goes on by itself, in a bubble of fake time.
package slowapi_test

import (
	"encoding/json"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"understudy/internal/checktest"
	"understudy/internal/slowapi"
	"understudy/internal/slowapi/slowapitest"
)

// listed reads a whole list without a network.
func listed(t *testing.T, s *slowapi.Server, target, key string) slowapitest.Records {
	t.Helper()
	var all slowapitest.Records
	for {
		var p struct {
			Next *string `json:"next_page_uri"`
		}
		var records map[string]json.RawMessage
		body := slowapitest.Serve(s, target).Body.Bytes()
		if err := json.Unmarshal(body, &p); err != nil {
			t.Fatal(err)
		}
		_ = json.Unmarshal(body, &records)
		var some slowapitest.Records
		if err := json.Unmarshal(records[key], &some); err != nil {
			t.Fatal(err)
		}
		all = append(all, some...)
		if p.Next == nil {
			return all
		}
		target = *p.Next
	}
}

func TestArrivals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := slowapi.Options{Records: 100, Arrivals: 6, Journal: filepath.Join(t.TempDir(), "journal")}
		s, err := slowapi.New(o)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Minute)
		synctest.Wait()
		calls := listed(t, s, root+"/Calls.json", "calls")
		messages := listed(t, s, root+"/Messages.json", "messages")
		if n := len(calls) - 100; n < 85 || n > 160 {
			t.Errorf("%d calls in 20 minutes, want about 120", n)
		}
		if n := len(messages) - 200; n < 190 || n > 295 {
			t.Errorf("%d messages in 20 minutes, want about 240", n)
		}
		unfinished, last := 0, time.Now().AddDate(100, 0, 0)
		for _, one := range calls {
			at := slowapitest.ParseTime(t, one["date_created"])
			if at.After(last) {
				t.Fatal("the order is broken")
			}
			last = at
			if one["status"] == "queued" || one["status"] == "ringing" || one["status"] == "in-progress" {
				unfinished++
			}
			if end, ended := one["end_time"].(string); ended && one["start_time"] == nil {
				t.Fatalf("%v ended at %s without a start", one["sid"], end)
			}
		}
		if unfinished > 60 {
			t.Errorf("%d calls are still going on", unfinished)
		}
		if newest := slowapitest.ParseTime(t, calls[0]["date_created"]); newest.Before(time.Date(2026, 6, 1, 12, 17, 0, 0, time.UTC)) {
			t.Errorf("the newest call is of %s", newest)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}

		// A world that stands still keeps what came; one that goes on catches up.
		o.Arrivals = 0
		still, err := slowapi.New(o)
		if err != nil {
			t.Fatal(err)
		}
		if again := listed(t, still, root+"/Calls.json", "calls"); len(again) != len(calls) || again[0]["sid"] != calls[0]["sid"] {
			t.Errorf("after a restart %d calls, want %d", len(again), len(calls))
		}
		_ = still.Close()
		time.Sleep(24 * time.Hour)
		o.Arrivals = 0.001
		later, err := slowapi.New(o)
		if err != nil {
			t.Fatal(err)
		}
		defer later.Close()
		synctest.Wait()
		if now := later.World().Time(); now.Before(time.Date(2026, 6, 2, 12, 19, 0, 0, time.UTC)) {
			t.Errorf("a day later the world's clock says %s", now)
		}
		for _, one := range listed(t, later, root+"/Calls.json", "calls") {
			{
				s := one["status"]
				checktest.MustTrue(t, s != "queued", `s is "queued"`)
				checktest.MustTrue(t, s != "ringing", `s is "ringing"`)
				checktest.MustTrue(t, s != "in-progress", `s is "in-progress"`)
			}
		}
	})
}

func TestWalkDuringArrivals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := slowapi.New(slowapi.Options{Records: 400, Arrivals: 600, Latency: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		first := listed(t, s, root+"/Calls.json?PageSize=1000", "calls")
		began := first.SIDs()
		walked := listed(t, s, root+"/Calls.json?PageSize=20", "calls").SIDs()
		after := listed(t, s, root+"/Calls.json?PageSize=1000", "calls").SIDs()
		seen := map[string]int{}
		for _, sid := range walked {
			seen[sid]++
		}
		for _, sid := range began {
			if seen[sid] != 1 {
				t.Fatalf("%s was seen %d times", sid, seen[sid])
			}
		}
		if len(after) < len(began)+50 {
			t.Errorf("only %d calls came during the walk", len(after)-len(began))
		}
		for sid, n := range seen {
			if n != 1 {
				t.Fatalf("%s was seen %d times", sid, n)
			}
		}
	})
}
