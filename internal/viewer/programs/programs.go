// The page of all credentials, and the forms that make, rotate or revoke a credential.

// Package programs shows the pages on which administrators give programs access.
package programs

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/credentials"
	"understudy/internal/viewer/page"
)

// Path is the page of all credentials. The page of each credential is below it.
const Path = page.ControlPrefix + "connect"

// maxRate is the maximum rate of a credential, in requests a second.
const maxRate = 1e6

// Routes returns the routes, which only administrators may use.
func Routes() []page.Route {
	return []page.Route{
		{Pattern: "GET " + Path, Handler: administratorsOnly(serveCredentials)},
		{Pattern: "POST " + Path, Handler: administratorsOnly(makeCredential)},
		{Pattern: "GET " + Path + "/{name}", Handler: administratorsOnly(serveCredential)},
		{Pattern: "POST " + Path + "/{name}/rotate", Handler: administratorsOnly(rotate)},
		{Pattern: "POST " + Path + "/{name}/revoke", Handler: administratorsOnly(revoke)},
		{Pattern: "POST " + Path + "/{name}/try", Handler: administratorsOnly(tryCredential)},
	}
}

// administratorsOnly returns a handler that only administrators may use.
func administratorsOnly(run page.Handler) page.Handler {
	return func(q *page.Exchange) error {
		switch {
		case q.V.Options.Programs == nil:
			return page.NewNotFound("Credentials can't be managed here", "This server uses only the credentials in its settings.", "/")
		case !page.IsAdministrator(q):
			return fmt.Errorf("%w: only the role %s can manage credentials", understudy.ErrForbidden, understudy.RoleAll)
		}
		return run(q)
	}
}

// writeAudit writes an audit entry about a change of a credential.
func writeAudit(q *page.Exchange, what, name string) error {
	return page.WriteAudit(q, understudy.AuditEntry{Action: understudy.ActionAdminister,
		What: "credentials " + what + " " + understudy.Clip(name)})
}

// credentialsPage is the data of the template connect.html.
type credentialsPage struct {
	Made, Configured []credentialView
	Form             form
	Once             string // a random id of this form, so that submitting it twice makes only one credential
	Sources, Roles   []page.Option
}

// form has the values of the form that makes a credential.
type form struct {
	Name, Source, Role, Expires, MaxStale, Rate, Addresses, Allow string
	Wrong                                                         string // why the form made no credential; empty if there was no error
}

func serveCredentials(q *page.Exchange) error {
	if q.R.URL.RawQuery != "" {
		return page.NewBadRequest("This page takes no parameters", "Programs use /-/credentials.", nil)
	}
	return showCredentials(q, http.StatusOK, form{})
}

// showCredentials shows all credentials and the form f.
func showCredentials(q *page.Exchange, status int, f form) error {
	p := credentialsPage{Form: f, Once: rand.Text()}
	for _, c := range q.V.Options.Programs.All() {
		p.Made = append(p.Made, viewOf(q, c, false))
	}
	for _, c := range q.V.Options.Programs.Configured {
		p.Configured = append(p.Configured, viewOf(q, c, true))
	}
	for _, s := range q.V.Planned {
		p.Sources = append(p.Sources, page.Option{Value: s.Name, Text: s.Spec.Title, Selected: s.Name == f.Source})
	}
	sees := map[string]int{}
	for _, r := range q.V.Options.Gate.Roles() {
		p.Roles = append(p.Roles, page.Option{Value: r, Text: r, Selected: r == f.Role})
		sees[r] = countVisible(q, r)
	}
	slices.SortStableFunc(p.Roles, func(a, b page.Option) int {
		return cmp.Or(roleRank(a.Value)-roleRank(b.Value), cmp.Compare(sees[a.Value], sees[b.Value]))
	})
	return q.Render(status, "connect", "Connect", p)
}

// roleRank returns a key for sorting roles. The role all, which may see everything, comes last.
func roleRank(role string) int {
	if role == understudy.RoleAll {
		return 1
	}
	return 0
}

// countVisible returns a measure of how much a role sees: four points for each visible field and one for each masked field,
// divided by two if the role may see only some records. The form first has the role with the fewest points selected.
func countVisible(q *page.Exchange, role string) (all int) {
	for _, s := range q.V.Planned {
		words := q.V.Options.Gate.DescribeRules(role, s.Name)
		for _, k := range s.Kinds {
			shown, err := q.V.Options.Gate.Explain(role, s.Name, k.Spec.Name)
			if err != nil || slices.Contains(words, k.Spec.Name+": none") {
				continue
			}
			sum := 0
			for _, f := range shown {
				switch f.Level {
				case access.Hide:
				case access.See:
					sum += 4
				default:
					sum++
				}
			}
			if words != nil && !slices.Contains(words, k.Spec.Name+": all") {
				sum /= 2
			}
			all += sum
		}
	}
	return all
}

