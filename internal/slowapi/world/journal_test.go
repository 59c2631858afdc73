// Tests of the journal: nothing is forgotten, crashes are survived, strangers refused.
package world_test

import (
	"bytes"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"understudy/internal/checktest"
	"understudy/internal/slowapi"
	"understudy/internal/slowapi/slowapitest"
)

// busyDay does one of everything.
func busyDay(r slowapitest.API) {
	r.Control("/-/advance", `{"calls":5,"messages":4,"seconds":61}`, 200)
	call := r.Write("POST", root+"/Calls.json", url.Values{"To": {"+15005550006"}, "From": {"+15005550001"}}, 201)["sid"].(string)
	r.Write("POST", root+"/Messages.json", url.Values{"To": {"+15005550006"}, "Body": {"<b>\u2028שלום"}, "MediaUrl": {"x"}}, 201)
	r.Control("/-/advance", `{}`, 200)
	r.Write("POST", root+"/Calls/"+call+".json", url.Values{"Status": {"completed"}}, 200)
	old := r.Page(root + "/Messages.json").Records.SIDs()
	r.Write("POST", root+"/Messages/"+old[20]+".json", url.Values{"Body": {""}}, 200)
	r.Write("DELETE", root+"/Messages/"+old[21]+".json", nil, 204)
	r.Write("POST", root+"/IncomingPhoneNumbers.json", url.Values{"PhoneNumber": {"+18005550100"}}, 201)
	below := r.Write("POST", "/2010-04-01/Accounts.json", url.Values{"FriendlyName": {"Third"}}, 201)["sid"].(string)
	r.Write("POST", "/2010-04-01/Accounts/"+below+"/Messages.json", url.Values{"To": {"+1500"}}, 201)
	r.Control("/-/advance", `{"seconds":30,"conferences":2}`, 200)
	rooms := r.Page(root + "/Conferences.json?PageSize=2").Records.SIDs()
	seat := root + "/Conferences/" + rooms[0] + "/Participants/" + r.Page(root + "/Conferences/" + rooms[0] +
		"/Participants.json").Records[0]["call_sid"].(string) + ".json"
	r.Write("POST", seat, url.Values{"Muted": {"true"}, "Hold": {"true"}}, 200)
	other := root + "/Conferences/" + rooms[0] + "/Participants/" + r.Page(root + "/Conferences/" + rooms[0] +
		"/Participants.json").Records[1]["call_sid"].(string) + ".json"
	r.Write("DELETE", other, nil, 204)
	r.Write("POST", root+"/Conferences/"+rooms[1]+".json", url.Values{"Status": {"completed"}}, 200)
	r.Write("DELETE", root+"/Recordings/"+r.Page(root + "/Recordings.json").Records.SIDs()[5]+".json", nil, 204)
	settingsDay(r)
	_, media := r.WriteMessage(3)
	r.Write("DELETE", media[1]+".json", nil, 204)
}

// settingsDay sets, changes and deletes what is set by hand, and lets alerts come.
func settingsDay(r slowapitest.API) {
	r.Control("/-/advance", `{"alerts":2,"seconds":5}`, 200)
	r.Write("POST", root+"/Keys.json", url.Values{"FriendlyName": {"<k>"}}, 201)
	r.Write("POST", root+"/SigningKeys.json", nil, 201)
	r.Write("POST", root+"/OutgoingCallerIds.json", url.Values{"PhoneNumber": {"+15005550006"}}, 200)
	application := r.Write("POST", root+"/Applications.json", url.Values{"VoiceUrl": {"https://example.com/v"}}, 201)["uri"].(string)
	r.Write("POST", application, url.Values{"FriendlyName": {"Büro"}}, 200)
	r.Write("DELETE", root+"/Addresses/"+r.Page(root + "/Addresses.json").Records.SIDs()[0]+".json", nil, 204)
	queue := r.Write("POST", root+"/Queues.json", url.Values{"FriendlyName": {"q"}}, 201)["uri"].(string)
	r.Write("POST", queue, url.Values{"MaxSize": {"9"}}, 200)
	for _, one := range r.Page(root + "/Queues.json").Records {
		if one["current_size"].(float64) > 0 {
			r.Write("POST", root+"/Queues/"+one["sid"].(string)+"/Members/Front.json", url.Values{"Url": {"https://example.com/v"}}, 200)
			return
		}
	}
}

