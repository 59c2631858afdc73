// Test bed: the built-in spec, and a made-up one with every awkward shape.

package access

import (
	"crypto/sha256"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"

	"understudy"
	"understudy/spec"
	"understudy/spec/spectest"
)

const account = "AC00000000000000000000000000000001"

var start = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func readSpec(t testing.TB, text []byte) *spec.Spec {
	t.Helper()
	var s spec.Spec
	if err := yaml.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	if err := s.Compile(); err != nil {
		t.Fatal(err)
	}
	return &s
}

func twilio(t testing.TB) *spec.Spec {
	t.Helper()
	return spectest.BuiltIn(t, "twilio")
}

// forgeSpec has nested and array fields, derived ones, a bare array as a list,
// a list key in an object, and composite ids.
const forgeSpec = `
name: forge
hosts: [{url: "https://forge.example"}]
auth: {style: bearer}
paging:
  style: body
  next: meta.next_url
  size: per_page
  default_size: 30
  tokens: [after]
  envelope:
    - {name: meta, type: map}
    - {name: meta.next_url}
    - {name: meta.total, type: int}
    - {name: owner_phone, class: phone}
    - {name: key, class: secret}
errors: {template: '{"error":{"no":{code},"text":{message}},"http":{status}}', codes: {not_found: 44}}
kinds:
  - name: people
    id: [room, sid]
    lists:
      - {path: /people, key: meta.people, filters: [{name: phone, field: phone}, {name: pretty, field: phone_pretty}, {name: odd},
          {name: tag, field: tags.name}, {name: status, field: status}]}
      - {path: /everybody, key: ""}
    instances: [{path: "/people/{Room}/{Sid}", id: [Room, Sid]}]
    fields:
      - {name: room}
      - {name: sid}
      - {name: status}
      - {name: phone, class: phone}
      - {name: phone_pretty, from: phone}
      - {name: phone_link, from: phone_pretty}
      - {name: links, type: map, from: phone}
      - {name: links.self}
      - {name: profile, type: map, class: name}
      - {name: profile.first}
      - {name: profile.card, type: map}
      - {name: profile.card.number, class: phone}
      - {name: tags, type: map}
      - {name: tags.name}
      - {name: aliases}
      - {name: age, type: int}
      - {name: password, class: secret}
  - name: rooms
    id: [sid]
    lists: [{path: /rooms, key: rooms}]
    fields: [{name: sid}, {name: note, class: body}]
`

func forge(t testing.TB) *spec.Spec {
	t.Helper()
	return readSpec(t, []byte(forgeSpec))
}

func gate(t testing.TB, roles Roles) *Gate {
	t.Helper()
	g, err := NewWith(Options{
		Specs: map[string]*spec.Spec{"twilio": twilio(t), "forge": forge(t)},
		Roles: roles,
		Now:   func() time.Time { return start },
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

var support = map[string]map[string]string{"twilio": {"*": "see", "phone": "last4", "body": "hide"}}

func as(role string, allow ...understudy.Allow) understudy.Caller {
	return understudy.Caller{Name: "reports", Grant: &understudy.Grant{Role: role, Allow: allow}}
}

func page(source, kind string, list bool, status int, body string) *understudy.Page {
	full := sha256.Sum256([]byte(body))
	p := &understudy.Page{
		Key: understudy.Key{Source: source, URI: "/x"}, Kind: kind, List: list, Status: status,
		ContentType: "application/json", Body: []byte(body),
	}
	copy(p.Sum[:], full[:])
	return p
}

func target(t testing.TB, s *spec.Spec, source, path, query string) *spec.Target {
	t.Helper()
	at, err := s.Resolve(source, path, query)
	if err != nil {
		t.Fatal(err)
	}
	return at
}
