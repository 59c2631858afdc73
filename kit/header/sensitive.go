// Sensitive: names of fields that may say who asks, or for what.

package header

import (
	"slices"
	"strings"
)

// sensitive are the words of names that may say who asks, whose data are meant, or that another
// address or method is.
var sensitive = []string{"account", "admin", "authorized", "behalf", "cert", "cookie", "cookie2", "credential", "credentials", "customer",
	"delegate", "delegated", "dpop", "email", "forwarded", "groups", "host", "identity", "impersonate", "impersonated", "jwt", "login",
	"member", "method", "oidc", "org", "organisation", "organization", "original", "override", "owner", "passwd", "password", "path",
	"principal", "project", "remote", "rewrite", "role", "roles", "saml", "scope", "secret", "sid", "signature", "subaccount", "sudo",
	"team", "tenant", "uid", "uri", "url", "username", "workspace"}

// credentials are ends of words: an AccessToken, an ApiKey.
var credentials = []string{"auth", "authorization", "key", "session", "token", "user"}

// Sensitive reports whether a word of a field's name may say who asks, whose data are meant, or
// that another address or method is.
func Sensitive(name string) bool {
	name = strings.ToLower(name)
	if name == "idempotency-key" || strings.HasSuffix(name, "user-agent") || strings.HasPrefix(name, "sec-") {
		return false
	}
	for word := range strings.FieldsFuncSeq(name, func(r rune) bool { return r == '-' || r == '_' || r == '.' }) {
		noun := strings.TrimSuffix(word, "id") // userid
		switch {
		case slices.Contains(sensitive, word), slices.Contains(sensitive, noun):
			return true
		case strings.HasPrefix(word, "auth") && !strings.HasPrefix(word, "author"):
			return true
		case slices.ContainsFunc(credentials, func(end string) bool { return strings.HasSuffix(noun, end) }):
			return true
		}
	}
	return false
}
