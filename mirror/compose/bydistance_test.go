// Lists in the order of the distances of their records.

package compose_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/query"
	"understudy/mirror/compose"
	"understudy/request"
	"understudy/spec"
)

// distanceOf gives the charges distances in another order than that of their numbers. Some are equal, and every fifth is too far away.
func distanceOf(i int) (float64, bool) { return float64(i * 37 % 23), i%5 != 0 }

// nearTo asks the till for the charges of a list, the nearest first.
func nearTo(x *till, target string, numbers []int64) (*compose.List, *understudy.Page, error) {
	x.Helper()
	of, err := x.spec.ResolveLink("till", target)
	checktest.MustNoError(x.T, err, "resolve")
	near := &query.Near{Numbers: numbers, Distance: func(r *understudy.Record) (float64, bool) {
		i, err := strconv.Atoi(r.ID[3:])
		checktest.MustNoError(x.T, err, "id")
		return distanceOf(i)
	}}
	l, err := compose.New(&spec.Source{Name: "till", Spec: x.spec}, of, compose.Options{Local: &request.LocalQuery{Near: near}})
	if err != nil {
		return nil, nil, err
	}
	if err := l.Fill(x.Context(), x); err != nil {
		return nil, nil, err
	}
	p, err := l.BuildPage(epoch)
	return l, p, err
}

func idsOf(p *understudy.Page) (ids []string) {
	for _, r := range p.Rows {
		ids = append(ids, r.ID)
	}
	return ids
}

func TestNearestFirst(t *testing.T) {
	x := newTill(t)
	x.spec.Paging.Back, x.spec.Paging.Tokens = "ending_before", nil
	checktest.MustNoError(t, x.spec.Paging.Check(), "paging")
	for _, customer := range []int{0, 1, 2} {
		var sorted []int
		for i := x.n; i > 0; i-- { // among equal distances the newest is first
			if _, ok := distanceOf(i); ok && i%3 == customer {
				sorted = append(sorted, i)
			}
		}
		slices.SortStableFunc(sorted, func(a, b int) int {
			to, _ := distanceOf(a)
			than, _ := distanceOf(b)
			return int(to - than)
		})
		var want []string
		for _, i := range sorted {
			want = append(want, fmt.Sprint("ch_", i))
		}
		for _, limit := range []int{1, 4, 100} {
			filter := fmt.Sprintf("/v1/charges?customer=cus_%d&limit=%d", customer, limit)
			var got []string
			for target := filter; ; {
				_, p, err := nearTo(x, target, nil)
				checktest.MustNoError(t, err, "%s", target)
				if got = append(got, idsOf(p)...); p.Next.IsZero() {
					break
				}
				target = p.Next.Path() + "?" + p.Next.Query()
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: %v, want %v", filter, got, want)
			}
			_, p, err := nearTo(x, filter+"&ending_before="+want[6], nil) // the page before the seventh
			checktest.MustNoError(t, err, "a page backward")
			if got, want := idsOf(p), want[max(0, 6-limit):6]; !slices.Equal(got, want) {
				t.Errorf("%s: before the seventh are %v, want %v", filter, got, want)
			}
		}
	}
	_, _, err := nearTo(x, "/v1/charges?starting_after=ch_5", nil)
	if !errors.Is(err, understudy.ErrInvalid) || !strings.Contains(err.Error(), "first page") {
		t.Errorf("after a record that is too far away: %v", err)
	}
	l, p, err := nearTo(x, "/v1/charges", []int64{})
	if err != nil || len(p.Rows) != 0 {
		t.Errorf("nothing is near: %v, %v", p, err)
	}
	checktest.Equal(t, len(l.Seek().Numbers), 0, "numbers asked for")
	if l, _, _ = nearTo(x, "/v1/charges", []int64{7, 9}); !slices.Equal(l.Seek().Numbers, []int64{7, 9}) {
		t.Errorf("the store is asked for %v", l.Seek().Numbers)
	}
}
