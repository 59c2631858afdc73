// Paging: the keys of a spec file that say how lists are cut into pages, and the
// table of the styles.

// Package paging knows the styles in which APIs lead from one page of a list to the
// page after it. A style is one type in one file.
package paging

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"understudy"
	"understudy/kit/jsonspan"
	"understudy/kit/suggest"
)

// Rules say how lists are cut into pages. The yaml tags are the names in a spec file.
// After Check they never change and are safe for concurrent use.
type Rules struct {
	Style   string   `yaml:"style"`        // a name of styles
	Next    string   `yaml:"next"`         // where an answer says that there is more, or leads on (see Answer.said)
	More    string   `yaml:"more"`         // style token: where it says whether there is more
	Total   string   `yaml:"total"`        // styles number and offset: where it says how many rows all pages have
	Cursor  string   `yaml:"cursor"`       // query parameter that takes the last id, or the token
	Back    string   `yaml:"back"`         // style cursor: the one that takes the first id, for the page before
	Size    string   `yaml:"size"`         // query parameter of the page size
	Default int      `yaml:"default_size"` // what upstream takes when it is absent
	Max     int      `yaml:"max_size"`     // the largest it accepts
	Page    string   `yaml:"page"`         // query parameter of the page number, or of the offset, which counts from First
	First   int      `yaml:"first_page"`
	Tokens  []string `yaml:"tokens"` // query parameters that move on from the newest page
	// Template is a list answer as upstream writes it, for lists made from
	// records; Token the token of the page after a record. See docs/reference/specs.md.
	Template string `yaml:"answer"`
	Token    string `yaml:"token"`
}

// Answer is an answer to a list request.
type Answer struct {
	Query  understudy.Query // of the request
	Header http.Header
	Body   []byte
	Doc    jsonspan.Value   // all of Body
	Next   jsonspan.Value   // the value of Body at Rules.Next, where it was found already
	Rows   []understudy.Row // the records of Body
	Count  int              // how many rows it has, records or not
}

// inHeader begins the name of a place that is a header of the answer.
const inHeader = "header:"

// atNext is what an answer says at Next, and whether it has that place.
func (r *Rules) atNext(a *Answer) (text string, there bool) {
	switch {
	case r.Next == "":
		return "", false
	case a.Next.Kind != jsonspan.None:
		return a.text(a.Next), true
	}
	return a.said(r.Next)
}

// Step leads from a page to the page after it, by Link or Param. With neither the list ends,
// which is proven where there is no OpenEnd.
type Step struct {
	Link  string           // as upstream wrote it
	Param understudy.Param // stands in place of all parameters that say where a page stands
	Open  understudy.OpenEnd
	Total int64 // how many rows all pages have, as far as the answer says it (understudy.Page.Total)
	Pages int64 // how many pages there are, as far as the answer says it
	// Missing are the places Rules.Next and Rules.Total that the answer does not have, of a style that
	// counts: it goes on without them. A space stands between the two.
	Lacks string
}

// style is one way in which an API leads from a page of a list to the page after it.
type style interface {
	// check checks and completes the settings. Its error begins with a setting.
	check(r *Rules) error
	// checkTemplate checks what r.Template says at r.Next, where that is in the body:
	// followed is the value when a page comes after this one, last that on the last page.
	checkTemplate(r *Rules, followed, last any) error
	// next is the step behind an answer. The error says why a page that has a
	// successor has none that can be asked for.
	next(r *Rules, a *Answer) (Step, error)
	// tokenParam is the query parameter whose values have the form of r.Token;
	// "" when there is none.
	tokenParam(r *Rules) string
}

// styles are the styles by the names that spec files give them.
var styles = []struct {
	name string
	style
}{
	{"body", bodyLink{}},
	{"header", headerLink{}},
	{"cursor", cursor{}},
	{"token", token{}},
	{"number", number{}},
	{"offset", offset{}},
	{"none", onePage{}},
}

// style finds the rules' style; nil when no style has that name.
func (r *Rules) style() style {
	for _, s := range styles {
		if s.name == r.Style {
			return s.style
		}
	}
	return nil
}

