// Offset: the next page is asked for with the number of rows before it.

package paging

// offset is the paging style offset: the parameter Rules.Page takes how many rows stand
// before the page, or with Rules.First 1 the number of its first row.
type offset struct{}

func (offset) check(r *Rules) error { return r.checkCount() }

func (offset) checkTemplate(r *Rules, followed, last any) error {
	return r.checkCounted(followed, last)
}

func (offset) next(r *Rules, a *Answer) (Step, error) {
	at, size, err := r.stands(a)
	if err != nil {
		return Step{}, err
	}
	switch on, end := r.goes(a, at-int64(r.First), size); {
	case !on:
		return end, nil
	case a.Count == 0:
		return Step{}, errNoRow
	}
	return r.to(at + int64(a.Count)), nil
}

func (offset) tokenParam(*Rules) string { return "" }
