// Members whose names have dots: OData's, SAP's, and those of settings.

package upstream

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"understudy/spec"
)

const dottedSpec = `
name: dotted
hosts: [{url: "https://odata.example"}]
auth: {style: none}
paging: {style: body, next: "@odata.nextLink", tokens: [from], envelope: [{name: "@odata.count", type: int}]}
kinds:
  - name: users
    id: [user.id]
    clock: made.at
    lists: [{path: /users, key: d.results}]
    fields: [{name: user.id}, {name: made.at, type: iso8601}, {name: api.key, class: secret}, {name: "self.url", absolute: true}]
`

// dottedPage is what the spec makes of an answer of /users.
func dottedPage(t *testing.T, body string) (text, next string, rows []string, clock int64) {
	t.Helper()
	s, err := ReadSpec("dotted.yaml", []byte(dottedSpec))
	if err != nil {
		t.Fatal(err)
	}
	target, err := s.Resolve("s", "/users", "")
	if err != nil {
		t.Fatal(err)
	}
	b := newPageBuilder(&Options{Source: &spec.Source{Name: "s", Spec: s, PublicURL: ourURL}}, &credential{})
	header := http.Header{"Content-Type": {"application/json"}}
	page, err := b.makeRecordPage(target, &answer{status: 200, body: []byte(body), at: time.Now(), header: header})
	if err != nil || page.NotStored != "" {
		t.Fatalf("%v %s", err, page.NotStored)
	}
	for _, row := range page.Rows {
		rows, clock = append(rows, row.ID), row.Clock
	}
	return string(page.Body), page.Next.URI, rows, clock
}

func TestMembersNamedWithDotsAreFound(t *testing.T) {
	const link = `"@odata.nextLink":"https://odata.example/users?from=2"`
	for name, body := range map[string]string{
		"whole names": `{"d.results":[{"user.id":1,"made.at":"2024-01-01T00:00:00Z","self.url":"https://odata.example/users/1",` +
			`"api.key":"sk_1"}],` + link + `}`,
		"paths": `{"d":{"results":[{"user":{"id":1},"made":{"at":"2024-01-01T00:00:00Z"},"self":{"url":"https://odata.example/users/1"},` +
			`"api":{"key":"sk_1"}}]},"@odata":{"nextLink":"https://odata.example/users?from=2"}}`,
		"whole names before paths": `{"d":{"results":[]},"d.results":[{"user":{"id":2},"user.id":1,"made.at":"2024-01-01T00:00:00Z",` +
			`"made":1}],` + link + `}`,
	} {
		text, next, rows, clock := dottedPage(t, body)
		if strings.Join(rows, " ") != "1" {
			t.Errorf("%s: rows %v", name, rows)
		}
		if clock != 1704067200 {
			t.Errorf("%s: clock %d", name, clock)
		}
		if next != "/users?from=2" {
			t.Errorf("%s: next %q", name, next)
		}
		if strings.Contains(text, "odata.example") {
			t.Errorf("%s: upstream's address is left in %s", name, text)
		}
		if strings.Contains(text, "sk_1") {
			t.Errorf("%s: a secret goes out in %s", name, text)
		}
	}
}
