// Advice: the line a refused reader is told gives what was refused.

package page_test

import (
	"maps"
	"regexp"
	"strings"
	"testing"

	"understudy/internal/access"
	"understudy/internal/sample"
	"understudy/internal/viewer/viewertest"
	"understudy/spec"
)

var adviceLine = regexp.MustCompile(`allow it in the settings, like roles: \{(\w+): \{(\w+): \{(.*?)\}\}\}`)

// pasted are the rules with those of the page's advice; false when it has none.
func pasted(page string, rules map[string]string) (map[string]string, bool) {
	m := adviceLine.FindStringSubmatch(page)
	if m == nil || m[1] != "support" || m[2] != "twilio" {
		return nil, false
	}
	all := maps.Clone(rules)
	for one := range strings.SplitSeq(m[3], ", ") {
		subject, level, _ := strings.Cut(one, ": ")
		all[subject] = level
	}
	return all, true
}

// Part 2, no. 5: whatever is hidden by its class, its kind or by name, and asked for
// by sorting, by a filter or by opening it, is allowed when the line is pasted.
func TestAdviceGrantsWhenPasted(t *testing.T) {
	h := viewertest.Open(t)
	support := viewertest.Support
	under := func(rules map[string]string) {
		gate, err := access.New(map[string]*spec.Spec{"twilio": h.Spec}, access.Roles{"support": {"twilio": rules}})
		viewertest.Must(t, err)
		h.Viewer.Visitor.Options.Gate = gate
	}
	tried := 0
	refused := func(path string, rules map[string]string) {
		t.Helper()
		under(rules)
		status, page, _ := h.Get(path, support)
		if status != 403 {
			return // it is asked for in another way
		}
		tried++
		with, ok := pasted(page, rules)
		if !ok {
			t.Errorf("%s under %v: no line is told", path, rules)
			return
		}
		under(with)
		if status, page, _ = h.Get(path, support); status == 403 {
			t.Errorf("%s under %v is 403 again: %s", path, with, adviceLine.FindString(page))
		}
	}
	run := sample.OneIn(t, 8)
	for _, k := range h.Viewer.Visitor.ByName["twilio"].Kinds {
		if len(k.PlannedLists) == 0 {
			continue
		}
		refused(k.Href, map[string]string{"*": "see", k.Spec.Name: "hide"})
		for _, f := range k.Spec.Fields {
			if f.Class == spec.ClassSecret || f.Type == spec.TypeMedia || f.Type == spec.TypeMap || !run() {
				continue
			}
			for _, rules := range []map[string]string{{"*": "see", f.Class: "hide"}, {"*": "see", k.Spec.Name + "." + f.Name: "hide"}} {
				if rules[""] != "" || rules["plain"] != "" {
					continue
				}
				refused(k.Href+"?understudy.sort="+f.Name, rules)
				for _, flt := range k.PlannedLists[0].Spec.Filters {
					if flt.Field == f.Name && (flt.Op == "" || flt.Op == "is") {
						refused(k.Href+"?"+flt.Name+"=1", rules)
					}
				}
			}
		}
	}
	refused("/twilio/number/+14155551234", map[string]string{"*": "see", "phone": "last4"})
	refused("/twilio/number/+14155551234", map[string]string{"*": "see", "phone": "last4", "calls": "last4"})
	if tried < 40 {
		t.Errorf("%d refusals were tried", tried)
	}
	t.Logf("%d refusals", tried)
}