// makeCredential makes a credential and shows its secret. Only this response contains the secret. Behind an address or in a
// cookie, somebody could read it again.
func makeCredential(q *page.Exchange) error {
	value := func(name string) string { return strings.TrimSpace(q.R.PostFormValue(name)) }
	f := form{Name: value("name"), Source: value("source"), Role: value("role"), Expires: value("expires"), MaxStale: value("max_stale"),
		Rate: value("rate"), Addresses: value("addresses"), Allow: value("allow")}
	scope, err := f.makeScope()
	if err == nil {
		err = writeAudit(q, "make", f.Name)
	}
	var shown credentials.Shown
	if err == nil {
		shown, err = q.V.Options.Programs.Make(q.Ctx, f.Name, scope, value("once"))
	}
	switch {
	case errors.Is(err, understudy.ErrInvalid):
		f.Wrong = page.Sentence(err)
		return showCredentials(q, http.StatusBadRequest, f)
	case err != nil:
		return err
	}
	return showCredential(q, f.Name, credentialPage{Secret: shown.Secret, User: shown.User, Said: "The credential is ready."})
}

// makeScope parses the fields of the form that say what the credential permits.
func (f form) makeScope() (s credentials.Scope, err error) {
	between := func(r rune) bool { return strings.ContainsRune(", \r\n\t", r) }
	s = credentials.Scope{Source: f.Source, Role: f.Role, MaxStale: f.MaxStale, Allow: nonEmptyLines(f.Allow),
		Addresses: strings.FieldsFunc(f.Addresses, between)}
	if f.Rate != "" {
		if s.Rate, err = strconv.ParseFloat(f.Rate, 64); err != nil || !(s.Rate > 0 && s.Rate <= maxRate) {
			return s, fmt.Errorf("%w: rate: %q is not a number of requests per second", understudy.ErrInvalid, understudy.Clip(f.Rate))
		}
	}
	if f.Expires != "" {
		at, err := understudy.ParseTime(f.Expires, time.UTC, time.DateOnly)
		if err != nil {
			return s, fmt.Errorf("%w: expires: %q is not a date; write it like 2027-01-01", understudy.ErrInvalid, understudy.Clip(f.Expires))
		}
		s.Expires = &at
	}
	return s, nil
}

// nonEmptyLines returns the lines of a text without the empty lines.
func nonEmptyLines(text string) (all []string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			all = append(all, line)
		}
	}
	return all
}

// rotate gives a credential a new secret.
func rotate(q *page.Exchange) error {
	name := q.R.PathValue("name")
	overlap, err := understudy.ParseDuration(q.R.PostFormValue("overlap"))
	if err != nil {
		return page.NewBadRequest("How long should the old secret work?", "Write a duration such as 24h.", nil)
	}
	if err := writeAudit(q, "rotate", name); err != nil {
		return err
	}
	shown, err := q.V.Options.Programs.Rotate(q.Ctx, name, overlap)
	if err != nil {
		return explainUnknown(err, name)
	}
	said := "The old secret no longer works."
	if overlap > 0 {
		said = "The old secret works until " + q.Clock.FormatMoment(q.Clock.Start.Add(overlap), false).Exact + "."
	}
	return showCredential(q, name, credentialPage{Secret: shown.Secret, User: shown.User, Said: said})
}

// revoke deletes a credential and ends its open connections.
func revoke(q *page.Exchange) error {
	name := q.R.PathValue("name")
	if q.R.PostFormValue("sure") == "" {
		return page.NewBadRequest("Nothing was revoked", "Tick the box beside the button first.", nil)
	}
	if err := writeAudit(q, "revoke", name); err != nil {
		return err
	}
	if err := q.V.Options.Programs.Revoke(q.Ctx, name); err != nil {
		return explainUnknown(err, name)
	}
	q.RedirectBack(Path, "The credential "+name+" is revoked. Its open streams and exports are closed.")
	return nil
}

// explainUnknown returns an error for people if err is ErrNotFound, else err.
func explainUnknown(err error, name string) error {
	if errors.Is(err, understudy.ErrNotFound) {
		return page.NewNotFound("No credential was created here with the name "+understudy.Clip(name),
			"Change a credential of the settings file in that file.", Path)
	}
	return err
}
