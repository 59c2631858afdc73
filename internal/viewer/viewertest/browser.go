// Browser: what asks the viewer for pages, and what is found in them.

package viewertest

import (
	"encoding/json"
	"html"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"

	"understudy/internal/viewer/page"
)

// Browser is a request's credential and more of what a test sends with it. The zero value is a stranger.
type Browser struct {
	Token   string // "" = none
	Zone    string
	Headers map[string]string
}

// Browsers with the credentials of the roles.
var (
	All     = Browser{Token: "alltoken"}
	Berlin  = Browser{Token: "alltoken", Zone: "Europe/Berlin"}
	Support = Browser{Token: "supporttoken"}
	Clerk   = Browser{Token: "clerktoken"}
	Counter = Browser{Token: "countertoken"}
	Analyst = Browser{Token: "analysttoken"}
	Watcher = Browser{Token: "watchertoken"}
	Nobody  = Browser{Token: "nobodytoken"} // a credential without a role
)

// Hurried is All with the headers of a real browser, so that the slow parts of a page follow after the page.
var Hurried = Browser{Token: "alltoken", Headers: map[string]string{"Prefer": ""}}

// Person returns a browser of anna, whom a proxy in front names with a role.
func Person(role string) Browser {
	return Browser{Headers: map[string]string{"X-User": "anna", "X-Role": role}}
}

// WithHeader returns the browser with one more header.
func (b Browser) WithHeader(name, value string) Browser {
	b.Headers = maps.Clone(b.Headers)
	if b.Headers == nil {
		b.Headers = map[string]string{}
	}
	b.Headers[name] = value
	return b
}

// WithCookie returns the browser with a cookie.
func (b Browser) WithCookie(cookie string) Browser { return b.WithHeader("Cookie", cookie) }

// prepare puts what a browser sends on a request.
func (b Browser) prepare(r *http.Request) {
	if b.Token != "" {
		r.SetBasicAuth(Account, b.Token)
	}
	if b.Zone != "" {
		r.AddCookie(&http.Cookie{Name: page.ZoneCookie, Value: b.Zone})
	}
	r.Header.Set("Prefer", "wait=20") // the whole page and its status, however busy the machine is
	for name, value := range b.Headers {
		r.Header.Set(name, value)
	}
}

// Get asks for a page and reads it whole.
func (h *Fixture) Get(path string, who Browser) (status int, body string, head http.Header) {
	h.Helper()
	return h.Do("GET", path, "", who)
}

// Do sends a request with a form, which may be empty, and reads the answer whole.
func (h *Fixture) Do(method, path, form string, who Browser) (status int, body string, head http.Header) {
	r := httptest.NewRequest(method, path, strings.NewReader(form))
	if form != "" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	who.prepare(r)
	w := httptest.NewRecorder()
	h.Viewer.ServeHTTP(w, r)
	resp := w.Result()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		panic(err) // a recorder's body
	}
	return resp.StatusCode, string(text), resp.Header
}

// GetAndForget requests a page as role all and then empties the mirror, as a fuzzer needs it.
func (h *Fixture) GetAndForget(path string) (status int, body, location string) {
	status, body, head := h.Do("GET", path, "", All)
	h.Mirror.Lock()
	defer h.Mirror.Unlock()
	clear(h.Mirror.Pages)
	h.Mirror.Asked = nil
	return status, body, head.Get("Location")
}

// Page returns a page that must be there.
func (h *Fixture) Page(path string, who Browser) string {
	h.Helper()
	status, body, _ := h.Get(path, who)
	if status != http.StatusOK {
		h.Fatalf("GET %s: %d\n%s", path, status, body)
	}
	return body
}

// FirstID returns the first id on a page that matches a pattern.
func (h *Fixture) FirstID(path, pattern string) string {
	h.Helper()
	id := regexp.MustCompile(pattern).FindString(h.Page(path, All))
	if id == "" {
		h.Fatalf("%s shows no id like %s", path, pattern)
	}
	return id
}

// OwnNumber returns the first of our own numbers.
func (h *Fixture) OwnNumber() string {
	h.Helper()
	var list struct {
		Numbers []struct {
			Number string `json:"phone_number"`
		} `json:"incoming_phone_numbers"`
	}
	_, body, _ := h.Get("/twilio/incoming_phone_numbers.json", All)
	Must(h, json.Unmarshal([]byte(body), &list))
	return list.Numbers[0].Number
}

// MessageWithMedia returns the id of a message with media.
func (h *Fixture) MessageWithMedia() string {
	h.Helper()
	var list struct {
		Messages []struct {
			Sid string
			N   string `json:"num_media"`
		}
	}
	_, body, _ := h.Get("/twilio/messages.json?PageSize=1000", All)
	Must(h, json.Unmarshal([]byte(body), &list))
	for _, m := range list.Messages {
		if m.N != "0" {
			return m.Sid
		}
	}
	h.Fatal("no message with media")
	return ""
}

// Values returns the longer values of some fields in a list, as upstream has them.
func (h *Fixture) Values(path, list string, fields ...string) []string {
	h.Helper()
	_, body, _ := h.Get(path, All)
	var whole map[string]any
	Must(h, json.Unmarshal([]byte(body), &whole))
	var values []string
	for _, row := range whole[list].([]any) {
		for _, f := range fields {
			if s, ok := row.(map[string]any)[f].(string); ok && len(s) > 6 {
				values = append(values, s)
			}
		}
	}
	if len(values) < 10 {
		h.Fatalf("%s: only %d values", path, len(values))
	}
	return values
}

// Value returns the first value of a field in a list; of the field from, the first number.
func (h *Fixture) Value(path, list, name string) string {
	h.Helper()
	for _, v := range h.Values(path, list, name) {
		if name != "from" || strings.HasPrefix(v, "+") {
			return v
		}
	}
	h.Fatalf("%s: no %s", path, name)
	return ""
}

// ConversationPath matches the address of a conversation.
var ConversationPath = regexp.MustCompile(`/twilio/number/[^"/]+/[^"/.#]+`)

// Href returns the address of the first link of a page that has some words in it; "" when there is none.
func Href(page, words string) string {
	for _, m := range regexp.MustCompile(`(?s)<a [^>]*href="([^"]*)"[^>]*>(.*?)</a>`).FindAllStringSubmatch(page, -1) {
		if strings.Contains(m[2], words) {
			return html.UnescapeString(m[1])
		}
	}
	return ""
}

// Hrefs returns the addresses a page links to.
func Hrefs(page string) []string {
	var all []string
	for _, part := range strings.Split(page, `href="`)[1:] {
		href, _, _ := strings.Cut(part, `"`)
		all = append(all, strings.ReplaceAll(href, "&amp;", "&"))
	}
	return all
}
