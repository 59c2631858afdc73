// The published documents, held against all that is neither a call nor a
// message: settings, queues, usage, numbers to buy, notifications, the Monitor API.

package vendors

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// TestSlowapiAnswersAsPublishedAboutAccounts checks every good answer about an
// account, and that no operation of the paths below was left out.
func TestSlowapiAnswersAsPublishedAboutAccounts(t *testing.T) {
	t.Parallel()
	p := startPublished(t)
	p.readSettings()
	p.writeSettings()
	p.readQueues()
	p.readNotifications()
	p.readUsage()
	p.readAvailable()
	p.everyOperation(func(path string) bool {
		rest, own := strings.CutPrefix(path, "/2010-04-01/Accounts/{AccountSid}/")
		rest = strings.TrimPrefix(rest, "Calls/{CallSid}/")
		first, _, _ := strings.Cut(strings.TrimSuffix(rest, ".json"), "/")
		return own && strings.Contains(" Applications OutgoingCallerIds Keys SigningKeys Addresses Queues Notifications Events Balance Tokens AvailablePhoneNumbers ", " "+first+" ") ||
			strings.HasPrefix(rest, "Usage/Records")
	}, 45)
}

// everyOperation wants each operation of some paths of the document checked, at
// least so many.
func (p *published) everyOperation(ours func(path string) bool, least int) {
	p.Helper()
	n := 0
	for path, item := range p.document.Paths.Map() {
		if !ours(path) {
			continue
		}
		for method := range item.Operations() {
			if n++; p.checked[method+" "+path] == 0 {
				p.Errorf("%s %s was never checked", method, path)
			}
		}
	}
	if n < least {
		p.Errorf("only %d operations, want %d", n, least)
	}
}

// allowSmallCurrency corrects the document where it contradicts itself: the
// currencies of usage are small letters in all its examples, and no ISO 4217.
func allowSmallCurrency(document *openapi3.T) {
	for name, schema := range document.Components.Schemas {
		if unit := schema.Value.Properties["price_unit"]; unit != nil && strings.Contains(name, ".usage_record") {
			unit.Value.Format, unit.Value.Pattern = "", "^[a-z]{3}$"
		}
	}
}

// mayMiss are names that published schemas have and published examples lack: the
// lists of available numbers have no paging, a STUN server asks for no password.
func mayMiss(where, name string) bool {
	switch {
	case strings.Contains(where, "/AvailablePhoneNumbers/"):
		return strings.Contains(name, "page") || name == "start" || name == "end"
	case strings.Contains(where, "/Tokens"):
		return name == "credential" || name == "username"
	}
	return false
}

// setByHand are the lists of what is set by hand, by their path and key, each
// with what makes a new one and what changes it.
var setByHand = []struct {
	path, key    string
	make, change url.Values
	made         int
}{
	{"Applications", "applications", url.Values{"VoiceUrl": {"https://example.com/v"}}, url.Values{"SmsMethod": {"GET"}, "SmsUrl": {"https://example.com/s"}}, 201},
	{"Keys", "keys", url.Values{"FriendlyName": {"k"}}, url.Values{"FriendlyName": {"K"}}, 201},
	{"SigningKeys", "signing_keys", url.Values{}, url.Values{"FriendlyName": {"K"}}, 201},
	{"Addresses", "addresses", url.Values{"CustomerName": {"c"}, "Street": {"s"}, "City": {"t"}, "Region": {"r"}, "PostalCode": {"p"}, "IsoCountry": {"DE"}}, url.Values{"StreetSecondary": {"2nd"}, "EmergencyEnabled": {"true"}}, 201},
	{"OutgoingCallerIds", "outgoing_caller_ids", url.Values{"PhoneNumber": {"+15005550006"}}, url.Values{"FriendlyName": {"me"}}, 200},
	{"Queues", "queues", url.Values{"FriendlyName": {"q"}, "MaxSize": {"7"}}, url.Values{"FriendlyName": {"Q"}}, 201},
}

// readSettings reads lists, filtered and not, and records.
func (p *published) readSettings() {
	for _, one := range setByHand {
		list := worldBase + "/" + one.path
		p.pages(list+".json?PageSize=2", one.key, 9)
		p.pages(list+".json?FriendlyName=nobody&EmergencyEnabled=true&IsoCountry=GB&CustomerName=x&PhoneNumber=%2B1", one.key, 1)
		for _, row := range p.pages(list+".json", one.key, 1) {
			p.do("GET", list+"/"+row["sid"].(string)+".json", nil, http.StatusOK)
		}
	}
	for _, address := range p.pages(worldBase+"/Addresses.json", "addresses", 1) {
		p.pages(worldBase+"/Addresses/"+address["sid"].(string)+"/DependentPhoneNumbers.json", "dependent_phone_numbers", 2)
	}
}

