// Lookups in the test of markers: a number that is looked up leads to its records, and stands in no answer.

package markers

import (
	"bytes"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"understudy/e2e/rig"
	"understudy/spec"
)

// plantedNumber is a number as it is planted in a field that is not derived from another.
var plantedNumber = regexp.MustCompile(`"(?:from|to|phone_number)": *"(\+` + numberStart + `[0-9]{10})"`)

// checkLookups looks up planted numbers as a role that is shown none of them. Their records are found,
// and no answer holds a marker that the role must not see: those of the numbers themselves least of all.
// The logs are looked through later (checkLogs).
func (g *garden) checkLookups(t *testing.T, web string, may func(fate) bool) {
	t.Helper()
	const finder = "finder:" + rig.MaskedToken
	sent := func(path, form string, headers ...string) rig.Reply {
		t.Helper()
		method := "GET"
		if form != "" {
			method = "POST"
		}
		r, err := rig.Ask(method, finder, web+path, form, headers...)
		if err != nil {
			t.Fatal(err)
		}
		var all bytes.Buffer
		_ = r.Header.Write(&all)
		all.Write(r.Body)
		for text, m := range g.found(all.Bytes()) {
			if !may(m.fate) {
				t.Errorf("%s %s answers %d and shows %s, %s", method, path, r.Status, text, m.place)
			}
		}
		return r
	}
	numbers := map[string]*spec.Kind{}
	for _, name := range []string{"calls", "messages", "incoming_phone_numbers"} {
		k := g.spec.Kind(name)
		r, err := rig.Ask("GET", rig.Account+":"+rig.DemoToken, web+"/twilio/"+name+"/"+g.id(k, 1)+".json", "")
		if err != nil {
			t.Fatal(err)
		}
		for _, number := range plantedNumber.FindAllSubmatch(r.Body, -1) {
			numbers[string(number[1])] = k
		}
	}
	all := slices.Sorted(maps.Keys(numbers))
	if len(all) < 4 {
		t.Fatalf("only %d numbers are planted: %v", len(all), all)
	}
	for _, number := range all[:4] {
		for _, field := range []string{"number", "q"} {
			r := sent("/-/lookup", url.Values{field: {number}}.Encode())
			at, cookie := r.Header.Get("Location"), strings.Split(r.Header.Get("Set-Cookie"), ";")[0]
			if r.Status != 303 || !strings.HasPrefix(at, "/-/lookup/") {
				t.Fatalf("%s in %s: %d %s %s", number, field, r.Status, at, rig.Tail(string(r.Body), 300))
			}
			if page := sent(at, "", "Cookie", cookie); page.Status != 200 || !bytes.Contains(page.Body, []byte(`href="/twilio/`+numbers[number].Name+"/")) {
				t.Errorf("the records of %s, a number of %s: %d %s", number, numbers[number].Name, page.Status, rig.Tail(string(page.Body), 600))
			}
			if other := sent(at, ""); other.Status != 404 {
				t.Errorf("without its session the address answers %d", other.Status)
			}
		}
	}
	limited := false
	for range 6 { // the others took eight of ten; some have come back
		r := sent("/-/lookup", "number=%2B15005550006")
		limited = limited || r.Status == 429 && r.Header.Get("Retry-After") != ""
	}
	if !limited {
		t.Error("fourteen numbers at once are looked up")
	}
}
