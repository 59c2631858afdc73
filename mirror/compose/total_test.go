package compose_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"understudy"
	"understudy/internal/query"
	"understudy/mirror/compose"
	"understudy/request"
	"understudy/spec"
	"understudy/spec/paging"
)

// counted is a till whose charges stand in a list by number, and whose answers to it have a form.
func counted(t *testing.T, rules paging.Rules) *till {
	x := newTill(t)
	rules.Size, rules.Default, rules.Max, rules.Page = "per_page", 30, 100, "page"
	x.spec.Pagings["numbers"].Rules = rules
	x.spec.Headers.Back = []string{"X-Total"}
	if err := x.spec.Pagings["numbers"].Check(); err != nil {
		t.Fatal(err)
	}
	return x
}

// count composes a page, its rows counted as far as w hands them out.
func (x *till) count(target string, local *request.LocalQuery, w *compose.Bounded) (*understudy.Page, error) {
	x.Helper()
	t, err := x.spec.ResolveLink("till", target)
	if err != nil {
		x.Fatal(err)
	}
	w.Store, w.Kind = x, t.Kind
	l, err := compose.New(&spec.Source{Name: "till", Spec: x.spec}, t, compose.Options{Local: local})
	if err != nil {
		return nil, err
	}
	if err := l.Fill(x.Context(), w); err != nil {
		return nil, err
	}
	if err := l.Count(x.Context(), w); err != nil {
		x.Log(err)
	}
	return l.BuildPage(epoch)
}

func TestPagesByNumberLeadToFirstPreviousAndLastPage(t *testing.T) {
	x := counted(t, paging.Rules{Style: "header", First: 1, Template: "{rows}"})
	for filter, rows := range map[string]int{"": 57, "customer=cus_1&": 19, "customer=none&": 0} {
		for _, size := range []int{1, 5, 19, 56, 57, 100} {
			last := max(1, (rows+size-1)/size)
			for page := 1; page <= last+2; page++ {
				link := func(to int, there bool) string {
					if !there {
						return ""
					}
					return fmt.Sprintf("/charges?%sper_page=%d&page=%d", filter, size, to)
				}
				p, err := x.count(link(page, true), nil, &compose.Bounded{})
				if err != nil {
					t.Fatalf("%s: %v", link(page, true), err)
				}
				for relation, want := range map[string]string{
					"prev": link(min(page-1, last), page > 1), "first": link(1, page > 1), "last": link(last, page < last),
				} {
					if got := p.HeaderField(paging.RelationField(relation)); got != want {
						t.Errorf("%s: %s leads to %q, want %q", link(page, true), relation, got, want)
					}
				}
			}
		}
	}
}

func TestTotalOfAllPagesIsCounted(t *testing.T) {
	for _, way := range []struct {
		rules  paging.Rules
		places []int // of pages of ten
	}{
		{paging.Rules{Style: "number", First: 1, Total: "total", Template: `{"rows":{rows},"total":{total}}`}, []int{1, 2, 6, 7, 900}},
		{paging.Rules{Style: "offset", Total: "total", Template: `{"rows":{rows},"total":{total}}`}, []int{0, 10, 13, 50, 57, 900}},
		{paging.Rules{Style: "number", First: 1, Total: "header:X-Total", Template: `{rows}`}, []int{1, 2, 6, 7, 900}},
	} {
		x := counted(t, way.rules)
		for filter, rows := range map[string]int{"": 57, "customer=cus_1&": 19} {
			for _, place := range way.places {
				target := fmt.Sprintf("/charges?%sper_page=10&page=%d", filter, place)
				p, err := x.count(target, nil, &compose.Bounded{})
				if err != nil {
					t.Errorf("%s %s: %v", way.rules.Style, target, err)
					continue
				}
				total := p.HeaderField("X-Total")
				if way.rules.Total == "total" {
					_, total, _ = strings.Cut(strings.TrimSuffix(string(p.Body), "}"), `"total":`)
				}
				if total != strconv.Itoa(rows) {
					t.Errorf("%s %s: total %q, want %d", way.rules.Style, target, total, rows)
				}
			}
		}
	}
}

func TestTotalBehindATokenIsCounted(t *testing.T) {
	x := newTill(t)
	x.spec.Paging.Back, x.spec.Paging.Template = "ending_before", `{"data":{rows},"has_more":{more},"total":{total}}`
	for _, params := range []string{"", "starting_after=ch_40", "starting_after=ch_5", "ending_before=ch_20", "ending_before=ch_56"} {
		p, err := x.count("/v1/charges?limit=10&"+params, nil, &compose.Bounded{})
		if err != nil {
			t.Errorf("%q: %v", params, err)
			continue
		}
		if !bytes.HasSuffix(p.Body, []byte(`"total":57}`)) {
			t.Errorf("%q: %s, want a total of 57", params, p.Body[len(p.Body)-20:])
		}
	}
}

// failing is a till whose reads fail from the second one on.
type failing struct {
	*till
	reads int
}

func (f *failing) Seek(ctx context.Context, q query.RecordQuery, yield func(query.Hit) bool) error {
	if f.reads++; f.reads > 1 {
		return context.DeadlineExceeded
	}
	return f.till.Seek(ctx, q, yield)
}

func TestUnknownTotalIsNotTold(t *testing.T) {
	body := counted(t, paging.Rules{Style: "number", First: 1, Total: "total", Template: `{"rows":{rows},"total":{total}}`})
	links := counted(t, paging.Rules{Style: "header", First: 1, Template: "{rows}"})
	for name, ask := range map[string]func(x *till) (*understudy.Page, error){
		"a row rule may hide rows": func(x *till) (*understudy.Page, error) {
			return x.count("/charges?per_page=10&page=2", &request.LocalQuery{CanFind: func(*understudy.Record) bool { return true }},
				&compose.Bounded{})
		},
		"a part is held": func(x *till) (*understudy.Page, error) {
			return x.count("/charges?per_page=10&page=2", nil, &compose.Bounded{CoveredFrom: 1_700_000_000 + 20*60})
		},
		"counting takes too long": func(x *till) (*understudy.Page, error) {
			to, _ := x.spec.ResolveLink("till", "/charges?per_page=10&page=2")
			l, err := compose.New(&spec.Source{Name: "till", Spec: x.spec}, to, compose.Options{})
			if err != nil {
				return nil, err
			}
			w := &compose.Bounded{Store: &failing{till: x}, Kind: to.Kind}
			if err := l.Fill(t.Context(), w); err != nil {
				return nil, err
			}
			if err := l.Count(t.Context(), w); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Count: %v", err)
			}
			return l.BuildPage(epoch)
		},
	} {
		if p, err := ask(body); !errors.Is(err, understudy.ErrInvalid) || !strings.Contains(err.Error(), "the total number of rows") {
			t.Errorf("%s: %+v, %v; want no answer", name, p, err)
		}
		p, err := ask(links)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := p.HeaderField(paging.RelationField("last")); got != "" {
			t.Errorf("%s: the last page is %s, want none", name, got)
		}
		if got, want := p.HeaderField(paging.RelationField("prev")), "/charges?per_page=10&page=1"; got != want {
			t.Errorf("%s: the page before is %q, want %q", name, got, want)
		}
	}
}
