// The golden answers: what HTTP shows of every kind, for one seed and one clock.
package slowapi_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"understudy/internal/slowapi"
	"understudy/internal/slowapi/slowapitest"
	"understudy/internal/slowapi/table"
)

var updateGolden = flag.Bool("update", false, "write the golden answers anew")

// golden asks requests and writes one line an answer.
type golden struct {
	api slowapitest.API
	out strings.Builder
}

// unsteady is what differs from run to run.
var unsteady = regexp.MustCompile(`Expires=\d+&Signature=[0-9a-f]+`)

// goldenHeaders are the headers that are noted.
var goldenHeaders = []string{
	"Content-Type", "Content-Length", "Content-Range", "Allow", "Location", "Retry-After", "WWW-Authenticate",
	"ETag", "Last-Modified", "Accept-Ranges",
}

// ask sends one request under a fixed host and notes the answer: a long body as a hash.
func (g *golden) ask(method, target string, form url.Values, headers ...string) []byte {
	g.api.T.Helper()
	req, err := http.NewRequest(method, g.api.Web.URL+target, strings.NewReader(form.Encode()))
	if err != nil {
		g.api.T.Fatal(err)
	}
	req.Host = "slow.example"
	req.SetBasicAuth(mainSID, "slowapitoken")
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		g.api.T.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		g.api.T.Fatal(err)
	}
	fmt.Fprintf(&g.out, "%s %s", method, unsteady.ReplaceAllString(target, "signed"))
	if len(form) > 0 {
		fmt.Fprintf(&g.out, " %s", form.Encode())
	}
	fmt.Fprintf(&g.out, " -> %d", resp.StatusCode)
	for _, name := range goldenHeaders {
		if value := resp.Header.Get(name); value != "" {
			fmt.Fprintf(&g.out, " %s=%s", name, unsteady.ReplaceAllString(value, "signed"))
		}
	}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "audio/") || strings.HasPrefix(resp.Header.Get("Content-Type"), "image/") {
		g.out.WriteString("\n") // what is heard or seen is a sample: tests of its own read it
	} else if len(body) > 300 || strings.ContainsFunc(string(body), func(r rune) bool { return r < ' ' }) {
		sum := sha256.Sum256(body)
		fmt.Fprintf(&g.out, " #%s\n", hex.EncodeToString(sum[:8]))
	} else {
		fmt.Fprintf(&g.out, " %s\n", body)
	}
	return body
}

// rows reads the records of a list.
func (g *golden) rows(target, key string) (all []record) {
	g.api.T.Helper()
	var page map[string]json.RawMessage
	raw := g.ask("GET", target, nil)
	if err := json.Unmarshal(raw, &page); err != nil {
		g.api.T.Fatalf("%s: %s", target, raw)
	}
	if err := json.Unmarshal(page[key], &all); err != nil {
		g.api.T.Fatalf("%s: %s: %v", target, key, err)
	}
	return all
}

// goldenKind is one kind of record: its list, filters and what lies below a record.
type goldenKind struct {
	path, key, id string
	filters       []string
	below         []string // path and key of a sub-list, separated by a space
	make, change  url.Values
}

func form(pairs ...string) url.Values {
	v := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		v.Add(pairs[i], pairs[i+1])
	}
	return v
}

