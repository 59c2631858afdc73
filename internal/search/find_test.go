// Finding, compared with looking at every view.

package search

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/checktest"
	"understudy/internal/query"
	"understudy/internal/sample"
	"understudy/kit/tokenizer"
	"understudy/spec"
)

// seen is a record as a role sees it: the fields that are seen in full.
type seen struct {
	name   string // as rig.all says it
	kind   *spec.Kind
	fields map[string]string
	place  query.OrderKey
}

// views are all records a role may find, newest first, through the gate alone.
func (r *rig) views(role string) (all []seen) {
	r.Helper()
	c := as(role)
	err := r.store.Seek(r.Context(), query.RecordQuery{Source: "twilio"}, func(f query.Hit) bool {
		if !r.gate.CanSee(c, "twilio", f.Record.Kind) {
			return true
		}
		if only := r.gate.RecordFilter(c, "twilio", f.Record.Kind); only != nil && !only(f.Record) {
			return true
		}
		v, err := r.gate.MakeView(c, &understudy.Page{Key: understudy.Key{Source: "twilio"}, Kind: f.Record.Kind, Status: 200,
			Body: f.Record.Body})
		if err != nil {
			r.Fatal(err)
		}
		row := v.Rows()[0]
		one := seen{kind: r.spec.Kind(f.Record.Kind), fields: map[string]string{}, place: f.Order}
		for _, val := range row.Fields() {
			if val.State == access.Seen {
				one.fields[val.Name] = val.Text
			}
		}
		if one.name = f.Record.Kind + "/" + f.Record.ID; row.ID == "" {
			one.name = f.Record.Kind + "/" + string(v.Body)
		}
		all = append(all, one)
		return true
	})
	if err != nil {
		r.Fatal(err)
	}
	return all
}

// guess is a condition as text, and what it means.
type guess struct {
	text  string
	means func(s *seen) bool
}

// readable are the texts of a record, as the documents say what text is.
func (s *seen) readable(yield func(name, text string) bool) {
	for name, text := range s.fields {
		f := s.kind.Field(name)
		if f != nil && (f.DerivedFrom != "" || f.Link != "" || f.AbsoluteURL || s.kind.Parent == name || f.Class == spec.ClassPrice ||
			slices.Contains(s.kind.ID, name) ||
			!slices.Contains([]string{"", "text", "select", "code"}, f.Type)) || strings.HasPrefix(name, "subresource_uris.") {
			continue
		}
		if _, err := time.Parse(time.DateOnly, text); err == nil {
			continue
		}
		if !yield(name, text) {
			return
		}
	}
}

func (s *seen) has(words []string, prefix bool, field string) bool {
	for name, text := range s.readable {
		if (field == "" || field == name) && contains(text, words, prefix) {
			return true
		}
	}
	return false
}

func contains(text string, want []string, prefix bool) bool {
	have := tokenizer.Fold(text)
	for i := range len(have) - len(want) + 1 {
		same := slices.Equal(have[i:i+len(want)], want)
		if prefix {
			last := len(want) - 1
			same = slices.Equal(have[i:i+last], want[:last]) && strings.HasPrefix(have[i+last], want[last])
		}
		if same {
			return true
		}
	}
	return false
}

// time of a record, as date: has it.
func (s *seen) time() int64 {
	for _, name := range []string{s.kind.Clock, s.kind.Order} {
		if name != "" && s.fields[name] != "" {
			return spec.Unix(s.kind.Field(name).Type, []byte(s.fields[name]))
		}
	}
	return 0
}

