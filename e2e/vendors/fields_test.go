// The fields of slowapi's bodies are those of twilio-go's models, both ways.

package vendors

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"

	api "github.com/twilio/twilio-go/rest/api/v2010"
	monitor "github.com/twilio/twilio-go/rest/monitor/v1"

	"understudy/internal/slowapi"
)

// body is one answer: where it is read, under which key its records stand (""
// is a record itself), and the model of that record.
type body struct {
	path, key string
	model     any
}

// TestSlowapiHasTheFieldsOfTheSDK reads a list and a record of every kind. It
// wants each field of each body in the model of twilio-go, and each field of
// the model in the bodies.
func TestSlowapiHasTheFieldsOfTheSDK(t *testing.T) {
	t.Parallel()
	w := startFields(t)
	call := w.first(worldBase+"/Notifications.json", "notifications")["call_sid"].(string)
	recorded := w.first(worldBase+"/Recordings.json", "recordings")["call_sid"].(string)
	room := w.first(worldBase+"/Conferences.json?Status=completed", "conferences")["sid"].(string)
	open := w.first(worldBase+"/Conferences.json?Status=in-progress", "conferences")["sid"].(string)
	recording := w.first(worldBase+"/Transcriptions.json", "transcriptions")["recording_sid"].(string)
	for _, one := range []body{
		{"/2010-04-01/Accounts.json", "accounts", api.ApiV2010Account{}},
		{worldBase + "/Addresses.json", "addresses", api.ApiV2010Address{}},
		{worldBase + "/Applications.json", "applications", api.ApiV2010Application{}},
		{worldBase + "/AvailablePhoneNumbers.json", "countries", api.ApiV2010AvailablePhoneNumberCountry{}},
		{worldBase + "/AvailablePhoneNumbers/US/Local.json", "available_phone_numbers", api.ApiV2010AvailablePhoneNumberLocal{}},
		{worldBase + "/AvailablePhoneNumbers/GB/Mobile.json", "available_phone_numbers", api.ApiV2010AvailablePhoneNumberMobile{}},
		{worldBase + "/AvailablePhoneNumbers/US/TollFree.json", "available_phone_numbers", api.ApiV2010AvailablePhoneNumberTollFree{}},
		{worldBase + "/Balance.json", "", api.ApiV2010Balance{}},
		{worldBase + "/Calls.json", "calls", api.ApiV2010Call{}},
		{worldBase + "/Calls/" + call + "/Events.json", "events", api.ApiV2010CallEvent{}},
		{worldBase + "/Calls/" + call + "/Notifications.json", "notifications", api.ApiV2010CallNotification{}},
		{worldBase + "/Calls/" + recorded + "/Recordings.json", "recordings", api.ApiV2010CallRecording{}},
		{worldBase + "/Conferences.json", "conferences", api.ApiV2010Conference{}},
		{worldBase + "/Conferences/" + open + "/Participants.json", "participants", api.ApiV2010Participant{}},
		{worldBase + "/Conferences/" + room + "/Recordings.json", "recordings", api.ApiV2010ConferenceRecording{}},
		{worldBase + "/IncomingPhoneNumbers.json", "incoming_phone_numbers", api.ApiV2010IncomingPhoneNumber{}},
		{worldBase + "/IncomingPhoneNumbers/Local.json", "incoming_phone_numbers", api.ApiV2010IncomingPhoneNumberLocal{}},
		{worldBase + "/IncomingPhoneNumbers/Mobile.json", "incoming_phone_numbers", api.ApiV2010IncomingPhoneNumberMobile{}},
		{worldBase + "/IncomingPhoneNumbers/TollFree.json", "incoming_phone_numbers", api.ApiV2010IncomingPhoneNumberTollFree{}},
		{worldBase + "/Keys.json", "keys", api.ApiV2010Key{}},
		{worldBase + "/Messages.json", "messages", api.ApiV2010Message{}},
		{worldBase + "/Notifications.json", "notifications", api.ApiV2010Notification{}},
		{worldBase + "/OutgoingCallerIds.json", "outgoing_caller_ids", api.ApiV2010OutgoingCallerId{}},
		{worldBase + "/Queues.json", "queues", api.ApiV2010Queue{}},
		{worldBase + "/Recordings.json", "recordings", api.ApiV2010Recording{}},
		{worldBase + "/Recordings/" + recording + "/Transcriptions.json", "transcriptions", api.ApiV2010RecordingTranscription{}},
		{worldBase + "/SigningKeys.json", "signing_keys", api.ApiV2010SigningKey{}},
		{worldBase + "/Transcriptions.json", "transcriptions", api.ApiV2010Transcription{}},
		{worldBase + "/Usage/Records.json", "usage_records", api.ApiV2010UsageRecord{}},
		{worldBase + "/Usage/Records/AllTime.json", "usage_records", api.ApiV2010UsageRecordAllTime{}},
		{worldBase + "/Usage/Records/Daily.json", "usage_records", api.ApiV2010UsageRecordDaily{}},
		{worldBase + "/Usage/Records/Monthly.json", "usage_records", api.ApiV2010UsageRecordMonthly{}},
		{"/v1/Alerts", "alerts", monitor.MonitorV1Alert{}},
		{"/v1/Events", "events", monitor.MonitorV1Event{}},
	} {
		rows := w.rows(one.path, one.key)
		w.same(one.path, one.model, rows...)
		w.alone(one.path, one.model, rows[0])
	}
	message := w.first(worldBase+"/Messages.json", "messages", func(m map[string]any) bool { return m["num_media"] != "0" })
	media := message["subresource_uris"].(map[string]any)["media"].(string)
	w.same(media, api.ApiV2010Media{}, w.rows(media, "media_list")...)
	for _, address := range w.rows(worldBase+"/Addresses.json", "addresses") {
		path := worldBase + "/Addresses/" + address["sid"].(string) + "/DependentPhoneNumbers.json"
		w.some(path, "dependent_phone_numbers", api.ApiV2010DependentPhoneNumber{})
	}
	for _, queue := range w.rows(worldBase+"/Queues.json", "queues") {
		w.some(worldBase+"/Queues/"+queue["sid"].(string)+"/Members.json", "queue_members", api.ApiV2010Member{})
	}
	w.made()
	w.lists(call)
}