// Check completes and checks the rules. It must be called once, before any other
// method. The error begins with the key that is wrong.
func (r *Rules) Check() error {
	r.Style = cmp.Or(r.Style, "none")
	style := r.style()
	if style == nil {
		var names []string
		for _, s := range styles {
			names = append(names, s.name)
		}
		last := len(names) - 1
		return fmt.Errorf("style %q: want %s or %s%s", r.Style, strings.Join(names[:last], ", "), names[last], suggest.Hint(r.Style, names))
	}
	if err := style.check(r); err != nil {
		return err
	}
	for _, key := range []struct{ name, value, of string }{
		{"more", r.More, "token"}, {"back", r.Back, "cursor"}, {"total", r.Total, "number offset"},
	} {
		if key.value != "" && !slices.Contains(strings.Fields(key.of), r.Style) {
			return fmt.Errorf("%s: style %s has no use for it", key.name, r.Style)
		}
	}
	return r.checkAnswer(style)
}

// After returns the step behind an answer. The error says why a page that has a successor
// has none that can be asked for.
func (r *Rules) After(a *Answer) (Step, error) {
	step, err := r.style().next(r, a)
	if err != nil {
		return Step{}, err
	}
	step = r.addClues(a, step)
	for _, place := range []string{r.Next, r.Total} {
		if _, there := a.said(place); place != "" && !there && (r.Style == "number" || r.Style == "offset") {
			step.Lacks = strings.TrimPrefix(step.Lacks+" "+place, " ")
		}
	}
	return step, nil
}

// Position reports whether a query parameter of that name says where a page stands.
func (r *Rules) Position(name string) bool {
	return slices.Contains(r.Tokens, name) || r.Page != "" && name == r.Page
}

// moves adds query parameters to Tokens, as far as they are not there.
func (r *Rules) moves(names ...string) {
	for _, name := range names {
		if name != "" && !slices.Contains(r.Tokens, name) {
			r.Tokens = append(r.Tokens, name)
		}
	}
}

// OnePage reports whether lists have one page, whatever page or size is asked for.
func (r *Rules) OnePage() bool { return r.style() == onePage{} }

// TokenParam is the query parameter whose values have the form of Token, "" when
// there is none. What the other parameters of Tokens hold is not known.
func (r *Rules) TokenParam() string {
	if style := r.style(); style != nil {
		return style.tokenParam(r)
	}
	return r.firstToken()
}

// firstToken is the token parameter of a style without one of its own.
func (r *Rules) firstToken() string {
	if len(r.Tokens) > 0 {
		return r.Tokens[0]
	}
	return ""
}

// InHeader reports whether answers lead on in a header (NextHeader).
func (r *Rules) InHeader() bool {
	return r.Style == "header" || strings.HasPrefix(r.Next, inHeader)
}

// TotalHeader returns the name of the header that says how many rows all pages have, "" where none does.
func (r *Rules) TotalHeader() string {
	name, _ := strings.CutPrefix(r.Total, inHeader)
	if name == r.Total {
		return ""
	}
	return http.CanonicalHeaderKey(name)
}

// NextHeader is the header of an answer whose next page is at an absolute link;
// an empty name where answers lead on in their bodies.
func (r *Rules) NextHeader(link string) (name, value string) {
	name, ok := strings.CutPrefix(r.Next, inHeader)
	if r.Style == "header" {
		return "Link", AppendLink("", link, "next")
	}
	if !ok || link == "" {
		return "", ""
	}
	if r.Style == "cursor" {
		return name, "true"
	}
	_, raw, _ := strings.Cut(link, "?")
	query, err := understudy.ParseQuery(raw)
	if err != nil {
		return "", ""
	}
	value, _ = query.Get(r.leads())
	return name, value
}

// leads is the query parameter that leads on to the next page, as far as it is one.
func (r *Rules) leads() string {
	if r.Style == "token" {
		return r.Cursor
	}
	return r.Page
}
