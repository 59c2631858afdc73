// Written rows: a role with row rules finds at once what was written.

package hidden

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"time"

	"understudy/e2e/rig"
	"understudy/internal/checktest"
	"understudy/internal/sample"
)

// TestFirstListUnderRowRulesShowsWhatWasJustWritten has ten clients write messages at once and ask
// for lists at once: 80 lists, 1,800 with UNDERSTUDY_PROVE.
func TestFirstListUnderRowRulesShowsWhatWasJustWritten(t *testing.T) {
	up := rig.StartAPI(t, "--latency", "0s", "--records", "200", "--epoch", time.Now().UTC().Format(time.RFC3339)).URL("slowapi")
	house := startNarrow(t, narrow{
		upstream: up, name: "few", source: rig.SyncSetting(t), mirror: "{newest: 10m, older: 10m}", sees: `"*": see`,
		masks: `"*": see, rows: {messages: {where: {to: {prefix: "+1999"}}}}`, allow: `["POST /2010-04-01/Accounts/*/Messages.json"]`,
	})
	rig.AwaitMirrored(t, house.URL("viewer"))
	list := house.URL("twilio") + rig.Base + "/Messages.json"
	rounds := sample.Count(4, 90)
	var clients sync.WaitGroup
	for client := range 10 {
		clients.Go(func() {
			for n := range rounds {
				to := fmt.Sprintf("+1999555%02d%02d", client, n)
				form := url.Values{"To": {to}, "From": {"+15005550006"}, "Body": {"hello"}}.Encode()
				made, err := rig.Ask(http.MethodPost, rig.Account+":"+rig.DemoToken, list, form)
				if err != nil || made.Status != http.StatusCreated {
					t.Errorf("writing to %s: %v, %v", to, made, err)
					return
				}
				var message struct{ Sid string }
				if err := json.Unmarshal(made.Body, &message); err != nil {
					t.Error(err)
					return
				}
				for _, query := range []string{"?PageSize=50", "?To=" + url.QueryEscape(to)} {
					shown, err := rig.Ask(http.MethodGet, "masks:"+rig.MaskedToken, list+query, "")
					if err != nil {
						t.Errorf("%s: %v", query, err)
						continue
					}
					checktest.Equal(t, shown.Status, http.StatusOK, "%s: status", query)
					checktest.Contains(t, string(shown.Body), message.Sid, "%s, after the message was written: body", query)
				}
			}
		})
	}
	clients.Wait()
}
