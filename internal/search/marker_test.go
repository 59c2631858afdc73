// Markers: a unique string in every field. What a role does not see in full is
// never matched, counted, put in order by, or shown.

package search

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/checktest"
	"understudy/internal/query"
	"understudy/internal/sample"
	"understudy/spec"
)

// markers are records of calls and messages with a marker in every field.
func markers(sp *spec.Spec, kind string, n int) (body string, where map[string]string) {
	record, where := map[string]any{}, map[string]string{}
	k := sp.Kind(kind)
	for i, f := range k.Fields {
		at, name := record, f.Name
		if outer, inner, dotted := strings.Cut(name, "."); dotted {
			inside, ok := at[outer].(map[string]any)
			if !ok {
				inside = map[string]any{}
				at[outer] = inside
			}
			at, name = inside, inner
		}
		text := fmt.Sprintf("marker%d%s%d", n, kind, i)
		switch {
		case f.Name == "sid":
			text = fmt.Sprintf("%s%032x", k.Prefixes[0], n)
		case f.Type == spec.TypeRFC2822:
			text = fmt.Sprintf("%s 2026 10:%02d:%02d +0000", map[string]string{"calls": "Mon, 01 Jun", "messages": "Sun, 31 May"}[kind], n, i)
		case f.Type == spec.TypeInt || f.Type == spec.TypeDecimal || f.Type == spec.TypeCode:
			text = fmt.Sprintf("%d", 100000*len(kind)+1000*n+i)
		case f.Class == spec.ClassPhone:
			text = fmt.Sprintf("+1555%03d%04d", 10*len(kind)+n, i)
		case f.Type == spec.TypeMap || f.Type == spec.TypeMedia:
			continue
		}
		at[name] = text
		where[text] = f.Name
	}
	unnamed := fmt.Sprintf("unnamed%d%s", n, kind)
	record["unnamed"], where[unnamed] = unnamed, ""
	data, err := json.Marshal(record)
	if err != nil {
		panic(err)
	}
	return string(data), where
}

func TestMarkers(t *testing.T) {
	r, without := newRig(t, false), newRig(t, false)
	planted := map[string]map[string]string{}
	for _, kind := range []string{"calls", "messages"} {
		var bodies []string
		planted[kind] = map[string]string{}
		for n := range 3 {
			body, where := markers(r.spec, kind, n)
			bodies = append(bodies, body)
			for text, field := range where {
				planted[kind][text] = field
			}
		}
		r.put(map[string]string{"calls": "Calls", "messages": "Messages"}[kind], bodies...)
	}
	asked, run := 0, sample.OneIn(t, 50)
	for role := range roles {
		for kind, texts := range planted {
			for text, field := range texts {
				if !run() {
					continue
				}
				hidden := r.gate.Level(as(role), "twilio", kind, field) != access.See
				asked += r.marked(role, kind, field, text, hidden, without)
			}
		}
	}
	if asked < 1000/25 {
		t.Errorf("only %d searches", asked)
	}
}

// marked looks for a marker in every way there is.
func (r *rig) marked(role, kind, field, text string, hidden bool, without *rig) (asked int) {
	r.Helper()
	quoted := `"` + text + `"`
	asks := []string{quoted, `"` + text[:len(text)-1] + `"*`, "-" + quoted, "kind:calls OR " + quoted, "id:" + quoted}
	if strings.HasPrefix(text, "+") {
		asks = append(asks, text, "number:"+text)
	}
	for _, q := range asks {
		asked++
		out, err := r.s.Find(r.Context(), as(role), query.SearchRequest{Text: q, Facets: true, Sort: []string{"", "rank"}[asked%2]})
		world, other := without.s.Find(without.Context(), as(role), query.SearchRequest{Text: q, Facets: true})
		if (err == nil) != (other == nil) {
			r.Fatalf("%s asks %s: %v, in an empty world %v", role, q, err, other)
		}
		if err != nil {
			if !errors.As(err, new(*query.SyntaxError)) || err.Error() != other.Error() {
				r.Fatalf("%s asks %s: %v, in an empty world %v", role, q, err, other)
			}
			continue
		}
		_ = world
		if !hidden {
			continue
		}
		if strings.HasPrefix(q, quoted) || strings.HasPrefix(q, "id:") || q == text || strings.HasPrefix(q, "number:") {
			checktest.MustEqual(r, len(out.Hits), 0, "%s finds the hidden %s.%s by %s: len(out.Hits)", role, kind,
				field, q)
			checktest.Equal(r, out.Total.N, 0, "%s finds the hidden %s.%s by %s: out.Total.N", role, kind, field, q)
			checktest.Equal(r, len(out.Facets[0].Values), 0,
				"%s finds the hidden %s.%s by %s: len(out.Facets[0].Values)", role, kind, field, q)
		}
		if strings.HasPrefix(q, "-") { // it takes nothing away
			all, err := r.s.Find(r.Context(), as(role), query.SearchRequest{Facets: true})
			if err != nil || all.Total.N != out.Total.N {
				r.Errorf("%s learns of the hidden %s.%s by %s: %d of %d: %v", role, kind, field, q, out.Total.N, all.Total.N, err)
			}
		}
		r.s.setColumns(out)
		shown, _ := json.Marshal(out)
		if told := strings.ReplaceAll(string(shown), text, ""); len(told) < len(shown)-len(q)*2-len(text) || strings.Contains(hitsOf(out), text) {
			r.Errorf("%s is shown the hidden %s.%s by %s: %s", role, kind, field, q, shown)
		}
	}
	if field == "" || !hidden {
		return asked
	}
	// Naming it is refused, at its place, whatever is held.
	for _, q := range []string{"kind:" + kind + " " + field + ":x", "kind:" + kind + " has:" + field, "kind:" + kind + " -no:" + field} {
		asked++
		_, err := r.s.Find(r.Context(), as(role), query.SearchRequest{Text: q})
		_, other := without.s.Find(without.Context(), as(role), query.SearchRequest{Text: q})
		var e *query.SyntaxError
		checktest.MustTrue(r, errors.As(err, &e), "%s asks %s: errors.As(err, &e) is false", role, q)
		checktest.MustEqual(r, e.Kind, understudy.ErrForbidden, "%s asks %s: e.Kind; %v", role, q, err)
		checktest.MustTrue(r, other != nil, "%s asks %s: other is nil; %v", role, q, err)
		checktest.MustEqual(r, other.Error(), err.Error(), "%s asks %s: other.Error()", role, q)
		if at := q[e.At:e.End]; r.gate.CanSee(as(role), "twilio", kind) && at != field {
			r.Errorf("%s asks %s: the error points at %q", role, q, at)
		}
	}
	if _, err := r.s.Find(r.Context(), as(role), query.SearchRequest{Kinds: []string{kind}, Sort: field}); !errors.Is(err,
		understudy.ErrForbidden) {
		r.Errorf("%s sorts by the hidden %s.%s: %v", role, kind, field, err)
	}
	return asked + 1
}