var goldenKinds = []goldenKind{
	{path: "Calls", key: "calls", id: "sid",
		filters: []string{"Status=completed", "To=%2B14155550100", "StartTime%3E=2026-05-20", "EndTime%3C=2026-05-20T10:00:00Z",
			"Status=x&PageSize=zero", "StartTime=2026-05-20", "PageSize=7&Page=3", "StartTime=nonsense"},
		below:  []string{"Notifications notifications", "Recordings recordings", "Events events"},
		make:   form("To", "+15005550006", "From", "+15005550001", "Url", "https://example.com/voice"),
		change: form("Status", "completed")},
	{path: "Messages", key: "messages", id: "sid",
		filters: []string{"From=72975", "DateSent=2026-05-20", "DateSent%3C=2026-05-20", "DateSent%3E=2026-05-20T10:00:00Z", "PageSize=0"},
		below:   []string{"Media media_list"},
		make: form("To", "+15005550006", "MessagingServiceSid", "MG"+strings.Repeat("0", 32), "Body", "hé 👍 <b>\n",
			"MediaUrl", "https://e.com/a", "MediaUrl", "b"),
		change: form("Body", "")},
	{path: "IncomingPhoneNumbers", key: "incoming_phone_numbers", id: "sid",
		filters: []string{"Beta=true", "Beta=maybe", "Origin=hosted", "PhoneNumber=%2B1***", "FriendlyName=Support"},
		make:    form("PhoneNumber", "+447700900123", "FriendlyName", "Desk"), change: form("SmsMethod", "GET", "VoiceCallerIdLookup", "true")},
	{path: "Conferences", key: "conferences", id: "sid",
		filters: []string{"Status=completed", "FriendlyName=Board", "DateCreated%3E=2026-05-20", "DateUpdated%3C=2026-05-20"},
		below:   []string{"Participants participants", "Recordings recordings"}, change: form("Status", "completed")},
	{path: "Recordings", key: "recordings", id: "sid",
		filters: []string{"DateCreated%3E=2026-05-20", "CallSid=CA00000000000000000000000000000000",
			"IncludeSoftDeleted=true", "ConferenceSid=x"},
		below: []string{"Transcriptions transcriptions"}},
	{path: "Transcriptions", key: "transcriptions", id: "sid"},
	{path: "Notifications", key: "notifications", id: "sid", filters: []string{"Log=0", "MessageDate%3E=2026-05-20"}},
	{path: "Queues", key: "queues", id: "sid", below: []string{"Members queue_members"},
		make: form("FriendlyName", "q", "MaxSize", "7"), change: form("FriendlyName", "Q")},
	{path: "Applications", key: "applications", id: "sid", filters: []string{"FriendlyName=nobody"},
		make: form("VoiceUrl", "https://example.com/v"), change: form("SmsMethod", "GET")},
	{path: "OutgoingCallerIds", key: "outgoing_caller_ids", id: "sid", filters: []string{"PhoneNumber=%2B1", "FriendlyName=x"},
		make: form("PhoneNumber", "+15005550006"), change: form("FriendlyName", "me")},
	{path: "Keys", key: "keys", id: "sid", make: form("FriendlyName", "k"), change: form("FriendlyName", "K")},
	{path: "SigningKeys", key: "signing_keys", id: "sid", make: form("FriendlyName", "k"), change: form("FriendlyName", "K")},
	{path: "Addresses", key: "addresses", id: "sid", filters: []string{"EmergencyEnabled=true", "IsoCountry=GB", "CustomerName=x"},
		below:  []string{"DependentPhoneNumbers dependent_phone_numbers"},
		make:   form("CustomerName", "c", "Street", "s", "City", "t", "Region", "r", "PostalCode", "p", "IsoCountry", "DE"),
		change: form("EmergencyEnabled", "true")},
}

