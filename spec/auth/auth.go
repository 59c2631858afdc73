// Auth: how requests carry a credential, to the upstream and to the drop-in port.

// Package auth implements how requests carry a credential. It parses the styles of a spec, signs requests,
// finds the credentials in them and removes them.
package auth

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"

	"understudy"
	"understudy/kit/suggest"
)

// Auth says how requests carry a credential. A style is one of
//
//	basic               user and secret (RFC 7617)
//	basic {secret}:x    the same, with the secret as user name and x as password; x:{secret} too
//	bearer, token       Authorization: Bearer SECRET (RFC 6750), Authorization: token SECRET
//	header NAME [WORD]  the secret in a header field, after a word if one is given
//	header NAME FORM    a form with {secret} in it, such as Token token={secret}
//	query NAME          the secret in a parameter of the query
type Auth struct {
	// Style is used for requests to the upstream: none, a style, or several joined by " + ".
	Style string `yaml:"style"`
	// Callers are the styles that the drop-in port accepts. Default: the style in Style, or basic if Style is none.
	Callers []string `yaml:"callers"`
	// Refused are the statuses with which the upstream refuses the credential itself. Default: 401.
	Refused []int  `yaml:"refused"`
	Realm   string `yaml:"realm"` // the realm in the WWW-Authenticate header of a 401 response
	// Prefix begins the credentials that Understudy creates for programs, in the way of the upstream's own: the
	// user, or the secret if credentials have no user (HasUser).
	Prefix string `yaml:"prefix"`
}

// authStyles are the first words of the styles.
var authStyles = []string{"basic", "bearer", "token", "header", "query", "none"}

const (
	authorization = "Authorization"
	basicScheme   = "Basic"
	// MaxCredential is the maximum length in bytes of a header field or parameter with a credential.
	MaxCredential = 1 << 10
)

// Scheme is a parsed style: where a request carries a credential, and in which form.
type Scheme struct {
	Header string // the header field in canonical form, or "" if the credential is not in a header field
	Query  string // the query parameter, or "" if the credential is not in the query
	word   string // the text before the secret; for Basic, before the encoded user and password
	tail   string // the text after the secret
	user   string // for Basic, the fixed user name
	pass   string // for Basic, the fixed password
	half   string // for Basic, which half is the secret: "user", "password", or "" for both
}

// readScheme parses a style.
func readScheme(style string) (Scheme, error) {
	word, rest, _ := strings.Cut(strings.TrimSpace(style), " ")
	rest = strings.TrimSpace(rest)
	switch {
	case word == "basic":
		return parseBasic(rest)
	case (word == "bearer" || word == "token") && rest == "":
		return Scheme{Header: authorization, word: map[string]string{"bearer": "Bearer ", "token": "token "}[word]}, nil
	case word == "header":
		name, before, _ := strings.Cut(rest, " ")
		if name == "" || strings.ContainsFunc(name, IsOddInName) {
			return Scheme{}, fmt.Errorf("%q is not the name of a header; write header NAME", name)
		}
		before, tail, form := strings.Cut(before, "{secret}")
		if before != "" && !form {
			before += " "
		}
		if form && strings.ContainsAny(before+tail, "{}") {
			return Scheme{}, fmt.Errorf("%q: write {secret} exactly once", rest)
		}
		if strings.ContainsFunc(before+tail, func(r rune) bool { return r < ' ' || r > '~' }) ||
			strings.EqualFold(strings.TrimSpace(before), basicScheme) {
			return Scheme{}, fmt.Errorf("%q cannot stand before the secret; write printable ASCII characters and not Basic", before)
		}
		return Scheme{Header: textproto.CanonicalMIMEHeaderKey(name), word: before, tail: tail}, nil
	case word == "query" && rest != "" && !strings.ContainsAny(rest, " &=") && !strings.HasPrefix(rest, understudy.OwnPrefix):
		return Scheme{Query: rest}, nil
	}
	return Scheme{}, fmt.Errorf("the style is not known; write basic, bearer, token, header NAME, query NAME or none%s", suggest.Hint(word,
		authStyles))
}

// parseBasic parses the rest of a style after the word basic.
func parseBasic(form string) (Scheme, error) {
	s := Scheme{Header: authorization, word: basicScheme + " "}
	if form == "" {
		return s, nil
	}
	user, pass, ok := strings.Cut(form, ":")
	switch {
	case ok && user == "{secret}" && !strings.ContainsAny(pass, "{}"):
		s.half, s.pass = "user", pass
	case ok && pass == "{secret}" && !strings.ContainsAny(user, "{}"):
		s.half, s.user = "password", user
	default:
		return s, fmt.Errorf("after basic, write {secret}:PASSWORD or USER:{secret}")
	}
	return s, nil
}

// IsOddInName reports whether a character is not allowed in the name of a header field.
func IsOddInName(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_')
}

