// The navigation on every page: links to all kinds. The main kinds come first. The other kinds follow in groups with headings.

package page

import (
	"net/http"
	"slices"
	"strings"
	"unicode"

	"understudy"
	"understudy/internal/viewer/plan"
)

// ParamBack is the parameter with the positions of the newer pages that the reader has visited, oldest first.
//
// A path variable that the source fills has the viewer's prefix if the address changes its value:
// understudy.AccountSid. A path variable that names a list's parent record keeps its own name, as a filter does:
// CallSid.
const ParamBack = understudy.OwnPrefix + "back"

// MaxBack is the largest number of ParamBack parameters in an address.
const MaxBack = 8

// nav has the links in the header of a page.
type nav struct {
	Main []Link
	More []linkGroup
}

// linkGroup is a group of links with a heading.
type linkGroup struct {
	Title string
	Links []Link
}

// maxMainKinds is the largest number of kinds in the header that are not in a group. The header has no room for more,
// even if the spec has more main kinds.
const maxMainKinds = 6

// nav returns the links to the kinds of a source.
func (r *Rights) nav(source *plan.Source, current *plan.Kind) nav {
	var n nav
	for _, part := range r.groupKinds(source) {
		var links []Link
		for _, k := range part.kinds {
			links = append(links, Link{Href: k.Href, Text: plan.UpperFirst(k.Spec.Title), Current: k == current})
		}
		if part.title == "" {
			n.Main = links
			continue
		}
		n.More = append(n.More, linkGroup{part.title, links})
		for _, l := range links {
			if l.Current { // the kind of the current page always stands outside of the groups
				n.Main = append(n.Main, l)
			}
		}
	}
	return n
}

// kindGroup is a group of kinds with a heading. The group of the main kinds has no heading.
type kindGroup struct {
	title string
	kinds []*plan.Kind
}

// groupKinds returns the kinds of a source that the caller may list, in groups. The main kinds come first. The other
// groups have the headings of the spec, in the order of their first use. A nil source stands for the only source, if
// there is just one.
func (r *Rights) groupKinds(s *plan.Source) []kindGroup {
	if s == nil && len(r.v.Planned) == 1 {
		s = r.v.Planned[0]
	}
	all := []kindGroup{{}}
	const rest = "Others"
	for _, k := range r.ReadableKinds(s) {
		title := plan.UpperFirst(k.Spec.Group)
		if title == "" && len(all[0].kinds) == maxMainKinds {
			title = rest
		}
		i := 0
		for i < len(all) && all[i].title != title {
			i++
		}
		if i == len(all) {
			all = append(all, kindGroup{title: title})
		}
		all[i].kinds = append(all[i].kinds, k)
	}
	if len(all[0].kinds) == 0 {
		all = all[1:]
	}
	return all
}

// banners returns the state of each source that does not answer normally. It checks only the source of the page, or
// if the page has none, all sources that the caller may see.
func (q *Exchange) banners() []Health {
	if !q.Rights.HasCaller {
		return nil
	}
	var all []Health
	for _, s := range q.V.Planned {
		if q.Source != nil && s != q.Source || !q.Rights.CanSee(s) || q.Rights.Caller.Role() == "" {
			continue
		}
		snap := q.V.Snapshots.Get(q, s)
		if snap.State == "" || snap.State == "ok" {
			continue
		}
		all = append(all, q.Clock.HealthOf(snap, s.Spec.Title))
	}
	return all
}

// Link is an address with its text.
type Link struct {
	Href, Text string
	Current    bool
	About      string // a sentence about what happens at the address, or ""
}

// Option is one choice of a menu.
type Option struct {
	Value, Text string
	Selected    bool
}

// KindOptions returns the kinds that the caller can search. The named kinds are selected.
func KindOptions(q *Exchange, names []string) []Option {
	all := []Option{{Value: "", Text: "everything", Selected: len(names) == 0}}
	for _, src := range q.V.Planned {
		for _, k := range src.Kinds {
			name := k.Spec.Name
			known := slices.ContainsFunc(all, func(o Option) bool { return o.Value == name })
			if !known && q.Rights.CanSee(src) && k.HasRecords() && q.Rights.CanSeeKind(k) {
				all = append(all, Option{Value: name, Text: plan.UpperFirst(k.Spec.Title), Selected: slices.Contains(names, name)})
			}
		}
	}
	return all
}

// IsTextValue reports whether a browser sends the option's text as its value. Browsers trim the text and join several
// spaces to one.
func (o Option) IsTextValue() bool {
	return o.Value == o.Text && o.Text != "" && strings.Join(strings.Fields(o.Text), " ") == o.Text
}

const keysPath = "/-/keys"

func keysAddress(s *plan.Source) string {
	if s == nil {
		return keysPath
	}
	return keysPath + plan.WithQuery(understudy.Query{{Name: "source", Value: s.Name}})
}

// ServeKeys shows the keyboard shortcuts and the pages that they open for the caller's role.
func ServeKeys(q *Exchange) error {
	if s := q.V.ByName[q.R.FormValue("source")]; s != nil && q.Rights.CanSee(s) {
		q.Source = s
	}
	return q.Render(http.StatusOK, "keys", "Keys", struct{ Jumps []shortcut }{q.Rights.shortcuts(q.Source, q.CanSeeJobs())})
}

// shortcut is a key and the page that it opens.
type shortcut struct{ Key, Href, Text string }

// shortcuts returns the pages that a key opens: home, the search, the jobs and each kind. The key of a kind is the first letter
// of its title that no other page uses. The main kinds choose first. A role has the same keys on every page.
func (r *Rights) shortcuts(source *plan.Source, jobs bool) []shortcut {
	if !r.HasCaller || r.Caller.Role() == "" {
		return nil
	}
	all := []shortcut{{"h", "/", "Home"}, {"s", "/search", "Search"}}
	if jobs {
		all = append(all, shortcut{"j", "/" + plan.JobsWord, "Jobs"})
	}
	taken := "hsj"
	for _, part := range r.groupKinds(source) {
		for _, k := range part.kinds {
			letter := strings.IndexFunc(strings.ToLower(k.Spec.Title), func(r rune) bool {
				return r <= unicode.MaxASCII && unicode.IsLetter(r) && !strings.ContainsRune(taken, r)
			})
			if letter < 0 {
				continue
			}
			key := strings.ToLower(k.Spec.Title)[letter : letter+1]
			taken += key
			all = append(all, shortcut{key, k.Href, plan.UpperFirst(k.Spec.Title)})
		}
	}
	return all
}