func TestAnswersStay(t *testing.T) {
	at := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	g := &golden{api: slowapitest.Start(t, slowapi.Options{Records: 400, Now: func() time.Time { return at }})}
	for _, k := range goldenKinds {
		g.kind(k)
	}
	g.special()
	g.monitor()
	g.usage()
	g.available()
	g.contents()
	for _, k := range goldenKinds {
		g.write(k)
	}
	g.moved()
	for _, k := range goldenKinds {
		g.ask("GET", root+"/"+k.path+".json?PageSize=1000", nil)
	}
	name, answers := filepath.Join("testdata", "answers.golden"), strings.ReplaceAll(g.out.String(), root, "~")
	if *updateGolden {
		if err := os.WriteFile(name, []byte(answers), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	want, got := strings.Split(string(raw), "\n"), strings.Split(answers, "\n")
	shown := 0
	for i := range max(len(want), len(got)) {
		a, b := "", ""
		if i < len(want) {
			a = want[i]
		}
		if i < len(got) {
			b = got[i]
		}
		if a != b && shown < 10 {
			shown++
			t.Errorf("line %d\nwas %s\nis  %s", i+1, a, b)
		}
	}
}

// kind asks the lists, the records and what lies below them.
func (g *golden) kind(k goldenKind) {
	list := root + "/" + k.path
	g.ask("GET", list+".json?PageSize=3", nil)
	g.ask("GET", list+".json?PageSize=2&Page=1", nil)
	g.ask("GET", list+".json?PageSize=2&Page=1&PageToken=x", nil)
	for _, filter := range k.filters {
		g.ask("GET", list+".json?"+filter, nil)
	}
	all := g.rows(list+".json?PageSize=1000", k.key)
	for i, one := range all[:min(len(all), 60)] {
		own := list + "/" + one[k.id].(string)
		if i < 12 {
			g.ask("GET", own+".json", nil)
		}
		for _, below := range k.below {
			path, key, _ := strings.Cut(below, " ")
			for _, row := range g.rows(own+"/"+path+".json", key) {
				if sid, named := row["sid"].(string); named && path != "DependentPhoneNumbers" {
					g.ask("GET", own+"/"+path+"/"+sid+".json", nil)
				} else if uri, there := row["uri"].(string); there && path != "DependentPhoneNumbers" {
					g.ask("GET", uri, nil)
				}
			}
		}
	}
	g.ask("GET", list+"/"+k.key+".json", nil)
	g.ask("PUT", list+".json", nil)
}

// write makes, changes and deletes.
func (g *golden) write(k goldenKind) {
	list := root + "/" + k.path
	g.ask("POST", list+".json", url.Values{})
	g.ask("POST", list+".json", url.Values{"To": {"x"}, "FriendlyName": {strings.Repeat("x", 70)}, "MaxSize": {"0"}, "SmsMethod": {"PUT"}})
	if k.make != nil {
		g.ask("POST", list+".json", k.make)
	}
	own := list + "/" + g.rows(list+".json?PageSize=1", k.key)[0][k.id].(string)
	g.ask("POST", own+".json", url.Values{"Status": {"odd"}, "Body": {"x"}})
	if k.change != nil {
		g.ask("POST", own+".json", k.change)
	}
	for _, below := range k.below {
		path, key, _ := strings.Cut(below, " ")
		g.rows(own+"/"+path+".json", key)
	}
	g.ask("DELETE", own+".json", nil)
	g.ask("DELETE", own+".json", nil)
	g.ask("GET", own+".json", nil)
}

// special asks what has no list of its own.
func (g *golden) special() {
	g.ask("GET", "/2010-04-01/Accounts.json", nil)
	g.ask("GET", "/2010-04-01/Accounts.json?Status=active&FriendlyName=Field%20office", nil)
	for _, one := range g.rows("/2010-04-01/Accounts.json?PageSize=9", "accounts") {
		g.ask("GET", one["uri"].(string), nil)
		for _, list := range []string{"Calls", "Conferences", "Queues", "Usage/Records", "AvailablePhoneNumbers/DE/Local", "Balance"} {
			g.ask("GET", strings.Replace(one["uri"].(string), ".json", "/"+list+".json", 1), nil)
		}
	}
	for _, list := range []string{"Local", "Mobile", "TollFree"} {
		g.ask("GET", root+"/IncomingPhoneNumbers/"+list+".json", nil)
		g.ask("POST", root+"/IncomingPhoneNumbers/"+list+".json", form("AreaCode", "415"))
	}
	for _, queue := range g.rows(root+"/Queues.json", "queues") {
		front := root + "/Queues/" + queue["sid"].(string) + "/Members/Front.json"
		g.ask("GET", front, nil)
		g.ask("POST", front, url.Values{})
		g.ask("POST", front, form("Url", "https://example.com"))
		g.ask("GET", front, nil)
	}
	g.ask("POST", root+"/Tokens.json", form("Ttl", "60"))
	g.ask("POST", root+"/Tokens.json", form("Ttl", "0"))
	g.ask("GET", "/", nil)
	g.ask("GET", "/2010-04-01/Accounts/AC9.json", nil)
	g.ask("GET", root+"/Nothing.json", nil)
	g.ask("GET", root+"/Calls.json", nil, "Authorization", "Basic eDp5")
	g.ask("GET", root+"/Calls", nil)
	g.ask("POST", "/2010-04-01/Accounts.json", form("FriendlyName", "Third"))
	g.ask("GET", "/-/nothing", nil)
	g.ask("GET", "/-/advance", nil)
}

// monitor asks the Monitor API.
func (g *golden) monitor() {
	for _, list := range []string{"Alerts", "Events"} {
		key := strings.ToLower(list)
		g.ask("GET", "/v1/"+list+"?PageSize=2", nil)
		g.ask("GET", "/v1/"+list+"?PageSize=2&Page=1", nil)
		for _, filter := range []string{"LogLevel=error", "EventType=account.updated", "StartDate=2026-05-20",
			"StartDate=2025-05-20&EndDate=2026-05-20", "ResourceSid=CA0", "ActorSid=x", "SourceIpAddress=203.0.113.8"} {
			g.ask("GET", "/v1/"+list+"?"+filter, nil)
		}
		for _, one := range g.rows("/v1/"+list+"?PageSize=100", key) {
			g.ask("GET", "/v1/"+list+"/"+one["sid"].(string), nil)
		}
	}
}

// usage asks all lists of usage.
func (g *golden) usage() {
	for _, list := range []string{"", "/AllTime", "/Daily", "/LastMonth", "/Monthly", "/ThisMonth", "/Today", "/Yearly", "/Yesterday"} {
		for _, filter := range []string{"", "?PageSize=3&Page=1", "?Category=sms&StartDate=2026-05-01&EndDate=2026-05-20",
			"?StartDate=-30days&IncludeSubaccounts=false", "?StartDate=x", "?PageSize=2&Page=2&PageToken=APMg=="} {
			g.ask("GET", root+"/Usage/Records"+list+".json"+filter, nil)
		}
	}
	g.ask("GET", root+"/Balance.json", nil)
}

// available asks the countries and their numbers.
func (g *golden) available() {
	g.ask("GET", root+"/AvailablePhoneNumbers.json", nil)
	for _, iso := range []string{"US", "CA", "GB", "DE", "CH", "FR", "ES", "AU", "JP", "ZZ"} {
		g.ask("GET", root+"/AvailablePhoneNumbers/"+iso+".json", nil)
		for _, path := range []string{"Local", "Mobile", "TollFree", "National", "MachineToMachine", "SharedCost", "Voip"} {
			g.ask("GET", root+"/AvailablePhoneNumbers/"+iso+"/"+path+".json", nil)
		}
	}
	for _, filter := range []string{"AreaCode=415", "AreaCode=x", "Contains=415", "Contains=%2B1415****22", "Contains=!", "SmsEnabled=true",
		"MmsEnabled=false", "FaxEnabled=true", "ExcludeAllAddressRequired=true", "Beta=false", "NearNumber=%2B14155551234&Distance=50",
		"NearLatLong=37.7,-122.4",
		"NearLatLong=x", "Distance=900", "InRegion=CA", "InPostalCode=94105", "InLata=722", "InLocality=San%20Francisco",
		"InRateCenter=SNFC%20CNTRL", "PageSize=5"} {
		g.ask("GET", root+"/AvailablePhoneNumbers/US/Local.json?"+filter, nil)
	}
}

// contents asks for what can be heard and seen: status, headers and length, for bytes are samples.
func (g *golden) contents() {
	heard := 0
	for _, one := range g.rows(root+"/Recordings.json?PageSize=1000", "recordings") {
		if one["status"] != "completed" || heard == 4 {
			continue
		}
		heard++
		path := strings.TrimSuffix(one["uri"].(string), ".json")
		for _, ending := range []string{"", ".wav", ".mp3", ".mp3?RequestedChannels=2", ".ogg"} {
			g.ask("GET", path+ending, nil)
		}
		g.ask("HEAD", path+".wav", nil)
		g.ask("GET", path+".wav", nil, "Range", "bytes=0-43")
	}
	seen := 0
	for _, one := range g.rows(root+"/Messages.json?PageSize=1000", "messages") {
		if one["num_media"] == "0" || seen == 6 {
			continue
		}
		seen++
		for _, medium := range g.rows(one["subresource_uris"].(record)["media"].(string), "media_list") {
			g.picture(strings.TrimSuffix(medium["uri"].(string), ".json"))
		}
	}
}

// picture follows a medium to its content.
func (g *golden) picture(path string) {
	g.ask("GET", path, nil)
	resp, _ := g.api.Fetch("GET", path)
	to, err := url.Parse(resp.Header.Get("Location"))
	if err != nil {
		g.api.T.Fatal(err)
	}
	g.ask("GET", to.RequestURI(), nil)
}

// moved moves the world and breaks it.
func (g *golden) moved() {
	g.ask("POST", "/-/advance", nil)
	for range 4 {
		g.out.WriteString(g.api.Control("/-/advance", `{"calls":5,"messages":9,"conferences":2,"alerts":3,"seconds":40}`, 200))
		g.ask("GET", root+"/Calls.json?PageSize=40", nil)
		g.ask("GET", root+"/Messages.json?PageSize=40", nil)
		g.ask("GET", root+"/Conferences.json?PageSize=40", nil)
		g.ask("GET", root+"/Recordings.json?PageSize=40", nil)
		g.ask("GET", "/v1/Alerts?PageSize=9", nil)
	}
	g.out.WriteString(g.api.Control("/-/edit", `{"kind":"messages","records":[`+
		`{"index":3,"price":"-0.5","body":"new"},{"index":5,"delete":true}]}`, 200))
	for _, rule := range []string{
		`"status":503,"retry_after":7`, `"body":"x","content_type":"text/html"`, `"redirect":"loop"`, `"status":204`, `"delay_ms":1`,
	} {
		g.out.WriteString(g.api.Control("/-/faults", `{"rules":[{"match":"Keys",`+rule+`}]}`, 200))
		g.ask("GET", root+"/Keys.json", nil)
	}
	g.api.Control("/-/faults", `{"rules":[]}`, 200)
}

// TestGoldenAnswersKnowEveryKind wants a line for every path of the routes.
func TestGoldenAnswersKnowEveryKind(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("testdata", "answers.golden"))
	if err != nil {
		t.Fatal(err)
	}
	all := slowapi.Paths()
	asked := map[*table.Route]bool{}
	for line := range strings.Lines(string(raw)) {
		words := strings.SplitN(line, " ", 3)
		if len(words) < 3 {
			continue
		}
		path, _, _ := strings.Cut(strings.Replace(words[1], "~", root, 1), "?")
		r, _ := all.Find(path)
		asked[r] = true
	}
	for i := range all {
		content := strings.Contains(all[i].Pattern, "s/*/Recordings/*") && !strings.HasSuffix(all[i].Pattern, ".json") // as below Recordings
		if !asked[&all[i]] && !content {
			t.Errorf("no answer of %s", all[i].Pattern)
		}
	}
}
