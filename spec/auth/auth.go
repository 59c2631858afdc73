// Auth: how requests carry a credential, to upstream and to the drop-in port.

// Package auth says how requests carry a credential: it reads the styles of a spec, signs
// requests, finds the credentials in them and takes them out.
package auth

import (
	"encoding/base64"
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
//	header NAME [WORD]  the secret in a header field, behind a word if there is one
//	header NAME FORM    a form with {secret} in it, such as Token token={secret}
//	query NAME          the secret in a parameter of the query
type Auth struct {
	// Style is what upstream is sent: none, a style, or several joined by " + ".
	Style string `yaml:"style"`
	// Callers are the styles that the drop-in port takes. Default: that of Style, and basic
	// where upstream takes none.
	Callers []string `yaml:"callers"`
	// Refused are the statuses by which upstream refuses the credential itself. Default: 401.
	Refused []int  `yaml:"refused"`
	Realm   string `yaml:"realm"` // of the WWW-Authenticate challenge
	// Prefix begins what we make for programs, as upstream's own do: the user, or the secret
	// where credentials have no user (HasUser).
	Prefix string `yaml:"prefix"`
}

// authStyles begin the styles in which requests carry a credential.
var authStyles = []string{"basic", "bearer", "token", "header", "query", "none"}

const (
	authorization = "Authorization"
	basicScheme   = "Basic"
	// MaxCredential bounds the header field or the parameter with a credential, in bytes.
	MaxCredential = 1 << 10
)

// Scheme is a style that was read: where a request carries a credential, and in which form.
type Scheme struct {
	Header string // the field, in its canonical form; "" without one
	Query  string // the parameter; "" without one
	word   string // before the secret; Basic: user and password follow
	tail   string // behind the secret
	user   string // Basic: the fixed user name
	pass   string // Basic: the fixed password
	half   string // Basic: which half is the secret: "" user and password, "user", "password"
}

// readScheme reads a style.
func readScheme(style string) (Scheme, error) {
	word, rest, _ := strings.Cut(strings.TrimSpace(style), " ")
	rest = strings.TrimSpace(rest)
	switch {
	case word == "basic":
		return basicOf(rest)
	case (word == "bearer" || word == "token") && rest == "":
		return Scheme{Header: authorization, word: map[string]string{"bearer": "Bearer ", "token": "token "}[word]}, nil
	case word == "header":
		name, before, _ := strings.Cut(rest, " ")
		if name == "" || strings.ContainsFunc(name, IsOddInName) {
			return Scheme{}, fmt.Errorf("%q: want the name of a header", name)
		}
		before, tail, form := strings.Cut(before, "{secret}")
		if before != "" && !form {
			before += " "
		}
		if form && strings.ContainsAny(before+tail, "{}") {
			return Scheme{}, fmt.Errorf("%q: want {secret} once", rest)
		}
		if strings.ContainsFunc(before+tail, func(r rune) bool { return r < ' ' || r > '~' }) ||
			strings.EqualFold(strings.TrimSpace(before), basicScheme) {
			return Scheme{}, fmt.Errorf("%q: want another word before the secret", before)
		}
		return Scheme{Header: textproto.CanonicalMIMEHeaderKey(name), word: before, tail: tail}, nil
	case word == "query" && rest != "" && !strings.ContainsAny(rest, " &=") && !strings.HasPrefix(rest, understudy.OwnPrefix):
		return Scheme{Query: rest}, nil
	}
	return Scheme{}, fmt.Errorf("want basic, bearer, token, header NAME, query NAME or none%s", suggest.Hint(word, authStyles))
}

// basicOf reads what is behind the word basic.
func basicOf(form string) (Scheme, error) {
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
		return s, fmt.Errorf("behind basic want {secret}:PASSWORD or USER:{secret}")
	}
	return s, nil
}

func IsOddInName(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_')
}