// made holds the answers to creations against their models.
func (w *fieldsWorld) made() {
	for _, one := range []struct {
		path  string
		form  url.Values
		model any
	}{
		{"/Keys.json", url.Values{"FriendlyName": {"k"}}, api.ApiV2010NewKey{}},
		{"/SigningKeys.json", url.Values{"FriendlyName": {"k"}}, api.ApiV2010NewSigningKey{}},
		{"/OutgoingCallerIds.json", url.Values{"PhoneNumber": {"+15005550006"}}, api.ApiV2010ValidationRequest{}},
		{"/Tokens.json", url.Values{}, api.ApiV2010Token{}},
		{"/Calls.json", url.Values{"To": {"+15005550006"}, "From": {"+15005550001"}}, api.ApiV2010Call{}},
		{"/Messages.json", url.Values{"To": {"+15005550006"}, "From": {"+15005550001"}, "Body": {"x"}}, api.ApiV2010Message{}},
	} {
		w.same("POST "+one.path, one.model, w.ask("POST", worldBase+one.path, one.form))
	}
}

// lists holds what stands around the records of a list against the SDK's pages.
func (w *fieldsWorld) lists(call string) {
	for path, model := range map[string]any{
		"/Calls.json":                          api.ListCallResponse{},
		"/Messages.json":                       api.ListMessageResponse{},
		"/Recordings.json":                     api.ListRecordingResponse{},
		"/Queues.json":                         api.ListQueueResponse{},
		"/Calls/" + call + "/Events.json":      api.ListCallEventResponse{},
		"/AvailablePhoneNumbers.json":          api.ListAvailablePhoneNumberCountryResponse{},
		"/AvailablePhoneNumbers/US/Local.json": api.ListAvailablePhoneNumberLocalResponse{},
	} {
		w.same("list "+path, model, w.ask("GET", worldBase+path, nil))
	}
	w.same("list /v1/Alerts", monitor.ListAlertResponse{}, w.ask("GET", "/v1/Alerts", nil))
	w.same("list /v1/Events", monitor.ListEventResponse{}, w.ask("GET", "/v1/Events", nil))
}

// alone reads the record of a row and holds it against the model of a record.
func (w *fieldsWorld) alone(path string, model any, row map[string]any) {
	w.Helper()
	where, _ := row["uri"].(string)
	if where == "" {
		where, _ = row["url"].(string)
		where = strings.TrimPrefix(where, w.web.URL)
	}
	if where == "" || strings.Contains(where, "/Usage/") {
		return // a row without a record of its own
	}
	switch model.(type) {
	case api.ApiV2010Notification:
		model = api.ApiV2010NotificationInstance{}
	case api.ApiV2010CallNotification:
		model = api.ApiV2010CallNotificationInstance{}
	case api.ApiV2010IncomingPhoneNumberLocal, api.ApiV2010IncomingPhoneNumberMobile, api.ApiV2010IncomingPhoneNumberTollFree:
		model = api.ApiV2010IncomingPhoneNumber{}
	case monitor.MonitorV1Alert:
		model = monitor.MonitorV1AlertInstance{}
	}
	w.same(where, model, w.ask("GET", where, nil))
}

// some holds a list that may be empty.
func (w *fieldsWorld) some(path, key string, model any) {
	w.Helper()
	body := w.ask("GET", path, nil)
	for _, row := range body[key].([]any) {
		w.same(path, model, row.(map[string]any))
	}
}

