// Header fields: what a drawn spec adds to requests, and what it leaves to callers.

package infer_test

import (
	"slices"
	"strings"
	"testing"

	"understudy/internal/infer"
	"understudy/spec"
	"understudy/upstream"
)

// drawnSpec is the spec of a draft.
func drawnSpec(t *testing.T, draft *infer.Draft) *spec.Spec {
	t.Helper()
	sp, err := upstream.ReadSpec("draft.yaml", draft.YAML)
	if err != nil {
		t.Fatalf("%v\n%s", err, draft.YAML)
	}
	return sp
}

// hasDoubt reports whether one of a draft's doubts has all of the texts.
func hasDoubt(draft *infer.Draft, texts ...string) bool {
	return slices.ContainsFunc(draft.Unsure, func(one string) bool {
		return !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(one, text) })
	})
}

// headered is a document with a list, a read of one record and a DELETE. Of the parameters that are
// header fields the first are of the list, the second of the record and the third of the DELETE.
func headered(list, one, remove string) string {
	const row = `{"type":"object","properties":{"id":{"type":"string"}}}`
	return `{"openapi":"3.0.3","servers":[{"url":"https://api.desk.example"}],"paths":{
		"/things":{"get":{"parameters":[` + list + `],"responses":{"200":{"content":{"application/json":{"schema":{"type":"array",
			"items":` + row + `}}}}}}},
		"/things/{id}":{"get":{"parameters":[` + one + `],"responses":{"200":{"content":{"application/json":{"schema":` + row + `}}}}},
		"delete":{"parameters":[` + remove + `],"responses":{"202":{}}}}}}`
}

// TestWhatOneOperationDemandsIsNotSentWithAll draws header fields that some operations demand: none is
// sent by itself, a doubt names each, and a caller's own goes upstream.
func TestWhatOneOperationDemandsIsNotSentWithAll(t *testing.T) {
	const (
		dangerous = `{"name":"X-Dangerous","in":"header","required":true,"schema":{"type":"string","enum":["true"]}}`
		early     = `{"name":"X-Early","in":"header","required":true,"schema":{"type":"string","default":"new-lists"}}`
		boolean   = `{"name":"X-Dangerous","in":"header","required":true,"schema":{"type":"boolean"},"example":true}`
		force     = `{"name":"X-Force","in":"header","required":true,"schema":{"type":"string","enum":["everything"]}}`
		described = `{"name":"X-Mode","in":"header","required":true,"description":"Confirms that records may be destroyed",
			"schema":{"type":"string","enum":["live"]}}`
		prose = `{"name":"X-Version","in":"header","required":true,"schema":{"type":"string","example":"The version of the API"}}`
	)
	for name, one := range map[string]struct{ list, record, remove, doubt string }{
		"a confirmation of one DELETE":          {remove: dangerous, doubt: "X-Dangerous confirms"},
		"a boolean with an example":             {remove: boolean, doubt: "X-Dangerous confirms"},
		"a confirmation that all demand":        {dangerous, dangerous, dangerous, "X-Dangerous confirms"},
		"a confirmation by its name":            {force, force, force, "X-Force confirms"},
		"a confirmation by its description":     {described, described, described, "X-Mode confirms"},
		"an early access of one list":           {list: early, doubt: `X-Early: "new-lists" is required by 1 of 3 operations`},
		"a sentence in place of a value":        {prose, prose, prose, "X-Version is required, but its value is not known"},
		"a version of reads alone, not of each": {list: early, record: early, doubt: `X-Early: "new-lists" is required by 2 of 3 operations`},
	} {
		draft := drafted(t, headered(one.list, one.record, one.remove))
		sp := drawnSpec(t, draft)
		if len(sp.Headers.Send) > 0 {
			t.Errorf("%s: sent is %v", name, sp.Headers.Send)
		}
		if !hasDoubt(draft, one.doubt) {
			t.Errorf("%s: no doubt has %q: %q", name, one.doubt, draft.Unsure)
		}
		if len(sp.Headers.Write)+len(sp.Headers.Key) != 1 {
			t.Errorf("%s: write is %v, key %v: want it in one of them", name, sp.Headers.Write, sp.Headers.Key)
		}
	}
}

