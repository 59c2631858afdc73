// Media: who may have the content of a record; and lists cut in more than one way.

package access

import (
	"errors"
	"strings"
	"testing"

	"understudy"
	"understudy/spec"
)

// studioSpec has a kind with a content, and one whose lists are cut in two ways.
const studioSpec = `
name: studio
hosts: [{url: "https://studio.example"}]
auth: {style: basic}
paging:
  style: body
  next: next_uri
  size: Size
  tokens: [Token]
  envelope: [{name: next_uri}, {name: uri}]
pagings:
  meta:
    style: body
    next: meta.next_url
    size: page_size
    tokens: [token]
    envelope: [{name: meta, type: map}, {name: meta.next_url, absolute: true}, {name: meta.key}, {name: owner, class: phone}]
kinds:
  - name: takes
    id: [sid]
    lists:
      - {path: /takes, key: takes, filters: [{name: singer, field: singer}]}
      - {path: /v2/takes, key: takes, paging: meta, filters: [{name: singer, field: singer}]}
    instances: [{path: "/takes/{Sid}.json", id: [Sid]}]
    media: [{path: "/takes/{Sid}", id: [Sid], field: sound, types: [audio/]}]
    fields:
      - {name: sid}
      - {name: singer, class: phone}
      - {name: fault, type: code}
      - {name: sound, type: media, class: body}
`

func TestMedia(t *testing.T) {
	s := readSpec(t, []byte(studioSpec))
	for _, test := range []struct {
		name  string
		rules map[string]string
		query string
		want  string // part of the refusal, "" = passes
	}{
		{"everything", map[string]string{"*": "see"}, "", ""},
		{"its class hidden", map[string]string{"*": "see", "body": "hide"}, "", "can't open takes.sound"},
		{"its class hidden, itself played", map[string]string{"*": "see", "body": "hide", "takes.sound": "play"}, "", ""},
		{"seen is played", map[string]string{"*": "hide", "takes.sid": "see", "takes.sound": "see"}, "", ""},
		{"itself hidden", map[string]string{"*": "see", "takes.sound": "hide"}, "", "can't open takes.sound"},
		{"last four of a sound", map[string]string{"*": "see", "takes.sound": "last4"}, "", "can't open takes.sound"},
		{"everything masked", map[string]string{"*": "last4"}, "", "can't open takes.sound"},
		{"a kind not shown", map[string]string{"takes.sound": "play"}, "", "can't see takes"},
		{"no rule", map[string]string{"takes.sid": "see"}, "", "can't open takes.sound"},
		{"a parameter", map[string]string{"*": "see"}, "singer=1", "parameter singer"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g, err := New(map[string]*spec.Spec{"studio": s}, Roles{"r": {"studio": test.rules}})
			if err != nil {
				t.Fatal(err)
			}
			target := target(t, s, "studio", "/takes/T1", test.query)
			if target.Media == nil {
				t.Fatal("no media path")
			}
			for _, err := range []error{g.CheckMedia(as("r"), target), g.CheckRead(as("r"), target), g.CheckWrite(as("r"), target, "HEAD")} {
				switch {
				case test.want == "" && err != nil:
					t.Error(err)
				case test.want != "" && (!errors.Is(err, understudy.ErrForbidden) || !strings.Contains(err.Error(), test.want)):
					t.Errorf("got %v, want %q", err, test.want)
				}
			}
			if err := g.CheckMedia(as(understudy.RoleAll), target); err != nil {
				t.Errorf("all: %v", err)
			}
			if err := g.CheckMedia(as(""), target); !errors.Is(err, understudy.ErrForbidden) {
				t.Errorf("no role: %v", err)
			}
		})
	}
	g := gate(t, nil)
	if err := g.CheckMedia(as(understudy.RoleAll), target(t, twilio(t), "twilio", "/2010-04-01/Accounts/"+account+"/Calls.json",
		"")); !errors.Is(err, understudy.ErrForbidden) {
		t.Errorf("a list as media: %v", err)
	}
}

func TestPlayIsForMediaAlone(t *testing.T) {
	s := readSpec(t, []byte(studioSpec))
	for _, subject := range []string{"*", "body", "takes", "takes.singer", "takes.none"} {
		if _, err := readRules("roles.r.studio", s, map[string]string{subject: "play"}); err == nil ||
			!strings.Contains(err.Error(), "play is only for fields of type media") {
			t.Errorf("%s: play: %v", subject, err)
		}
	}
}

func TestLevelOfMedia(t *testing.T) {
	s := readSpec(t, []byte(studioSpec))
	g, err := New(map[string]*spec.Spec{"studio": s}, Roles{"r": {"studio": {"*": "see", "body": "hide", "takes.sound": "play"}}})
	if err != nil {
		t.Fatal(err)
	}
	if got := g.Level(as("r"), "studio", "takes", "sound"); got != See {
		t.Errorf("sound is %v", got)
	}
}

// Each list keeps what its own way of paging names beside the records, and
// nothing of another's.
func TestListsCutInTwoWays(t *testing.T) {
	s := readSpec(t, []byte(studioSpec))
	g, err := New(map[string]*spec.Spec{"studio": s}, Roles{"r": {"studio": {"*": "see", "phone": "hide"}},
		"noid": {"studio": {"*": "see", "takes.sid": "hide"}}})
	if err != nil {
		t.Fatal(err)
	}
	const body = `{"next_uri":"/takes?Token=A","uri":"/takes","owner":"+1415","meta":{"next_url":"https://studio.example/v2/takes?token=B",` +
		`"key":"takes","odd":1},"takes":[{"sid":"T1","singer":"+14155551234","fault":30003}]}`
	for _, test := range []struct{ role, uri, want string }{
		{"r", "/takes?Size=1", `{"next_uri":"/takes?Token=A","uri":"/takes","owner":null,"meta":null,"takes":[{"sid":"T1","singer":null,` +
			`"fault":30003}]}`},
		{"r", "/v2/takes", `{"next_uri":null,"uri":null,"owner":null,"meta":{"next_url":"https://studio.example/v2/takes?token=B",` +
			`"key":"takes","odd":null},"takes":[{"sid":"T1","singer":null,"fault":30003}]}`},
		{"noid", "/v2/takes", `{"next_uri":null,"uri":null,"owner":null,"meta":{"next_url":null,"key":null,"odd":null},"takes":[{"sid":null,` +
			`"singer":"+14155551234","fault":30003}]}`},
	} {
		for range 2 { // the second from memory
			pg := page("studio", "takes", true, 200, body)
			pg.Key.URI = test.uri
			v, err := g.MakeView(as(test.role), pg)
			if err != nil {
				t.Fatal(err)
			}
			if string(v.Body) != test.want {
				t.Errorf("%s %s:\n%s, want\n%s", test.role, test.uri, v.Body, test.want)
			}
			if rows := v.Rows(); len(rows) != 1 {
				t.Errorf("%s %s: %d rows", test.role, test.uri, len(rows))
			}
		}
	}
	for _, test := range []struct{ path, query, want string }{
		{"/takes", "Token=A&Size=3", ""}, {"/v2/takes", "token=A&page_size=3", ""},
		{"/takes", "token=A", "parameter token"}, {"/v2/takes", "Token=A", "parameter Token"},
		{"/v2/takes", "singer=1", "it reads singer"},
	} {
		err := g.CheckRead(as("r"), target(t, s, "studio", test.path, test.query))
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s?%s: %v, want %q", test.path, test.query, err, test.want)
		}
	}
}
