// Paging: how lists are cut into pages, and the table of the styles in which APIs
// lead from one page to the next. A style is one type in one file.

package spec

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"understudy"
	"understudy/kit/jsonspan"
)

// Paging says how lists are cut into pages.
type Paging struct {
	Style    string   `yaml:"style"`        // a name of pagingStyles
	Next     string   `yaml:"next"`         // dotted path of what says in a body that there is more
	Cursor   string   `yaml:"cursor"`       // style cursor: the query parameter that takes the last id
	Size     string   `yaml:"size"`         // query parameter of the page size
	Default  int      `yaml:"default_size"` // what upstream takes when it is absent
	Max      int      `yaml:"max_size"`     // the largest it accepts
	Page     string   `yaml:"page"`         // query parameter of the page number, which counts from First
	First    int      `yaml:"first_page"`
	Tokens   []string `yaml:"tokens"`   // query parameters that move on from the newest page
	Envelope []*Field `yaml:"envelope"` // fields of a list answer beside the records
	// Template is a list answer as upstream writes it, for lists made from
	// records; Token the token of the page after a record. See docs/specs.md.
	Template string `yaml:"answer"`
	Token    string `yaml:"token"`
}

// pagingStyle is one way in which an API leads from a page of a list to the page
// after it.
type pagingStyle interface {
	// check checks and completes the settings. Its error begins with a setting.
	check(p *Paging) error
	// checkTemplate checks what p.Template says at p.Next: followed is the value
	// when a page comes after this one, last the value on the last page.
	checkTemplate(p *Paging, followed, last any) error
	// next is the page after an answer, zero after the last page. The error says
	// why a page that has a successor has none that can be asked for.
	next(p *Paging, a *ListAnswer) (understudy.Key, error)
	// tokenParam is the query parameter whose values have the form of p.Token;
	// "" when there is none.
	tokenParam(p *Paging) string
}

// headerStyle is a paging style that leads on in a header of the answer, so that
// answers of the mirror need the header, too.
type headerStyle interface {
	// nextHeader is the header of an answer whose next page is at an absolute link.
	nextHeader(link string) (name, value string)
}

// pagingStyles are the styles by the names that spec files give them.
var pagingStyles = []struct {
	name string
	pagingStyle
}{
	{"body", bodyLink{}},
	{"header", headerLink{}},
	{"cursor", cursor{}},
	{"none", onePage{}},
}

// style finds the paging's style; nil when no style has that name.
func (p *Paging) style() pagingStyle {
	for _, s := range pagingStyles {
		if s.name == p.Style {
			return s.pagingStyle
		}
	}
	return nil
}

// check completes and checks one way of paging; name is its place in the spec.
func (p *Paging) check(name string) error {
	if p.Style == "" {
		p.Style = "none"
	}
	style := p.style()
	if style == nil {
		var names []string
		for _, s := range pagingStyles {
			names = append(names, s.name)
		}
		last := len(names) - 1
		return fmt.Errorf("%s.style %q: want %s or %s", name, p.Style, strings.Join(names[:last], ", "), names[last])
	}
	if err := style.check(p); err != nil {
		return fmt.Errorf("%s.%w", name, err)
	}
	if err := p.checkAnswer(style); err != nil {
		return fmt.Errorf("%s.%w", name, err)
	}
	return checkFields(p.Envelope)
}

// OnePage reports whether lists have one page, whatever page or size is asked for.
func (p *Paging) OnePage() bool { return p.style() == onePage{} }

// TokenParam is the query parameter whose values have the form of Token, "" when
// there is none. What the other parameters of Tokens hold is not known.
func (p *Paging) TokenParam() string {
	if style := p.style(); style != nil {
		return style.tokenParam(p)
	}
	return p.firstToken()
}

// firstToken is the token parameter of a style without one of its own.
func (p *Paging) firstToken() string {
	if len(p.Tokens) > 0 {
		return p.Tokens[0]
	}
	return ""
}

// InHeader reports whether answers lead on in a header (NextHeader).
func (p *Paging) InHeader() bool {
	_, ok := p.style().(headerStyle)
	return ok
}

// NextHeader is the header of an answer whose next page is at an absolute link;
// an empty name where answers lead on in their bodies.
func (p *Paging) NextHeader(link string) (name, value string) {
	if style, ok := p.style().(headerStyle); ok {
		return style.nextHeader(link)
	}
	return "", ""
}

// ListAnswer is an answer to a list request, as its paging style reads it.
type ListAnswer struct {
	Target *Target
	Header http.Header
	Body   []byte
	Next   jsonspan.Value   // the value of Body at Paging.Next
	Rows   []understudy.Row // the records of Body
	// Local makes a link to a host of the API a path.
	Local func(link string) string
}

// NextPage is the page after the answer, zero when the answer is the last page.
// The error says why a page that has a successor has none that can be asked for.
func (a *ListAnswer) NextPage() (understudy.Key, error) {
	p := a.Target.Spec.PagingOf(a.Target.List)
	return p.style().next(p, a)
}

// follow is the key a link leads to. Its host is never looked at, so a link
// cannot lead requests, or the credential, elsewhere. A link to the page itself
// ends the list.
func (a *ListAnswer) follow(link string) (understudy.Key, error) {
	t := a.Target
	link, err := t.absolutePath(a.Local(link))
	if err != nil {
		return understudy.Key{}, err
	}
	next, err := t.Spec.Follow(t.Key.Source, link)
	if err != nil {
		return understudy.Key{}, fmt.Errorf("link %q: %w", understudy.Clip(link), err)
	}
	if next.List == nil || next.Kind != t.Kind {
		return understudy.Key{}, fmt.Errorf("link %q leads to no list of %s", understudy.Clip(link), t.Kind.Name)
	}
	if next.Key == t.Key {
		return understudy.Key{}, nil
	}
	return next.Key, nil
}

// absolutePath is a link with a path of its own: a relative one is read as RFC
// 3986 says, from the request's path.
func (t *Target) absolutePath(link string) (string, error) {
	switch {
	case strings.HasPrefix(link, "//"):
		return "x:" + link, nil
	case strings.HasPrefix(link, "?"):
		return t.Key.Path() + link, nil
	case strings.HasPrefix(link, "/"), strings.Contains(link, "://"):
		return link, nil
	}
	base, err := url.Parse(t.Key.URI)
	if err != nil {
		return "", fmt.Errorf("link %q: %w", understudy.Clip(link), err)
	}
	to, err := base.Parse(link)
	if err != nil {
		return "", fmt.Errorf("link %q cannot be read", understudy.Clip(link))
	}
	return to.RequestURI(), nil
}

// nextQuery is the key of the same list with param in place of all parameters
// that say where a page stands.
func (a *ListAnswer) nextQuery(p *Paging, param understudy.Param) (understudy.Key, error) {
	t := a.Target
	query := t.Query.Without(func(q understudy.Param) bool {
		return slices.Contains(p.Tokens, q.Name) || p.Page != "" && q.Name == p.Page
	})
	next, err := t.Spec.Target(t.Key.Source, t.Key.Path(), append(query, param).String())
	if err != nil {
		return understudy.Key{}, fmt.Errorf("the next page: %w", err)
	}
	if next.Key == t.Key {
		return understudy.Key{}, fmt.Errorf("the next page is this page again")
	}
	return next.Key, nil
}