func TestJournalOutlivesRestarts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	o := slowapi.Options{Records: 50, Journal: path}
	first := slowapitest.Start(t, o)
	busyDay(first)
	want := first.ReadEverything()
	if err := first.Server.Close(); err != nil {
		t.Fatal(err)
	}
	second := slowapitest.Start(t, o)
	if !bytes.Equal(second.ReadEverything(), want) {
		t.Error("a restart changed the world")
	}
	busyDay(second)
	want = second.ReadEverything()
	_ = second.Server.Close()
	if !bytes.Equal(slowapitest.Start(t, o).ReadEverything(), want) {
		t.Error("a second restart changed the world")
	}
}

func TestJournalSurvivesATornLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	o := slowapi.Options{Records: 50, Journal: path}
	r := slowapitest.Start(t, o)
	busyDay(r)
	_ = r.Server.Close()
	want := slowapitest.Start(t, o).ReadEverything()
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, torn := range []string{`{"op":"adv`, "\x00\x00\x00", `{"op":"advance","at":"2027-01-01T00:00:00Z"}`} {
		if err := os.WriteFile(path, append(bytes.Clone(whole), torn...), 0o600); err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		o.Logger = slog.New(slog.NewTextHandler(&log, nil))
		r := slowapitest.Start(t, o)
		if !bytes.Equal(r.ReadEverything(), want) || !strings.Contains(log.String(), "cut short") {
			t.Errorf("%q: the world changed, or nothing was logged: %s", torn, log.String())
		}
		_ = r.Server.Close()
		if left, _ := os.ReadFile(path); !bytes.Equal(left, whole) {
			t.Errorf("%q: the torn line is still there", torn)
		}
	}
}

func TestJournalOfAnotherWorldIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	o := slowapi.Options{Records: 50, Journal: path}
	_ = slowapitest.Start(t, o).Server.Close()
	for name, other := range map[string]slowapi.Options{
		"seed":    {Records: 50, Seed: 2},
		"records": {Records: 51},
		"epoch":   {Records: 50, Epoch: time.Unix(1e9, 0)},
	} {
		other.Journal = path
		if s, err := slowapi.New(other); err == nil || !strings.Contains(err.Error(), "belongs to the world of seed 1, records 50, epoch "+
			"2026-06-01T12:00:00Z") {
			_ = s.Close()
			t.Errorf("%s: %v", name, err)
		}
	}
	good, _ := os.ReadFile(path)
	for _, bad := range []string{
		"hello\n",
		"{}\n",
		string(good) + "{\"op\":\"burn\"}\n",
		string(good) + "not JSON\n{}\n",
		string(good) + `{"op":"delete","at":"2027-01-01T00:00:00Z","wall":"2027-01-01T00:00:00Z","kind":"calls","index":99}` + "\n",
		string(good) + `{"op":"delete","at":"2007-01-01T00:00:00Z","wall":"2027-01-01T00:00:00Z","kind":"calls","index":9}` + "\n",
		string(good) + `{"op":"create","at":"2027-01-01T00:00:00Z","wall":"2027-01-01T00:00:00Z","kind":"dogs"}` + "\n",
		string(good) + `{"op":"create","at":"2027-01-01T00:00:00Z","wall":"2027-01-01T00:00:00Z","kind":"calls","account":9}` + "\n",
		string(good) + `{"op":"update","at":"2027-01-01T00:00:00Z","wall":"2027-01-01T00:00:00Z","kind":"calls","index":2,"cut":["x"]}` + "\n",
		string(good) + `{"op":"advance","at":"2027-01-01T00:00:00Z","wall":"2027-01-01T00:00:00Z","new":{"calls":2000000}}` + "\n",
		string(good) + `{"op":"advance","at":"2027-01-01T00:00:00Z","wall":"2027-01-01T00:00:00Z","new":{"accounts":1}}` + "\n",
	} {
		if err := os.WriteFile(path, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := slowapi.New(o)
		if err == nil {
			_ = s.Close()
			t.Fatalf("%q was taken", bad[len(bad)/2:])
		}
		checktest.Contains(t, err.Error(), path, "the error")
		checktest.Contains(t, err.Error(), "line ", "the error")
	}
	if _, err := slowapi.New(slowapi.Options{Journal: filepath.Join(t.TempDir(), "no", "folder")}); err == nil {
		t.Error("a journal in no folder was taken")
	}
}