// fieldsWorld is a slowapi whose bodies are held against models.
type fieldsWorld struct {
	*testing.T
	web  *httptest.Server
	used map[string]bool // the exceptions that were met
}

func startFields(t *testing.T) *fieldsWorld {
	t.Helper()
	slow, err := slowapi.New(slowapi.Options{Records: 1000})
	if err != nil {
		t.Fatal(err)
	}
	w := &fieldsWorld{T: t, web: httptest.NewServer(slow), used: map[string]bool{}}
	t.Cleanup(func() {
		w.web.Close()
		if err := slow.Close(); err != nil {
			t.Error(err)
		}
		for field := range otherwise {
			if !w.used[field] {
				t.Errorf("%s is excepted, and agrees: take it out of the table", field)
			}
		}
	})
	return w
}

func (w *fieldsWorld) ask(method, target string, form url.Values) (body map[string]any) {
	w.Helper()
	req, err := http.NewRequest(method, w.web.URL+target, strings.NewReader(form.Encode()))
	if err != nil {
		w.Fatal(err)
	}
	req.SetBasicAuth(worldAccount, worldToken)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := w.web.Client().Do(req)
	if err != nil {
		w.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&body); err != nil || resp.StatusCode > 299 {
		w.Fatalf("%s %s: %d %v", method, target, resp.StatusCode, err)
	}
	return body
}

// rows are the records under a key; a body without a key is a record itself.
func (w *fieldsWorld) rows(path, key string) (all []map[string]any) {
	w.Helper()
	body := w.ask("GET", path, nil)
	if key == "" {
		return []map[string]any{body}
	}
	rows, _ := body[key].([]any)
	for _, row := range rows {
		all = append(all, row.(map[string]any))
	}
	if len(all) == 0 {
		w.Fatalf("%s: no %s", path, key)
	}
	return all
}

// first is the first record of a list that passes every test.
func (w *fieldsWorld) first(path, key string, tests ...func(map[string]any) bool) map[string]any {
	w.Helper()
	for _, row := range w.rows(path, key) {
		if !slices.ContainsFunc(tests, func(test func(map[string]any) bool) bool { return !test(row) }) {
			return row
		}
	}
	w.Fatalf("%s: no record passes", path)
	return nil
}

// otherwise lists the fields in which the API and the model of twilio-go
// differ, by model, each with the reason.
var otherwise = map[string]string{
	"ApiV2010IncomingPhoneNumberLocal.type":    typeOfNumbers,
	"ApiV2010IncomingPhoneNumberMobile.type":   typeOfNumbers,
	"ApiV2010IncomingPhoneNumberTollFree.type": typeOfNumbers,

	"ApiV2010AccountTokenIceServers.credential": stunServer,
	"ApiV2010AccountTokenIceServers.username":   stunServer,

	"ListAvailablePhoneNumberLocalResponse.end":               unpaged,
	"ListAvailablePhoneNumberLocalResponse.first_page_uri":    unpaged,
	"ListAvailablePhoneNumberLocalResponse.next_page_uri":     unpaged,
	"ListAvailablePhoneNumberLocalResponse.page":              unpaged,
	"ListAvailablePhoneNumberLocalResponse.page_size":         unpaged,
	"ListAvailablePhoneNumberLocalResponse.previous_page_uri": unpaged,
	"ListAvailablePhoneNumberLocalResponse.start":             unpaged,
}

// The reasons for the differences.
const (
	typeOfNumbers = "the number has a type in every list; the models of three lists lack it"
	stunServer    = "the STUN server asks for no password"
	unpaged       = "the list has no pages: the published examples show its rows and its URI alone"
)

// same wants the names of a model in every record, and no others.
func (w *fieldsWorld) same(where string, model any, records ...map[string]any) {
	w.Helper()
	of := reflect.TypeOf(model)
	for _, record := range records {
		w.names(where, of, record)
	}
}

func (w *fieldsWorld) names(where string, of reflect.Type, record map[string]any) {
	w.Helper()
	fields := map[string]reflect.Type{}
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		fields[name] = of.Field(i).Type
	}
	for _, name := range slices.Sorted(maps.Keys(record)) {
		inner, known := fields[name]
		if !known {
			w.differs(where, of.Name()+"."+name, "is not in the model")
			continue
		}
		w.inside(where, inner, record[name])
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if _, there := record[name]; !there {
			w.differs(where, of.Name()+"."+name, "is missing")
		}
	}
}

// inside goes on in fields that have a model of their own.
func (w *fieldsWorld) inside(where string, of reflect.Type, value any) {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct {
		return
	}
	switch value := value.(type) {
	case map[string]any:
		w.names(where, of, value)
	case []any:
		for _, one := range value {
			w.inside(where, of, one)
		}
	}
}

func (w *fieldsWorld) differs(where, field, how string) {
	w.Helper()
	if _, known := otherwise[field]; known {
		w.used[field] = true
		return
	}
	w.Errorf("%s: %s %s", where, field, how)
}