// Check reads every style and returns where credentials stand, beside Authorization.
func (a *Auth) Check() (Carriers, error) {
	var none Carriers
	if a.Style == "" {
		return none, fmt.Errorf("auth.style %q: want basic, bearer, token, header NAME, query NAME or none", a.Style)
	}
	sent, err := a.Sent()
	if err != nil {
		return none, fmt.Errorf("auth.style %q: %w", a.Style, err)
	}
	taken, err := a.Taken()
	if err != nil {
		return none, fmt.Errorf("auth.callers: %w", err)
	}
	for _, status := range a.Refused {
		if status < 400 || status > 499 || status == http.StatusTooManyRequests {
			return none, fmt.Errorf("auth.refused: %d: want statuses from 400 to 499, and not 429", status)
		}
	}
	return CarriersOf(slices.Concat(sent, taken)), nil
}

// Refuses reports whether a status says that upstream refuses the credential itself. Any
// other refusal is about the request.
func (a *Auth) Refuses(status int) bool {
	if len(a.Refused) == 0 {
		return status == http.StatusUnauthorized
	}
	return slices.Contains(a.Refused, status)
}

// Sent are the schemes in which requests to upstream carry the source's credential.
func (a *Auth) Sent() (all []Scheme, err error) {
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

// Taken are the schemes in which requests to the drop-in port may carry a credential.
func (a *Auth) Taken() (all []Scheme, err error) {
	if len(a.Callers) == 0 {
		if all, err = a.Sent(); err == nil && len(all) == 0 {
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

// HasUser reports whether the credentials of callers have a user beside the secret: the
// first scheme they may use is Basic. Otherwise the secret alone says who asks.
func HasUser(taken []Scheme) bool { return len(taken) > 0 && taken[0].isBasic() && taken[0].half == "" }

// Beside reports whether two schemes have the credential in the same place.
func (s Scheme) Beside(other Scheme) bool { return s.Header == other.Header && s.Query == other.Query }

func (s Scheme) isBasic() bool { return s.word == basicScheme+" " }

// Sign adds a credential to a request, in place of one that is there.
func (s Scheme) Sign(r *http.Request, user, secret string) {
	switch {
	case s.Query != "":
		u := *r.URL // what it was made of may be asked for elsewhere
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

// pair is what Basic encodes.
func (s Scheme) pair(user, secret string) string {
	switch s.half {
	case "user":
		return secret + ":" + s.pass
	case "password":
		return s.user + ":" + secret
	}
	return user + ":" + secret
}

// Carries reports whether the secret arrives as it is: HTTP cuts blanks off both ends of a field.
func (s Scheme) Carries(secret string) bool {
	value := s.word + secret + s.tail
	return s.Query != "" || s.isBasic() || strings.Trim(value, " ") == value
}

// Wire is the form in which the credential stands in a request, where that is not the
// secret itself; else "".
func (s Scheme) Wire(user, secret string) string {
	switch {
	case s.Query != "":
		return url.QueryEscape(secret)
	case s.isBasic():
		return base64.RawStdEncoding.EncodeToString([]byte(s.pair(user, secret)))
	}
	return ""
}

// Read finds user and secret in a value that stands where the scheme has it. ok is false
// for a value of another scheme. buf has room for the value; the results may point into it.
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
	if strings.HasSuffix(word, "=") { // a parameter's value, quoted or not (RFC 9110, 11.2)
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

// Challenge is the scheme as a 401 names it (RFC 9110, 11.6.1). A header field and a
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

// Carriers are where credentials stand in requests, beside Authorization.
type Carriers struct{ Headers, Params []string }

// CarriersOf are those of some schemes.
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

// Without is a request without the credentials that stand beside Authorization. Nothing that
// comes after it can log a key, pass it on or make it part of a name. r does not change.
func (c Carriers) Without(r *http.Request) *http.Request {
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

// Onto has a request carry the credentials in another one's query, and nothing else of it.
func (c Carriers) Onto(to, from *http.Request) {
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

// dropParams is a raw query without the parameters of some names, however they are escaped
// and in whichever case: a misspelt key is one, too.
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

// Values are the values of a parameter in a raw query, without empty ones. A value that is
// not well escaped is there as it is written.
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
