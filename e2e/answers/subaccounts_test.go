// Subaccounts: one source covers every account below its user.

package answers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"understudy/e2e/rig"
	"understudy/internal/checktest"
)

// Lists of the user's account and of those below it are made from records, new records are
// seen in both, an account that is made later is covered, too, and a search finds all.
func TestSubaccountsAreCovered(t *testing.T) {
	t.Parallel()
	api := rig.StartAPI(t, "--latency", "0s", "--records", "100", "--arrivals", "0").URL("slowapi")
	send := func(path, form string) (sid string) {
		t.Helper()
		r, err := rig.Ask(http.MethodPost, rig.Account+":"+rig.APIToken, api+path, form, "Content-Type", "application/x-www-form-urlencoded")
		var made struct{ SID string }
		checktest.MustNoError(t, err, "%s", path)
		checktest.MustEqual(t, r.Status, http.StatusCreated, "%s: r.Status", path)
		checktest.MustTrue(t, json.Unmarshal(r.Body, &made) == nil, "%s: json.Unmarshal(r.Body, &made) is %v", path,
			json.Unmarshal(r.Body, &made))
		return made.SID
	}
	messages := func(of string) string { return "/2010-04-01/Accounts/" + of + "/Messages.json" }
	text := func(of, body string) { send(messages(of), "To=%2B15550000001&From=%2B15550000009&Body="+body) }
	below := send("/2010-04-01/Accounts.json", "FriendlyName=Branch")
	text(below, "one")

	dir := t.TempDir()
	for name, text := range map[string]string{"token": rig.APIToken, "program": rig.ProgramSecret, "understudy.yml": `data: ./data
viewer: {listen: "127.0.0.1:0", role: all}
sources:
  twilio: {spec: twilio, user: ` + rig.Account + `, secret: "file:token", upstream: "` + api + `", listen: "127.0.0.1:0", rate: 2000, concurrency: 50,
    covers: [all], polls: [], lists_from: records, sync: [messages]}
credentials:
  - {name: program, user: ` + rig.Account + `, source: twilio, secret: "file:program", role: all, rate: 2000}
mirror: {newest: 1s}
sync: {sweep: 10s}
`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	house := rig.Start(t, dir, "serve")
	same := func(of string) {
		t.Helper()
		rig.Await(t, func() string {
			path := messages(of) + "?PageSize=20"
			want := rig.Get(t, rig.Account+":"+rig.APIToken, api+path)
			r := rig.Get(t, rig.Account+":"+rig.ProgramSecret, house.URL("twilio")+path)
			if how := r.Header.Get("Cache-Status"); !bytes.Equal(r.Body, want.Body) || !strings.Contains(how, "composed") {
				return fmt.Sprintf("%s: %s\n%s", path, how, rig.FirstDifference(want.Body, r.Body))
			}
			return ""
		})
	}
	rig.AwaitSwept(t, house.URL("viewer"), "twilio", []string{"accounts", "messages"}, time.Time{})
	same(rig.Account)
	same(below)
	text(below, "two")
	text(rig.Account, "three")
	same(rig.Account)
	same(below)
	later := send("/2010-04-01/Accounts.json", "FriendlyName=Later")
	text(later, "four")
	same(later)
	list := rig.Get(t, "", house.URL("viewer")+"/twilio/messages.csv").Body
	checktest.True(t, bytes.Contains(list, []byte(",account_sid,")),
		`the viewer's list has not all accounts: bytes.Contains(list, []byte(",account_sid,")) is false`)
	checktest.True(t, bytes.Contains(list, []byte(below)),
		"the viewer's list has not all accounts: bytes.Contains(list, []byte(below)) is false")
	checktest.True(t, bytes.Contains(list, []byte(later)),
		"the viewer's list has not all accounts: bytes.Contains(list, []byte(later)) is false")
	checktest.True(t, bytes.Contains(list, []byte(rig.Account)),
		"the viewer's list has not all accounts: bytes.Contains(list, []byte(rig.Account)) is false")
	one := rig.Get(t, "", house.URL("viewer")+"/twilio/messages.csv?understudy.AccountSid="+below+"&understudy.columns=account_sid,body").Body
	if n := bytes.Count(one, []byte(below)); n != 2 || bytes.Contains(one, []byte(rig.Account)) {
		t.Errorf("the list of one account has %d of its 2 messages: %.300s", n, one)
	}
	if facets := rig.Get(t, "", house.URL("viewer")+"/-/search?q=kind:messages&facets=true&limit=1").Body; !bytes.Contains(facets, []byte(`{"name":"account_sid","values":[`)) ||
		!bytes.Contains(facets, []byte(`{"value":"`+below+`","n":2,`)) {
		t.Errorf("messages are not counted by account: %s", facets)
	}
	for of, want := range map[string]int{below: 2, later: 1} {
		var found struct{ Hits []any }
		r := rig.Get(t, "", house.URL("viewer")+"/-/search?q=kind:messages+account_sid:"+of)
		if err := json.Unmarshal(r.Body, &found); err != nil || len(found.Hits) != want {
			t.Errorf("%s: %d found, want %d: %v %s", of, len(found.Hits), want, err, r.Body)
		}
	}
}
