// Logrole: every route and permission of the nearest peer has its equal here. Its routes are
// those of server/serve.go, its permissions those of config/user.go (saintpete/logrole 1.8.3).

package viewer_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/actions"
	"understudy/internal/callers"
	"understudy/internal/signin"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/viewertest"
	"understudy/spec"
)

// peerRoute is a route of Logrole's and what does the same here.
type peerRoute struct {
	theirs string
	ours   string // the route of ours, which has to be in the table of routes
	ask    string // what is asked of it; {calls} stands for the id of a call
	form   string // of a POST
	status int    // of the answer
	says   string // in the answer, or in the Location it leads to
	none   string // why there is none here
}

var peerRoutes = []peerRoute{
	{theirs: "GET /", ours: "GET /", ask: "/", status: 200, says: "/twilio/messages"},
	{theirs: "GET /messages", ours: "GET /{source}/{kind}", ask: "/twilio/messages", status: 200, says: "/twilio/messages/"},
	{theirs: "GET /messages?from&to&start&end", ours: "GET /{source}/{kind}",
		ask: "/twilio/messages?From=%2B15005550001&To=%2B15005550002" +
			"&DateSent%3E=2026-05-01T00%3A00%3A00Z&DateSent%3C=2026-06-01T00%3A00%3A00Z", status: 200},
	{theirs: "GET /messages/SM…", ours: "GET /{source}/{kind}/{id}", ask: "/twilio/messages/{messages}", status: 200, says: "{messages}"},
	{theirs: "GET /messages/new", ours: "GET /-/do/{source}/{kind}/{action}", ask: "/-/do/twilio/messages/send?To=%2B15005550009", status: 200,
		says: "&#43;15005550009"},
	{theirs: "POST /messages", ours: "POST /-/do/{source}/{kind}/{action}", ask: "/-/do/twilio/messages/send",
		form:   "key={key}&step=review&From=%2B15005550001&To=%2B15005550009&Body=hello",
		status: 200, says: "hello"},
	{theirs: "GET /calls", ours: "GET /{source}/{kind}", ask: "/twilio/calls", status: 200, says: "/twilio/calls/"},
	{theirs: "GET /calls?from&to&start-after&start-before", ours: "GET /{source}/{kind}",
		ask: "/twilio/calls?From=%2B15005550001&To=%2B15005550002" +
			"&StartTime%3E=2026-05-01T00%3A00%3A00Z&StartTime%3C=2026-06-01T00%3A00%3A00Z", status: 200},
	{theirs: "GET /calls/CA…", ours: "GET /{source}/{kind}/{id}", ask: "/twilio/calls/{calls}", status: 200, says: "{calls}"},
	{theirs: "GET /conferences", ours: "GET /{source}/{kind}", ask: "/twilio/conferences", status: 200, says: "/twilio/conferences/"},
	{theirs: "GET /conferences?status&friendly-name&created-after", ours: "GET /{source}/{kind}",
		ask: "/twilio/conferences?Status=completed&FriendlyName=x&DateCreated%3E=2026-05-01", status: 200},
	{theirs: "GET /conferences/CF…", ours: "GET /{source}/{kind}/{id}", ask: "/twilio/conferences/{conferences}", status: 200,
		says: "{conferences}"},
	{theirs: "GET /phone-numbers", ours: "GET /{source}/{kind}", ask: "/twilio/incoming_phone_numbers", status: 200,
		says: "/twilio/incoming_phone_numbers/"},
	{theirs: "GET /phone-numbers?phone-number&friendly-name", ours: "GET /{source}/{kind}",
		ask: "/twilio/incoming_phone_numbers?PhoneNumber=1500&FriendlyName=x", status: 200},
	{theirs: "GET /phone-numbers/<number>", ours: "GET /{source}/number/{number}", ask: "/twilio/number/%2B15005550001", status: 200,
		says: "Calls"},
	{theirs: "GET /phone-numbers/PN…", ours: "GET /{source}/{kind}/{id}", ask: "/twilio/incoming_phone_numbers/{incoming_phone_numbers}",
		status: 200, says: "{incoming_phone_numbers}"},
	{theirs: "GET /alerts", ours: "GET /{source}/{kind}", ask: "/twilio/alerts", status: 200, says: "/twilio/alerts/"},
	{theirs: "GET /alerts?log-level&alert-start&alert-end", ours: "GET /{source}/{kind}",
		ask: "/twilio/alerts?LogLevel=error&StartDate=2026-05-20&EndDate=2026-06-01", status: 200},
	{theirs: "GET /alerts/NO…", ours: "GET /{source}/{kind}/{id}", ask: "/twilio/alerts/{alerts}", status: 200, says: "{alerts}"},
	{theirs: "GET /messages?unknown", ours: "GET /{source}/{kind}", ask: "/twilio/messages?unknown=1", status: 400, says: "unknown"},
	{theirs: "GET /images/<enc>", ours: "GET /-/media/{token}", ask: "/twilio/messages/{pictured}", status: 200, says: "data-image"},
	{theirs: "GET /audio/<enc>", ours: "GET /-/media/{token}", ask: "/twilio/recordings/{recordings}", status: 200, says: "<audio"},
	{theirs: "GET /search?q=SID", ours: "GET /search?q=", ask: "/search?q={calls}", status: 303, says: "/twilio/calls/{calls}"},
	{theirs: "GET /search?q=number", ours: "GET /search?q=", ask: "/search?q=%2B15005550001", status: 303, says: "/twilio/number/"},
	{theirs: "GET /opensearch.xml", ours: "GET /opensearch.xml", ask: "/opensearch.xml", status: 200, says: "OpenSearchDescription"},
	{theirs: "POST /tz", ours: "POST /-/timezone", ask: "/-/timezone", form: "zone=Europe%2FBerlin&back=%2F", status: 303, says: "/"},
	{theirs: "GET /static", ours: "GET /-/static/{file}", ask: "/-/static/nothing.css", status: 404},
	{theirs: "GET /favicon.ico", ours: "GET /-/static/{file}", ask: "/", status: 200, says: `rel="icon" href="/-/static/icon.`},
	{theirs: "GET /login", ours: "GET /-/sign-in", ask: "/-/sign-in", status: 404, says: "viewer.sign_in"},
	{theirs: "GET /auth/callback", ours: "GET /-/sign-in/callback", ask: "/-/sign-in/callback", status: 404},
	{theirs: "POST /auth/logout", ours: "POST /-/sign-out", ask: "/-/sign-out", form: "a=b", status: 404},
	{theirs: "GET /dial, GET /dial/token, POST /dial/voice", none: "browser calling runs a third party's script"},
	{theirs: "GET /open-source", none: "the modules stand in the binary: go version -m understudy"},
}