// TestWhatEveryOperationDemandsIsSent draws a version and a vendor's media type that all demand.
func TestWhatEveryOperationDemandsIsSent(t *testing.T) {
	const (
		version = `{"name":"Desk-Version","in":"header","required":true,"schema":{"type":"string","enum":["2024-01-01","2024-06-01"]}}`
		only    = `{"name":"Desk-Version","in":"header","required":true,"schema":{"type":"string","enum":["2024-01-01"]}}`
		example = `{"name":"Desk-Version","in":"header","required":true,"example":"2022-06-28","schema":{"type":"string"}}`
		accept  = `{"name":"Accept","in":"header","required":true,"schema":{"type":"string","default":"application/vnd.desk+json"}}`
	)
	for param, want := range map[string]string{version: "2024-06-01", only: "2024-01-01", example: "2022-06-28"} {
		sp := drawnSpec(t, drafted(t, headered(param, param, param)))
		if got := sp.Headers.Send["Desk-Version"]; got != want {
			t.Errorf("%s: sent is %q, want %q", param, got, want)
		}
	}
	sp := drawnSpec(t, drafted(t, headered(accept, accept, accept)))
	if sp.Headers.Send["Accept"] != "application/vnd.desk+json" {
		t.Errorf("sent is %v", sp.Headers.Send)
	}
	if same := sp.Headers.Key["Accept"]; !slices.Contains(same, "application/json") || !slices.Contains(same, "application/vnd.desk+json") {
		t.Errorf("the same as no Accept are %v", same)
	}
	draft := drafted(t, headered(accept, accept, ""))
	sp = drawnSpec(t, draft)
	if _, keyed := sp.Headers.Key["Accept"]; !keyed || len(sp.Headers.Send) > 0 {
		t.Errorf("an Accept that two of three demand: sent is %v, key %v", sp.Headers.Send, sp.Headers.Key)
	}
	if !hasDoubt(draft, `Accept: "application/vnd.desk+json" is required by 2 of 3 operations`, "headers.send") {
		t.Errorf("no doubt names the line to write: %q", draft.Unsure)
	}
}

// TestWhatMayChangeARequestIsNotSent draws header fields that every operation demands with one value: sent is what plainly
// identifies the API or its client. For the others a doubt has the line to write.
func TestWhatMayChangeARequestIsNotSent(t *testing.T) {
	for name, sent := range map[string]bool{
		"X-Dry-Run: false": false, "X-Validate-Only: false": false, "X-Sandbox: off": false, "X-Safe-Mode: off": false, "X-Cascade: all": false,
		"X-Charge: now": false, "X-Consent: given": false, "X-Irreversible: understood": false, "X-Mode: live": false, "X-Notify: all": false,
		"X-Impersonate-User: admin": false, "X-User: admin": false, "X-Tenant: acme": false, "X-Hard-Delete: soft": false,
		"Prefer: return=minimal": false, "X-Client-Id: your-id": false, "X-App: your-app": false, "X-Version: latest": false,
		"X-Platform: sandbox": false, "X-Client: true": false, "X-Force-Version: 2": false, "X-Delete-Date: 2024-01-01": false,
		"X-Consent-Version: 1": false, "X-Ack-Version: 1": false, "X-Wipe-Revision: 3": false, "X-Client-Name: yes-delete-everything": false,
		"X-I-Understand-Version: 1": false, "X-Accept-Terms-Version: 2024-01-01": false, "Dropbox-Version: 2": true,
		"X-Api-Version: 2022-11-28": true, "X-Github-Api-Version: 2022-11-28": true, "Notion-Version: 2022-06-28": true, "Api-Version: v1": true,
		"Stripe-Version: 2024-06-20": true, "Linkedin-Version: 202401": true, "X-Api-Version: 1": true, "X-Version: V2": true,
		"X-Api-Revision: 3": true, "X-Api-Date: 2024-01-01": true, "X-Client-Name: web": true, "X-Application: desk": true,
		"Accept: application/vnd.desk+json;version=2": true,
	} {
		name, value, _ := strings.Cut(name, ": ")
		for form, schema := range map[string]string{"enum": `"enum":["` + value + `"]`, "default": `"default":"` + value + `"`} {
			param := `{"name":"` + name + `","in":"header","required":true,"schema":{"type":"string",` + schema + `}}`
			draft := drafted(t, headered(param, param, param))
			h := drawnSpec(t, draft).Headers
			if (h.Send[name] == value) != sent || !sent && len(h.Send) > 0 {
				t.Errorf("%s: %s by its %s: sent is %v, want it there: %v", name, value, form, h.Send, sent)
			}
			if _, passed := h.Key[name]; !sent && !passed {
				t.Errorf("%s: %s by its %s: a caller's own is not passed on: %v", name, value, form, h.Key)
			}
			if !sent && !hasDoubt(draft, `send: {`+name+`: "`+value+`"}`) && !hasDoubt(draft, name+" confirms what a request does") {
				t.Errorf("%s: %s by its %s: no doubt has the line to write: %q", name, value, form, draft.Unsure)
			}
		}
	}
}

