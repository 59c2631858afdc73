// Ids: records named by several fields, by another name than the path's, or
// not at all.

package upstream

import (
	"fmt"
	"net/http"
	"testing"

	"understudy/internal/checktest"
	"understudy/request"
)

func TestIDs(t *testing.T) {
	const (
		base   = "/2010-04-01/Accounts/" + account
		people = base + "/Conferences/CF1/Participants"
		member = `{"conference_sid":"CF1","call_sid":"CA1","label":"anna"}`
	)
	for _, c := range []struct {
		name, uri  string
		status     int
		body       string
		id         string
		rows, kept string
	}{
		{"composite", people + "/CA1.json", 200, member, "CF1~CA1", "[CF1~CA1]", ""},
		{"by its label", people + "/anna.json", 200, member, "CF1~CA1", "[CF1~CA1]", ""},
		{"a label nobody has", people + "/anna.json", 404, `{"code":20404}`, "CF1~anna", "[]", ""},
		{"a list of them", people + ".json", 200, `{"participants":[` + member + `,{"call_sid":"CA2","conference_sid":"CF1"}]}`, "",
			"[CF1~CA1 CF1~CA2]", ""},
		{"a part is missing", people + ".json", 200, `{"participants":[` + member + `,{"call_sid":"CA2"}]}`, "", "[]",
			"a record without conference_sid"},
		{"a part holds the separator", people + "/x.json", 200, `{"conference_sid":"CF1","call_sid":"CA~1"}`, "CF1~x", "[]",
			`a record whose call_sid contains "~"`},
		{"a member of a queue", base + "/Queues/QU1/Members/Front.json", 200, `{"queue_sid":"QU1","call_sid":"CA9","position":1}`, "QU1~CA9",
			"[QU1~CA9]", ""},
		{"a record of another name", base + "/Calls/CA1.json", 200, `{"sid":"CA2"}`, "CA2", "[CA2]", ""},
		{"twice", base + "/Calls.json", 200, `{"calls":[{"sid":"CA1","status":"ringing"},{"sid":"CA2"},{"sid":"CA1","status":"busy"}]}`, "",
			"[CA1 CA2 CA1]", ""},
		{"no id", base + "/Usage/Records.json", 200, `{"usage_records":[{"category":"calls"}]}`, "", "[]", ""},
		{"no id, one of them", base + "/Balance.json", 200, `{"balance":"1.00"}`, "", "[]", ""},
		{"no id, under a record", base + "/Calls/CA1/Events.json", 200, `{"events":[{"request":{}}]}`, "", "[]", ""},
		{"no id, no page either", base + "/Calls/CA1/Events.json", 200, `{"other":[]}`, "", "[]", `no records under "events"`},
		{"gone", base + "/Recordings/RE1.json", 404, `{"code":20404}`, "RE1", "[]", ""},
		{"not under this call", base + "/Calls/CA1/Recordings/RE1.json", 404, `{"code":20404}`, "", "[]", ""},
		{"not of this message", base + "/Messages/MM1/Media/ME1.json", 404, `{"code":20404}`, "ME1", "[]", ""},
	} {
		client := scripted(t, &script{do: func(int, *http.Request) (*http.Response, error) { return reply(c.status, c.body), nil }})
		page, err := get(t, client, c.uri)
		if err != nil {
			t.Fatal(c.name, err)
		}
		ids := []string{}
		for _, r := range page.Rows {
			ids = append(ids, r.ID)
		}
		checktest.Equal(t, page.ID, c.id, "%s: page.ID", c.name)
		checktest.Equal(t, fmt.Sprint(ids), c.rows, "%s: fmt.Sprint(ids)", c.name)
		checktest.Equal(t, page.NotStored, c.kept, "%s: page.NotStored", c.name)
		checktest.Equal(t, string(page.Body), c.body, "%s: string(page.Body)", c.name)
		checktest.Equal(t, page.Key.URI, target(t, client, c.uri).Key.URI, "%s: page.Key.URI", c.name)
	}
}

// A write by a label is about the record its answer shows.
func TestWriteByAnotherName(t *testing.T) {
	const body = `{"conference_sid":"CF1","call_sid":"CA1","label":"anna","muted":true}`
	client := scripted(t, &script{do: func(int, *http.Request) (*http.Response, error) { return reply(200, body), nil }})
	uri := "/2010-04-01/Accounts/" + account + "/Conferences/CF1/Participants/anna.json"
	page, err := client.Write(t.Context(), request.Write{Target: target(t, client, uri), Method: "POST", Body: []byte("Muted=true")})
	checktest.MustNoError(t, err, "page %+v", page)
	checktest.Equal(t, page.ID, "CF1~CA1", "page.ID")
	checktest.MustEqual(t, len(page.Rows), 1, "len(page.Rows)")
	checktest.Equal(t, page.Rows[0].ID, "CF1~CA1", "page.Rows[0].ID")
}
