// Find: one page of every sort, from what the viewer itself says.

// Package pages finds one page of the viewer of every sort, for pictures and for tests.
package pages

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Page is a page and what its pictures are called.
type Page struct{ Name, Path string }

// record is what is read of any record.
type record map[string]any

func (r record) text(name string) string { s, _ := r[name].(string); return s }

// Find gathers the addresses of the pages to take.
func Find(viewer string) ([]Page, error) {
	pages := []Page{
		{"home", "/"}, {"administration", "/-/administration"}, {"profile", "/-/profile"}, {"slow", "/-/slow"}, {"locks", "/-/locks"}, {"list", "/twilio/calls"}, {"messages", "/twilio/messages"}, {"filtered", "/twilio/calls?Status=busy"}, {"nothing", "/twilio/calls?From=%2B15550001111"},
		{"numbers", "/twilio/incoming_phone_numbers"}, {"alerts", "/twilio/alerts"}, {"recordings", "/twilio/recordings"}, {"notifications", "/twilio/notifications"},
		{"usage", "/twilio/usage_records"}, {"events", "/twilio/monitor_events"}, {"countries", "/twilio/countries"}, {"balance", "/twilio/balance"}, {"addresses", "/twilio/addresses"},
		{"lacking", "/twilio/participants"}, {"available", "/twilio/available_phone_numbers?CountryCode=US"}, {"missing", "/twilio/calls/CA00000000000000000000000000000000"},
		{"unknown", "/twilio/calls?Form=1"}, {"search", "/search"}, {"neither", "/search?q=hello+there"},
		{"found", "/search?q=kind:messages"}, {"selecting", "/twilio/messages?understudy.form=select"}, {"picking", "/search?q=kind:messages&form=select"}, {"mistake", "/search?q=status:busy+%28late"}, {"sums", "/search/sums?kind=messages&sum=price&by=day&by=direction"},
		{"lasted", "/search/sums?kind=messages&sum=delivery&by=to.country"}, {"unsummed", "/search/sums?kind=messages&sum=prize"}, {"sorted", "/twilio/calls?understudy.sort=-duration&understudy.narrow=direction%3Dinbound"},
		{"connect", "/-/connect"}, {"credential", "/-/connect/masked"}, {"roles", "/-/roles"}, {"role", "/-/roles/support"},
		{"explain", "/-/roles/support/twilio/messages"}, {"audit", "/-/audit"}, {"forecast", "/-/forecast/twilio/balance.balance"}, {"watches", "/-/watches"},
		{"watch", "/-/watches/new?search=late"}, {"send", "/-/do/twilio/messages/send"}, {"sync", "/-/do/twilio/messages/sync"}, {"timezones", "/-/timezone?back=/"}, {"keys", "/-/keys"},
	}
	for _, add := range []func(string, []Page) ([]Page, error){findCalls, findMessages, findConferences, findOthers} {
		var err error
		if pages, err = add(viewer, pages); err != nil {
			return nil, err
		}
	}
	return pages, nil
}

func findCalls(viewer string, pages []Page) ([]Page, error) {
	recordings, err := records(viewer, "recordings", "?PageSize=200")
	if err != nil {
		return nil, err
	}
	for _, r := range recordings {
		if r.text("conference_sid") == "" && r.text("status") == "completed" {
			return append(pages, Page{"call", "/twilio/calls/" + r.text("call_sid")}, Page{"recording", "/twilio/recordings/" + r.text("sid")}), nil
		}
	}
	return nil, fmt.Errorf("no recording of a call")
}

