// Tests of the journal: nothing is forgotten, crashes are survived, strangers refused.
package slowapi

import (
	"bytes"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// busyDay does one of everything.
func busyDay(r running) {
	r.control("/-/advance", `{"calls":5,"messages":4,"seconds":61}`, 200)
	call := r.write("POST", root+"/Calls.json", url.Values{"To": {"+15005550006"}, "From": {"+15005550001"}}, 201)["sid"].(string)
	r.write("POST", root+"/Messages.json", url.Values{"To": {"+15005550006"}, "Body": {"<b>\u2028שלום"}, "MediaUrl": {"x"}}, 201)
	r.control("/-/advance", `{}`, 200)
	r.write("POST", root+"/Calls/"+call+".json", url.Values{"Status": {"completed"}}, 200)
	old := sids(r.page(root + "/Messages.json").records)
	r.write("POST", root+"/Messages/"+old[20]+".json", url.Values{"Body": {""}}, 200)
	r.write("DELETE", root+"/Messages/"+old[21]+".json", nil, 204)
	r.write("POST", root+"/IncomingPhoneNumbers.json", url.Values{"PhoneNumber": {"+18005550100"}}, 201)
	below := r.write("POST", "/2010-04-01/Accounts.json", url.Values{"FriendlyName": {"Third"}}, 201)["sid"].(string)
	r.write("POST", "/2010-04-01/Accounts/"+below+"/Messages.json", url.Values{"To": {"+1500"}}, 201)
	r.control("/-/advance", `{"seconds":30,"conferences":2}`, 200)
	rooms := sids(r.page(root + "/Conferences.json?PageSize=2").records)
	seat := root + "/Conferences/" + rooms[0] + "/Participants/" + r.page(root + "/Conferences/" + rooms[0] +
		"/Participants.json").records[0]["call_sid"].(string) + ".json"
	r.write("POST", seat, url.Values{"Muted": {"true"}, "Hold": {"true"}}, 200)
	other := root + "/Conferences/" + rooms[0] + "/Participants/" + r.page(root + "/Conferences/" + rooms[0] +
		"/Participants.json").records[1]["call_sid"].(string) + ".json"
	r.write("DELETE", other, nil, 204)
	r.write("POST", root+"/Conferences/"+rooms[1]+".json", url.Values{"Status": {"completed"}}, 200)
	r.write("DELETE", root+"/Recordings/"+sids(r.page(root + "/Recordings.json").records)[5]+".json", nil, 204)
	settingsDay(r)
	_, media := r.written(3)
	r.write("DELETE", media[1]+".json", nil, 204)
}

// settingsDay sets, changes and deletes what is set by hand, and lets alerts come.
func settingsDay(r running) {
	r.control("/-/advance", `{"alerts":2,"seconds":5}`, 200)
	r.write("POST", root+"/Keys.json", url.Values{"FriendlyName": {"<k>"}}, 201)
	r.write("POST", root+"/SigningKeys.json", nil, 201)
	r.write("POST", root+"/OutgoingCallerIds.json", url.Values{"PhoneNumber": {"+15005550006"}}, 200)
	application := r.write("POST", root+"/Applications.json", url.Values{"VoiceUrl": {"https://example.com/v"}}, 201)["uri"].(string)
	r.write("POST", application, url.Values{"FriendlyName": {"Büro"}}, 200)
	r.write("DELETE", root+"/Addresses/"+sids(r.page(root + "/Addresses.json").records)[0]+".json", nil, 204)
	queue := r.write("POST", root+"/Queues.json", url.Values{"FriendlyName": {"q"}}, 201)["uri"].(string)
	r.write("POST", queue, url.Values{"MaxSize": {"9"}}, 200)
	for _, one := range r.page(root + "/Queues.json").records {
		if one["current_size"].(float64) > 0 {
			r.write("POST", root+"/Queues/"+one["sid"].(string)+"/Members/Front.json", url.Values{"Url": {"https://example.com/v"}}, 200)
			return
		}
	}
}

func everything(r running) (all []byte) {
	for _, list := range []string{"Keys", "SigningKeys", "OutgoingCallerIds", "Applications", "Addresses", "Queues", "Notifications",
		"Usage/Records"} {
		all = append(all, r.get(root+"/"+list+".json")...)
	}
	all = append(all, r.get("/v1/Alerts")...)
	for _, target := range []string{"/2010-04-01/Accounts.json", root + "/Calls.json?PageSize=1000", root + "/Messages.json?PageSize=1000",
		root + "/IncomingPhoneNumbers.json", root + "/Conferences.json", root + "/Recordings.json?IncludeSoftDeleted=true"} {
		all = append(all, r.get(target)...)
	}
	for _, room := range sids(r.page(root + "/Conferences.json").records) {
		all = append(all, r.get(root+"/Conferences/"+room+"/Participants.json")...)
	}
	all = bytes.ReplaceAll(all, []byte(r.web.URL), nil) // which media_url and the Monitor API hold
	return all
}

func TestJournalOutlivesRestarts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	o := Options{Records: 50, Journal: path}
	first := start(t, o)
	busyDay(first)
	want := everything(first)
	if err := first.api.Close(); err != nil {
		t.Fatal(err)
	}
	second := start(t, o)
	if !bytes.Equal(everything(second), want) {
		t.Error("a restart changed the world")
	}
	busyDay(second)
	want = everything(second)
	_ = second.api.Close()
	if !bytes.Equal(everything(start(t, o)), want) {
		t.Error("a second restart changed the world")
	}
}

func TestJournalSurvivesATornLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	o := Options{Records: 50, Journal: path}
	r := start(t, o)
	busyDay(r)
	_ = r.api.Close()
	want := everything(start(t, o))
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
		r := start(t, o)
		if !bytes.Equal(everything(r), want) || !strings.Contains(log.String(), "cut short") {
			t.Errorf("%q: the world changed, or nothing was logged: %s", torn, log.String())
		}
		_ = r.api.Close()
		if left, _ := os.ReadFile(path); !bytes.Equal(left, whole) {
			t.Errorf("%q: the torn line is still there", torn)
		}
	}
}

func TestJournalOfAnotherWorldIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	o := Options{Records: 50, Journal: path}
	_ = start(t, o).api.Close()
	for name, other := range map[string]Options{
		"seed":    {Records: 50, Seed: 2},
		"records": {Records: 51},
		"epoch":   {Records: 50, Epoch: time.Unix(1e9, 0)},
	} {
		other.Journal = path
		if s, err := New(other); err == nil || !strings.Contains(err.Error(), "belongs to the world of seed 1, records 50, epoch "+
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
		if s, err := New(o); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "line ") {
			_ = s.Close()
			t.Errorf("%q was taken: %v", bad[len(bad)/2:], err)
		}
	}
	if _, err := New(Options{Journal: filepath.Join(t.TempDir(), "no", "folder")}); err == nil {
		t.Error("a journal in no folder was taken")
	}
}

// TestUnkeptWritesAreNotMade: what cannot be kept does not happen.
func TestUnkeptWritesAreNotMade(t *testing.T) {
	r := start(t, Options{Records: 50, Journal: filepath.Join(t.TempDir(), "journal")})
	want := everything(r)
	file := r.api.twilio.journal.File
	r.api.twilio.journal.File, _ = os.Open(file.Name()) // only for reading
	status, body, _ := r.ask("POST", root+"/Calls.json", url.Values{"To": {"+1500"}, "From": {"+1501"}})
	if status != 500 || !strings.Contains(string(body), `"code":20500`) {
		t.Errorf("%d %s", status, body)
	}
	r.control("/-/advance", `{"calls":1}`, 500)
	if !bytes.Equal(everything(r), want) {
		t.Error("an unkept write was made")
	}
	_ = r.api.twilio.journal.File.Close()
	r.api.twilio.journal.File = file
}
