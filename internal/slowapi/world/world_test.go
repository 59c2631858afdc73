// Tests of the world: its size, and that it is always the same.
package world_test

import (
	"bytes"
	"fmt"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"time"

	"understudy/internal/slowapi"
	"understudy/internal/slowapi/kinds"
	"understudy/internal/slowapi/slowapitest"
)

const (
	root    = slowapitest.Root
	mainSID = slowapitest.Account
)

type record = slowapitest.Record

func TestSameWorldSameBytes(t *testing.T) {
	o := slowapi.Options{Records: 200, Seed: 7}
	a, b := slowapitest.Start(t, o), slowapitest.Start(t, o)
	o.Seed = 8
	other := slowapitest.Start(t, o)
	for _, target := range []string{"/2010-04-01/Accounts.json", root + "/Calls.json", root + "/Messages.json?PageSize=400",
		root + "/IncomingPhoneNumbers.json", root + "/Calls.json?Status=completed&Page=1", root + "/Conferences.json", root + "/Recordings.json",
		root + "/Notifications.json", root + "/Queues.json", root + "/Usage/Records.json", root + "/AvailablePhoneNumbers/US/Local.json"} {
		read := func(r slowapitest.API) string { // without the address, which media_url holds
			return strings.ReplaceAll(string(r.Get(target)), r.Web.URL, "")
		}
		if one := read(a); one != read(b) || one == read(other) {
			t.Errorf("%s: two servers of one world differ, or two worlds do not", target)
		}
	}
	for _, r := range []slowapitest.API{a, b} {
		r.Control("/-/advance", `{"calls":3,"messages":2,"seconds":90}`, 200)
		r.Write("POST", root+"/Calls.json", url.Values{"To": {"+15005550006"}, "From": {"+15005550001"}}, 201)
		r.Control("/-/advance", `{"seconds":9}`, 200)
	}
	for _, list := range []string{"/Calls.json", "/Messages.json"} {
		if !bytes.Equal(a.Get(root+list), b.Get(root+list)) {
			t.Errorf("%s: two servers differ after the same has happened", list)
		}
	}
}

// TestTenMillion shows that size costs nothing: pages by token and windows of
// time are quick anywhere, and memory stays where it was.
func TestTenMillion(t *testing.T) {
	s, err := slowapi.New(slowapi.Options{Records: 10_000_000})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	w := slowapitest.NewWorld(10_000_000, 1, slowapitest.Epoch)
	deep := "PA" + w.SID(w.Sequences[0][kinds.Calls], 1234567)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for name, target := range map[string]string{
		"first":         "/Calls.json",
		"deep token":    "/Calls.json?Page=170000&PageToken=" + deep,
		"back token":    "/Calls.json?Page=170000&PageToken=PB" + deep[2:],
		"deep page":     "/Calls.json?Page=190000",
		"window":        "/Calls.json?StartTime%3E=2026-04-01T10:00:00Z&StartTime%3C=2026-04-01T10:05:00Z",
		"old window":    "/Calls.json?EndTime%3E=2026-03-04&EndTime%3C=2026-03-05&StartTime=2026-03",
		"past":          "/Calls.json?StartTime%3C=2001-01-01",
		"future":        "/Messages.json?DateSent%3E=2036-01-01",
		"message deep":  "/Messages.json?Page=390000",
		"conferences":   "/Conferences.json?Page=9000",
		"notifications": "/Notifications.json?Page=3900",
		"notified":      "/Notifications.json?Log=0&MessageDate%3E=2026-04-01&MessageDate%3C=2026-04-02",
		"of one call":   "/Calls/" + deep[2:] + "/Notifications.json",
		"its events":    "/Calls/" + deep[2:] + "/Events.json",
		"usage":         "/Usage/Records/Daily.json?PageSize=1000",
		"balance":       "/Balance.json",
		"queues":        "/Queues.json",
		"ended":         "/Conferences.json?DateUpdated%3E=2026-04-01&DateUpdated%3C=2026-04-02&PageSize=20",
		"recordings":    "/Recordings.json?Page=39000",
		"recorded":      "/Recordings.json?DateCreated%3E=2026-04-01&DateCreated%3C=2026-04-02",
		"of a call":     "/Calls/" + deep[2:] + "/Recordings.json",
		"by its call":   "/Recordings.json?CallSid=" + deep[2:],
		"spoken":        "/Transcriptions.json?Page=3900",
		"media":         "/Messages/" + w.SID(w.Sequences[0][kinds.Messages], kinds.MediaMessage(1, 500_000)) + "/Media.json",
		"message since": "/Messages.json?DateSent%3E=2026-05-31&PageSize=1000",
	} {
		begin := time.Now()
		if body := slowapitest.Serve(s, root+target); body.Code != 200 {
			t.Errorf("%s: %d %s", name, body.Code, body.Body)
		}
		if took := time.Since(begin); took > time.Second {
			t.Errorf("%s took %s", name, took)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 4<<20 {
		t.Errorf("the heap grew by %d bytes", grown)
	}
}

func BenchmarkFirstPage(b *testing.B) { benchmarkPage(b, "/Calls.json") }

func BenchmarkWindow(b *testing.B) {
	benchmarkPage(b, "/Calls.json?StartTime%3E=2026-04-01&StartTime%3C=2026-04-02")
}

func BenchmarkDeepPage(b *testing.B) { benchmarkPage(b, "/Calls.json?Page=150000") }

func benchmarkPage(b *testing.B, target string) {
	s, err := slowapi.New(slowapi.Options{Records: 10_000_000})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	b.ReportAllocs()
	for b.Loop() {
		if got := slowapitest.Serve(s, root+target); got.Code != 200 {
			b.Fatal(fmt.Sprint(got.Code, got.Body))
		}
	}
}
