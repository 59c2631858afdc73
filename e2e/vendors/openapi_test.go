// The published documents: every good answer of slowapi is checked against them.

package vendors

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"understudy/internal/slowapi"
)

// Who slowapi knows.
const (
	worldAccount = "AC00000000000000000000000000000001"
	worldToken   = "slowapitoken"
	worldBase    = "/2010-04-01/Accounts/" + worldAccount
)

// published is a provider's OpenAPI document together with the slowapi it is
// held against.
type published struct {
	*testing.T
	document *openapi3.T
	web      *httptest.Server
	checked  map[string]int // good answers, by method and path of the document
}

// loadPublished reads a document from the folder that holds them: the one named
// by UNDERSTUDY_OPENAPI, else shared/openapi beside the project. Without it the
// check is left out, except where CI says that it must be there.
func loadPublished(t *testing.T, name string) *openapi3.T {
	t.Helper()
	folder := os.Getenv("UNDERSTUDY_OPENAPI")
	if folder == "" {
		folder = filepath.Join("..", "..", "..", "shared", "openapi")
	}
	path := filepath.Join(folder, name)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(filepath.Join("..", "..", "..", "shared")); err == nil && os.Getenv("CI") == "true" {
			t.Fatalf("%s is missing, though the folder it belongs in is there", path)
		}
		t.Logf("left out: answers are not checked against %s, because it is not there; name its folder in UNDERSTUDY_OPENAPI", path)
		t.Skip("the published document is absent")
	}
	document, err := openapi3.NewLoader().LoadFromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	allowEmptySIDs(document)
	allowSmallCurrency(document)
	return document
}

// allowEmptySIDs corrects the document where it contradicts itself: its schema
// wants 34 characters in sms_application_sid, its own examples show "".
func allowEmptySIDs(document *openapi3.T) {
	for name, schema := range document.Components.Schemas {
		sid := schema.Value.Properties["sms_application_sid"]
		if sid == nil || !strings.Contains(name, "incoming_phone_number") {
			continue
		}
		sid.Value.MinLength, sid.Value.Pattern = 0, "^(AP[0-9a-fA-F]{32})?$"
	}
}

