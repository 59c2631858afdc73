// One page: lists do not go on.

package spec

import "understudy"

// onePage is the paging style none: every list is one page.
type onePage struct{}

func (onePage) check(*Paging) error { return nil }

func (onePage) checkTemplate(*Paging, any, any) error { return nil }

func (onePage) next(*Paging, *ListAnswer) (understudy.Key, error) { return understudy.Key{}, nil }

func (onePage) tokenParam(p *Paging) string { return p.firstToken() }
