// Jump: where g and a second key lead.

package viewer

import (
	"strings"
	"unicode"
)

// jump is a page that a key leads to.
type jump struct{ Key, Href, Text string }

// jumps are the pages with a key: home, the search, the jobs, and each kind under
// the first letter of its title that none before it has. The main kinds come
// first, so a role's keys stay the same on every page.
func (q *visit) jumps() []jump {
	if !q.known || q.caller.Role() == "" {
		return nil
	}
	all := []jump{{"h", "/", "Home"}, {"s", "/search", "Search"}}
	if q.seesJobs() {
		all = append(all, jump{"j", "/" + jobsWord, "Jobs"})
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
			all = append(all, jump{key, k.href, upperFirst(k.Title)})
		}
	}
	return all
}
