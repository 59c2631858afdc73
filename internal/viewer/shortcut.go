// Shortcut: where g and a second key lead.

package viewer

import (
	"net/http"
	"strings"
	"understudy/internal/viewer/plan"
	"unicode"

	"understudy"
)

const keysPath = "/-/keys"

// hints is the page that says what keys do where the reader is.
func (q layout) hints() string {
	if q.source == nil {
		return keysPath
	}
	return keysPath + plan.WithQuery(understudy.Query{{Name: "source", Value: q.source.Name}})
}

// serveKeys says what keys do, and where they lead for this role.
func serveKeys(q *exchange) error {
	if s := q.v.byName[q.r.FormValue("source")]; s != nil && q.sees(s) {
		q.source = s
	}
	return q.render(http.StatusOK, "keys", "Keys", struct{ Jumps []shortcut }{layout{q}.shortcuts()})
}

// shortcut is a page that a key leads to.
type shortcut struct{ Key, Href, Text string }

// shortcuts are the pages with a key: home, the search, the jobs, and each kind under
// the first letter of its title that none before it has. The main kinds come
// first, so a role's keys stay the same on every page.
func (q layout) shortcuts() []shortcut {
	if !q.known || q.caller.Role() == "" {
		return nil
	}
	all := []shortcut{{"h", "/", "Home"}, {"s", "/search", "Search"}}
	if q.seesJobs() {
		all = append(all, shortcut{"j", "/" + plan.JobsWord, "Jobs"})
	}
	taken := "hsj"
	source := q.source
	if source == nil && len(q.v.sources) == 1 {
		source = q.v.sources[0]
	}
	for _, part := range q.byGroup(source) {
		for _, k := range part.kinds {
			letter := strings.IndexFunc(strings.ToLower(k.Title), func(r rune) bool {
				return r <= unicode.MaxASCII && unicode.IsLetter(r) && !strings.ContainsRune(taken, r)
			})
			if letter < 0 {
				continue
			}
			key := strings.ToLower(k.Title)[letter : letter+1]
			taken += key
			all = append(all, shortcut{key, k.Href, plan.UpperFirst(k.Title)})
		}
	}
	return all
}
