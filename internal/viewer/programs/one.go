// The page of a credential: its rights, the lines for clients, and a test request.

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

// hiddenSecret replaces an unknown secret in the lines for clients.
const hiddenSecret = "YOUR_SECRET"

// onePage is the data of the template credential.html.
type onePage struct {
	Credential   credentialView
	Said         string // the message about what was just done
	User, Secret string // the parts of a new credential, which are shown only once; otherwise empty
	Address      string
	Lines        []snippet
	Tried        *tried
	Offer        string // the list for the test request; empty if the role may see none
}

// snippet is the configuration of one client.
type snippet struct{ Title, Code string }

// credentialView is a credential as pages show it.
type credentialView struct {
	Name, Source, Title, Role, Href string
	Fixed                           bool   // the credential is in the settings
	Off                             string // why the credential does not work; empty if it works
	Made, Expires                   *page.When
	Allow                           []string // the methods and paths it may use in addition to reading
	Bounds                          []string
	Secrets                         []secretView
}

// secretView is a user with a secret of the credential.
type secretView struct {
	User  string
	Made  *page.When
	Until *page.When // nil if the secret is valid as long as the credential
}

// viewOf returns a credential as pages show it.
func viewOf(q *page.Exchange, c credentials.Credential, fixed bool) credentialView {
	v := credentialView{Name: c.Name, Source: c.Source, Title: c.Source, Role: c.Role, Href: href(c.Name), Fixed: fixed,
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

// disabledReason returns why the settings disable a credential, or "" if they do not.
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

// boundsOf returns the limits of a credential in words.
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

// find returns the credential of a name, and whether it is in the settings. If both a made and a configured
// credential have the name, the configured one is valid.
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

// serveOne shows a credential.
func serveOne(q *page.Exchange) error { return showOne(q, q.R.PathValue("name"), onePage{}) }

// showOne shows a credential with the message and the secret in p.
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
		for _, s := range src.Spec.Snippets {
			p.Lines = append(p.Lines, snippet{s.Title, strings.TrimSuffix(at.Fill(s), "\n")})
		}
		if t := newest(q, c); t != nil {
			p.Offer = t.Kind.Title
		}
	}
	return q.Render(http.StatusOK, "credential", "Credential "+c.Name, p)
}

// newest returns the newest page of the first list that the credential's role may read. Main kinds have priority.
// It returns nil if there is none.
func newest(q *page.Exchange, c credentials.Credential) *spec.Target {
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

// overlaps are the choices for how long the former secret stays valid after a rotation.
var overlaps = []struct {
	Value string
	Text  string
}{{"24h", "for one more day"}, {"1h", "for one more hour"}, {"168h", "for a week"}, {"0s", "no longer: stop it now"}}

// Overlaps returns the choices for a rotation.
func (onePage) Overlaps() any { return overlaps }
