// Number: the request for the next page contains its number.

package paging

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"understudy"
)

// number is the paging style number: the parameter Rules.Page is the number of the page.
type number struct{}

func (number) check(r *Rules) error { return r.checkCounting() }

func (number) checkTemplate(r *Rules, followed, last any) error {
	return r.checkEnd(followed, last)
}

func (number) findNext(r *Rules, a *Answer) (Step, error) {
	at, size, err := r.readPosition(a)
	if err != nil {
		return Step{}, err
	}
	before := int64(-1)
	if pages := at - int64(r.First); size > 0 && pages < math.MaxInt32 {
		before = pages * size
	}
	if on, end := r.hasNext(a, before, size); !on {
		return end, nil
	}
	return r.stepTo(at + 1), nil
}

func (number) tokenParam(*Rules) string { return "" }

// checkCounting checks the rules of a style that counts pages or rows.
func (r *Rules) checkCounting() error {
	switch {
	case r.Page == "":
		return fmt.Errorf("page is missing; style %s needs the parameter with the number", r.Style)
	case len(r.Tokens) > 0:
		return fmt.Errorf("tokens: style %s has no tokens; remove it", r.Style)
	}
	return nil
}

// checkEnd checks what a template says about the end of the list.
func (r *Rules) checkEnd(followed, last any) error {
	if r.Next != "" && !strings.HasPrefix(r.Next, inHeader) && (followed != true || last != false) {
		return fmt.Errorf("answer: write {more} at %s", r.Next)
	}
	if r.TotalHeader() != "" {
		return nil
	}
	return r.checkWord(r.Total, "total", float64(0))
}

// readPosition returns where the page of an answer begins, and how many rows a full page has. size is 0 if that
// is not known, because the upstream may return fewer rows than requested.
func (r *Rules) readPosition(a *Answer) (at, size int64, err error) {
	at = int64(r.First)
	if text, there := a.Query.Get(r.Page); there {
		if at, err = strconv.ParseInt(text, 10, 64); err != nil || at < 0 || at > math.MaxInt64/2 {
			return 0, 0, fmt.Errorf("%s: %q is not a page number or an offset", r.Page, understudy.Clip(text))
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

// hasNext reports whether a page follows the page of an answer. If not, it returns why the list may still continue.
// before is the number of rows on earlier pages, or -1 if it is not known. A statement of the upstream decides. Without
// such a statement a list continues after a full page. After any other page only the next page can show whether it
// does.
func (r *Rules) hasNext(a *Answer, before, size int64) (on bool, end Step) {
	if r.Next != "" {
		if text, there := r.nextValue(a); there {
			return isYes(text), Step{}
		}
	}
	total := r.totalRows(a)
	switch full := int64(a.Count) >= size; {
	case total > 0 && before >= 0 && before+int64(a.Count) < total:
		return true, Step{} // more rows follow, even if all rows of this page were left out
	case a.Count == 0:
		return false, Step{}
	case r.Next == "" && (total == 0 || before < 0) && full:
		return true, Step{}
	case full || size == 0:
		return false, open(understudy.OpenSilent, "only the page after the last one shows that the list ends")
	}
	return false, open(understudy.OpenShort, "only the page after a short one shows that the list ends")
}

var errNoRow = errors.New("the answer says that more pages exist, but it has no record with which to request them")

// stepTo returns the step to the page that begins at a number.
func (r *Rules) stepTo(at int64) Step {
	return Step{Param: understudy.Param{Name: r.Page, Value: strconv.FormatInt(at, 10)}}
}
