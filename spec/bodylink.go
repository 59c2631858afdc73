// Body link: the link to the next page stands in the body.

package spec

import (
	"fmt"

	"understudy"
	"understudy/kit/jsonspan"
)

// bodyLink is the paging style body: the link stands at Paging.Next, and the last
// page has null, an empty string or nothing there.
type bodyLink struct{}

func (bodyLink) check(p *Paging) error {
	if p.Next == "" {
		return fmt.Errorf("next: style body needs it")
	}
	return nil
}

func (bodyLink) checkTemplate(p *Paging, followed, last any) error {
	if followed != "/next" || last != nil {
		return fmt.Errorf("answer: want {next} or {next_url} at %s", p.Next)
	}
	return nil
}

func (bodyLink) next(_ *Paging, a *ListAnswer) (understudy.Key, error) {
	link := ""
	if a.Next.Kind == jsonspan.String {
		link = jsonspan.Text(a.Body, a.Next)
	}
	if link == "" {
		return understudy.Key{}, nil
	}
	return a.follow(link)
}

func (bodyLink) tokenParam(p *Paging) string { return p.firstToken() }
