// Body link: the link to the next page stands in the body.

package paging

import (
	"fmt"
	"strings"

	"understudy"
	"understudy/kit/jsonspan"
)

// bodyLink is the paging style body: the link stands at Rules.Next, and the last
// page has what says no, or nothing there.
type bodyLink struct{}

func (bodyLink) check(r *Rules) error {
	if r.Next == "" {
		return fmt.Errorf("next: style body needs it")
	}
	return nil
}

func (bodyLink) checkTemplate(r *Rules, followed, last any) error {
	if followed != "/next" || last != nil {
		return fmt.Errorf("answer: want {next} or {next_url} at %s", r.Next)
	}
	return nil
}

func (bodyLink) next(r *Rules, a *Answer) (Step, error) {
	switch text, there := r.atNext(a); {
	case !there && a.Count > 0:
		return unseen(r.Next), nil
	case !isYes(text):
		return Step{}, nil
	case a.Next.Kind == jsonspan.String || strings.HasPrefix(r.Next, inHeader):
		return Step{Link: text}, nil
	}
	return open(understudy.OpenRefuted, "the answer has %s, which is no link", r.Next), nil
}

func (bodyLink) tokenParam(r *Rules) string { return r.firstToken() }
