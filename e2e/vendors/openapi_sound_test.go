// The published document, for conferences, recordings, media and transcriptions.

package vendors

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// allowNoReason corrects the document where it contradicts itself: its schema
// lets reason_conference_ended not be null, its own examples show null.
func allowNoReason(document *openapi3.T) {
	for _, schema := range document.Components.Schemas {
		if reason := schema.Value.Properties["reason_conference_ended"]; reason != nil {
			reason.Value.Nullable = true
		}
	}
}

func TestSlowapiSoundsAsPublished(t *testing.T) {
	t.Parallel()
	p := startPublished(t)
	allowNoReason(p.document)
	p.readSounds()
	p.writeSounds()
	for range 4 {
		p.advance(`{"conferences":2,"seconds":30}`)
		p.readSounds()
	}
	for _, path := range []string{
		"/Conferences", "/Conferences/{ConferenceSid}/Participants", "/Conferences/{ConferenceSid}/Recordings", "/Recordings",
		"/Calls/{CallSid}/Recordings", "/Messages/{MessageSid}/Media", "/Transcriptions", "/Recordings/{RecordingSid}/Transcriptions",
	} {
		one := "/{Sid}"
		if strings.HasSuffix(path, "Participants") {
			one = "/{CallSid}"
		}
		wanted := []string{"GET " + path, "GET " + path + one}
		switch path {
		case "/Conferences":
			wanted = append(wanted, "POST "+path+one)
		case "/Conferences/{ConferenceSid}/Participants":
			wanted = append(wanted, "POST "+path+one, "DELETE "+path+one)
		default:
			wanted = append(wanted, "DELETE "+path+one)
		}
		for _, operation := range wanted {
			method, path, _ := strings.Cut(operation, " ")
			if p.checked[method+" /2010-04-01/Accounts/{AccountSid}"+path+".json"] == 0 {
				t.Errorf("%s was never checked", operation)
			}
		}
	}
}

// advance moves the world.
func (p *published) advance(body string) {
	p.Helper()
	resp, err := http.Post(p.web.URL+"/-/advance", "application/json", strings.NewReader(body))
	if err != nil {
		p.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		p.Fatalf("advance: %d", resp.StatusCode)
	}
}

// readSounds reads the lists, with filters and without, and records in every shape.
func (p *published) readSounds() {
	for _, filters := range []string{"PageSize=20", "Status=in-progress", "Status=completed&DateCreated%3E=2026-05-01", "DateUpdated%3C=2026-05-07", "FriendlyName=Board"} {
		for _, room := range p.pages(worldBase+"/Conferences.json?"+filters, "conferences", 2)[:1] {
			p.do("GET", room["uri"].(string), nil, http.StatusOK)
		}
	}
	for _, room := range p.pages(worldBase+"/Conferences.json?PageSize=6", "conferences", 1) {
		below := room["subresource_uris"].(map[string]any)
		for _, who := range p.pages(below["participants"].(string)+"?Muted=false", "participants", 1) {
			p.do("GET", who["uri"].(string), nil, http.StatusOK)
		}
		for _, one := range p.pages(below["recordings"].(string), "recordings", 1) {
			p.do("GET", one["uri"].(string), nil, http.StatusOK)
		}
	}
	for _, filters := range []string{"PageSize=40", "DateCreated%3E=2026-05-01&DateCreated%3C=2026-05-20T10:00:00Z", "IncludeSoftDeleted=true"} {
		for _, one := range p.pages(worldBase+"/Recordings.json?"+filters, "recordings", 3)[:20] {
			p.do("GET", one["uri"].(string), nil, http.StatusOK)
			for _, below := range p.pages(worldBase+"/Calls/"+one["call_sid"].(string)+"/Recordings.json", "recordings", 1) {
				p.do("GET", below["uri"].(string), nil, http.StatusOK)
			}
			for _, words := range p.pages(one["subresource_uris"].(map[string]any)["transcriptions"].(string), "transcriptions", 1) {
				p.do("GET", strings.Replace(words["uri"].(string), "/Transcriptions", "/Recordings/"+one["sid"].(string)+"/Transcriptions", 1), nil, http.StatusOK)
			}
		}
	}
	for _, words := range p.pages(worldBase+"/Transcriptions.json?PageSize=5", "transcriptions", 4) {
		p.do("GET", words["uri"].(string), nil, http.StatusOK)
	}
	for _, message := range p.pages(worldBase+"/Messages.json?PageSize=200", "messages", 1) {
		if message["num_media"] == "0" {
			continue
		}
		for _, one := range p.pages(message["subresource_uris"].(map[string]any)["media"].(string)+"?DateCreated%3E=2026-01-01", "media_list", 1) {
			p.do("GET", one["uri"].(string), nil, http.StatusOK)
		}
	}
}

// writeSounds updates and deletes.
func (p *published) writeSounds() {
	room := p.pages(worldBase+"/Conferences.json?Status=in-progress", "conferences", 1)[0]
	below := room["subresource_uris"].(map[string]any)["participants"].(string)
	who := p.pages(below, "participants", 1)
	p.do("POST", who[0]["uri"].(string), url.Values{"Muted": {"true"}, "Coaching": {"true"}, "CallSidToCoach": {who[1]["call_sid"].(string)}}, http.StatusOK)
	p.do("DELETE", who[1]["uri"].(string), nil, http.StatusNoContent)
	p.do("POST", room["uri"].(string), url.Values{"Status": {"completed"}}, http.StatusOK)
	p.pages(below, "participants", 1)

	all := p.pages(worldBase+"/Recordings.json?PageSize=60", "recordings", 1)
	p.do("DELETE", all[40]["uri"].(string), nil, http.StatusNoContent)
	p.do("GET", all[40]["uri"].(string)+"?IncludeSoftDeleted=true", nil, http.StatusOK)
	for _, one := range all[41:46] {
		list, key := "/Calls/", "call_sid"
		if one["conference_sid"] != nil {
			list, key = "/Conferences/", "conference_sid"
		}
		p.do("DELETE", worldBase+list+one[key].(string)+"/Recordings/"+one["sid"].(string)+".json", nil, http.StatusNoContent)
	}
	words := p.pages(worldBase+"/Transcriptions.json", "transcriptions", 1)
	p.do("DELETE", words[7]["uri"].(string), nil, http.StatusNoContent)
	of := words[8]["recording_sid"].(string)
	p.do("DELETE", worldBase+"/Recordings/"+of+"/Transcriptions/"+words[8]["sid"].(string)+".json", nil, http.StatusNoContent)

	form := url.Values{"To": {"+15005550006"}, "MediaUrl": {"https://example.com/a.png", "https://example.com/b.png"}}
	list := p.do("POST", worldBase+"/Messages.json", form, http.StatusCreated)["subresource_uris"].(map[string]any)["media"].(string)
	p.do("DELETE", p.pages(list, "media_list", 1)[0]["uri"].(string), nil, http.StatusNoContent)
	p.pages(list, "media_list", 1)
}
