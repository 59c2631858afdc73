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
		"Send `Authorization: Bearer <key>`":            "bearer",
		"The key with format `GenieKey {api_key}`":      "header Authorization GenieKey",
		"The API Key with format Token token=<API_KEY>": "header Authorization Token token={secret}",
		"token $API_TOKEN":                              "token",
		"Authorization: Token <your token>":             "header Authorization Token",
		"Basic <user and password in base64>":           "basic",
		"Use your key.":                                 "bearer",
		"":                                              "bearer",
		"Write SSWS YOUR_KEY there, not a Bearer token": "header Authorization SSWS",
	} {
		draft := drafted(t, strings.Replace(headered("", "", ""), `"paths"`, `"security":[{"k":[]}],"components":{"securitySchemes":{"k":
			{"type":"apiKey","in":"header","name":"Authorization","description":"`+text+`"}}},"paths"`, 1))
		if got := drawnSpec(t, draft).Auth.Style; got != want {
			t.Errorf("%q: the style is %q, want %q", text, got, want)
		}
		if said := hasDoubt(draft, "auth: ", "Bearer is likely"); said != (text == "" || text == "Use your key.") {
			t.Errorf("%q: a doubt says that the word is not known: %v", text, said)
		}
	}
}