// writeSettings makes one of each, changes and deletes it.
func (p *published) writeSettings() {
	for _, one := range setByHand {
		list := worldBase + "/" + one.path
		p.do("POST", list+".json", one.make, one.made)
		newest := list + "/" + p.pages(list+".json?PageSize=1", one.key, 1)[0]["sid"].(string) + ".json"
		p.do("POST", newest, one.change, http.StatusOK)
		p.do("DELETE", newest, nil, http.StatusNoContent)
	}
	p.do("POST", worldBase+"/Tokens.json", url.Values{"Ttl": {"60"}}, http.StatusCreated)
}

// readQueues reads the waiting members, by SID and by Front. It removes the first of each queue.
func (p *published) readQueues() {
	waiting := 0
	for _, queue := range p.pages(worldBase+"/Queues.json", "queues", 1) {
		list := worldBase + "/Queues/" + queue["sid"].(string) + "/Members"
		members := p.pages(list+".json?PageSize=5", "queue_members", 9)
		waiting += len(members)
		for _, one := range members {
			p.do("GET", list+"/"+one["call_sid"].(string)+".json", nil, http.StatusOK)
		}
		if len(members) > 0 {
			p.do("GET", list+"/Front.json", nil, http.StatusOK)
			p.do("POST", list+"/Front.json", url.Values{"Url": {"https://example.com/v"}}, http.StatusOK)
		}
	}
	if waiting == 0 {
		p.Error("nobody waits in any queue")
	}
}

// readNotifications reads them under the account and under their calls, and the
// events of those calls.
func (p *published) readNotifications() {
	all := p.pages(worldBase+"/Notifications.json?PageSize=7", "notifications", 9)
	p.pages(worldBase+"/Notifications.json?Log=1&MessageDate%3E=2026-05-01&MessageDate%3C=2026-05-20", "notifications", 1)
	for _, one := range all {
		p.do("GET", one["uri"].(string), nil, http.StatusOK)
		call := worldBase + "/Calls/" + one["call_sid"].(string)
		for _, below := range p.pages(call+"/Notifications.json?Log=0", "notifications", 1) {
			p.do("GET", below["uri"].(string), nil, http.StatusOK)
		}
		p.pages(call+"/Events.json?PageSize=1", "events", 9)
	}
}

// readUsage reads every list of usage, and the balance.
func (p *published) readUsage() {
	for _, list := range []string{"", "/AllTime", "/Daily", "/LastMonth", "/Monthly", "/ThisMonth", "/Today", "/Yearly", "/Yesterday"} {
		for _, filters := range []string{"", "PageSize=5", "Category=sms&StartDate=-30days&EndDate=2026-06-01&IncludeSubaccounts=false"} {
			p.pages(worldBase+"/Usage/Records"+list+".json?"+filters, "usage_records", 3)
		}
	}
	p.do("GET", worldBase+"/Balance.json", nil, http.StatusOK)
}

// readAvailable reads the countries and every sort of number each has.
func (p *published) readAvailable() {
	for _, country := range p.do("GET", worldBase+"/AvailablePhoneNumbers.json", nil, http.StatusOK)["countries"].([]any) {
		country := country.(map[string]any)
		p.do("GET", country["uri"].(string), nil, http.StatusOK)
		for _, list := range country["subresource_uris"].(map[string]any) {
			p.pages(list.(string)+"?SmsEnabled=true&Contains=2*&PageSize=30", "available_phone_numbers", 1)
			p.pages(list.(string), "available_phone_numbers", 1)
		}
	}
}

// TestSlowapiMonitorsAsPublished checks the alerts and events of the Monitor API
// against its own document.
func TestSlowapiMonitorsAsPublished(t *testing.T) {
	t.Parallel()
	p := startPublished(t)
	p.document = loadPublished(t, "twilio_monitor_v1.json")
	for path, filters := range map[string][]string{
		"alerts": {"", "PageSize=3", "LogLevel=error&StartDate=2026-05-10&EndDate=2026-05-20T12:00:00Z"},
		"events": {"", "PageSize=3", "EventType=account.updated&StartDate=2026-04-01", "ActorSid=US" + strings.Repeat("0", 32)},
	} {
		list := "/v1/" + strings.ToUpper(path[:1]) + path[1:]
		for _, query := range filters {
			p.monitorPages(list+"?"+query, path)
		}
		for _, one := range p.monitorPages(list, path) {
			p.do("GET", strings.TrimPrefix(one["url"].(string), p.web.URL), nil, http.StatusOK)
		}
	}
	p.everyOperation(func(string) bool { return true }, 4)
}

// monitorPages reads a list of the Monitor API to its end, each page checked.
func (p *published) monitorPages(target, key string) (all []map[string]any) {
	p.Helper()
	for {
		body := p.do("GET", target, nil, http.StatusOK)
		for _, one := range body[key].([]any) {
			all = append(all, one.(map[string]any))
		}
		meta := body["meta"].(map[string]any)
		next, more := meta["next_page_url"].(string)
		if !more {
			return all
		}
		target = strings.TrimPrefix(next, p.web.URL)
	}
}
