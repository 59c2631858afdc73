// The table that shows what each role may see, and the page of one role.

// Package roles shows what each role may see, and which lines of the settings decide that.
package roles

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/plan"
	"understudy/kit/suggest"
	"understudy/spec"
)

// Path is the page with the table of all roles. The page of each role is below it.
const Path = page.ControlPrefix + "roles"

// Routes returns the routes of these pages. All are for administrators, except the route that ends viewing as another role.
func Routes() []page.Route {
	admitted := func(run page.Handler) page.Handler {
		return page.AdministratorHandler("see the roles", run)
	}
	return []page.Route{
		{Pattern: "GET " + Path, Handler: admitted(serveTable)},
		{Pattern: "GET " + Path + "/{role}", Handler: admitted(serveRole)},
		{Pattern: "GET " + Path + "/{role}/{source}/{kind}", Handler: admitted(serveKind)},
		{Pattern: "POST " + page.ViewAsPath, Handler: admitted(beginViewAs)},
		{Pattern: "POST " + page.ViewAsEndPath, Handler: endViewAs},
	}
}

// tablePage is the data of the template roles.html.
type tablePage struct {
	Roles   []roleHead
	Sources []sourceTable
}

// roleHead is the heading of a role's column.
type roleHead struct {
	Name, Href string
	Holders    int
}

// sourceTable says what each role may see of a source.
type sourceTable struct {
	Title string
	Kinds []tableRow
}

// tableRow says what each role may see of a kind.
type tableRow struct {
	Title string
	Cells []cell
}

// cell summarizes what a role may see of a kind.
type cell struct {
	Role, Href string
	Tone       string // the CSS class of the cell: "all", "some" or "none"
	Fields     string // how many fields the role sees, such as "every field" or "18 visible, 4 last four, 2 hidden"
	Rows       string // which records the role may find, in words; empty if it may find all
}

// serveTable shows what every role sees of every kind.
func serveTable(q *page.Exchange) error {
	if q.R.URL.RawQuery != "" {
		return page.NewBadRequest("This page takes no parameters", "Open a role from the table.", nil)
	}
	names := q.V.Options.Gate.Roles()
	var p tablePage
	for _, name := range names {
		p.Roles = append(p.Roles, roleHead{Name: name, Href: href(name), Holders: len(holders(q, name))})
	}
	for _, s := range q.V.Planned {
		t := sourceTable{Title: s.Spec.Title}
		rows := map[string]map[string]string{}
		for _, name := range names {
			rows[name] = rowsOf(q, name, s)
		}
		for _, k := range s.Kinds {
			row := tableRow{Title: plan.UpperFirst(k.Spec.Title)}
			for _, name := range names {
				one, err := newCell(q, name, k, rows[name][k.Spec.Name])
				if err != nil {
					return err
				}
				row.Cells = append(row.Cells, one)
			}
			t.Kinds = append(t.Kinds, row)
		}
		p.Sources = append(p.Sources, t)
	}
	return q.Render(http.StatusOK, "roles", "Who may see what", p)
}

// rowsOf returns, for each kind, which records a role may find, in words. It leaves out kinds of which the role may
// find every record.
func rowsOf(q *page.Exchange, role string, s *plan.Source) map[string]string {
	all := map[string]string{}
	for _, line := range q.V.Options.Gate.DescribeRules(role, s.Name) {
		if kind, words, ok := strings.Cut(line, ": "); ok && words != "all" {
			all[kind] = words
		}
	}
	return all
}

// levelWords are the words for levels of access that a cell of the table uses. The page explains these words.
var levelWords = map[string]string{"see": "visible", "play": "playable", "last4": "last four", "hash": "coded", "hide": "hidden"}

func levelText(level string) string { return cmp.Or(levelWords[level], level) }

// newCell returns a summary of what a role may see of a kind.
func newCell(q *page.Exchange, role string, k *plan.Kind, rows string) (c cell, err error) {
	shown, err := q.V.Options.Gate.Explain(role, k.Source.Name, k.Spec.Name)
	if err != nil {
		return c, err
	}
	c = cell{Role: role, Href: href(role) + "/" + url.PathEscape(k.Source.Name) + "/" + url.PathEscape(k.Spec.Name), Rows: rows}
	var order []string
	count := map[string]int{}
	total := 0
	for _, s := range shown {
		if s.Class == spec.ClassSecret {
			continue // a secret field is hidden from every role, so it is not counted
		}
		level := s.String()
		if s.Level == access.See {
			level = access.See.String()
		}
		if count[level] == 0 {
			order = append(order, level)
		}
		count[level]++
		total++
	}
	slices.SortStableFunc(order, func(a, b string) int { return cmp.Compare(count[b], count[a]) })
	switch {
	case count[access.Hide.String()] == total:
		c.Tone, c.Fields, c.Rows = "none", "nothing", ""
	case rows == "none":
		c.Tone, c.Fields, c.Rows = "none", "no records", ""
	case count[access.See.String()] == total:
		c.Tone, c.Fields = "all", "every field"
	default:
		c.Tone = "some"
		for _, level := range order {
			c.Fields += ", " + strconv.Itoa(count[level]) + " " + levelText(level)
		}
		c.Fields = strings.TrimPrefix(c.Fields, ", ")
	}
	if c.Tone == "all" && c.Rows != "" {
		c.Tone = "some"
	}
	return c, nil
}

// rolePage is the data of the template role.html.
type rolePage struct {
	Name    string
	All     bool
	Holders []page.Holder
	Sources []sourceTable // the table of sources, with a column for this role only
	ViewAs  string
}

// serveRole shows which people and programs have a role, and what the role may see.
func serveRole(q *page.Exchange) error {
	name, err := findRole(q, q.R.PathValue("role"))
	if err != nil {
		return err
	}
	p := rolePage{Name: name, All: name == understudy.RoleAll, Holders: holders(q, name), ViewAs: page.ViewAsPath}
	for _, s := range q.V.Planned {
		t, rows := sourceTable{Title: s.Spec.Title}, rowsOf(q, name, s)
		for _, k := range s.Kinds {
			one, err := newCell(q, name, k, rows[k.Spec.Name])
			if err != nil {
				return err
			}
			t.Kinds = append(t.Kinds, tableRow{Title: plan.UpperFirst(k.Spec.Title), Cells: []cell{one}})
		}
		p.Sources = append(p.Sources, t)
	}
	return q.Render(http.StatusOK, "role", "Role "+name, p)
}

// findRole returns the name of a role, or an error if there is no such role.
func findRole(q *page.Exchange, name string) (string, error) {
	known := q.V.Options.Gate.Roles()
	if slices.Contains(known, name) {
		return name, nil
	}
	if near := suggest.ClosestWord(understudy.Clip(name), known); near != "" {
		return "", page.NewNotFound("There is no role "+understudy.Clip(name), "Did you mean "+near+"?", href(near))
	}
	return "", page.NewNotFound("There is no role "+understudy.Clip(name), "See the table of roles.", Path)
}

// holders returns everyone who has a role, including the credentials that were made on the viewer's page.
func holders(q *page.Exchange, role string) (all []page.Holder) {
	for _, h := range q.V.Options.Holders {
		if h.Role == role {
			all = append(all, h)
		}
	}
	if q.V.Options.Programs == nil {
		return all
	}
	for _, c := range q.V.Options.Programs.All() {
		if c.Role == role {
			all = append(all, page.Holder{Role: role, Name: c.Name, How: "program"})
		}
	}
	return all
}

func href(role string) string { return Path + "/" + url.PathEscape(role) }
