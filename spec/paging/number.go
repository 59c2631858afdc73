// Number: the next page is asked for with its number.

package paging

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"understudy"
)

// number is the paging style number: the parameter Rules.Page takes the number of the
// page.
type number struct{}

func (number) check(r *Rules) error { return r.checkCount() }

func (number) checkTemplate(r *Rules, followed, last any) error {
	return r.checkCounted(followed, last)
}

func (number) next(r *Rules, a *Answer) (Step, error) {
	at, size, err := r.stands(a)
	if err != nil {
		return Step{}, err
	}
	before := int64(-1)
	if pages := at - int64(r.First); size > 0 && pages < math.MaxInt32 {
		before = pages * size
	}
	if on, end := r.goes(a, before, size); !on {
		return end, nil
	}
	return r.to(at + 1), nil
}

func (number) tokenParam(*Rules) string { return "" }

// checkCount checks the rules of a style that counts.
func (r *Rules) checkCount() error {
	switch {
	case r.Page == "":
		return fmt.Errorf("page: style %s needs it", r.Style)
	case len(r.Tokens) > 0:
		return fmt.Errorf("tokens: style %s has none", r.Style)
	}
	return nil
}

// checkCounted checks what a template says of the end of the list.
func (r *Rules) checkCounted(followed, last any) error {
	if r.Next != "" && !strings.HasPrefix(r.Next, inHeader) && (followed != true || last != false) {
		return fmt.Errorf("answer: want {more} at %s", r.Next)
	}
	if r.TotalHeader() != "" {
		return nil
	}
	return r.wants(r.Total, "total", float64(0))
}

// stands is where the page of an answer begins, and how many rows upstream gives in a
// full one, 0 where that is not known: upstream may give fewer than it is asked for.
func (r *Rules) stands(a *Answer) (at, size int64, err error) {
	at = int64(r.First)
	if text, there := a.Query.Get(r.Page); there {
		if at, err = strconv.ParseInt(text, 10, 64); err != nil || at < 0 || at > math.MaxInt64/2 {
			return 0, 0, fmt.Errorf("%s %q is no number", r.Page, understudy.Clip(text))
		}
	}
	most := int64(r.Max)
	text, there := a.Query.Get(r.Size)
	switch asked, err := strconv.ParseInt(text, 10, 32); {
	case r.Size == "", !there:
		return at, int64(r.Default), nil
	case err != nil || asked <= 0:
		return at, 0, nil
	case most == 0 && asked > int64(r.Default):
		return at, 0, nil
	case most == 0 || asked < most:
		most = asked
	}
	return at, most, nil
}

// goes reports whether a page comes after that of an answer, and else why that may be so all
// the same. before is how many rows stand on the pages before it, -1: that is not known. What
// upstream says counts. Else a full page goes on, and only the page after any other tells.
func (r *Rules) goes(a *Answer, before, size int64) (on bool, end Step) {
	if r.Next != "" {
		if text, there := r.atNext(a); there {
			return isYes(text), Step{}
		}
	}
	total := r.total(a)
	switch full := int64(a.Count) >= size; {
	case total > 0 && before >= 0 && before+int64(a.Count) < total:
		return true, Step{} // also behind a page whose rows were all left out
	case a.Count == 0:
		return false, Step{}
	case r.Next == "" && (total == 0 || before < 0) && full:
		return true, Step{}
	case full || size == 0:
		return false, open(understudy.OpenSilent, "only the page after the last one shows that the list ends")
	}
	return false, open(understudy.OpenShort, "only the page after a short one shows that the list ends")
}

var errNoRow = errors.New("there is more, but no record to go on from")

// to is the step to where a page begins.
func (r *Rules) to(at int64) Step {
	return Step{Param: understudy.Param{Name: r.Page, Value: strconv.FormatInt(at, 10)}}
}
