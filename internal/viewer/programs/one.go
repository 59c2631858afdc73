// The page of one credential: what it permits, how to configure clients with it, and a test request.

package programs

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"understudy"
	"understudy/internal/credentials"
	"understudy/internal/viewer/page"
	"understudy/spec"
)

// hiddenSecret stands for the secret in examples when the secret is not known.
const hiddenSecret = "YOUR_SECRET"

// credentialPage is the data of the template credential.html.
type credentialPage struct {
	Credential   credentialView
	Said         string // a message about what the reader has just done
	User, Secret string // the user and the secret of a credential that was just made; empty otherwise, as they are shown only once
	Address      string
	Lines        []snippet
	Tried        *tryResult
	Offer        string // the list that the test request reads; empty if the role may read none
}

// snippet is an example of how to configure one client with the credential.
type snippet struct{ Title, Code string }

// credentialView is a credential as pages show it.
type credentialView struct {
	Name, Source, Title, Role, Href string
	Fixed                           bool   // whether the credential is defined in the settings
	Off                             string // why the credential does not work, in words; empty if it works
	Made, Expires                   *page.When
	Allow                           []string // the methods and paths of writes that the credential permits
	Bounds                          []string
	Secrets                         []secretView
}

// secretView is one user name and secret of a credential.
type secretView struct {
	User  string
	Made  *page.When
	Until *page.When // when the secret stops working; nil if it works as long as the credential
}

// viewOf returns a credential as pages show it.
func viewOf(q *page.Exchange, c credentials.Credential, fixed bool) credentialView {
	v := credentialView{Name: c.Name, Source: c.Source, Title: c.Source, Role: c.Role, Href: Path + "/" + url.PathEscape(c.Name), Fixed: fixed,
		Allow: c.Allow, Bounds: boundsOf(c.Scope)}
	if s := q.V.ByName[c.Source]; s != nil {
		v.Title = s.Spec.Title
	}
	if !fixed {
		v.Made, v.Off = q.Clock.Moment(c.Made), disabledReason(q, c)
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

// disabledReason returns why a credential does not work because of the settings, or "" if it works.
func disabledReason(q *page.Exchange, c credentials.Credential) string {
	sameName := func(o credentials.Credential) bool { return o.Name == c.Name }
	switch {
	case slices.ContainsFunc(q.V.Options.Programs.Configured, sameName):
		return "the settings have a credential with the same name"
	case q.V.ByName[c.Source] == nil:
		return "the settings have no source " + c.Source
	case q.Rights.Gate.CheckRole(c.Role) != nil:
		return "the settings have no role " + c.Role
	}
	return ""
}

func boundsOf(s credentials.Scope) (all []string) {
	if s.MaxStale != "" {
		all = append(all, "accepts answers up to "+s.MaxStale+" out of date")
	}
	if rate := s.RateText(); rate != "" {
		all = append(all, "at most "+rate)
	}
	if len(s.Addresses) > 0 {
		all = append(all, "only from "+strings.Join(s.Addresses, ", "))
	}
	return all
}

// find returns the credential of a name. fixed is true if it is defined in the settings. If the settings and the
// viewer's page both define the name, only the one of the settings works.
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
	return c, false, page.NewNotFound("There is no credential "+understudy.Clip(name), "See the list of credentials.", Path)
}

func serveCredential(q *page.Exchange) error {
	return showCredential(q, q.R.PathValue("name"), credentialPage{})
}

// showCredential shows the page of a credential with the message and the secret in p.
func showCredential(q *page.Exchange, name string, p credentialPage) error {
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
		for _, s := range src.Spec.Snippets {
			p.Lines = append(p.Lines, snippet{s.Title, strings.TrimSuffix(at.Fill(s), "\n")})
		}
		if t := newestTarget(q, c); t != nil {
			p.Offer = t.Kind.Title
		}
	}
	return q.Render(http.StatusOK, "credential", "Credential "+c.Name, p)
}

// newestTarget returns the newest page of the first list that the credential's role may read. It tries the main kinds
// first. It returns nil if there is no such list.
func newestTarget(q *page.Exchange, c credentials.Credential) *spec.Target {
	src := q.V.ByName[c.Source]
	if src == nil {
		return nil
	}
	who := understudy.Caller{Name: c.Name, Source: c.Source, Grant: &understudy.Grant{Role: c.Role}}
	var other *spec.Target
	for _, k := range src.Kinds {
		if !k.IsBrowsable() || len(k.PlannedLists) == 0 {
			continue
		}
		t := k.PlannedLists[0].Newest
		switch {
		case t == nil || q.Rights.Gate.CheckRead(who, t) != nil:
		case k.Spec.Group == "":
			return t
		case other == nil:
			other = t
		}
	}
	return other
}

// overlaps are the choices for how long the old secret still works after a rotation.
var overlaps = []struct {
	Value string
	Text  string
}{{"24h", "for one more day"}, {"1h", "for one more hour"}, {"168h", "for a week"}, {"0s", "no longer: stop it now"}}

// Overlaps returns the choices for how long the old secret still works after a rotation.
func (credentialPage) Overlaps() any { return overlaps }
