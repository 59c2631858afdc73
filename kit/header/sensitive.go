// Sensitive: names of fields that may say who asks, or for what.

package header

import (
	"slices"
	"strings"
)

// sensitive are the words of names that may say who asks, whose data are meant, or that another
// address or method is.
var sensitive = []string{"account", "admin", "authorized", "cert", "company", "consumer", "cookie", "cookie2", "credential", "credentials",
	"customer", "delegate", "delegated", "dpop", "email", "employee", "forwarded", "groups", "guest", "host", "identity", "jwt", "license",
	"login", "member", "merchant", "method", "msisdn", "oidc", "org", "organisation", "organization", "original", "override", "owner",
	"passwd", "password", "path", "patient", "person", "phone", "principal", "profile", "project", "remote", "rewrite", "role", "roles",
	"saml", "scope", "secret", "shop", "sid", "signature", "subaccount", "subject", "subscriber", "team", "tenant", "uid", "uri", "url",
	"username", "visitor", "workspace"}

// things have versions and kinds, which all share, and ids, which tell one from another.
var things = []string{"client", "device", "installation", "instance", "machine"}

// impersonating are words of the fields by which a request names another sender than its own. So
// does a field with a word of acting beside one of actors: As-User does, and X-User-Id does not.
var (
	impersonating = []string{"actas", "asuser", "behalf", "impersonate", "impersonated", "impersonation", "runas", "sudo"}
	acting        = []string{"act", "acting", "as", "assume", "assumed", "become", "effective", "override", "run", "switch"}
	actors        = []string{"account", "as", "identity", "login", "member", "principal", "role", "uid", "user", "username"}
)

// credentials are ends of words: an AccessToken, an ApiKey.
var credentials = []string{"auth", "authorization", "key", "session", "token", "user"}

// Sensitive reports whether a word of a field's name may say who asks, whose data are meant, or
// that another address or method is.
func Sensitive(name string) bool {
	name = strings.ToLower(name)
	if name == "idempotency-key" || strings.HasSuffix(name, "user-agent") || strings.HasPrefix(name, "sec-") {
		return false
	}
	if Impersonates(name) {
		return true
	}
	before := ""
	for word := range strings.FieldsFuncSeq(name, isBetweenWords) {
		noun := strings.TrimSuffix(word, "id") // userid
		thing := before
		if before = word; noun != "" {
			thing = noun
		}
		switch {
		case noun != word && slices.Contains(things, thing):
			return true
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

// Impersonates reports whether words of a field's name say that it names another sender than the
// request's own.
func Impersonates(name string) bool {
	before := ""
	for word := range strings.FieldsFuncSeq(strings.ToLower(name), isBetweenWords) {
		if slices.Contains(impersonating, word) || isActing(before, word) || isActing(word, before) {
			return true
		}
		before = word
	}
	return false
}

// isActing reports a word of acting and one of actors.
func isActing(word, actor string) bool {
	return slices.Contains(acting, word) && slices.Contains(actors, strings.TrimSuffix(actor, "id"))
}

// isBetweenWords reports a character that parts the words of a field's name.
func isBetweenWords(r rune) bool { return r == '-' || r == '_' || r == '.' }
