// Connect: the credential that a drawn spec sends, and how.

package infer_test

import (
	"strings"
	"testing"
)

// TestAKeyInAuthorizationIsSentBehindItsWord draws API keys in Authorization by how the document
// describes them.
func TestAKeyInAuthorizationIsSentBehindItsWord(t *testing.T) {
	for text, want := range map[string]string{
		"Send `Authorization: Bearer <key>`":                "bearer",
		"The key with format `GenieKey {api_key}`":          "header Authorization GenieKey",
		"The API Key with format Token token=<API_KEY>":     "header Authorization Token token={secret}",
		"token $API_TOKEN":                                  "token",
		"Authorization: Token <your token>":                 "header Authorization Token",
		"Basic <user and password in base64>":               "basic",
		"Use your key.":                                     "bearer",
		"":                                                  "bearer",
		"Write SSWS YOUR_KEY there, not a Bearer token":     "header Authorization SSWS",
		"Use the [key](#keys). `Authorization: Desk <key>`": "header Authorization Desk",
		"Of the {user}: Authorization: Token YOUR_KEY":      "header Authorization Token",
	} {
		draft := drafted(t, strings.Replace(headered("", "", ""), `"paths"`, `"security":[{"k":[]}],"components":{"securitySchemes":{"k":
			{"type":"apiKey","in":"header","name":"Authorization","description":"`+text+`"}}},"paths"`, 1))
		if got := drawnSpec(t, draft).Auth.Style; got != want {
			t.Errorf("%q: the style is %q, want %q", text, got, want)
		}
		if said := hasDoubt(draft, "auth: ", "the spec uses Bearer"); said != (text == "" || text == "Use your key.") {
			t.Errorf("%q: a doubt says that the word is not known: %v", text, said)
		}
	}
}

// TestAKeyThatOperationsTakeIsTheCredential draws documents without a security scheme, whose operations take a key.
func TestAKeyThatOperationsTakeIsTheCredential(t *testing.T) {
	draft := drafted(t, headered(`{"name":"x-api-key","in":"header","schema":{"type":"string"}}`, "", ""))
	if got := drawnSpec(t, draft); got.Auth.Style != "header X-Api-Key" || len(got.Headers.Key) > 0 {
		t.Errorf("a header: the style is %q, the key fields are %v", got.Auth.Style, got.Headers.Key)
	}
	query := headered(`{"name":"api_key","in":"query","schema":{"type":"string"}}`, "", "")
	if got := drawnSpec(t, drafted(t, query)).Auth.Style; got != "none" {
		t.Errorf("a parameter that nothing demands: the style is %q", got)
	}
	draft = drafted(t, strings.Replace(query, `"responses":{`, `"responses":{"401":{},`, 1))
	if got := drawnSpec(t, draft).Auth.Style; got != "query api_key" {
		t.Errorf("a parameter: the style is %q", got)
	}
}

// TestOneCredentialIsTakenBeforeTwoAtOnce draws a document that takes two keys at once, or a token.
func TestOneCredentialIsTakenBeforeTwoAtOnce(t *testing.T) {
	draft := drafted(t, strings.Replace(headered("", "", ""), `"paths"`, `"security":[{"a":[],"b":[]},{"t":[]}],
		"components":{"securitySchemes":
		{"a":{"type":"apiKey","in":"header","name":"X-Desk-Key"},
		"b":{"type":"apiKey","in":"header","name":"X-Desk-Application"},
		"t":{"type":"http","scheme":"bearer"}}},"paths"`, 1))
	if got := drawnSpec(t, draft).Auth.Style; got != "bearer" {
		t.Errorf("the style is %q", got)
	}
	if !hasDoubt(draft, "auth: ", "X-Desk-Key", "X-Desk-Application") {
		t.Errorf("no doubt names the other ways: %q", draft.Unsure)
	}
}
