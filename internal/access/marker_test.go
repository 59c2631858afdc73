// Markers: a unique string in every leaf of every kind; none hidden comes out.

package access

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"understudy"
	"understudy/spec"
)

// planted builds a body and knows what was put where.
type planted struct {
	n     int
	where map[string]string // marker -> kind.field, "" for what the spec does not name
}

func (p *planted) mark(where string) string {
	p.n++
	m := fmt.Sprintf("MARK%06dX", p.n)
	p.where[m] = where
	return m
}

// number is a marker of digits alone, for what shows its last four.
func (p *planted) number(where string) string {
	p.n++
	m := fmt.Sprintf("+1999%06d%04d", p.n, 10000-p.n)
	p.where[m[:len(m)-4]] = where
	return m
}

// record is a record of a kind with a marker in every field the spec names and
// in every awkward place the spec does not.
func (p *planted) record(k *spec.Kind) map[string]any {
	r := map[string]any{}
	for _, f := range k.Fields {
		at, name := r, f.Name
		for {
			outer, rest, dotted := strings.Cut(name, ".")
			if !dotted {
				break
			}
			inner, ok := at[outer].(map[string]any)
			if !ok {
				inner = map[string]any{}
				at[outer] = inner
			}
			at, name = inner, rest
		}
		where := k.Name + "." + f.Name
		if f.Type == spec.TypeMedia {
			where = "" // a content stands in no body; what is called so there is not it
		}
		switch {
		case f.Type == spec.TypeMap:
			at[name] = map[string]any{"unnamed": p.mark(""), "deep": map[string]any{"er": []any{p.mark("")}}}
		case f.Class == spec.ClassPhone:
			at[name] = p.number(where)
		default:
			at[name] = p.mark(where)
		}
	}
	r["unnamed"] = p.mark("")
	r["unnamed_object"] = map[string]any{"sid": p.mark(""), "x": map[string]any{"y": p.mark("")}}
	r["unnamed_list"] = []any{p.mark(""), map[string]any{"sid": p.mark("")}, []any{p.mark("")}}
	return r
}

func (p *planted) list(s *spec.Spec, k *spec.Kind, l *spec.List) any {
	rows := []any{p.record(k), p.record(k), p.mark(""), []any{p.mark("")}}
	if l.Key == "" {
		return rows
	}
	body := map[string]any{"unnamed": p.mark(""), "unnamed_object": map[string]any{l.Key: p.mark("")}}
	put := func(dotted string, v any) {
		at := body
		for {
			outer, rest, more := strings.Cut(dotted, ".")
			if !more {
				break
			}
			if at[outer] == nil {
				at[outer] = map[string]any{"unnamed": p.mark("")}
			}
			at, dotted = at[outer].(map[string]any), rest
		}
		at[dotted] = v
	}
	for _, f := range s.PagingOf(l).Envelope {
		if f.Type == spec.TypeMap {
			continue
		}
		put(f.Name, p.mark("envelope."+f.Name))
	}
	put(l.Key, rows)
	return body
}

func TestNoHiddenMarkerComesOut(t *testing.T) {
	for name, rules := range map[string]map[string]string{
		"support":  {"*": "see", "phone": "last4", "body": "hide"},
		"nobody":   {"*": "see", "phone": "hide", "body": "hide", "price": "hide", "url": "hide", "name": "hide"},
		"masked":   {"*": "last4"},
		"hashed":   {"*": "see", "phone": "hash", "body": "hash", "name": "hash"},
		"country":  {"*": "see", "phone": "country", "body": "country"},
		"hashes":   {"*": "hash"},
		"one kind": {"messages": "see", "people": "see"},
		"unseen":   {"*": "see"},
	} {
		for source, s := range map[string]*spec.Spec{"twilio": twilio(t), "forge": forge(t)} {
			known := map[string]string{}
			for subject, level := range rules {
				if checkSubject(s, subject) == nil {
					known[subject] = level
				}
			}
			g := gate(t, Roles{"r": {source: known}})
			for _, k := range s.Kinds {
				if !g.CanSee(as("r"), source, k.Name) {
					continue
				}
				lists := append([]*spec.List{nil}, k.Lists...)
				for _, l := range lists {
					p := &planted{where: map[string]string{}}
					var doc any
					if l == nil {
						doc = p.record(k)
					} else {
						doc = p.list(s, k, l)
					}
					body, err := json.Marshal(doc)
					if err != nil {
						t.Fatal(err)
					}
					pg := page(source, k.Name, l != nil, 200, string(body))
					if l != nil {
						pg.Key.URI = strings.NewReplacer("{", "", "}", "").Replace(l.Path)
					}
					check(t, g, p, name+" "+source, pg)
				}
			}
		}
	}
}

func check(t *testing.T, g *Gate, p *planted, what string, pg *understudy.Page) {
	t.Helper()
	v, err := g.MakeView(as("r"), pg)
	if err != nil {
		t.Fatal(err)
	}
	var rows strings.Builder
	for _, r := range v.Rows() {
		fmt.Fprint(&rows, r.ID, " ", r.Fields())
	}
	shown := 0
	if strings.HasPrefix(what, "hash") || strings.HasPrefix(what, "country") {
		if n := regexp.MustCompile(`1999\d{6}|"\d{4}"|\*\d{4}"`).FindString(string(v.Body)); n != "" {
			t.Errorf("%s, %s: %s is left of a number", what, pg.Kind, n)
		}
	}
	for marker, where := range p.where {
		want := where != "" && strings.HasPrefix(where, "envelope.")
		if kind, field, ok := strings.Cut(where, "."); ok && kind != "envelope" {
			want = g.Level(as("r"), pg.Key.Source, kind, field) == See
		}
		if strings.HasPrefix(where, "envelope.") && strings.Contains(string(v.Body), marker) == false {
			continue // links may go with the ids; TestView has the table
		}
		if have := strings.Contains(string(v.Body), marker); have != want {
			t.Errorf("%s, %s: marker of %q: in the view %v, want %v", what, pg.Kind, where, have, want)
		}
		if strings.Contains(rows.String(), marker) && !want {
			t.Errorf("%s, %s: marker of %q is in a row", what, pg.Kind, where)
		}
		if want {
			shown++
		}
	}
	bodies := pg.Kind == "call_events" // all of it is of class body
	if shown == 0 && !bodies && !strings.HasPrefix(what, "masked ") && !strings.HasPrefix(what, "hashes ") {
		t.Errorf("%s, %s: no marker is shown; the test could not fail", what, pg.Kind)
	}
}