// Check checks every style and returns the header fields and parameters with credentials, without Authorization.
func (a *Auth) Check() (Carriers, error) {
	var none Carriers
	if a.Style == "" {
		return none, errors.New("auth.style is missing; write basic, bearer, token, header NAME, query NAME or none")
	}
	sent, err := a.ParseSent()
	if err != nil {
		return none, fmt.Errorf("auth.style %q: %w", a.Style, err)
	}
	taken, err := a.ParseAccepted()
	if err != nil {
		return none, fmt.Errorf("auth.callers: %w", err)
	}
	for _, status := range a.Refused {
		if status < 400 || status > 499 || status == http.StatusTooManyRequests {
			return none, fmt.Errorf("auth.refused: %d is not allowed; write statuses from 400 to 499, but not 429", status)
		}
	}
	return CarriersOf(slices.Concat(sent, taken)), nil
}

// IsRefusal reports whether a status means that the upstream refuses the credential itself. Any other refusal
// is about the request.
func (a *Auth) IsRefusal(status int) bool {
	if len(a.Refused) == 0 {
		return status == http.StatusUnauthorized
	}
	return slices.Contains(a.Refused, status)
}

// ParseSent returns the schemes with which requests to the upstream carry the source's credential.
func (a *Auth) ParseSent() (all []Scheme, err error) {
	if a.Style == "none" || a.Style == "" {
		return nil, nil
	}
	for style := range strings.SplitSeq(a.Style, " + ") {
		s, err := readScheme(style)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// ParseAccepted returns the schemes with which requests to the drop-in port may carry a credential.
func (a *Auth) ParseAccepted() (all []Scheme, err error) {
	if len(a.Callers) == 0 {
		if all, err = a.ParseSent(); err == nil && len(all) == 0 {
			all = []Scheme{{Header: authorization, word: basicScheme + " "}}
		}
		return all, err
	}
	for _, style := range a.Callers {
		s, err := readScheme(style)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", style, err)
		}
		all = append(all, s)
	}
	return all, nil
}

// HasUser reports whether the credentials of callers consist of a user and a secret, because the first accepted
// scheme is Basic. Otherwise the secret alone identifies the caller.
func HasUser(taken []Scheme) bool { return len(taken) > 0 && taken[0].isBasic() && taken[0].half == "" }

// IsSamePlace reports whether two schemes have the credential in the same header field or parameter.
func (s Scheme) IsSamePlace(other Scheme) bool {
	return s.Header == other.Header && s.Query == other.Query
}

func (s Scheme) isBasic() bool { return s.word == basicScheme+" " }

// Sign adds a credential to a request and replaces an existing one.
func (s Scheme) Sign(r *http.Request, user, secret string) {
	switch {
	case s.Query != "":
		u := *r.URL // a copy, because r.URL may be shared with another request
		if u.RawQuery = dropParams(u.RawQuery, []string{s.Query}); u.RawQuery != "" {
			u.RawQuery += "&"
		}
		u.RawQuery += url.QueryEscape(s.Query) + "=" + url.QueryEscape(secret)
		r.URL = &u
	case s.isBasic():
		r.Header.Set(authorization, s.word+base64.StdEncoding.EncodeToString([]byte(s.pair(user, secret))))
	default:
		r.Header[s.Header] = []string{s.word + secret + s.tail}
	}
}

// pair returns the text that Basic encodes.
func (s Scheme) pair(user, secret string) string {
	switch s.half {
	case "user":
		return secret + ":" + s.pass
	case "password":
		return s.user + ":" + secret
	}
	return user + ":" + secret
}

// CanCarry reports whether the secret arrives unchanged. HTTP removes spaces at both ends of a header field.
func (s Scheme) CanCarry(secret string) bool {
	value := s.word + secret + s.tail
	return s.Query != "" || s.isBasic() || strings.Trim(value, " ") == value
}

// WireForm returns the encoded credential as a request contains it, or "" if a request contains the secret itself.
func (s Scheme) WireForm(user, secret string) string {
	switch {
	case s.Query != "":
		return url.QueryEscape(secret)
	case s.isBasic():
		return base64.RawStdEncoding.EncodeToString([]byte(s.pair(user, secret)))
	}
	return ""
}

// Read extracts user and secret from a value at the scheme's place. ok is false for a value of another scheme.
// buf must have room for the value. The results may point into buf.
func (s Scheme) Read(buf []byte, value string) (user, secret []byte, ok bool) {
	word, tail := strings.TrimSuffix(s.word, `"`), strings.TrimPrefix(s.tail, `"`)
	if n := len(word); n > 0 {
		if len(value) < n || !strings.EqualFold(value[:n], word) {
			return nil, nil, false
		}
		value = strings.Trim(value[n:], " ")
	}
	if value, ok = strings.CutSuffix(value, tail); !ok {
		return nil, nil, false
	}
	if strings.HasSuffix(word, "=") { // a parameter such as token=VALUE, with or without quotes (RFC 9110, 11.2)
		value = strings.Trim(value, `"`)
	}
	if value == "" {
		return nil, nil, false
	}
	if !s.isBasic() {
		return nil, buf[:copy(buf, value)], true
	}
	text, err := base64.StdEncoding.AppendDecode(buf[:0], []byte(value))
	if err != nil {
		return nil, nil, false
	}
	i := slices.Index(text, ':')
	switch {
	case i < 0 || s.half == "user" && i == 0:
		return nil, nil, false
	case s.half == "user":
		return nil, text[:i], true
	case s.half == "password":
		return nil, text[i+1:], true
	}
	return text[:i], text[i+1:], true
}

// Challenge returns the challenge of a 401 for the scheme (RFC 9110, 11.6.1). Schemes with a header field or a
// parameter have no registered name.
func (s Scheme) Challenge(realm string) string {
	switch {
	case s.Query != "":
		return fmt.Sprintf("ApiKey realm=%q, in=\"query\", name=%q", realm, s.Query)
	case s.Header == authorization && s.word != "":
		scheme, _, _ := strings.Cut(s.word, " ")
		return fmt.Sprintf("%s realm=%q", scheme, realm)
	}
	return fmt.Sprintf("ApiKey realm=%q, in=\"header\", name=%q", realm, s.Header)
}

// Carriers are the header fields and parameters that carry credentials, without Authorization.
type Carriers struct{ Headers, Params []string }

// CarriersOf returns the carriers of the schemes.
func CarriersOf(all []Scheme) (c Carriers) {
	for _, s := range all {
		switch {
		case s.Query != "" && !slices.Contains(c.Params, s.Query):
			c.Params = append(c.Params, s.Query)
		case s.Header != "" && s.Header != authorization && !slices.Contains(c.Headers, s.Header):
			c.Headers = append(c.Headers, s.Header)
		}
	}
	return c
}

// Strip returns a request without the credentials of the carriers. So no later code can log a key, forward it
// or make it part of a name. r is not changed.
func (c Carriers) Strip(r *http.Request) *http.Request {
	head, query, asked := false, r.URL.RawQuery, r.RequestURI
	for _, name := range c.Headers {
		head = head || len(r.Header[name]) > 0
	}
	if len(c.Params) > 0 {
		query = dropParams(query, c.Params)
		if path, raw, ok := strings.Cut(asked, "?"); ok {
			if asked = path; dropParams(raw, c.Params) != "" {
				asked += "?" + dropParams(raw, c.Params)
			}
		}
	}
	if !head && query == r.URL.RawQuery && asked == r.RequestURI {
		return r
	}
	out, u := *r, *r.URL
	out.URL, out.RequestURI, u.RawQuery = &u, asked, query
	if head {
		out.Header = r.Header.Clone()
		for _, name := range c.Headers {
			delete(out.Header, name)
		}
	}
	return &out
}

// CopyParams adds the credentials in the query of from to the request to. It copies nothing else.
func (c Carriers) CopyParams(to, from *http.Request) {
	rest := strings.Split(dropParams(from.URL.RawQuery, c.Params), "&")
	for piece := range strings.SplitSeq(from.URL.RawQuery, "&") {
		if len(rest) > 0 && rest[0] == piece {
			rest = rest[1:]
			continue
		}
		sign := "?"
		if to.URL.RawQuery != "" {
			to.URL.RawQuery, sign = to.URL.RawQuery+"&", "&"
		}
		to.URL.RawQuery += piece
		to.RequestURI += sign + piece
	}
}

// dropParams returns a raw query without the named parameters, in any escaping and letter case: a misspelled
// key is removed too.
func dropParams(raw string, names []string) string {
	if raw == "" || len(names) == 0 {
		return raw
	}
	pieces := strings.Split(raw, "&")
	kept := slices.DeleteFunc(pieces, func(piece string) bool {
		name := paramName(piece)
		return slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, name) })
	})
	return strings.Join(kept, "&")
}

func paramName(piece string) string {
	name, _, _ := strings.Cut(piece, "=")
	if plain, err := url.QueryUnescape(name); err == nil {
		return plain
	}
	return name
}

// Values returns the non-empty values of the scheme's parameter in a raw query. A value with an invalid escape is
// returned without decoding.
func (s Scheme) Values(raw string) (all []string) {
	for piece := range strings.SplitSeq(raw, "&") {
		if paramName(piece) != s.Query {
			continue
		}
		_, value, _ := strings.Cut(piece, "=")
		if plain, err := url.QueryUnescape(value); err == nil {
			value = plain
		}
		if value != "" {
			all = append(all, value)
		}
	}
	return all
}
