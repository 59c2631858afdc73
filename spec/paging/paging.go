// Paging: the keys of a spec file that describe how lists are split into pages, and the table of styles.

// Package paging implements the styles in which APIs lead from one page of a list to the next. Each style is
// one type in one file.
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

// Rules say how lists are split into pages. The yaml tags are the names in a spec file. After Check they never
// change and are safe for concurrent use.
type Rules struct {
	Style string `yaml:"style"` // the name of a paging style
	// The place of the link or token of the next page, or of a boolean that says whether it exists (see Answer.valueAt)
	Next    string   `yaml:"next"`
	More    string   `yaml:"more"`         // for style token: the place that says whether more pages exist
	Total   string   `yaml:"total"`        // for styles number and offset: the place of the number of rows of all pages
	Cursor  string   `yaml:"cursor"`       // the query parameter that takes the last id, or the token
	Back    string   `yaml:"back"`         // for style cursor: the query parameter that takes the first id, to request the previous page
	Size    string   `yaml:"size"`         // the query parameter with the page size
	Default int      `yaml:"default_size"` // the page size that the upstream uses if the parameter is absent
	Max     int      `yaml:"max_size"`     // the maximum page size that the upstream accepts
	Page    string   `yaml:"page"`         // the query parameter with the page number or with the offset, which counts from First
	First   int      `yaml:"first_page"`
	Tokens  []string `yaml:"tokens"` // the query parameters of requests for pages other than the newest page
	// Template is a list answer as the upstream writes it, used for lists made from records. Token is the token
	// of the page after a record. See docs/reference/specs.md.
	Template string `yaml:"answer"`
	Token    string `yaml:"token"`
}

// Answer is an answer to a list request.
type Answer struct {
	Query  understudy.Query // the query of the request
	Header http.Header
	Body   []byte
	Doc    jsonspan.Value   // the outermost value of Body
	Next   jsonspan.Value   // the value in Body at the place Rules.Next, if it was already found
	Rows   []understudy.Row // the records of Body
	Count  int              // the number of rows, whether they are records or not
}

// inHeader begins the name of a place that is a header field of the answer.
const inHeader = "header:"

// nextValue returns the value at Next, and whether the answer has that place.
func (r *Rules) nextValue(a *Answer) (text string, there bool) {
	switch {
	case r.Next == "":
		return "", false
	case a.Next.Kind != jsonspan.None:
		return a.text(a.Next), true
	}
	return a.valueAt(r.Next)
}

// Step leads from a page to the next one, by Link or Param. If both are empty, the list ends. The end is proven
// if Open is zero.
type Step struct {
	Link  string           // the link as the upstream wrote it
	Param understudy.Param // a parameter that replaces all parameters that say where a page begins
	Open  understudy.OpenEnd
	Total int64 // the number of rows of all pages, if the answer states it (understudy.Page.TotalRows)
	Pages int64 // the number of pages, if the answer states it
	// Missing are the places Rules.Next and Rules.Total that the answer lacks, separated by a space. Only for
	// styles that count, which continue without them.
	Missing string
}

// style is one way in which an API leads from a page of a list to the next.
type style interface {
	// check checks and completes the settings. Its error begins with a setting.
	check(r *Rules) error
	// checkTemplate checks the value that r.Template has at r.Next, if that is in the body. followed is the
	// value if a next page exists, last the value on the last page.
	checkTemplate(r *Rules, followed, last any) error
	// findNext returns the step after an answer. The error says why the next page exists but cannot be requested.
	findNext(r *Rules, a *Answer) (Step, error)
	// tokenParam returns the query parameter whose values have the form of r.Token, or "".
	tokenParam(r *Rules) string
}

// styles lists the styles with their names in spec files.
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

// style returns the rules' style, or nil if no style has that name.
func (r *Rules) style() style {
	for _, s := range styles {
		if s.name == r.Style {
			return s.style
		}
	}
	return nil
}

// Check completes and checks the rules. Call it once, before any other method. The error begins with the wrong key.
func (r *Rules) Check() error {
	r.Style = cmp.Or(r.Style, "none")
	style := r.style()
	if style == nil {
		var names []string
		for _, s := range styles {
			names = append(names, s.name)
		}
		last := len(names) - 1
		return fmt.Errorf("style %q is not known; write %s or %s%s", r.Style, strings.Join(names[:last], ", "), names[last],
			suggest.Hint(r.Style, names))
	}
	if err := style.check(r); err != nil {
		return err
	}
	for _, key := range []struct{ name, value, of string }{
		{"more", r.More, "token"}, {"back", r.Back, "cursor"}, {"total", r.Total, "number offset"},
	} {
		if key.value != "" && !slices.Contains(strings.Fields(key.of), r.Style) {
			return fmt.Errorf("%s has no effect with style %s; remove it", key.name, r.Style)
		}
	}
	return r.checkAnswer(style)
}

// FindNext returns the step after an answer. The error says why the next page exists but cannot be requested.
func (r *Rules) FindNext(a *Answer) (Step, error) {
	step, err := r.style().findNext(r, a)
	if err != nil {
		return Step{}, err
	}
	step = r.addClues(a, step)
	for _, place := range []string{r.Next, r.Total} {
		if _, there := a.valueAt(place); place != "" && !there && (r.Style == "number" || r.Style == "offset") {
			step.Missing = strings.TrimPrefix(step.Missing+" "+place, " ")
		}
	}
	return step, nil
}

// IsPosition reports whether a query parameter says where a page begins.
func (r *Rules) IsPosition(name string) bool {
	return slices.Contains(r.Tokens, name) || r.Page != "" && name == r.Page
}

// addTokens adds query parameters to Tokens unless they are already there.
func (r *Rules) addTokens(names ...string) {
	for _, name := range names {
		if name != "" && !slices.Contains(r.Tokens, name) {
			r.Tokens = append(r.Tokens, name)
		}
	}
}

// IsOnePage reports whether lists have only one page, regardless of the requested page or size.
func (r *Rules) IsOnePage() bool { return r.style() == onePage{} }

// TokenParam returns the query parameter whose values have the form of Token, or "". The form of other
// parameters in Tokens is not known.
func (r *Rules) TokenParam() string {
	if style := r.style(); style != nil {
		return style.tokenParam(r)
	}
	return r.firstToken()
}

// firstToken returns the token parameter of a style that has none of its own.
func (r *Rules) firstToken() string {
	if len(r.Tokens) > 0 {
		return r.Tokens[0]
	}
	return ""
}

// HasNextInHeader reports whether the next page is given in a header (NextHeader).
func (r *Rules) HasNextInHeader() bool {
	return r.Style == "header" || strings.HasPrefix(r.Next, inHeader)
}

// TotalHeader returns the header with the number of rows of all pages, or "".
func (r *Rules) TotalHeader() string {
	name, _ := strings.CutPrefix(r.Total, inHeader)
	if name == r.Total {
		return ""
	}
	return http.CanonicalHeaderKey(name)
}

// NextHeader returns the header field that leads to the next page at an absolute link. name is empty if answers
// lead on in their bodies.
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
	value, _ = query.Get(r.nextParam())
	return name, value
}

// nextParam returns the query parameter that leads to the next page, for styles that use a single parameter.
func (r *Rules) nextParam() string {
	if r.Style == "token" {
		return r.Cursor
	}
	return r.Page
}
