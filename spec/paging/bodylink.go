// Body link: the link to the next page stands in the body.

package paging

import (
	"fmt"

	"understudy/kit/jsonspan"
)

// bodyLink is the paging style body: the link stands at Rules.Next, and the last
// page has null, an empty string or nothing there.
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

func (bodyLink) next(_ *Rules, a *Answer) (Step, error) {
	if a.Next.Kind != jsonspan.String {
		return Step{}, nil
	}
	return Step{Link: jsonspan.Text(a.Body, a.Next)}, nil
}

func (bodyLink) tokenParam(r *Rules) string { return r.firstToken() }