// guesses makes conditions about what a role sees.
func guesses(rnd *rand.Rand, all []seen) guess {
	one := all[rnd.IntN(len(all))]
	var texts [][2]string
	for name, text := range one.readable {
		texts = append(texts, [2]string{name, text})
	}
	slices.SortFunc(texts, func(a, b [2]string) int { return cmp.Compare(a[0], b[0]) })
	field := func(name string) (string, bool) { text, ok := one.fields[name]; return text, ok && text != "" }
	for {
		switch rnd.IntN(12) {
		case 0, 1, 2:
			if len(texts) == 0 {
				continue
			}
			t := texts[rnd.IntN(len(texts))]
			folded := tokenizer.Fold(t[1])
			if len(folded) == 0 {
				continue
			}
			from := rnd.IntN(len(folded))
			to := min(len(folded), from+1+rnd.IntN(3))
			want, prefix, star := slices.Clone(folded[from:to]), rnd.IntN(3) == 0, ""
			if prefix {
				star = "*"
				last := want[len(want)-1]
				runes := []rune(last)
				want[len(want)-1] = string(runes[:1+rnd.IntN(len(runes))])
			}
			text := `"` + strings.Join(want, " ") + `"` + star
			if !slices.Equal(tokenizer.Fold(strings.Join(want, " ")), want) {
				continue // an emoji cut in parts
			}
			return guess{text, func(s *seen) bool { return s.has(want, prefix, "") }}
		case 3:
			if v, ok := field("status"); ok {
				return guess{"status:" + v, func(s *seen) bool { return s.fields["status"] == v }}
			}
		case 4:
			if v, ok := field("duration"); ok {
				n, _ := strconv.Atoi(v)
				sign := []string{"<", ">", "<=", ">="}[rnd.IntN(4)]
				return guess{"duration" + sign + v, func(s *seen) bool {
					m, err := strconv.Atoi(s.fields["duration"])
					return err == nil && map[string]bool{"<": m < n, ">": m > n, "<=": m <= n, ">=": m >= n}[sign]
				}}
			}
		case 5:
			if v, ok := field("from"); ok && strings.HasPrefix(v, "+") {
				typed := v
				if len(v) > 8 && rnd.IntN(2) == 0 {
					typed = v[:2] + " (" + v[2:5] + ") " + v[5:8] + "-" + v[8:]
				}
				return guess{"from:" + typed, func(s *seen) bool { return s.fields["from"][strings.IndexByte(s.fields["from"], ':')+1:] == v }}
			}
		case 6:
			if at := one.time(); at != 0 {
				day := time.Unix(at, 0).UTC()
				from := time.Date(day.Year(), day.Month(), day.Day(), 0, 0, 0, 0, time.UTC).Unix()
				switch rnd.IntN(3) {
				case 0:
					return guess{"date:" + day.Format(time.DateOnly), func(s *seen) bool { t := s.time(); return t >= from && t < from+86400 }}
				case 1:
					return guess{"date<" + day.Format(time.DateOnly), func(s *seen) bool { t := s.time(); return t != 0 && t < from }}
				}
				length := epoch.Unix() - at
				if length > 0 {
					return guess{fmt.Sprintf("age<%ds", length), func(s *seen) bool { t := s.time(); return t > at }}
				}
			}
		case 7:
			kind := one.kind
			return guess{[]string{"kind:", "in:"}[rnd.IntN(2)] + []string{kind.Name, kind.Singular}[rnd.IntN(2)],
				func(s *seen) bool { return s.kind == kind }}
		case 8:
			names := []string{"price", "date_created", "date_updated"}
			name := names[rnd.IntN(len(names))]
			if _, ok := field(name); ok {
				if rnd.IntN(2) == 0 {
					return guess{"has:" + name, func(s *seen) bool { return s.fields[name] != "" }}
				}
				return guess{"no:" + name, func(s *seen) bool { return s.kind.Field(name) != nil && s.fields[name] == "" }}
			}
		case 9:
			if v, ok := field("date_created"); ok {
				at := spec.Unix(spec.TypeRFC2822, []byte(v))
				month := time.Unix(at, 0).UTC().Format("2006-01")
				return guess{"date_created:" + month, func(s *seen) bool {
					t := spec.Unix(spec.TypeRFC2822, []byte(s.fields["date_created"]))
					return t != 0 && time.Unix(t, 0).UTC().Format("2006-01") == month
				}}
			}
		case 10:
			if v, ok := field("body"); ok {
				if folded := tokenizer.Fold(v); len(folded) > 0 {
					want := folded[:1]
					return guess{`body:"` + want[0] + `"`, func(s *seen) bool { return s.has(want, false, "body") }}
				}
			}
		case 11:
			if v, ok := field("sid"); ok {
				return guess{"sid:" + v, func(s *seen) bool { return s.fields["sid"] == v }}
			}
		}
	}
}

