// A page in memory costs the database nothing.

package nodes_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"understudy/e2e/rig"
	"understudy/internal/checktest"
	"understudy/internal/store/pgtest"
)

// statement matches a line of the server's log that names an executed statement.
var statement = regexp.MustCompile(`LOG:  (?:execute [^:]*|statement): (.*)`)

// TestWarmPageNeedsNoDatabase: while three processes answer a page from memory, the database executes only what keeps their leases and
// what they do in the background. A statement of an answer would be executed as often as there are requests.
func TestWarmPageNeedsNoDatabase(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Server(t, "log_statement=all")
	g := &group{}
	g.start(t, 3, dsn)
	const list, requests = "/Calls.json?PageSize=20", 300
	ask := func() {
		for node := range g.nodes {
			checktest.MustEqual(t, g.ask(t, node, http.MethodGet, list, "").Status, 200, "status at node %d", node)
		}
	}
	ask()
	before := len(pgtest.ReadLog(t, dsn))
	for range requests {
		ask()
	}
	counts := map[string]int{}
	for _, m := range statement.FindAllStringSubmatch(pgtest.ReadLog(t, dsn)[before:], -1) {
		counts[m[1]]++
	}
	for text, n := range counts {
		ofLease := strings.HasPrefix(text, "INSERT INTO node ") || text == "BEGIN" || text == "COMMIT"
		checktest.True(t, n < requests || ofLease, "during %d requests to each process, the database executed %d times %s", requests, n, text)
	}
	checktest.MustTrue(t, len(counts) > 0, "the log has no statements")
	checktest.Equal(t, rig.ReadAPIStats(t, g.api).ByTarget["/2010-04-01/Accounts/"+rig.Account+list], 1, "requests upstream")
}
