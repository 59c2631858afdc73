// Below: the records of an account below another, with that one's credentials.

package answers

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"understudy/e2e/rig"
	"understudy/internal/checktest"
)

// TestListsOfAnAccountBelow: a source whose user is the account below and whose
// login is the main one holds that account's records whole, and answers its
// lists from them.
func TestListsOfAnAccountBelow(t *testing.T) {
	t.Parallel()
	api := rig.StartAPI(t, "--latency", "0s", "--records", "40")
	up, below := api.URL("slowapi"), ""
	for _, sid := range regexp.MustCompile(`"sid":"(AC[0-9a-f]+)"`).FindAllSubmatch(rig.Get(t, rig.Account+":"+rig.APIToken, up+"/2010-04-01/Accounts.json").Body, -1) {
		if string(sid[1]) != rig.Account {
			below = string(sid[1])
		}
	}
	root := "/2010-04-01/Accounts/" + below
	for range 5 {
		for list, form := range map[string]string{"/Keys.json": "FriendlyName=own", "/Calls.json": "To=%2B15005550006&From=%2B15005550001&Url=http%3A%2F%2Fexample.com", "/Messages.json": "To=%2B15005550006&From=%2B15005550001&Body=x"} {
			if r, err := rig.Ask(http.MethodPost, rig.Account+":"+rig.APIToken, up+root+list, form); err != nil || r.Status != http.StatusCreated {
				t.Fatalf("%s: %d %v %s", list, r.Status, err, r.Body)
			}
		}
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"twilio.token": rig.APIToken, "demo.secret": rig.DemoToken, "understudy.yml": `data: ./data
viewer: {listen: "127.0.0.1:0", role: all}
sources:
  twilio: {spec: twilio, upstream: "` + up + `", user: ` + below + `, auth_user: ` + rig.Account + `, secret: "file:twilio.token", listen: "127.0.0.1:0", rate: 500, polls: [], lists_from: records, sync: [keys, calls, messages]}
credentials:
  - {name: demo, source: twilio, user: ` + rig.Account + `, secret: "file:demo.secret", role: all}
`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	house := rig.Start(t, dir, "serve")
	rig.Await(t, func() string { return rig.Incomplete(t, house.URL("viewer"), time.Time{}, "keys", "calls", "messages") })
	for _, target := range []string{root + "/Keys.json?PageSize=2", root + "/Calls.json?PageSize=3&Status=queued", root + "/Messages.json?PageSize=2&To=%2B15005550006"} {
		for rows := 0; target != ""; {
			want := rig.Get(t, rig.Account+":"+rig.APIToken, up+target)
			got := rig.Get(t, rig.Account+":"+rig.DemoToken, house.URL("twilio")+target)
			how := strings.Join(got.Header["Cache-Status"], " ")
			checktest.MustEqual(t, want.Status, http.StatusOK, "%s: want.Status", target)
			checktest.MustEqual(t, got.Status, want.Status, "%s: got.Status", target)
			checktest.MustTrue(t, bytes.Equal(got.Body, want.Body), "%s: got.Body is %q, want %q", target, got.Body,
				want.Body)
			checktest.MustContains(t, how, "composed", "%s: how", target)
			rows += bytes.Count(got.Body, []byte(`"sid":`))
			next := regexp.MustCompile(`"next_page_uri":"([^"]*)"`).FindSubmatch(got.Body)
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
