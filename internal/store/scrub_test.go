// Nobody's data in a dictionary.

package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"understudy"
	"understudy/kit/jsonspan"
)

// made is a made-up kind with a field of every class.
func made(t testing.TB) *understudy.Kind {
	spec := &understudy.Spec{Name: "made", Hosts: []understudy.Host{{URL: "https://made.example"}}, Auth: understudy.Auth{Style: "none"},
		Kinds: []*understudy.Kind{{Name: "things", ID: []string{"sid"}, Prefixes: []string{"TH"},
			Lists: []*understudy.List{{Path: "/things", Key: "things"}},
			Fields: []*understudy.Field{{Name: "sid"}, {Name: "phone", Class: understudy.ClassPhone}, {Name: "body", Class: understudy.ClassBody},
				{Name: "name", Class: understudy.ClassName}, {Name: "url", Class: understudy.ClassURL}, {Name: "price", Class: understudy.ClassPrice},
				{Name: "secret", Class: understudy.ClassSecret}, {Name: "shown", From: "phone"}, {Name: "other", Link: "things"}, {Name: "status"}, {Name: "uri"},
				{Name: "inner", Type: understudy.TypeMap}, {Name: "inner.status"}, {Name: "inner.phone", Class: understudy.ClassPhone}}}}}
	if err := spec.Compile(); err != nil {
		t.Fatal(err)
	}
	return spec.Kind("things")
}

// marked is a body with a marker in every leaf that must not be seen.
func marked(n int) []byte {
	m := func(place string) string { return fmt.Sprintf("Marker%sQq%05d", place, n) }
	id := func(k int) string { return fmt.Sprintf("TH%032x", 0xabcdef0123+n*100+k) }
	return fmt.Appendf(nil, `{"sid": %q, "phone": "+1415%07d", "body": "%s \u00e9 \n \ud83d\ude00 日本", "name": %q, "url": "https://%s/x", "price": -%d.25,
		"secret": %q, "shown": "(415) %07d", "other": %q, "status": "completed", "uri": "/2010-04-01/Things/%s.json?To=%s&Page=0&Digits=4155550%03d",
		"inner": {"status": "done", "phone": "+1415%07d", "%s": "%s", "deep": {"a": ["%s", {"b": "%s"}]}}, "unknown": "%s", "list": ["%s", 4155551234567]}`,
		id(1), n, m("Body"), m("Name"), m("Host"), 31415000+n, m("Secret"), n, id(2), id(3), m("Query"), n, n, m("Key"), m("Unknown"), m("Deep"), m("Deeper"), m("Top"), m("Item"))
}

func TestScrubbed(t *testing.T) {
	kind, rng := made(t), rand.New(rand.NewPCG(1, 2))
	for n := range 50 {
		body := marked(n)
		if _, err := jsonspan.Document(body); err != nil {
			t.Fatal(err)
		}
		clean := scrub(rng, kind, body)
		if _, err := jsonspan.Document(clean); err != nil {
			t.Fatalf("not JSON any more: %v\n%s", err, clean)
		}
		for _, gone := range []string{"Marker", "Qq", "abcdef0", "314150", "415555", "日"} {
			if bytes.Contains(clean, []byte(gone)) {
				t.Fatalf("%q is left in %s", gone, clean)
			}
		}
		for _, kept := range []string{`"status": "completed"`, `"uri": "/2010-04-01/Things/TH`, `.json?To=`, `"inner": {"status": "done", "phone": "+`, `"sid": "TH`} {
			if !bytes.Contains(clean, []byte(kept)) {
				t.Fatalf("%q is not in %s", kept, clean)
			}
		}
	}
}

func TestScrubbedOutside(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	clean := string(scrubOutside(rng, []byte(`{"first_page_uri":"/2010-04-01/Accounts/AC00000000000000000000000000000001/Calls.json?To=%2B14155550123&Page=0", "name" : "Marker", "things":[, , ],"total":14155550123,"page":0}`)))
	for _, gone := range []string{"4155", "Marker", "00000001"} {
		if strings.Contains(clean, gone) {
			t.Errorf("%q is left in %s", gone, clean)
		}
	}
	for _, kept := range []string{`{"first_page_uri":"/2010-04-01/Accounts/AC`, `/Calls.json?To=%`, `"things":[, , ],"total":`, `"page":0}`} {
		if !strings.Contains(clean, kept) {
			t.Errorf("%q is not in %s", kept, clean)
		}
	}
}

// A dictionary that was really trained holds no marker, and no run of eight
// bytes of one.
func TestDictionaryHoldsNobodysData(t *testing.T) {
	kind := &kindRow{spec: made(t)}
	var samples []sample
	var markers []string
	for n := range 240 {
		body := marked(n)
		samples = append(samples, sample{entry: entry{record: int64(n), id: fmt.Sprintf("TH%032x", 0xabcdef0123+n*100+1), body: body}})
		var leaves map[string]any
		if err := json.Unmarshal(body, &leaves); err != nil {
			t.Fatal(err)
		}
		for name, v := range leaves {
			if s, ok := v.(string); ok && name != "status" && name != "uri" {
				markers = append(markers, s)
			}
		}
	}
	body, saves, err := buildDictionary((&DB{}).bodyTrial(kind, samples)())
	if err != nil || saves < 0.1 {
		t.Fatalf("saves %.2f, %v", saves, err)
	}
	if bytes.Contains(body, []byte("Marker")) || bytes.Contains(body, []byte("abcdef0")) {
		t.Error("a marker is in the dictionary")
	}
	for _, m := range markers {
		for i := 0; i+8 <= len(m); i++ {
			// The constant parts of the made-up values are no one's data.
			if part := m[i : i+8]; strings.Trim(part, "0") != "" && bytes.Contains(body, []byte(part)) {
				t.Fatalf("%q of %q is in the dictionary", part, m)
			}
		}
	}
	if !bytes.Contains(body, []byte(`"status": "completed"`)) {
		t.Error("the dictionary does not hold what all bodies share")
	}
}

// What is odd gives no dictionary, and no panic.
func TestOddSamplesGiveNoDictionary(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	noise := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		return b
	}
	for name, sampled := range map[string]func(i int) []byte{
		"noise": func(int) []byte { return noise(500) },
		"empty": func(int) []byte { return []byte("{}") },
		"tiny":  func(i int) []byte { return fmt.Appendf(nil, "%d", i%10) },
	} {
		var samples []sample
		for i := range 240 {
			samples = append(samples, sample{entry: entry{record: int64(i), body: sampled(i)}})
		}
		body, saves, err := buildDictionary((&DB{}).bodyTrial(&kindRow{spec: made(t)}, samples)())
		if err == nil && saves < 0.1 {
			t.Errorf("%s: a dictionary of %d bytes that saves %.2f", name, len(body), saves)
		}
	}
	if _, _, err := tryDictionary(func() ([]byte, error) { panic("odd") }, nil); err == nil {
		t.Error("a panic is no error")
	}
	if _, _, err := buildDictionary(trial{size: 1000}); err == nil {
		t.Error("nothing gave a dictionary")
	}
}
