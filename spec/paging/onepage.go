// One page: lists do not go on.

package paging

// onePage is the paging style none: every list is one page.
type onePage struct{}

func (onePage) check(*Rules) error { return nil }

func (onePage) checkTemplate(*Rules, any, any) error { return nil }

func (onePage) next(*Rules, *Answer) (Step, error) { return Step{}, nil }

func (onePage) tokenParam(r *Rules) string { return r.firstToken() }