// withActions lets people do something: a proxy names them. What is sent goes nowhere; the
// tests of the pages of actions send.
func withActions(t *testing.T) func(*page.Options) {
	return func(o *page.Options) {
		runner := actions.New(actions.Options{})
		t.Cleanup(func() { viewertest.Must(t, runner.Close()) })
		o.Actions = runner
		var err error
		o.Callers, err = callers.New(callers.Options{Sources: o.Sources, Now: o.Now,
			Credentials: []callers.Credential{viewertest.Credential("everything", "alltoken", understudy.RoleAll)},
			People: &signin.Header{Name: "X-User", Roles: "X-Role", From: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}, Now: time.Now,
				Has: func(string) bool { return true }, Taken: func(string) bool { return false }}})
		viewertest.Must(t, err)
	}
}

// anna is a person of the role all.
var anna = viewertest.Browser{Headers: map[string]string{"X-User": "anna", "X-Role": understudy.RoleAll}}

func TestEveryRouteOfLogrole(t *testing.T) {
	h := withMedia(t, viewertest.WithSearch(t), withActions(t)).Fixture
	ids := map[string]string{}
	for _, k := range []string{"messages", "calls", "conferences", "incoming_phone_numbers", "alerts", "recordings"} {
		ids["{"+k+"}"] = rowsOf(t, h.Page("/twilio/"+k+".json", viewertest.All))[0]["sid"].(string)
	}
	for _, m := range rowsOf(t, h.Page("/twilio/messages.json?PageSize=500", viewertest.All)) {
		if m["num_media"] != "0" {
			ids["{pictured}"] = m["sid"].(string)
		}
	}
	key := regexp.MustCompile(`name="key" value="([^"]+)"`).FindStringSubmatch(h.Page("/-/do/twilio/messages/send", anna))
	if key == nil {
		t.Fatal("the form of a message has no key")
	}
	ids["{key}"] = key[1]
	fill := func(text string) string {
		for name, id := range ids {
			text = strings.ReplaceAll(text, name, id)
		}
		return text
	}
	known := h.Viewer.Routes()
	for _, r := range peerRoutes {
		if r.none != "" {
			continue
		}
		if !slices.Contains(known, r.ours) {
			t.Errorf("%s: there is no route %s", r.theirs, r.ours)
		}
		method := "GET"
		if r.form != "" {
			method = "POST"
		}
		status, body, head := h.Do(method, fill(r.ask), fill(r.form), anna)
		if status != r.status || !strings.Contains(body+head.Get("Location"), fill(r.says)) {
			t.Errorf("%s: %s %s answers %d, and %q is not in it: %.300s", r.theirs, method, fill(r.ask), status, fill(r.says), body)
		}
	}
}

