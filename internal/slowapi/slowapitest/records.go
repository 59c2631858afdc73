// Records and lists of them, as Twilio answers.

package slowapitest

import (
	"bytes"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
)

// Record is a record as JSON has it.
type Record = map[string]any

// Records are records in the order of their list.
type Records []Record

// SIDs returns the SIDs of records.
func (r Records) SIDs() []string {
	var all []string
	for _, one := range r {
		all = append(all, one["sid"].(string))
	}
	return all
}

// Page is a page of a list.
type Page struct {
	End      int64   `json:"end"`
	First    string  `json:"first_page_uri"`
	Next     *string `json:"next_page_uri"`
	Page     int64   `json:"page"`
	Size     int64   `json:"page_size"`
	Previous *string `json:"previous_page_uri"`
	Start    int64   `json:"start"`
	URI      string  `json:"uri"`
	Records  Records `json:"-"`
}

// Page reads a page of a list.
func (a API) Page(target string) Page {
	a.T.Helper()
	body := a.Get(target)
	var p Page
	var all map[string]json.RawMessage
	if err := json.Unmarshal(body, &p); err != nil {
		a.T.Fatalf("GET %s: %v", target, err)
	}
	if err := json.Unmarshal(body, &all); err != nil {
		a.T.Fatal(err)
	}
	for name, raw := range all {
		switch name {
		case "end", "first_page_uri", "next_page_uri", "page", "page_size", "previous_page_uri", "start", "uri":
			continue
		}
		if err := json.Unmarshal(raw, &p.Records); err != nil {
			a.T.Fatalf("GET %s: %s: %v", target, name, err)
		}
	}
	if len(all) != 9 {
		a.T.Fatalf("GET %s: %d names at the top, not 9", target, len(all))
	}
	return p
}

// Walk reads a list to its end. It calls between after each page but the last; nil calls nothing.
func (a API) Walk(target string, between func()) Records {
	a.T.Helper()
	var all Records
	for {
		p := a.Page(target)
		all = append(all, p.Records...)
		if p.Next == nil {
			return all
		}
		target = *p.Next
		if between != nil {
			between()
		}
	}
}

// CompletedRecording returns the path and the length of a recording that can be heard and has so many channels.
func (a API) CompletedRecording(channels int) (path string, seconds int) {
	a.T.Helper()
	for _, one := range a.Walk(Root+"/Recordings.json?PageSize=1000", nil) {
		if one["status"] == "completed" && one["channels"] == float64(channels) {
			seconds, _ = strconv.Atoi(one["duration"].(string))
			return strings.TrimSuffix(one["uri"].(string), ".json"), seconds
		}
	}
	a.T.Fatal("nothing can be heard")
	return "", 0
}

// WriteMessage creates a message with n media and returns the paths of the message and of its media.
func (a API) WriteMessage(n int) (message string, media []string) {
	a.T.Helper()
	form := url.Values{"To": {"+15005550006"}, "Body": {"see"}}
	for i := range n {
		form.Add("MediaUrl", "https://example.com/"+strconv.Itoa(i))
	}
	made := a.Write("POST", Root+"/Messages.json", form, 201)
	message = Root + "/Messages/" + made["sid"].(string)
	for _, one := range a.Page(message + "/Media.json").Records {
		media = append(media, strings.TrimSuffix(one["uri"].(string), ".json"))
	}
	if made["num_media"] != strconv.Itoa(n) || len(media) != n {
		a.T.Fatalf("%v media, %d listed, want %d", made["num_media"], len(media), n)
	}
	return message, media
}

// ReadEverything returns the lists of all kinds as bytes, without the address of the server: two worlds are the same
// when these bytes are.
func (a API) ReadEverything() (all []byte) {
	for _, list := range []string{"Keys", "SigningKeys", "OutgoingCallerIds", "Applications", "Addresses", "Queues", "Notifications",
		"Usage/Records"} {
		all = append(all, a.Get(Root+"/"+list+".json")...)
	}
	all = append(all, a.Get("/v1/Alerts")...)
	for _, target := range []string{"/2010-04-01/Accounts.json", Root + "/Calls.json?PageSize=1000", Root + "/Messages.json?PageSize=1000",
		Root + "/IncomingPhoneNumbers.json", Root + "/Conferences.json", Root + "/Recordings.json?IncludeSoftDeleted=true"} {
		all = append(all, a.Get(target)...)
	}
	for _, room := range a.Page(Root + "/Conferences.json").Records.SIDs() {
		all = append(all, a.Get(Root+"/Conferences/"+room+"/Participants.json")...)
	}
	return bytes.ReplaceAll(all, []byte(a.Web.URL), nil) // which media_url and the Monitor API hold
}
