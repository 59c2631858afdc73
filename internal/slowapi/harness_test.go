// What the tests share: a running slowapi and a client that knows it.
package slowapi

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

const (
	mainSID = "AC00000000000000000000000000000001"
	root    = "/2010-04-01/Accounts/" + mainSID
)

// running is a server under test.
type running struct {
	*testing.T
	api *Server
	web *httptest.Server
}

// start runs a slowapi for the length of a test.
func start(t *testing.T, o Options) running {
	t.Helper()
	api, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(api)
	t.Cleanup(func() {
		if err := api.Close(); err != nil {
			t.Error(err)
		}
		web.Close()
	})
	return running{t, api, web}
}

// ask sends a request with credentials and reads the answer.
func (r running) ask(method, target string, form url.Values) (int, []byte, http.Header) {
	r.Helper()
	req, err := http.NewRequest(method, r.web.URL+target, strings.NewReader(form.Encode()))
	if err != nil {
		r.Fatal(err)
	}
	req.SetBasicAuth(mainSID, "slowapitoken")
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	resp, err := r.web.Client().Do(req)
	if err != nil {
		r.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		r.Fatalf("%s %s: %v", method, target, err)
	}
	return resp.StatusCode, body, resp.Header
}

// get is a GET that must be answered 200.
func (r running) get(target string) []byte {
	r.Helper()
	status, body, _ := r.ask(http.MethodGet, target, nil)
	if status != http.StatusOK {
		r.Fatalf("GET %s: %d %s", target, status, body)
	}
	return body
}

// record is one record as JSON has it.
type record = map[string]any

// listPage is a list's answer.
type listPage struct {
	End      int64   `json:"end"`
	First    string  `json:"first_page_uri"`
	Next     *string `json:"next_page_uri"`
	Page     int64   `json:"page"`
	Size     int64   `json:"page_size"`
	Previous *string `json:"previous_page_uri"`
	Start    int64   `json:"start"`
	URI      string  `json:"uri"`
	records  []record
}

// page reads a list's answer.
func (r running) page(target string) listPage {
	r.Helper()
	body := r.get(target)
	var p listPage
	var all map[string]json.RawMessage
	if err := json.Unmarshal(body, &p); err != nil {
		r.Fatalf("GET %s: %v", target, err)
	}
	if err := json.Unmarshal(body, &all); err != nil {
		r.Fatal(err)
	}
	for name, raw := range all {
		switch name {
		case "end", "first_page_uri", "next_page_uri", "page", "page_size", "previous_page_uri", "start", "uri":
			continue
		}
		if err := json.Unmarshal(raw, &p.records); err != nil {
			r.Fatalf("GET %s: %s: %v", target, name, err)
		}
	}
	if len(all) != 9 {
		r.Fatalf("GET %s: %d names at the top, not 9", target, len(all))
	}
	return p
}

// one reads a record.
func (r running) one(target string) record {
	r.Helper()
	var one record
	if err := json.Unmarshal(r.get(target), &one); err != nil {
		r.Fatal(err)
	}
	return one
}

// walk reads a list to its end, doing something between the pages.
func (r running) walk(target string, between func()) []record {
	r.Helper()
	var all []record
	for {
		p := r.page(target)
		all = append(all, p.records...)
		if p.Next == nil {
			return all
		}
		target = *p.Next
		if between != nil {
			between()
		}
	}
}

// write is a POST or DELETE whose answer must have a status.
func (r running) write(method, target string, form url.Values, want int) record {
	r.Helper()
	status, body, _ := r.ask(method, target, form)
	if status != want {
		r.Fatalf("%s %s: %d %s, want %d", method, target, status, body, want)
	}
	var one record
	if len(body) > 0 {
		if err := json.Unmarshal(body, &one); err != nil {
			r.Fatal(err)
		}
	}
	return one
}

// control is a POST under /-/.
func (r running) control(path, body string, want int) string {
	r.Helper()
	resp, err := http.Post(r.web.URL+path, "application/json", strings.NewReader(body))
	if err != nil {
		r.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != want {
		r.Fatalf("POST %s %s: %d %s, want %d", path, body, resp.StatusCode, text, want)
	}
	return string(text)
}

// sids are the names of records in their order.
func sids(records []record) []string {
	var all []string
	for _, one := range records {
		all = append(all, one["sid"].(string))
	}
	return all
}