// findMessages finds a long text, one with media, one that failed, and the two
// numbers that talk most.
func findMessages(viewer string, pages []Page) ([]Page, error) {
	messages, err := records(viewer, "messages", "?PageSize=1000")
	if err != nil {
		return nil, err
	}
	first := func(name string, is func(record) bool) error {
		i := slices.IndexFunc(messages, is)
		if i < 0 {
			return fmt.Errorf("no message for %s", name)
		}
		pages = append(pages, Page{name, "/twilio/messages/" + messages[i].text("sid")})
		return nil
	}
	if err := first("message", func(r record) bool { return len(r.text("body")) > 90 && r.text("status") == "delivered" }); err != nil {
		return nil, err
	}
	if err := first("failed", func(r record) bool { return r["error_code"] != nil }); err != nil {
		return nil, err
	}
	pages = append(pages, Page{"erase", "/-/do/twilio/messages/erase/" + messages[0].text("sid")})
	if err := first("pictured", func(r record) bool { return r.text("num_media") != "0" }); err != nil {
		return nil, err
	}
	own, err := records(viewer, "incoming_phone_numbers", "")
	if err != nil || len(own) == 0 {
		return nil, fmt.Errorf("no numbers of our own: %w", err)
	}
	number := "/twilio/number/" + own[0].text("phone_number")
	var data struct{ Partners []struct{ Href string } }
	if err := read(viewer+number+".json", &data); err != nil {
		return nil, err
	}
	pages = append(pages, Page{"number-own", number})
	if len(data.Partners) == 0 {
		return nil, fmt.Errorf("%s has no partners", number)
	}
	other := data.Partners[0].Href
	partner := other[strings.LastIndexByte(other, '/')+1:]
	return append(pages, Page{"conversation", other}, Page{"number", "/twilio/number/" + partner}, Page{"erase-person", "/-/do/twilio/number/erase/" + partner}), nil
}

func findConferences(viewer string, pages []Page) ([]Page, error) {
	conferences, err := records(viewer, "conferences", "?Status=in-progress")
	if err != nil {
		return nil, err
	}
	if len(conferences) == 0 {
		if conferences, err = records(viewer, "conferences", ""); err != nil || len(conferences) == 0 {
			return nil, fmt.Errorf("no conferences: %w", err)
		}
	}
	return append(pages, Page{"conference", "/twilio/conferences/" + conferences[0].text("sid")}), nil
}

func findOthers(viewer string, pages []Page) ([]Page, error) {
	for _, kind := range []string{"alerts", "queues", "notifications"} {
		all, err := records(viewer, kind, "")
		if err != nil || len(all) == 0 {
			return nil, fmt.Errorf("no %s: %w", kind, err)
		}
		pages = append(pages, Page{strings.TrimSuffix(kind, "s"), "/twilio/" + kind + "/" + all[0].text("sid")})
	}
	return pages, nil
}

// records are a page of a kind's records, whatever its list is called.
func records(viewer, kind, query string) ([]record, error) {
	var body map[string]json.RawMessage
	if err := read(viewer+"/twilio/"+url.PathEscape(kind)+".json"+query, &body); err != nil {
		return nil, err
	}
	for _, value := range body {
		var all []record
		if json.Unmarshal(value, &all) == nil && all != nil {
			return all, nil
		}
	}
	return nil, fmt.Errorf("%s: no list in the answer", kind)
}

func read(address string, into any) error {
	client := http.Client{Timeout: 20 * time.Second}
	resp, err := client.Get(address)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 10<<20))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil || resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s %.200s", address, resp.Status, body)
	}
	return nil
}

// Down makes upstream fail, waits until the viewer knows, and gives the pages that say so.
func Down(viewer, api string) ([]Page, error) {
	if err := post(api+"/-/faults", `{"rules":[{"match":"","status":503}]}`); err != nil {
		return nil, err
	}
	return []Page{{"held", "/twilio/calls"}, {"outage", "/twilio/messages?PageSize=100"}}, fell(viewer)
}

// fell waits until the viewer knows that upstream is down.
func fell(viewer string) error {
	for i := range 100 {
		var home struct{ Sources []struct{ State string } }
		if err := read(viewer+"/index.json", &home); err != nil {
			return err
		}
		if home.Sources[0].State == "down" {
			return nil
		}
		resp, err := http.Get(fmt.Sprintf("%s/twilio/calls/CA%032x", viewer, 1+i)) // a record that is not held; a short list may be part of a long one
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, resp.Body) // the page comes in pieces; closed after the first, it would not ask upstream
		_ = resp.Body.Close()
		if err != nil {
			return err
		}
	}
	return fmt.Errorf("the source never went down")
}
