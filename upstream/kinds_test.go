// Kinds against slowapi: every list and instance of the spec answers, its
// records are found, and no field it shows is left unnamed.

package upstream

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/request"
	"understudy/spec"
)

// fill puts every combination of known values into a path; at most a few of each.
func fill(path string, known map[string][]string) []string {
	head, rest, ok := strings.Cut(path, "{")
	if !ok {
		return []string{path}
	}
	name, tail, _ := strings.Cut(rest, "}")
	var out []string
	for _, value := range known[name] {
		for _, more := range fill(tail, known) {
			out = append(out, head+value+more)
		}
	}
	return out
}

// kindOf is whose ids fill a path variable.
var kindOf = map[string]string{
	"CallSid": "calls", "MessageSid": "messages", "ConferenceSid": "conferences", "QueueSid": "queues", "RecordingSid": "recordings",
}

// barren are lists slowapi has no records for: no country it knows sells such numbers.
var barren = []string{"MachineToMachine.json", "SharedCost.json", "Voip.json"}

func TestEveryKindAnswers(t *testing.T) {
	c, _ := live(t)
	sp := c.o.Source.Spec
	known := map[string][]string{"AccountSid": {account}, "CountryCode": {"US", "DE", "GB"}}
	w := &walker{T: t, c: c, known: known, ids: map[string][]string{}, rows: map[string]string{}}
	for _, under := range []bool{false, true} {
		for _, k := range sp.Kinds {
			for _, l := range k.Lists {
				if slices.ContainsFunc(slices.Collect(maps.Keys(kindOf)), l.Template().Has) == under {
					w.list(k, l)
				}
			}
		}
		for name, kind := range kindOf {
			known[name] = w.ids[kind]
		}
	}
	for _, k := range sp.Kinds {
		for _, in := range k.Instances {
			w.instance(k, in)
		}
	}
	if w.same < 12 {
		t.Errorf("only %d instances were compared with their rows", w.same)
	}
}

// walker reads lists, then instances.
type walker struct {
	*testing.T
	c     *Client
	known map[string][]string // values of path variables
	ids   map[string][]string // of each kind
	rows  map[string]string   // by shape and id
	same  int
}

// get fetches a page, again when the machine is so busy that its answer is late.
func (w *walker) get(uri string) (*understudy.Page, error) {
	return w.c.Fetch(w.Context(), request.Fetch{Target: target(w.T, w.c, uri), RetryWindow: time.Minute})
}

func (w *walker) list(k *spec.Kind, l *spec.List) {
	rows := 0
	for _, uri := range fill(l.Path, w.known) {
		page, err := w.get(uri + "?PageSize=200")
		checktest.MustNoError(w, err, "%s; page %+v", uri, page)
		checktest.MustEqual(w, page.NotStored, "", "%s: page.NotStored", uri)
		checktest.MustEqual(w, page.Kind, k.Name, "%s: page.Kind", uri)
		checktest.MustTrue(w, !(page.Status != 200 && (page.Status != 404 || k.Name != "available_phone_numbers")),
			"%s: page.Status is %v", uri, page.Status)
		if page.Status == 404 {
			continue
		}
		for _, r := range page.Rows {
			w.ids[k.Name] = append(w.ids[k.Name], r.ID)
			w.rows[l.Shape+" "+r.ID] = string(page.Body[r.Start:r.End])
		}
		rows += unnamed(w.T, k, w.c.o.Source.Spec.PagingOf(l), l, page.Body)
		if rows > 0 && w.ids[k.Name] == nil || rows > 5 && len(l.Template().Vars()) > 1 {
			break
		}
	}
	if rows == 0 && !slices.Contains(barren, l.Path[strings.LastIndex(l.Path, "/")+1:]) {
		w.Errorf("%s: slowapi has nothing to show", l.Path)
	}
}

// instance asks for the first record of the kind that the path knows.
func (w *walker) instance(k *spec.Kind, in *spec.Instance) {
	known := maps.Clone(w.known)
	known["CountryCode"] = []string{"US"}
	tries := fill(in.Path, known)
	if len(k.ID) > 0 {
		tries = nil
		for _, id := range w.ids[k.Name] {
			of := maps.Clone(w.known)
			for i, part := range strings.Split(id, spec.IDSeparator) {
				of[in.ID[i]] = []string{part}
			}
			tries = append(tries, fill(in.Path, of)...)
		}
	}
	for _, uri := range tries {
		page, err := w.get(uri)
		checktest.MustNoError(w, err, "%s; page %+v", uri, page)
		checktest.MustEqual(w, page.NotStored, "", "%s: page.NotStored", uri)
		checktest.MustTrue(w, !(page.Status != 200 && page.Status != 404),
			"%s: page.Status != 200 && page.Status != 404; page.Status is %v", uri, page.Status)
		if page.Status == 404 {
			continue
		}
		var record map[string]any
		if err := json.Unmarshal(page.Body, &record); err != nil {
			w.Fatal(err)
		}
		names(w.T, k.Name, "", record, func(name string) bool { return k.Field(name) != nil })
		if row, ok := w.rows[in.Shape+" "+page.ID]; ok && page.ID != "" {
			if w.same++; row != strings.TrimSpace(string(page.Body)) {
				w.Errorf("%s: the instance is\n%s, its row of the same shape\n%s", uri, page.Body, row)
			}
		}
		return
	}
	w.Errorf("%s: none of %d is found", in.Path, len(tries))
}

// unnamed fails for a field of a list answer the spec does not name, and says
// how many rows there are.
func unnamed(t *testing.T, k *spec.Kind, p *spec.Paging, l *spec.List, body []byte) int {
	t.Helper()
	var all map[string]any
	if err := json.Unmarshal(body, &all); err != nil {
		t.Fatal(err)
	}
	rows, _ := all[l.Key].([]any)
	delete(all, l.Key)
	names(t, k.Name+" envelope", "", all, func(name string) bool {
		return slices.ContainsFunc(p.Envelope, func(f *spec.Field) bool { return f.Name == name })
	})
	for _, row := range rows {
		names(t, k.Name, "", row.(map[string]any), func(name string) bool { return k.Field(name) != nil })
	}
	return len(rows)
}

// names goes into objects as far as the spec names what is in them. What lies
// in request parameters and event data is not for the spec to name.
func names(t *testing.T, what, under string, object map[string]any, known func(string) bool) {
	t.Helper()
	for name, value := range object {
		if !known(under + name) {
			t.Errorf("%s: %s is not named", what, under+name)
		}
		if inner, ok := value.(map[string]any); ok && under+name != "request.parameters" && under+name != "event_data" {
			names(t, what, under+name+".", inner, known)
		}
	}
}
