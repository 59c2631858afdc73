// One: the page of a credential: what it may do, the lines to paste, the way to try it.

package programs

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"understudy"
	"understudy/internal/credentials"
	"understudy/internal/viewer/page"
	"understudy/spec"
)

// hiddenSecret stands in the lines for a secret that is not known.
const hiddenSecret = "YOUR_SECRET"

// onePage is what credential.html shows.
type onePage struct {
	Credential   credentialView
	Said         string // what has been done just now
	User, Secret string // just made: they are not shown again; "": not known
	Address      string
	Lines        []snippet
	Tried        *tried
	Offer        string // the list that is tried; "": the role sees none
}

// snippet are what one client is given.
type snippet struct{ Title, Code string }

// credentialView is a credential as people see it.
type credentialView struct {
	Name, Source, Title, Role, Href string
	Fixed                           bool   // the settings name it
	Off                             string // why it opens nothing; "": it does
	Made, Expires                   *page.When
	Allow                           []string // methods and paths beside reading
	Bounds                          []string
	Secrets                         []secretView
}

// secretView is a user whose secret opens a credential.
type secretView struct {
	User  string
	Made  *page.When
	Until *page.When // nil: as long as the credential
}

// viewOf is a credential for people.
func viewOf(q *page.Exchange, c credentials.Credential, fixed bool) credentialView {
	v := credentialView{Name: c.Name, Source: c.Source, Title: c.Source, Role: c.Role, Href: href(c.Name), Fixed: fixed,
		Allow: c.Allow, Bounds: boundsOf(c.Scope)}
	if s := q.V.ByName[c.Source]; s != nil {
		v.Title = s.Spec.Title
	}
	if !fixed {
		v.Made, v.Off = q.Clock.Moment(c.Made), whyOff(q, c)
	}
	if c.Expires != nil {
		v.Expires = q.Clock.Moment(*c.Expires)
		if !q.Clock.Start.Before(*c.Expires) {
			v.Off = "it has expired"
		}
	}
	for _, s := range c.Secrets {
		if s.Until != nil && !q.Clock.Start.Before(*s.Until) {
			continue
		}
		one := secretView{User: s.User, Made: q.Clock.Moment(s.Made)}
		if s.Until != nil {
			one.Until = q.Clock.Moment(*s.Until)
		}
		v.Secrets = append(v.Secrets, one)
	}
	return v
}

// whyOff is why the settings leave a credential no room; "": they do.
func whyOff(q *page.Exchange, c credentials.Credential) string {
	sameName := func(o credentials.Credential) bool { return o.Name == c.Name }
	switch {
	case slices.ContainsFunc(q.V.Options.Programs.Configured, sameName):
		return "the settings have one of that name"
	case q.V.ByName[c.Source] == nil:
		return "the settings have no source " + c.Source
	case q.Rights.Gate.Known(c.Role) != nil:
		return "the settings have no role " + c.Role
	}
	return ""
}

// boundsOf is what bounds a credential.
func boundsOf(s credentials.Scope) (all []string) {
	if s.MaxStale != "" {
		all = append(all, "takes answers up to "+s.MaxStale+" past fresh")
	}
	if rate := s.RateText(); rate != "" {
		all = append(all, rate+" at most")
	}
	if len(s.Addresses) > 0 {
		all = append(all, "from "+strings.Join(s.Addresses, ", ")+" alone")
	}
	return all
}

// find is a credential by its name, and whether the settings name it. Where both have the
// name, the one of the settings is in force.
func find(q *page.Exchange, name string) (c credentials.Credential, fixed bool, err error) {
	for _, c := range q.V.Options.Programs.Configured {
		if c.Name == name {
			return c, true, nil
		}
	}
	for _, c := range q.V.Options.Programs.All() {
		if c.Name == name {
			return c, false, nil
		}
	}
	return c, false, page.NotFound("There is no credential "+understudy.Clip(name), "The list names those there are.", Path)
}

// serveOne shows a credential.
func serveOne(q *page.Exchange) error { return showOne(q, q.R.PathValue("name"), onePage{}) }

// showOne shows a credential, with what is known just now.
func showOne(q *page.Exchange, name string, p onePage) error {
	c, fixed, err := find(q, name)
	if err != nil {
		return err
	}
	p.Credential = viewOf(q, c, fixed)
	if src := q.V.ByName[c.Source]; src != nil {
		p.Address = src.Config.PublicURL
		at := spec.Connection{Address: p.Address, User: p.User, Secret: cmp.Or(p.Secret, hiddenSecret), Account: src.Config.User}
		if at.User == "" && len(p.Credential.Secrets) > 0 {
			at.User = p.Credential.Secrets[0].User
		}
		for _, s := range src.Spec.Connect {
			p.Lines = append(p.Lines, snippet{s.Title, strings.TrimSuffix(at.Fill(s), "\n")})
		}
		if t := newest(q, c); t != nil {
			p.Offer = t.Kind.Title
		}
	}
	return q.Render(http.StatusOK, "credential", "Credential "+c.Name, p)
}

// newest is the newest page of the first list that a credential's role may ask for, of the
// main kinds first; nil: there is none.
func newest(q *page.Exchange, c credentials.Credential) *spec.Target {
	src := q.V.ByName[c.Source]
	if src == nil {
		return nil
	}
	who := understudy.Caller{Name: c.Name, Source: c.Source, Grant: &understudy.Grant{Role: c.Role}}
	var other *spec.Target
	for _, k := range src.Kinds {
		if !k.Browsable() || len(k.PlannedLists) == 0 {
			continue
		}
		t := k.PlannedLists[0].Newest
		switch {
		case t == nil || q.Rights.Gate.Read(who, t) != nil:
		case k.Spec.Group == "":
			return t
		case other == nil:
			other = t
		}
	}
	return other
}

// overlaps are how long a former secret may be good after a rotation.
var overlaps = []struct {
	Value string
	Text  string
}{{"24h", "for one more day"}, {"1h", "for one more hour"}, {"168h", "for a week"}, {"0s", "no longer: it ends now"}}

// Overlaps are the choices of a rotation.
func (onePage) Overlaps() any { return overlaps }
