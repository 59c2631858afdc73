// Narrow: houses with a role that finds some records alone, of which it may see
// a part.

package hidden

import (
	"fmt"
	"testing"

	"understudy/e2e/binary"
	"understudy/e2e/rig"
)

// narrow is such a server: its role and the one credential that has it are called
// name, and rig.MaskedToken is their secret. It finds inbound calls and delivered
// messages.
type narrow struct {
	upstream string
	name     string
	sees     string // subjects and levels, in one line
	masks    string // the same of a second role with a credential, masks, that finds every record
	allow    string // what the credential may send, as a list; default: nothing
	source   string // settings to add to the source
	mirror   string // the mirror section; default: none
}

// startNarrow runs it. People on this machine have the role all, and counts take
// their time: a machine at work does not make them "at least".
func startNarrow(t testing.TB, n narrow) *binary.Server {
	t.Helper()
	if n.allow == "" {
		n.allow = "[]"
	}
	if n.masks == "" {
		n.masks = `"*": see`
	}
	house, _ := rig.StartServer(t, rig.Settings{
		Upstream: n.upstream, Mirror: n.mirror, Role: "all", Search: "{count: 5s, facets: 5s}",
		Source: fmt.Sprintf("public_url: %q, %s", rig.PublicURL, n.source),
		More: fmt.Sprintf("  - {name: %[1]s, source: twilio, user: %[1]s, secret: \"file:masked.secret\", role: %[1]s, allow: %s}\n", n.name, n.allow) +
			"  - {name: masks, source: twilio, user: masks, secret: \"file:masked.secret\", role: masks}\n",
		Roles: fmt.Sprintf(`  %s:
    twilio: {%s, rows: {calls: {where: {direction: inbound}}, messages: {where: {status: delivered}}}}
  masks: {twilio: {%s}}
`, n.name, n.sees, n.masks),
	})
	return house
}