// random joins conditions.
func random(rnd *rand.Rand, all []seen, depth int) guess {
	if depth == 0 || rnd.IntN(3) == 0 {
		return guesses(rnd, all)
	}
	a, b := random(rnd, all, depth-1), random(rnd, all, depth-1)
	switch rnd.IntN(4) {
	case 0:
		return guess{"(" + a.text + " OR " + b.text + ")", func(s *seen) bool { return a.means(s) || b.means(s) }}
	case 1:
		return guess{"-(" + a.text + ")", func(s *seen) bool { return !a.means(s) }}
	case 2:
		return guess{a.text + " -" + "(" + b.text + ")", func(s *seen) bool { return a.means(s) && !b.means(s) }}
	}
	return guess{a.text + " " + b.text, func(s *seen) bool { return a.means(s) && b.means(s) }}
}

// rounds returns how many random queries each role asks.
func rounds() int {
	if sample.UnderRace {
		return sample.Count(2, 500)
	}
	return sample.Count(12, 500)
}

func TestFindEqualsLookingAtEveryView(t *testing.T) {
	r := newRig(t, true)
	for _, role := range []string{"all", "open", "support", "billing", "texts", "failed", "partial", "some"} {
		if roles[role] == nil && role != "all" {
			r.hideSome(role)
		}
		all := r.views(role)
		if len(all) < 100 {
			t.Fatalf("%s sees only %d records", role, len(all))
		}
		rnd := rand.New(rand.NewPCG(11, uint64(len(role))))
		refused, found := 0, 0
		for compared := 0; compared < rounds(); {
			g := random(rnd, all, 2)
			a := query.SearchRequest{Text: g.text, Limit: 40 + rnd.IntN(200)}
			if _, err := r.s.Find(t.Context(), as(role), a); err != nil {
				var e *query.SyntaxError
				if !errors.As(err, &e) || role == "all" && e.Kind == understudy.ErrForbidden {
					t.Fatalf("%s as %s: %v", g.text, role, err)
				}
				refused++
				continue
			}
			compared++
			var want []string
			for i := range all {
				if g.means(&all[i]) {
					want = append(want, all[i].name)
				}
			}
			got := r.all(role, a)
			found += len(got)
			if !slices.Equal(got, want) {
				t.Fatalf("%s as %s: %d found, %d meant\n%s", g.text, role, len(got), len(want), apart(got, want))
			}
			a.Sort = "oldest"
			slices.Reverse(want)
			if got := r.all(role, a); !slices.Equal(got, want) {
				t.Fatalf("%s as %s, oldest first: %d found, %d meant", g.text, role, len(got), len(want))
			}
			a.Sort, a.Facets, a.Limit = "", true, 1
			out, err := r.s.Find(t.Context(), as(role), a)
			checktest.MustNoError(t, err, "%s as %s", g.text, role)
			checktest.MustEqual(t, out.Total.N, int64(len(want)), "%s as %s: out.Total.N", g.text, role)
			checktest.MustTrue(t, !out.Total.AtLeast, "%s as %s: out.Total.AtLeast is true", g.text, role)
		}
		if refused > 20*rounds() || found < 8*rounds() {
			t.Errorf("%s: %d refused, %d found: too little is compared", role, refused, found)
		}
	}
}

// hideSome puts a role in force that does not see some fields of each kind, whatever their
// class is.
func (r *rig) hideSome(role string) {
	r.Helper()
	rnd, rule := rand.New(rand.NewPCG(12, uint64(len(role)))), map[string]string{"*": "see"}
	for _, k := range r.spec.Kinds {
		for _, f := range k.Fields {
			if k.IsText(f) && rnd.IntN(4) == 0 {
				rule[k.Name+"."+f.Name] = []string{"hide", "hash"}[rnd.IntN(2)]
			}
		}
	}
	var err error
	r.gate, err = access.NewWith(access.Options{Specs: map[string]*spec.Spec{"twilio": r.spec}, NewestVersion: r.newest,
		Roles: access.Roles{role: {"twilio": rule}}, Now: func() time.Time { return epoch }})
	if err != nil {
		r.Fatal(err)
	}
	r.o.Gate, r.o.Masked = gated{r.gate}, r.gate
	r.s = r.with(func(*Options) {})
}

// apart says what the first difference is.
func apart(got, want []string) string {
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			return fmt.Sprintf("%d: missing %.200s", i, want[i])
		case i >= len(want):
			return fmt.Sprintf("%d: too much %.200s", i, got[i])
		case got[i] != want[i]:
			return fmt.Sprintf("%d: found %.200s, meant %.200s", i, got[i], want[i])
		}
	}
	return "none"
}
