// One page: lists that have only one page.

package paging

import "understudy"

// onePage is the paging style none: every list is one page.
type onePage struct{}

func (onePage) check(*Rules) error { return nil }

func (onePage) checkTemplate(*Rules, any, any) error { return nil }

func (onePage) findNext(r *Rules, a *Answer) (Step, error) {
	full, known := r.isFull(a)
	switch {
	case a.Count == 0:
		return Step{}, nil
	case full && known:
		return open(understudy.OpenRefuted, "the page is full (%d rows), and the spec knows no way to a next page", a.Count), nil
	}
	return open(understudy.OpenUnlinked, "nothing says that this page is all: the spec knows no way to a next page"), nil
}

func (onePage) tokenParam(r *Rules) string { return r.firstToken() }
