// Sensitive: recognizes header names that may carry an identity, a credential or another target of the request.

package header

import (
	"slices"
	"strings"
)

// sensitiveWords are words in header names that may identify the sender or the owner of the data, or that name
// another address or method for the request.
var sensitiveWords = []string{
	"account", "admin", "authorized", "cert", "company", "consumer", "cookie", "cookie2", "credential", "credentials",
	"customer", "delegate", "delegated", "dpop", "email", "employee", "forwarded", "groups", "guest", "host", "identity",
	"jwt", "license", "login", "member", "merchant", "method", "msisdn", "oidc", "org", "organisation", "organization",
	"original", "override", "owner", "passwd", "password", "path", "patient", "person", "phone", "principal", "profile",
	"project", "remote", "rewrite", "role", "roles", "saml", "scope", "secret", "shop", "sid", "signature", "subaccount",
	"subject", "subscriber", "team", "tenant", "uid", "uri", "url", "username", "visitor", "workspace",
}

// deviceWords are words that are sensitive only together with "id". Many devices share a kind or a version, but an id
// identifies one of them.
var deviceWords = []string{"client", "device", "installation", "instance", "machine"}

// impersonatingWords are words of header fields with which a request names another sender than its own. A field also
// impersonates if a word of actingWords is directly beside a word of actorWords: As-User does, X-User-Id does not.
var (
	impersonatingWords = []string{"actas", "asuser", "behalf", "impersonate", "impersonated", "impersonation", "runas", "sudo"}
	actingWords        = []string{"act", "acting", "as", "assume", "assumed", "become", "effective", "override", "run", "switch"}
	actorWords         = []string{"account", "as", "identity", "login", "member", "principal", "role", "uid", "user", "username"}
)

// credentialEnds are the ends of words that name a credential, such as AccessToken or ApiKey.
var credentialEnds = []string{"auth", "authorization", "key", "session", "token", "user"}

// IsSensitive reports whether the name of a header field may identify the sender or the owner of the data, or
// may name another address or method for the request.
func IsSensitive(name string) bool {
	name = strings.ToLower(name)
	if name == "idempotency-key" || strings.HasSuffix(name, "user-agent") || strings.HasPrefix(name, "sec-") {
		return false
	}
	if IsImpersonating(name) {
		return true
	}
	before := ""
	for word := range strings.FieldsFuncSeq(name, isBetweenWords) {
		noun := strings.TrimSuffix(word, "id") // userid counts as the word user
		thing := before
		if before = word; noun != "" {
			thing = noun
		}
		switch {
		case noun != word && slices.Contains(deviceWords, thing):
			return true
		case slices.Contains(sensitiveWords, word), slices.Contains(sensitiveWords, noun):
			return true
		case strings.HasPrefix(word, "auth") && !strings.HasPrefix(word, "author"):
			return true
		case slices.ContainsFunc(credentialEnds, func(end string) bool { return strings.HasSuffix(noun, end) }):
			return true
		}
	}
	return false
}

// IsImpersonating reports whether the name of a header field says that the request acts for another sender.
func IsImpersonating(name string) bool {
	before := ""
	for word := range strings.FieldsFuncSeq(strings.ToLower(name), isBetweenWords) {
		if slices.Contains(impersonatingWords, word) || isActing(before, word) || isActing(word, before) {
			return true
		}
		before = word
	}
	return false
}

// isActing reports whether word is one of actingWords and actor is one of actorWords.
func isActing(word, actor string) bool {
	return slices.Contains(actingWords, word) && slices.Contains(actorWords, strings.TrimSuffix(actor, "id"))
}

// isBetweenWords reports whether a character separates the words of a field name.
func isBetweenWords(r rune) bool { return r == '-' || r == '_' || r == '.' }
