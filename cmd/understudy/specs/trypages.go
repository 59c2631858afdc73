// Pages: the second page of a list is compared with the first.

package specs

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"understudy"
	"understudy/spec"
)

// fetchSecond fetches the second page and compares the first page with it. If the list has only one page with several
// rows, it fetches pages of half the size and compares those instead. It then returns nil.
func (t *trial) fetchSecond(
	ctx context.Context, r *result, k *spec.Kind, l *spec.List, path, query string, first *understudy.Page,
) *understudy.Page {
	paging, end := t.spec.PagingOf(l), first.OpenEnd()
	if end.Kind == understudy.OpenRefuted {
		r.addFault("%s", end.Why)
		return nil
	}
	if !first.Next.IsZero() {
		second, err := t.fetchNext(ctx, first)
		if err != nil {
			r.addFault("the second page: %s", err)
			return nil
		}
		again := func() (*understudy.Page, error) { return t.fetchPath(ctx, path, query) }
		if twice := findCommon(second, first); len(twice) > 0 && len(twice) > countArrivals(again, first) {
			r.addFault("the record %s is on the first page and on the second page", understudy.Clip(twice[0]))
		}
		if len(second.Rows) > 0 || len(first.Rows) == 0 {
			return second
		}
	}
	if paging.Size == "" || len(first.Rows) < 2 || paging.IsOnePage() {
		full := paging.IsOnePage() && end.Kind != "" && paging.Max > 0 && len(first.Rows) >= paging.Max
		if full {
			r.addFault("the page is full (%d rows), but the spec says that no page follows", len(first.Rows))
		} else if paging.IsOnePage() && paging.Size != "" {
			r.Remark = "one page as the spec says; it accepts " + paging.Size
		}
		if end.Kind == understudy.OpenUnseen {
			r.Remark = end.Why
		}
		return nil
	}
	half := (len(first.Rows) + 1) / 2
	less, err := t.fetchPath(ctx, path, strings.TrimPrefix(query+"&"+url.Values{paging.Size: {strconv.Itoa(half)}}.Encode(), "&"))
	switch {
	case err != nil:
		r.addFault("with %s=%d: %s", paging.Size, half, err)
	case len(less.Rows) > half:
		r.addFault("%s=%d gives %d rows", paging.Size, half, len(less.Rows))
	case less.Next.IsZero() && len(less.Rows) < len(first.Rows):
		r.addFault("%s=%d gives %d of %d rows and no next page", paging.Size, half, len(less.Rows), len(first.Rows))
	default:
		t.compareHalves(ctx, r, k, first, less, func() (*understudy.Page, error) { return t.fetchPath(ctx, path, query) })
	}
	return nil
}

// checkPlaces notes a fault if, according to the spec, pages contain a total or a link to the next page, but no page
// does. If the list has just one page, a missing link is only worth a remark.
func (t *trial) checkPlaces(r *result, l *spec.List) {
	paging := t.spec.PagingOf(l)
	for _, place := range []string{paging.Total, paging.Next} {
		with, without, goesOn := 0, 0, false
		for _, page := range t.pages {
			switch {
			case slices.Contains(page.MissingPlaces(), place):
				without += len(page.Rows)
				goesOn = goesOn || !page.Next.IsZero()
			default:
				with++
			}
		}
		switch {
		case place == "" || with > 0 || without == 0:
		case goesOn || place == paging.Total:
			r.addFault("no page had %s, which the spec names; remove or correct it", place)
		default:
			r.Remark = "no page had " + place + ", which says whether more pages exist"
		}
	}
}

// findCommon returns the ids that occur on both pages.
func findCommon(page, other *understudy.Page) (ids []string) {
	for _, row := range page.Rows {
		if row.ID != "" && slices.ContainsFunc(other.Rows, func(o understudy.Row) bool { return o.ID == row.ID }) {
			ids = append(ids, row.ID)
		}
	}
	return ids
}

// countArrivals reads a page again and returns how many of its rows are new. The same number of rows has moved to the
// next page.
func countArrivals(again func() (*understudy.Page, error), before *understudy.Page) int {
	now, err := again()
	if err != nil {
		return 0
	}
	return len(now.Rows) - len(findCommon(now, before))
}

// compareHalves compares two pages of half the size with one page of the full size.
func (t *trial) compareHalves(
	ctx context.Context, r *result, k *spec.Kind, whole, less *understudy.Page, again func() (*understudy.Page, error),
) {
	rest, err := t.fetchNext(ctx, less)
	if err != nil {
		r.addFault("the second page: %s", err)
		return
	}
	r.Pages, r.Rows = "2", fmt.Sprintf("%d+%d", len(less.Rows), len(rest.Rows))
	both := slices.Concat(less.Rows, rest.Rows)
	for i, row := range whole.Rows {
		if len(k.ID) > 0 && (i >= len(both) || both[i].ID != row.ID) {
			if countArrivals(again, whole) > 0 {
				r.Remark = "its pages are not compared, because new rows were added meanwhile"
				return
			}
			r.addFault("row %d is %s on the full page, but another record on two pages of half the size", i+1, understudy.Clip(row.ID))
			return
		}
	}
}

// fetchNext fetches the page after p.
func (t *trial) fetchNext(ctx context.Context, p *understudy.Page) (*understudy.Page, error) {
	target, err := t.spec.ResolveLink(p.Next.Source, p.Next.URI)
	if err != nil {
		return nil, err
	}
	return t.fetch(ctx, target)
}