// rowsOf are the rows of a list's JSON.
func rowsOf(t *testing.T, body string) (rows []map[string]any) {
	t.Helper()
	var page map[string]json.RawMessage
	viewertest.Must(t, json.Unmarshal([]byte(body), &page))
	for _, value := range page {
		if json.Unmarshal(value, &rows) == nil && len(rows) > 0 {
			return rows
		}
	}
	t.Fatalf("no rows in %.200s", body)
	return nil
}

// peerPermission is a permission of Logrole's, and the line that takes it away here.
type peerPermission struct {
	theirs string
	line   map[string]string // beside "*": see
	rows   access.RowRules
	kind   string
	fields []string // of its list that are null without the permission, and some value with it
	list   bool     // without it the list itself is refused
	media  string   // a field of the kind: without the permission no content of it is given out
}

var peerPermissions = []peerPermission{
	{theirs: "can_view_num_media", line: map[string]string{"messages.num_media": "hide"}, kind: "messages", fields: []string{"num_media"}},
	{theirs: "can_view_messages", line: map[string]string{"messages": "hide"}, kind: "messages", list: true},
	{theirs: "can_view_message_from", line: map[string]string{"messages.from": "hide"}, kind: "messages", fields: []string{"from"}},
	{theirs: "can_view_message_to", line: map[string]string{"messages.to": "hide"}, kind: "messages", fields: []string{"to"}},
	{theirs: "can_view_message_body", line: map[string]string{"messages.body": "hide"}, kind: "messages",
		fields: []string{"body", "num_segments"}},
	{theirs: "can_view_message_price", line: map[string]string{"messages.price": "hide"}, kind: "messages", fields: []string{"price"}},
	{theirs: "can_view_media", line: map[string]string{"media.content": "hide"}, kind: "media", media: "content"},
	{theirs: "can_view_calls", line: map[string]string{"calls": "hide"}, kind: "calls", list: true},
	{theirs: "can_view_call_from", line: map[string]string{"calls.from": "hide"}, kind: "calls",
		fields: []string{"from", "from_formatted"}},
	{theirs: "can_view_call_to", line: map[string]string{"calls.to": "hide"}, kind: "calls", fields: []string{"to", "to_formatted"}},
	{theirs: "can_view_call_price", line: map[string]string{"calls.price": "hide"}, kind: "calls", fields: []string{"price"}},
	{theirs: "can_view_num_recordings", line: map[string]string{"recordings": "hide"}, kind: "recordings", list: true},
	{theirs: "can_play_recordings", line: map[string]string{"recordings.audio": "hide"}, kind: "recordings", media: "audio"},
	{theirs: "can_view_recording_price", line: map[string]string{"recordings.price": "hide"},
		kind: "recordings", fields: []string{"price"}},
	{theirs: "can_view_conferences", line: map[string]string{"conferences": "hide"}, kind: "conferences", list: true},
	{theirs: "can_view_alerts", line: map[string]string{"alerts": "hide"}, kind: "alerts", list: true},
	{theirs: "can_view_callback_urls", line: map[string]string{"url": "hide"}, kind: "incoming_phone_numbers",
		fields: []string{"voice_url", "sms_url"}},
	{theirs: "max_resource_age", rows: access.RowRules{access.Everything: {Age: time.Hour}}, kind: "calls", list: true},
}