// formats are those the documents name, really checked: most are unknown to
// OpenAPI and would pass anything.
var formats = map[string]openapi3.StringFormatValidator{
	"date-time-rfc-2822": openapi3.NewCallbackValidator(func(text string) error {
		if !rfc2822.MatchString(text) {
			return errors.New("no date of RFC 2822 in UTC")
		}
		_, err := time.Parse(time.RFC1123Z, text)
		return err
	}),
	"currency":         openapi3.NewRegexpFormatValidator(`^[A-Z]{3}$`),
	"http-method":      openapi3.NewRegexpFormatValidator(`^(GET|POST)$`),
	"phone-number":     openapi3.NewRegexpFormatValidator(`^(whatsapp:)?(\+[0-9]{4,15}|[0-9]{3,8})$|^[A-Za-z0-9 ]{1,11}$|^\([0-9]{3}\) [0-9]{3}-[0-9]{4}$`),
	"iso-country-code": openapi3.NewRegexpFormatValidator(`^[A-Z]{2}$`),
	"date":             openapi3.NewRegexpFormatValidator(`^\d{4}-\d\d-\d\d$`),
	"date-time":        openapi3.NewRegexpFormatValidator(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$`),
	"uri": openapi3.NewCallbackValidator(func(text string) error {
		at, err := url.Parse(text)
		if err == nil && text != "" && at.Host == "" && !strings.HasPrefix(text, "/2010-04-01/") {
			return errors.New("neither absolute nor below /2010-04-01")
		}
		return err
	}),
}

var rfc2822 = regexp.MustCompile(`^(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d (Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) \d{4} \d\d:\d\d:\d\d \+0000$`)

// do sends a request and checks a good answer against the document.
func (p *published) do(method, target string, form url.Values, want int) map[string]any {
	p.Helper()
	req, err := http.NewRequest(method, p.web.URL+target, strings.NewReader(form.Encode()))
	if err != nil {
		p.Fatal(err)
	}
	req.SetBasicAuth(worldAccount, worldToken)
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	resp, err := p.web.Client().Do(req)
	if err != nil {
		p.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != want {
		p.Fatalf("%s %s: %d %v %s", method, target, resp.StatusCode, err, raw)
	}
	path, operation := p.operation(method, req.URL.Path)
	p.checked[method+" "+path]++
	answer := operation.Responses.Value(fmt.Sprint(want))
	if answer == nil {
		p.Fatalf("%s %s: the document has no answer %d", method, path, want)
	}
	if want == http.StatusNoContent {
		if len(raw) != 0 {
			p.Errorf("%s %s: 204 with a body", method, target)
		}
		return nil
	}
	var body map[string]any
	if err := json.Unmarshal(raw, &body); err != nil {
		p.Fatal(err)
	}
	schema := answer.Value.Content.Get(resp.Header.Get("Content-Type")).Schema.Value
	if err := p.validate(schema, body); err != nil {
		p.Errorf("%s %s: %v", method, target, err)
	}
	p.sameNames(method+" "+target, schema, body)
	return body
}

func (p *published) validate(schema *openapi3.Schema, body any) error {
	return schema.VisitJSON(body, openapi3.MultiErrors(), openapi3.VisitAsResponse(), openapi3.EnableFormatValidation(), openapi3.WithStringFormatValidators(formats))
}

// operation finds the path of the document a request belongs to; one that names
// no SID goes before one that does.
func (p *published) operation(method, path string) (string, *openapi3.Operation) {
	p.Helper()
	parts := strings.Split(path, "/")
	best, found := "", (*openapi3.Operation)(nil)
	for candidate, item := range p.document.Paths.Map() {
		names := strings.Split(candidate, "/")
		same := len(names) == len(parts)
		for i := 0; same && i < len(names); i++ {
			same = names[i] == parts[i] || strings.HasPrefix(names[i], "{") && (strings.HasSuffix(names[i], ".json") == strings.HasSuffix(parts[i], ".json"))
		}
		if operation := item.GetOperation(method); same && operation != nil && (found == nil || strings.Count(candidate, "{") < strings.Count(best, "{")) {
			best, found = candidate, operation
		}
	}
	if found == nil {
		p.Fatalf("%s %s is not in the document", method, path)
	}
	return best, found
}

// sameNames wants exactly the names of the schema: the document forbids no
// others, but a name it does not know is most likely a mistake of ours.
func (p *published) sameNames(where string, schema *openapi3.Schema, value any) {
	p.Helper()
	switch value := value.(type) {
	case []any:
		for _, one := range value {
			p.sameNames(where, schema.Items.Value, one)
		}
	case map[string]any:
		if len(schema.Properties) == 0 {
			return // a map with names of its own
		}
		for name, field := range value {
			if property := schema.Properties[name]; property != nil {
				p.sameNames(where, property.Value, field)
			} else if name != "type" { // which the schemas of /Local, /Mobile and /TollFree lack
				p.Errorf("%s: %s is not in the schema", where, name)
			}
		}
		for name := range schema.Properties {
			if _, there := value[name]; !there && !mayMiss(where, name) {
				p.Errorf("%s: %s is missing", where, name)
			}
		}
	}
}

// pages reads so many pages of a list, each checked, and returns their records.
func (p *published) pages(target, key string, most int) (all []map[string]any) {
	p.Helper()
	for range most {
		body := p.do("GET", target, nil, http.StatusOK)
		for _, one := range body[key].([]any) {
			all = append(all, one.(map[string]any))
		}
		next, more := body["next_page_uri"].(string)
		if !more {
			break
		}
		target = next
	}
	return all
}

func startPublished(t *testing.T) *published {
	t.Helper()
	document := loadPublished(t, "twilio_api_v2010.json")
	api, err := slowapi.New(slowapi.Options{Records: 1000})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(api)
	t.Cleanup(func() {
		web.Close()
		if err := api.Close(); err != nil {
			t.Error(err)
		}
	})
	return &published{t, document, web, map[string]int{}}
}

func TestSlowapiAnswersAsPublished(t *testing.T) {
	t.Parallel()
	p := startPublished(t)
	p.readEverything()
	p.writeEverything()
	p.everyState()
	for _, operation := range []string{
		"GET /2010-04-01/Accounts.json", "POST /2010-04-01/Accounts.json",
		"GET /2010-04-01/Accounts/{Sid}.json", "POST /2010-04-01/Accounts/{Sid}.json",
		"GET /2010-04-01/Accounts/{AccountSid}/IncomingPhoneNumbers/Local.json", "POST /2010-04-01/Accounts/{AccountSid}/IncomingPhoneNumbers/Local.json",
		"GET /2010-04-01/Accounts/{AccountSid}/IncomingPhoneNumbers/Mobile.json", "POST /2010-04-01/Accounts/{AccountSid}/IncomingPhoneNumbers/Mobile.json",
		"GET /2010-04-01/Accounts/{AccountSid}/IncomingPhoneNumbers/TollFree.json", "POST /2010-04-01/Accounts/{AccountSid}/IncomingPhoneNumbers/TollFree.json",
	} {
		if p.checked[operation] == 0 {
			t.Errorf("%s was never checked", operation)
		}
	}
	for _, kind := range []string{"Calls", "Messages", "IncomingPhoneNumbers"} {
		path := "/2010-04-01/Accounts/{AccountSid}/" + kind
		for _, operation := range []string{"GET " + path + ".json", "POST " + path + ".json", "GET " + path + "/{Sid}.json", "POST " + path + "/{Sid}.json", "DELETE " + path + "/{Sid}.json"} {
			if p.checked[operation] == 0 {
				t.Errorf("%s was never checked", operation)
			}
		}
	}
}

// readEverything reads lists, with filters and without, and records.
func (p *published) readEverything() {
	p.pages("/2010-04-01/Accounts.json?PageSize=1", "accounts", 5)
	p.pages("/2010-04-01/Accounts.json?FriendlyName=Field%20office&Status=active", "accounts", 1)
	p.do("GET", worldBase+".json", nil, http.StatusOK)
	for _, filters := range []string{"", "PageSize=1000", "Status=completed", "StartTime%3E=2026-05-01&StartTime%3C=2026-05-20T10:00:00Z", "EndTime=2026-05-07", "To=%2B1", "PageSize=7&Page=3"} {
		p.pages(worldBase+"/Calls.json?"+filters, "calls", 3)
	}
	for _, filters := range []string{"", "PageSize=1000", "DateSent%3E=2026-05-01", "DateSent%3C=2026-05-20T10:00:00Z", "DateSent=2026-05-07", "From=72975"} {
		p.pages(worldBase+"/Messages.json?"+filters, "messages", 3)
	}
	for _, list := range []string{"", "/Local", "/Mobile", "/TollFree"} {
		for _, filters := range []string{"", "PageSize=1", "Beta=true", "Origin=hosted", "PhoneNumber=%2B1***"} {
			p.pages(worldBase+"/IncomingPhoneNumbers"+list+".json?"+filters, "incoming_phone_numbers", 9)
		}
	}
	for kind, key := range map[string]string{"Calls": "calls", "Messages": "messages", "IncomingPhoneNumbers": "incoming_phone_numbers"} {
		for _, one := range p.pages(worldBase+"/"+kind+".json?PageSize=40", key, 1) {
			p.do("GET", one["uri"].(string), nil, http.StatusOK)
		}
	}
}

// writeEverything creates, updates and deletes.
func (p *published) writeEverything() {
	parties := url.Values{"To": {"+15005550006"}, "From": {"+15005550001"}, "Url": {"https://example.com/voice"}, "Body": {"שלום 👍 <b>\n"}}
	call := p.do("POST", worldBase+"/Calls.json", parties, http.StatusCreated)["uri"].(string)
	p.do("GET", call, nil, http.StatusOK)
	p.do("POST", call, url.Values{"Status": {"canceled"}}, http.StatusOK)
	p.do("DELETE", call, nil, http.StatusNoContent)

	sms := p.do("POST", worldBase+"/Messages.json", parties, http.StatusCreated)["uri"].(string)
	p.do("POST", sms, url.Values{"Body": {""}}, http.StatusOK)
	p.do("POST", sms, url.Values{"Status": {"canceled"}}, http.StatusOK)
	p.do("DELETE", sms, nil, http.StatusNoContent)
	service := url.Values{"To": {"+15005550006"}, "MessagingServiceSid": {"MG" + strings.Repeat("0", 32)}, "ScheduleType": {"fixed"}, "MediaUrl": {"https://example.com/a.png"}}
	p.do("POST", worldBase+"/Messages.json", service, http.StatusCreated)

	number := ""
	for list, phone := range map[string]string{"": "+12025550100", "/Local": "+12025550101", "/Mobile": "+447700900123", "/TollFree": "+18005550100"} {
		form := url.Values{"PhoneNumber": {phone}, "FriendlyName": {"Desk"}, "VoiceUrl": {"https://example.com/v"}}
		number = p.do("POST", worldBase+"/IncomingPhoneNumbers"+list+".json", form, http.StatusCreated)["uri"].(string)
	}
	p.do("POST", number, url.Values{"SmsMethod": {"GET"}, "VoiceCallerIdLookup": {"true"}, "EmergencyStatus": {"Active"}}, http.StatusOK)
	p.do("DELETE", number, nil, http.StatusNoContent)

	below := p.do("POST", "/2010-04-01/Accounts.json", url.Values{"FriendlyName": {"Third"}}, http.StatusCreated)["uri"].(string)
	p.do("POST", below, url.Values{"Status": {"suspended"}}, http.StatusOK)
	p.do("GET", strings.Replace(below, ".json", "/Calls.json", 1), nil, http.StatusOK)
}

// everyState moves new records through all their states.
func (p *published) everyState() {
	for range 8 {
		resp, err := http.Post(p.web.URL+"/-/advance", "application/json", strings.NewReader(`{"calls":20,"messages":40,"seconds":30}`))
		if err != nil {
			p.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			p.Fatalf("advance: %d", resp.StatusCode)
		}
		p.pages(worldBase+"/Calls.json?PageSize=200", "calls", 1)
		p.pages(worldBase+"/Messages.json?PageSize=400", "messages", 1)
	}
}

// TestPublishedFormatsAreChecked breaks good answers, to see that the check
// above can fail.
func TestPublishedFormatsAreChecked(t *testing.T) {
	t.Parallel()
	p := startPublished(t)
	_, operation := p.operation("GET", worldBase+"/Calls/CA0.json")
	schema := operation.Responses.Value("200").Value.Content.Get("application/json").Schema.Value
	good := p.pages(worldBase+"/Calls.json?Status=completed&PageSize=20", "calls", 1)[19]
	if err := p.validate(schema, any(good)); err != nil {
		t.Fatalf("good, and refused: %v", err)
	}
	for name, bad := range map[string]any{
		"date_created": "2026-06-01T12:00:00Z", "start_time": "Xyz, 01 Jun 2026 12:00:00 +0000", "end_time": "Mon, 01 Jun 2026 12:00:00 GMT",
		"sid": "SM" + strings.Repeat("0", 32), "account_sid": "AC0", "price_unit": "usd", "status": "gone", "duration": 4.0, "to": true,
	} {
		was := good[name]
		good[name] = bad
		if err := p.validate(schema, any(good)); err == nil {
			t.Errorf("%s = %v passed", name, bad)
		}
		good[name] = was
	}
}
