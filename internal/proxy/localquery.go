// This file reads Understudy's own parameters of a list, which upstream does not have.

package proxy

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"understudy"
	"understudy/kit/suggest"
	"understudy/request"
)

// readLocalQuery reads Understudy's own parameters order, since, q and near. Only lists have them. A list with one of
// these parameters is made from stored records.
func (v *exchange) readLocalQuery(ask *request.Request) error {
	if len(v.target.OwnParams) == 0 {
		return nil
	}
	var w request.LocalQuery
	wished := false
	given := map[string]bool{}
	for _, p := range v.target.OwnParams {
		switch p.Name {
		case understudy.OwnOrder, understudy.OwnSince, understudy.OwnText, understudy.OwnNear:
		default:
			continue
		}
		switch {
		case given[p.Name]:
			return refuseOwn(p.Name, "write it only once")
		case v.target.List == nil:
			return refuseOwn(p.Name, "it works only for lists of records")
		case !ask.AsOf.IsZero():
			return refuseOwn(p.Name, "it cannot be combined with "+understudy.OwnAsOf)
		}
		given[p.Name] = true
		some, err := v.readLocalParam(&w, p)
		if err != nil {
			return err
		}
		wished = wished || some
	}
	if w.Near != nil && given[understudy.OwnOrder] {
		return refuseOwn(understudy.OwnOrder, "it cannot be combined with "+understudy.OwnNear)
	}
	if wished {
		ask.Local = &w
	}
	return nil
}

// readLocalParam reads one of Understudy's own parameters. wished is false if the parameter changes nothing.
func (v *exchange) readLocalParam(w *request.LocalQuery, p understudy.Param) (wished bool, err error) {
	switch p.Name {
	case understudy.OwnOrder:
		if p.Value != "asc" && p.Value != "desc" {
			return false, refuseOwn(p.Name, "write asc or desc"+suggest.Hint(understudy.Clip(p.Value), []string{"asc", "desc"}))
		}
		w.OldestFirst = p.Value == "asc"
		return w.OldestFirst, nil
	case understudy.OwnSince:
		if w.Since, err = strconv.ParseInt(p.Value, 10, 64); err != nil || w.Since < 0 {
			return false, refuseOwn(p.Name, "write the number of a change, 0 or more")
		}
		if !v.isWhole() {
			return false, fmt.Errorf("proxy: %s: %w: it would reveal changes that role %s can't see; use the feed",
				p.Name, understudy.ErrForbidden, v.caller.Role())
		}
		return true, v.checkChangeNumber(p.Name, w.Since)
	}
	switch {
	case v.proxy.o.ParseText == nil:
		return false, refuseOwn(p.Name, "search is not available here")
	case p.Name == understudy.OwnNear:
		w.Near, err = v.proxy.o.ParseNear(v.r.Context(), v.caller, v.target, p.Value)
	default:
		w.Text, w.CanFind, err = v.proxy.o.ParseText(v.caller, v.target, p.Value)
	}
	if err == nil {
		return true, nil
	}
	// Responses begin after the kind of the error, so the name of the parameter must come after it.
	if _, why, ok := strings.Cut(err.Error(), understudy.ErrInvalid.Error()+": "); ok && errors.Is(err, understudy.ErrInvalid) {
		return false, refuseOwn(p.Name, why)
	}
	return false, fmt.Errorf("proxy: %s: %w", p.Name, err)
}

// checkChangeNumber returns an error if the number of a change is higher than the last change.
func (v *exchange) checkChangeNumber(name string, n int64) error {
	if v.proxy.o.LastChange == nil || n == 0 {
		return nil
	}
	last, err := v.proxy.o.LastChange(v.r.Context(), v.proxy.o.Source.Name)
	if err == nil && n > last {
		return refuseOwn(name, fmt.Sprintf("%d is beyond the end; the last change is %d", n, last))
	}
	return err
}

// refuseOwn returns ErrInvalid for one of Understudy's own parameters, with the reason in what.
func refuseOwn(name, what string) error {
	return fmt.Errorf("proxy: %w: %s: %s", understudy.ErrInvalid, name, what)
}
