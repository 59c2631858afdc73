// Below: the records of an account below another, with that one's credentials.

package e2e

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestListsOfAnAccountBelow: a source whose user is the account below and whose
// login is the main one holds that account's records whole, and answers its
// lists from them.
func TestListsOfAnAccountBelow(t *testing.T) {
	t.Parallel()
	api := startAPI(t, "--latency", "0s", "--records", "40")
	up, below := api.URL("slowapi"), ""
	for _, sid := range regexp.MustCompile(`"sid":"(AC[0-9a-f]+)"`).FindAllSubmatch(get(t, account+":"+apiToken, up+"/2010-04-01/Accounts.json").body, -1) {
		if string(sid[1]) != account {
			below = string(sid[1])
		}
	}
	root := "/2010-04-01/Accounts/" + below
	for range 5 {
		for list, form := range map[string]string{"/Keys.json": "FriendlyName=own", "/Calls.json": "To=%2B15005550006&From=%2B15005550001&Url=http%3A%2F%2Fexample.com", "/Messages.json": "To=%2B15005550006&From=%2B15005550001&Body=x"} {
			if r, err := ask(http.MethodPost, account+":"+apiToken, up+root+list, form); err != nil || r.status != http.StatusCreated {
				t.Fatalf("%s: %d %v %s", list, r.status, err, r.body)
			}
		}
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"twilio.token": apiToken, "demo.secret": demoToken, "understudy.yml": `data: ./data
viewer: {listen: "127.0.0.1:0", role: all}
sources:
  twilio: {spec: twilio, upstream: "` + up + `", user: ` + below + `, login: ` + account + `, secret: "file:twilio.token", listen: "127.0.0.1:0", rate: 500, polls: [], answers: records, sync: [keys, calls, messages]}
credentials:
  - {name: demo, source: twilio, user: ` + account + `, secret: "file:demo.secret", role: all}
`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	house := start(t, dir, "serve")
	await(t, func() string { return incomplete(t, house.URL("viewer"), time.Time{}, "keys", "calls", "messages") })
	for _, target := range []string{root + "/Keys.json?PageSize=2", root + "/Calls.json?PageSize=3&Status=queued", root + "/Messages.json?PageSize=2&To=%2B15005550006"} {
		for rows := 0; target != ""; {
			want := get(t, account+":"+apiToken, up+target)
			got := get(t, account+":"+demoToken, house.URL("twilio")+target)
			how := strings.Join(got.header["Cache-Status"], " ")
			if want.status != http.StatusOK || got.status != want.status || !bytes.Equal(got.body, want.body) || !strings.Contains(how, "composed") {
				t.Fatalf("%s: %d (%s)\n%s\nwant %d\n%s", target, got.status, how, got.body, want.status, want.body)
			}
			rows += bytes.Count(got.body, []byte(`"sid":`))
			next := regexp.MustCompile(`"next_page_uri":"([^"]*)"`).FindSubmatch(got.body)
			if next == nil {
				if rows < 5 {
					t.Errorf("%s: %d rows", target, rows)
				}
				break
			}
			target = string(next[1])
		}
	}
}
