// Paging: the keys of a spec file that say how lists are cut into pages, and the
// table of the styles.

// Package paging knows the styles in which APIs lead from one page of a list to the
// page after it. A style is one type in one file.
package paging

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"understudy"
	"understudy/kit/jsonspan"
)

// Rules say how lists are cut into pages. The yaml tags are the names in a spec file.
// After Check they never change and are safe for concurrent use.
type Rules struct {
	Style   string   `yaml:"style"`        // a name of styles
	Next    string   `yaml:"next"`         // dotted path of what says in a body that there is more
	Cursor  string   `yaml:"cursor"`       // style cursor: the query parameter that takes the last id
	Size    string   `yaml:"size"`         // query parameter of the page size
	Default int      `yaml:"default_size"` // what upstream takes when it is absent
	Max     int      `yaml:"max_size"`     // the largest it accepts
	Page    string   `yaml:"page"`         // query parameter of the page number, which counts from First
	First   int      `yaml:"first_page"`
	Tokens  []string `yaml:"tokens"` // query parameters that move on from the newest page
	// Template is a list answer as upstream writes it, for lists made from
	// records; Token the token of the page after a record. See docs/specs.md.
	Template string `yaml:"answer"`
	Token    string `yaml:"token"`
}

// Answer is an answer to a list request.
type Answer struct {
	Header http.Header
	Body   []byte
	Next   jsonspan.Value   // the value of Body at Rules.Next
	Rows   []understudy.Row // the records of Body
}

// Step leads from a page to the page after it, by one of its fields. The zero Step is
// the end of the list.
type Step struct {
	Link  string           // as upstream wrote it
	Param understudy.Param // stands in place of all parameters that say where a page stands
}

// style is one way in which an API leads from a page of a list to the page after it.
type style interface {
	// check checks and completes the settings. Its error begins with a setting.
	check(r *Rules) error
	// checkTemplate checks what r.Template says at r.Next: followed is the value
	// when a page comes after this one, last the value on the last page.
	checkTemplate(r *Rules, followed, last any) error
	// next is the step behind an answer. The error says why a page that has a
	// successor has none that can be asked for.
	next(r *Rules, a *Answer) (Step, error)
	// tokenParam is the query parameter whose values have the form of r.Token;
	// "" when there is none.
	tokenParam(r *Rules) string
}

// headerStyle is a paging style that leads on in a header of the answer, so that
// answers of the mirror need the header, too.
type headerStyle interface {
	// nextHeader is the header of an answer whose next page is at an absolute link.
	nextHeader(link string) (name, value string)
}

// styles are the styles by the names that spec files give them.
var styles = []struct {
	name string
	style
}{
	{"body", bodyLink{}},
	{"header", headerLink{}},
	{"cursor", cursor{}},
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
	if r.Style == "" {
		r.Style = "none"
	}
	style := r.style()
	if style == nil {
		var names []string
		for _, s := range styles {
			names = append(names, s.name)
		}
		last := len(names) - 1
		return fmt.Errorf("style %q: want %s or %s", r.Style, strings.Join(names[:last], ", "), names[last])
	}
	if err := style.check(r); err != nil {
		return err
	}
	return r.checkAnswer(style)
}

// After is the step behind an answer. The error says why a page that has a successor
// has none that can be asked for.
func (r *Rules) After(a *Answer) (Step, error) { return r.style().next(r, a) }

// Position reports whether a query parameter of that name says where a page stands.
func (r *Rules) Position(name string) bool {
	return slices.Contains(r.Tokens, name) || r.Page != "" && name == r.Page
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
	_, ok := r.style().(headerStyle)
	return ok
}

// NextHeader is the header of an answer whose next page is at an absolute link;
// an empty name where answers lead on in their bodies.
func (r *Rules) NextHeader(link string) (name, value string) {
	if style, ok := r.style().(headerStyle); ok {
		return style.nextHeader(link)
	}
	return "", ""
}
