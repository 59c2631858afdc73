// Requests: how a test asks and what it is answered.

package slowapitest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// Ask sends a request with credentials and returns the answer.
func (a API) Ask(method, target string, form url.Values) (int, []byte, http.Header) {
	a.T.Helper()
	req := a.request(method, target, form.Encode())
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	resp, body := a.do(a.Web.Client().Do, req)
	return resp.StatusCode, body, resp.Header
}

// Fetch sends a request with credentials and more headers, a name and a value for each. It follows no redirect and
// unpacks nothing.
func (a API) Fetch(method, target string, headers ...string) (*http.Response, []byte) {
	a.T.Helper()
	req := a.request(method, target, "")
	setHeaders(req, headers)
	return a.do(http.DefaultTransport.RoundTrip, req)
}

// Call sends a request in the way of GitHub and Stripe: a token, a body, more headers. It follows no redirect. A target
// may be a whole URL.
func (a API) Call(method, target, body string, headers ...string) (*http.Response, string) {
	a.T.Helper()
	req := a.request(method, strings.TrimPrefix(target, a.Web.URL), body)
	req.Header.Set("Authorization", "token "+Token)
	setHeaders(req, headers)
	resp, raw := a.do(http.DefaultTransport.RoundTrip, req)
	return resp, string(raw)
}

// request returns a request with the credentials of the main account.
func (a API) request(method, target, body string) *http.Request {
	a.T.Helper()
	req, err := http.NewRequest(method, a.Web.URL+target, strings.NewReader(body))
	if err != nil {
		a.T.Fatal(err)
	}
	req.SetBasicAuth(Account, Token)
	return req
}

func setHeaders(req *http.Request, namesAndValues []string) {
	for i := 0; i < len(namesAndValues); i += 2 {
		req.Header.Set(namesAndValues[i], namesAndValues[i+1])
	}
}

// do sends a request and reads the whole answer.
func (a API) do(send func(*http.Request) (*http.Response, error), req *http.Request) (*http.Response, []byte) {
	a.T.Helper()
	resp, err := send(req)
	if err != nil {
		a.T.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		a.T.Fatalf("%s %s: %v", req.Method, req.URL, err)
	}
	return resp, body
}

// Get returns the answer to a GET, which must be 200.
func (a API) Get(target string) []byte {
	a.T.Helper()
	status, body, _ := a.Ask(http.MethodGet, target, nil)
	if status != http.StatusOK {
		a.T.Fatalf("GET %s: %d %s", target, status, body)
	}
	return body
}

// One returns a record.
func (a API) One(target string) Record {
	a.T.Helper()
	var one Record
	if err := json.Unmarshal(a.Get(target), &one); err != nil {
		a.T.Fatal(err)
	}
	return one
}

// Write sends a POST or DELETE and returns the record of the answer, whose status must be want.
func (a API) Write(method, target string, form url.Values, want int) Record {
	a.T.Helper()
	status, body, _ := a.Ask(method, target, form)
	if status != want {
		a.T.Fatalf("%s %s: %d %s, want %d", method, target, status, body, want)
	}
	var one Record
	if len(body) > 0 {
		if err := json.Unmarshal(body, &one); err != nil {
			a.T.Fatal(err)
		}
	}
	return one
}

// Control sends a POST to a path under /-/ and returns the answer, whose status must be want.
func (a API) Control(path, body string, want int) string {
	a.T.Helper()
	resp, err := http.Post(a.Web.URL+path, "application/json", strings.NewReader(body))
	if err != nil {
		a.T.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != want {
		a.T.Fatalf("POST %s %s: %d %s, want %d", path, body, resp.StatusCode, text, want)
	}
	return string(text)
}