// TestDefaultsThatDifferAreNone draws an optional field with one default, and with two.
func TestDefaultsThatDifferAreNone(t *testing.T) {
	const a = `{"name":"X-Region","in":"header","schema":{"type":"string","default":"eu"}}`
	const b = `{"name":"X-Region","in":"header","schema":{"type":"string","default":"us"}}`
	if same := drawnSpec(t, drafted(t, headered(a, a, ""))).Headers.Key["X-Region"]; !slices.Equal(same, []string{"eu"}) {
		t.Errorf("the same as none are %v, want eu", same)
	}
	if same := drawnSpec(t, drafted(t, headered(a, b, ""))).Headers.Key["X-Region"]; len(same) > 0 {
		t.Errorf("the same as none are %v, want nothing", same)
	}
}

// TestHTTPOfAPublicHostIsDrawnAsHTTPS draws documents whose server is without TLS.
func TestHTTPOfAPublicHostIsDrawnAsHTTPS(t *testing.T) {
	for server, want := range map[string]string{
		"http://api.desk.example": "https://api.desk.example", "http://203.0.113.7:8080": "https://203.0.113.7:8080",
		"http://127.0.0.1:4000": "http://127.0.0.1:4000", "http://localhost:4000": "http://localhost:4000", "http://10.0.0.1": "http://10.0.0.1",
		"http://[::1]:4000": "http://[::1]:4000", "http://desk.internal": "http://desk.internal", "http://desk": "http://desk",
	} {
		draft := drafted(t, strings.Replace(headered("", "", ""), "https://api.desk.example", server, 1))
		if got := drawnSpec(t, draft).Hosts[0].URL; got != want {
			t.Errorf("%s is drawn as %s, want %s", server, got, want)
		}
		if said := hasDoubt(draft, "hosts: ", "others could read the credential"); said == (server == want) {
			t.Errorf("%s: a doubt says so: %v", server, said)
		}
	}
	draft := drafted(t, `{"swagger":"2.0","host":"api.desk.example","schemes":["http"],"paths":{"/things":{"get":{"responses":{"200":
		{"schema":{"type":"array","items":{"type":"object","properties":{"id":{"type":"string"}}}}}}}}}}`)
	if got := drawnSpec(t, draft).Hosts[0].URL; got != "https://api.desk.example" {
		t.Errorf("schemes: [http] is drawn as %s", got)
	}
}

// TestAFieldOfWritesThatOnlyReadsTakeIsNotDoubted draws an Idempotency-Key of a read: nothing is said of it.
func TestAFieldOfWritesThatOnlyReadsTakeIsNotDoubted(t *testing.T) {
	const key = `{"name":"Idempotency-Key","in":"header","schema":{"type":"string"}}`
	for params, doubt := range map[string]string{key: "too many", "": "is refused until"} {
		if draft := drafted(t, headered(params, "", "")); hasDoubt(draft, doubt) {
			t.Errorf("a doubt says %q: %q", doubt, draft.Unsure)
		}
	}
}
