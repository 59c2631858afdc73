// Filters with a default, lists of values, and orders, as trackers have them.

package compose_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"understudy"
	"understudy/spec"
)

// ticketFilters are those of a list that shows what is open unless asked.
func ticketFilters() []*spec.Filter {
	return []*spec.Filter{
		{Name: "state", Field: "state", Meaning: spec.Meaning{Default: "open", SelectAll: []string{"all"}}},
		{Name: "customer", Field: "customer", Meaning: spec.Meaning{ListMatch: "one", SelectAll: []string{"*"}}},
		{Name: "labels", Field: "labels.name", Meaning: spec.Meaning{ListMatch: "all"}},
		{Name: "kind", Field: "customer", Meaning: spec.Meaning{Default: "!cus_0", SelectAll: []string{"all"}}},
		{Name: "sort", Op: "order", Meaning: spec.Meaning{Default: "created"}},
		{Name: "total", Op: "aside", Meaning: spec.Meaning{Default: "false"}},
	}
}

func TestFiltersWithDefaults(t *testing.T) {
	x := newTill(t)
	for params, keep := range map[string]func(i int) bool{
		"":                                   func(i int) bool { return i%2 == 0 },
		"state=open":                         func(i int) bool { return i%2 == 0 },
		"state=closed":                       func(i int) bool { return i%2 == 1 },
		"state=all":                          func(int) bool { return true },
		"state=all&total=false":              func(int) bool { return true },
		"state=all&sort=created":             func(int) bool { return true },
		"kind=cus_2&state=all":               func(i int) bool { return i%3 == 2 },
		"state=all&":                         func(i int) bool { return i%3 != 0 },
		"state=none":                         func(int) bool { return false },
		"customer=cus_1":                     func(i int) bool { return i%2 == 0 && i%3 == 1 },
		"customer=cus_1,cus_2&state=all":     func(i int) bool { return i%3 != 0 },
		"customer=*":                         func(i int) bool { return i%2 == 0 },
		"labels=l1&state=all":                func(i int) bool { return i%2 == 1 },
		"labels=l1,m3&state=all":             func(i int) bool { return i%2 == 1 && i%5 == 3 },
		"labels=m3,l1,x&state=all":           func(int) bool { return false },
		"labels=l0,m4&customer=cus_1,cus_0":  func(i int) bool { return i%2 == 0 && i%5 == 4 && i%3 != 2 },
		"state=all&labels=m3&customer=cus_2": func(i int) bool { return i%5 == 3 && i%3 == 2 },
	} {
		all := "limit=100&kind=all&"
		if strings.Contains(params, "kind=") || strings.HasSuffix(params, "&") {
			all = "limit=100&"
		}
		p, err := x.list("/v1/tickets?" + all + params)
		if err != nil {
			t.Fatalf("%s: %v", params, err)
		}
		var want, got []string
		for i := x.n; i > 0; i-- {
			if keep(i) {
				want = append(want, fmt.Sprintf("ch_%d", i))
			}
		}
		for _, r := range p.Rows {
			got = append(got, r.ID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %s\nwant %s", params, strings.Join(got, " "), strings.Join(want, " "))
		}
	}
	for params, says := range map[string]string{"sort=updated": "newest first", "state=": "is not known", "total=true": "that total adds"} {
		if _, err := x.list("/v1/tickets?" + params); !errors.Is(err, understudy.ErrInvalid) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", params, err, says)
		}
	}
}
