// Body link: the link to the next page is in the body.

package paging

import (
	"fmt"
	"strings"

	"understudy"
	"understudy/kit/jsonspan"
)

// bodyLink is the paging style body: Rules.Next is the place of the link. On the last page, that place is
// missing, empty or a negative value.
type bodyLink struct{}

func (bodyLink) check(r *Rules) error {
	if r.Next == "" {
		return fmt.Errorf("next is missing; style body needs the place of the link to the next page")
	}
	return nil
}

func (bodyLink) checkTemplate(r *Rules, followed, last any) error {
	if followed != "/next" || last != nil {
		return fmt.Errorf("answer: write {next} or {next_url} at %s", r.Next)
	}
	return nil
}

func (bodyLink) findNext(r *Rules, a *Answer) (Step, error) {
	switch text, there := r.nextValue(a); {
	case !there && a.Count > 0:
		return openUnseen(r.Next), nil
	case !isYes(text):
		return Step{}, nil
	case a.Next.Kind == jsonspan.String || strings.HasPrefix(r.Next, inHeader):
		return Step{Link: text}, nil
	}
	return open(understudy.OpenRefuted, "the value at %s is not a link", r.Next), nil
}

func (bodyLink) tokenParam(r *Rules) string { return r.firstToken() }