func hitsOf(out *query.SearchResult) string {
	var b strings.Builder
	for _, h := range out.Hits {
		b.Write(h.Body)
		fmt.Fprint(&b, h.ID, h.URL, h.Snippets)
	}
	for _, f := range out.Facets {
		fmt.Fprint(&b, f)
	}
	return b.String()
}

// Two worlds that differ in hidden values alone answer alike.
func TestHiddenValuesChangeNothing(t *testing.T) {
	var worlds []*rig
	for _, secret := range []string{"apple", "pear tree"} {
		r := newRig(t, false)
		var bodies []string
		for n := range 20 {
			at := fmt.Sprintf("Mon, 01 Jun 2026 10:00:%02d +0000", n)
			bodies = append(bodies, fmt.Sprintf(`{"sid":"SM%032x","date_created":%q,"date_sent":%q,"body":"%s %d","status":"sent",`+
				`"from":"+1555010%04d","to":"+15550200000","error_message":"plain %d"}`, n, at, at, secret, n, n+len(secret), n%3))
		}
		r.put("Messages", bodies...)
		worlds = append(worlds, r)
	}
	for _, q := range []string{"", "apple", "pear", "-apple", `"pear tree"`, "appl*", "plain", "plain apple", "plain OR apple", "plain -pear",
		"status:sent", "+15550100005", "(apple OR pear) OR 1"} {
		for _, sort := range []string{"", "oldest", "rank", "error_message"} {
			var answers []string
			for _, r := range worlds {
				out, err := r.s.Find(t.Context(), as("support"), query.SearchRequest{Text: q, Sort: sort, Facets: true, Limit: 7})
				var said string
				if err != nil {
					said = err.Error()
				} else {
					out.Next = map[bool]string{true: "more"}[out.Next != ""]
					r.s.setColumns(out)
					shown, _ := json.Marshal(out)
					said = string(shown)
				}
				// Masks show the last four digits, which differ by themselves.
				answers = append(answers, masked(said))
			}
			if answers[0] != answers[1] {
				t.Errorf("%q sort=%q: two answers\n%.500s\n%.500s", q, sort, answers[0], answers[1])
			}
		}
	}
}

// What lies in a value the spec names as a text, and not what it holds, is
// hidden from every role but all: it is not counted either, when the store counts.
func TestHiddenWordsAreNotCounted(t *testing.T) {
	r := newRig(t, true)
	for n := range 40 {
		r.put("Messages", fmt.Sprintf(`{"sid":"SM%032x","date_created":"Mon, 01 Jun 2026 10:00:%02d +0000","status":"sent",`+
			`"body":{"note":"zanzibar"}}`, n+1<<40, n))
	}
	s := r.with(func(o *Options) { o.Limits.Count = time.Nanosecond })
	for role, want := range map[string]int64{"all": 40, "open": 0} {
		out, err := s.Find(t.Context(), as(role), query.SearchRequest{Text: "zanzibar", Facets: true})
		checktest.MustNoError(t, err, "%s", role)
		checktest.Equal(t, out.Total.N, want, "%s: out.Total.N", role)
		checktest.Equal(t, int64(len(out.Hits)), want, "%s: int64(len(out.Hits))", role)
	}
}

func masked(s string) string {
	parts := strings.Split(s, "********")
	for i := range parts[1:] {
		if len(parts[i+1]) > 4 {
			parts[i+1] = parts[i+1][4:]
		}
	}
	return strings.Join(parts, "")
}