// Each permission is taken away from a role of its own; the role all has it.
func TestEveryPermissionOfLogrole(t *testing.T) {
	h := viewertest.Open(t, func(o *page.Options) {
		roles, rows := access.Roles{}, map[string]map[string]access.RowRules{}
		creds := []callers.Credential{viewertest.Credential("everything", "alltoken", understudy.RoleAll)}
		for _, p := range peerPermissions {
			line := map[string]string{access.Everything: "see"}
			for subject, level := range p.line {
				line[subject] = level
			}
			roles[p.theirs] = map[string]map[string]string{"twilio": line}
			if p.rows != nil {
				rows[p.theirs] = map[string]access.RowRules{"twilio": p.rows}
			}
			creds = append(creds, viewertest.Credential(p.theirs, p.theirs, p.theirs))
		}
		var err error
		o.Gate, err = access.NewWith(access.Options{
			Specs: map[string]*spec.Spec{"twilio": o.Sources[0].Spec}, Roles: roles, Rows: rows, Now: o.Now,
		})
		viewertest.Must(t, err)
		o.Callers, err = callers.New(callers.Options{Sources: o.Sources, Credentials: creds, Now: o.Now})
		viewertest.Must(t, err)
	})
	for _, p := range peerPermissions {
		who := viewertest.Browser{Token: p.theirs}
		if p.media != "" {
			playsNot(h, p)
			continue
		}
		path := "/twilio/" + p.kind + ".json?PageSize=100"
		whole := rowsOf(t, h.Page(path, viewertest.All))
		status, body, _ := h.Get(path, who)
		if p.list {
			if status == http.StatusOK {
				t.Errorf("%s: %s answers without it", p.theirs, path)
			}
			continue
		}
		if status != http.StatusOK {
			t.Errorf("%s: %s answers %d", p.theirs, path, status)
			continue
		}
		for _, field := range p.fields {
			some := slices.ContainsFunc(whole, func(r map[string]any) bool { return r[field] != nil })
			shown := slices.ContainsFunc(rowsOf(t, body), func(r map[string]any) bool { return r[field] != nil })
			if !some || shown {
				t.Errorf("%s: with it %s.%s is shown: %t; without it: %t", p.theirs, p.kind, field, some, shown)
			}
		}
		if page := h.Page(strings.Replace(path, ".json", "", 1), who); !strings.Contains(page, "</table>") {
			t.Errorf("%s: there is no page without it", p.theirs)
		}
	}
}

// playsNot fails unless the role all is given contents of a kind, and a role without the
// permission none.
func playsNot(h *viewertest.Fixture, p peerPermission) {
	h.Helper()
	k := h.Spec.Kind(p.kind)
	path := regexp.MustCompile(`\{[^}]+\}`).ReplaceAllString(strings.Replace(k.Media[0].Path, "{AccountSid}", viewertest.Account, 1),
		k.Prefixes[0]+"00000000000000000000000000000001")
	t, err := h.Spec.Resolve("twilio", path, "")
	viewertest.Must(h, err)
	for token, want := range map[string]bool{"alltoken": true, p.theirs: false} {
		r := httptest.NewRequest("GET", "/", nil)
		r.SetBasicAuth(viewertest.Account, token)
		c, err := h.Viewer.Visitor.Options.Callers.IdentifyPerson(r)
		viewertest.Must(h, err)
		if got := h.Viewer.Visitor.Options.Gate.CheckMedia(c, t) == nil; got != want {
			h.Errorf("%s: a content of %s as %s: %t", p.theirs, p.kind, c.Name, got)
		}
	}
}

// can_send_messages and can_make_calls are lines of a credential's allow here; people send
// when their role's do says so. Making calls is left to programs.
func TestWritesOfLogrole(t *testing.T) {
	h := viewertest.Open(t)
	gate, err := access.NewWith(access.Options{Specs: map[string]*spec.Spec{"twilio": h.Spec}, Roles: viewertest.Roles,
		Do: access.Permissions{"watcher": {"twilio": {"messages.send"}}}})
	viewertest.Must(t, err)
	for role, want := range map[string]bool{"watcher": true, "support": false, understudy.RoleAll: true} {
		person := understudy.Caller{Name: "anna", Grant: &understudy.Grant{Role: role}}
		if got := gate.CheckPermission(person, "twilio", "messages.send") == nil; got != want {
			t.Errorf("can_send_messages: a person of the role %s may send: %t", role, got)
		}
	}
	for permission, path := range map[string]string{"can_send_messages": "/Messages.json", "can_make_calls": "/Calls.json"} {
		at, err := h.Spec.Resolve("twilio", "/2010-04-01/Accounts/"+viewertest.Account+path, "")
		viewertest.Must(t, err)
		c := understudy.Caller{Name: "x", Source: "twilio", Grant: &understudy.Grant{Role: "support"}}
		if h.Viewer.Visitor.Options.Gate.CheckWrite(c, at, "POST") == nil {
			t.Errorf("%s: %s may be sent without it", permission, path)
		}
		c.Grant.Allow = []understudy.Allow{{Method: "POST", Path: "/2010-04-01/Accounts/*" + path}}
		if err := h.Viewer.Visitor.Options.Gate.CheckWrite(c, at, "POST"); err != nil {
			t.Errorf("%s: %v", permission, err)
		}
	}
}
