// Nav: the way to every kind, from every page: the main ones first, the others
// under their headings.

package page

import (
	"net/http"
	"slices"
	"strings"
	"unicode"

	"understudy"
	"understudy/internal/viewer/plan"
)

// OwnBack names a position of the newer pages on the way here, oldest first, in an address.
//
// A path variable the source fills is named as the viewer's own when it has another
// value: understudy.AccountSid. One that names the record a list lies under has its own
// name, as a filter would: CallSid.
const OwnBack = understudy.OwnPrefix + "back"

// MaxBack bounds how many newer pages an address remembers.
const MaxBack = 8

// nav is the header's links.
type nav struct {
	Main []Link
	More []linkGroup
}

// linkGroup is links under a heading.
type linkGroup struct {
	Title string
	Links []Link
}

// mainLimit is how many kinds the header shows by themselves, whatever the
// spec says: more would not fit.
const mainLimit = 6

// nav are the kinds of the source at hand.
func (r *Rights) nav(source *plan.Source, current *plan.Kind) nav {
	var n nav
	for _, part := range r.byGroup(source) {
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
			if l.Current { // what is open is never folded away
				n.Main = append(n.Main, l)
			}
		}
	}
	return n
}

// kindGroup is kinds under a heading; "" are the main ones.
type kindGroup struct {
	title string
	kinds []*plan.Kind
}

// byGroup are the kinds of a source the caller may list, under the spec's
// headings in the order they first appear, the main ones before all others. nil is the
// only source there is.
func (r *Rights) byGroup(s *plan.Source) []kindGroup {
	if s == nil && len(r.v.Planned) == 1 {
		s = r.v.Planned[0]
	}
	all := []kindGroup{{}}
	const rest = "Others"
	for _, k := range r.Readable(s) {
		title := plan.UpperFirst(k.Spec.Group)
		if title == "" && len(all[0].kinds) == mainLimit {
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

// banners say of the source at hand, or of every source the caller sees, that it does not do well.
func (q *Exchange) banners() []Health {
	if !q.Rights.Known {
		return nil
	}
	var all []Health
	for _, s := range q.V.Planned {
		if q.Source != nil && s != q.Source || !q.Rights.Sees(s) || q.Rights.Caller.Role() == "" {
			continue
		}
		snap := q.V.Snapshots.Of(q, s)
		if snap.State == "" || snap.State == "ok" {
			continue
		}
		h := q.Clock.HealthOf(snap)
		h.Word = strings.Replace(h.Word, "Upstream", s.Spec.Title, 1)
		all = append(all, h)
	}
	return all
}

// Link is an address and its words.
type Link struct {
	Href, Text string
	Current    bool
	About      string // a sentence on what it does; "": none
}

// Option is one choice of a menu.
type Option struct {
	Value, Text string
	Selected    bool
}

// KindOptions returns the kinds that the caller can search, those of the names given selected.
func KindOptions(q *Exchange, names []string) []Option {
	all := []Option{{Value: "", Text: "everything", Selected: len(names) == 0}}
	for _, src := range q.V.Planned {
		for _, k := range src.Kinds {
			name := k.Spec.Name
			known := slices.ContainsFunc(all, func(o Option) bool { return o.Value == name })
			if !known && q.Rights.Sees(src) && k.Remembered() && q.Rights.SeesKind(k) {
				all = append(all, Option{Value: name, Text: plan.UpperFirst(k.Spec.Title), Selected: slices.Contains(names, name)})
			}
		}
	}
	return all
}

// Same reports whether a browser takes the text for the value: it does less its
// spaces at both ends, and with one for several.
func (o Option) Same() bool {
	return o.Value == o.Text && o.Text != "" && strings.Join(strings.Fields(o.Text), " ") == o.Text
}

const keysPath = "/-/keys"

// keysOf is the page that says what keys do on the pages of a source.
func keysOf(s *plan.Source) string {
	if s == nil {
		return keysPath
	}
	return keysPath + plan.WithQuery(understudy.Query{{Name: "source", Value: s.Name}})
}

// ServeKeys says what keys do, and where they lead for this role.
func ServeKeys(q *Exchange) error {
	if s := q.V.ByName[q.R.FormValue("source")]; s != nil && q.Rights.Sees(s) {
		q.Source = s
	}
	return q.Render(http.StatusOK, "keys", "Keys", struct{ Jumps []shortcut }{q.Rights.shortcuts(q.Source, q.SeesJobs())})
}

// shortcut is a page that a key leads to.
type shortcut struct{ Key, Href, Text string }

// shortcuts are the pages with a key: home, the search, the jobs, and each kind under
// the first letter of its title that none before it has. The main kinds come
// first, so a role's keys stay the same on every page.
func (r *Rights) shortcuts(source *plan.Source, jobs bool) []shortcut {
	if !r.Known || r.Caller.Role() == "" {
		return nil
	}
	all := []shortcut{{"h", "/", "Home"}, {"s", "/search", "Search"}}
	if jobs {
		all = append(all, shortcut{"j", "/" + plan.JobsWord, "Jobs"})
	}
	taken := "hsj"
	for _, part := range r.byGroup(source) {
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
