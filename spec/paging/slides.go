// Slides: pages named by number or offset, whose rows move when others come or go.

package paging

import "understudy"

// Slides reports whether pages are named by a number alone, or by an offset: every row
// that comes or goes moves those behind it into other pages.
func (r *Rules) Slides() bool { return r.Page != "" && len(r.Tokens) == 0 && !r.OnePage() }

// Whole is a request without the number of its page: what all pages of the list have in
// common.
func (r *Rules) Whole(q understudy.Query) understudy.Query {
	return q.Without(func(p understudy.Param) bool { return p.Name == r.Page })
}
