// This file checks parameters with which a request to a generic source names another method.

package proxy

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"understudy"
	"understudy/kit/charset"
	"understudy/spec"
)

// checkOverride returns nil if no parameter of the query or the body names another method, or if the caller may
// send that other method too. Frameworks read such parameters (_method of Rails, Laravel and Symfony).
func (v generic) checkOverride(body []byte) error {
	if slices.Contains(v.exchange.proxy.o.Source.Spec.Headers.Pass, "X-Http-Method-Override") {
		return nil
	}
	r := v.exchange.r
	named := append(overridesOfForm(r.URL.RawQuery), overridesOfBody(r.Header["Content-Type"], r.Header["Content-Encoding"], body)...)
	if slices.Contains(named, anyMethod) {
		named = append(named, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete)
	}
	for _, other := range named {
		if other = strings.ToUpper(strings.TrimSpace(other)); other == r.Method || other == "" || other == anyMethod {
			continue
		}
		if read, _ := method(r.Method); read || r.Method == http.MethodOptions {
			return fmt.Errorf("proxy: %w: a parameter asks for another method; send the request with that method", understudy.ErrInvalid)
		}
		err := v.exchange.proxy.o.Gate.CheckWrite(v.exchange.caller, v.exchange.target, other)
		switch {
		case err != nil && slices.Contains(named, anyMethod):
			return fmt.Errorf("proxy: %w: the body's encoding could hide another method; send it unencoded, in UTF-8: %w",
				understudy.ErrForbidden, err)
		case err != nil:
			return err
		}
	}
	return nil
}

// anyMethod stands for all methods. A body that cannot be parsed with certainty may name any method.
const anyMethod = "*"

// overridesOfBody returns the methods that parameters in a body name. Frameworks differ in how they read a body
// whose content type is missing or malformed. Such a body is therefore read in every format.
func overridesOfBody(types, codings []string, body []byte) (methods []string) {
	if len(body) == 0 {
		return nil
	}
	kind, params, err := mime.ParseMediaType(strings.Join(types, ", "))
	unclear := err != nil || !strings.Contains(kind, "/")
	form, parts, text := strings.Contains(kind, "form-urlencoded"), strings.HasPrefix(kind, "multipart/"), strings.Contains(kind, "json")
	body, unpacked := unpack(codings, body)
	coded, known := charset.Guess(params["charset"], body)
	odd := !plainCharset.MatchString(params["charset"]) && !(text && known) || !unpacked
	if odd && (unclear || form || parts || text) || parts && !hasPlainParts(params["boundary"], body) {
		methods = append(methods, anyMethod)
	}
	if unclear || form {
		methods = append(methods, overridesOfForm(string(body))...)
	}
	if unclear || parts {
		methods = append(methods, overridesOfParts(body)...)
	}
	if unclear || text {
		text, _ := coded.Decode(body)
		if text == nil {
			text = body
		}
		methods = append(methods, overridesOfJSON(text)...)
	}
	return methods
}

// maxUnpacked is the maximum size of a decompressed body, in bytes.
const maxUnpacked = 8 << 20

// unpack returns a body without its content coding. ok is false, and the body unchanged, if servers could read
// another body. This is so for a coding other than gzip, for a second gzip stream after the first, and for more
// than maxUnpacked bytes.
func unpack(codings []string, body []byte) (plain []byte, ok bool) {
	switch strings.ToLower(strings.Trim(strings.Join(codings, ","), " ,")) {
	case "", "identity":
		return body, true
	case "gzip", "x-gzip":
	default:
		return body, false
	}
	in := bytes.NewReader(body) // a bytes.Reader is an io.ByteReader, so gzip does not read beyond the end of its stream
	packed, err := gzip.NewReader(in)
	if err != nil {
		return body, false
	}
	packed.Multistream(false)
	plain, err = io.ReadAll(io.LimitReader(packed, maxUnpacked+1))
	if err != nil || len(plain) > maxUnpacked || in.Len() > 0 {
		return body, false
	}
	return plain, true
}

// plainCharset matches the names of charsets whose first 128 characters are ASCII.
var plainCharset = regexp.MustCompile(`(?i)^(utf-?8|us-ascii|ascii|iso-8859-\d+|latin1|windows-125\d|)$`)

// plainDisposition matches a Content-Disposition that all parsers read alike.
var plainDisposition = regexp.MustCompile(`(?i)^form-data; *name="[^"\\\r\n]*"(; *filename="[^"\r\n]*")?(; *filename\*=[^;"\s]+)?$`)

// hasPlainParts reports whether all parsers read the names of a multipart body's parts alike.
func hasPlainParts(boundary string, body []byte) bool {
	in := multipart.NewReader(bytes.NewReader(body), boundary)
	for {
		part, err := in.NextRawPart()
		if err != nil {
			return err == io.EOF
		}
		named := part.Header["Content-Disposition"]
		if len(named) > 1 || len(named) == 1 && (!plainDisposition.MatchString(named[0]) || strings.Contains(named[0], "=?")) {
			return false
		}
	}
}

// overridesOfForm returns the methods that parameters of a query or a form name.
func overridesOfForm(pairs string) (methods []string) {
	given, _ := url.ParseQuery(strings.ReplaceAll(pairs, ";", "&")) // a pair that cannot be parsed names no method
	for name, values := range given {
		if isMethodParam(name) {
			methods = append(methods, values...)
		}
	}
	return methods
}

// partName matches the name in the header of a multipart part.
var partName = regexp.MustCompile(`(?i)name\*?\s*=\s*"?(?:[\w-]*'[\w-]*')?"?([^";\r\n]*)`)

// overridesOfParts returns the methods that the parts of a multipart body name. Every line that begins like a
// delimiter counts as one, and the lines of a part's header need not be valid.
func overridesOfParts(body []byte) (methods []string) {
	text := strings.ReplaceAll(string(body), "\r\n", "\n")
	_, parts, _ := strings.Cut("\n"+text, "\n--")
	for part := range strings.SplitSeq(parts, "\n--") {
		head, value, _ := strings.Cut(part, "\n\n")
		for _, name := range partName.FindAllStringSubmatch(head, -1) {
			plain, err := url.PathUnescape(name[1]) // the form name*= percent-encodes the name (RFC 8187)
			if isMethodParam(name[1]) || err == nil && isMethodParam(plain) {
				methods = append(methods, value)
			}
		}
	}
	return methods
}

// looseMember matches a name, a colon and a word, with or without quotes.
var looseMember = regexp.MustCompile(`([^"'\s{},:]+)["']?\s*:\s*["']?(\w+)`)

// overridesOfJSON returns the methods that members of objects name. A text may contain several JSON values.
func overridesOfJSON(text []byte) (methods []string) {
	in := json.NewDecoder(bytes.NewReader(text))
	for {
		named, err := readOverrides(in)
		methods = append(methods, named...)
		if errors.Is(err, io.EOF) {
			return methods
		}
		if err == nil {
			continue
		}
		// Some parsers accept more than JSON, such as comments and single quotes.
		if bytes.ContainsAny(text, `\#`) || bytes.Contains(text, []byte("/*")) || bytes.Contains(text, []byte("//")) {
			methods = append(methods, anyMethod)
		}
		for _, member := range looseMember.FindAllStringSubmatch(strings.ReplaceAll(string(text), "\x00", ""), -1) {
			if isMethodParam(member[1]) {
				methods = append(methods, member[2])
			}
		}
		return methods
	}
}

// readOverrides reads a JSON value. If it is an object, readOverrides returns the methods that its members name.
func readOverrides(in *json.Decoder) (methods []string, err error) {
	open, err := in.Token()
	if _, opens := open.(json.Delim); !opens {
		return nil, err
	}
	for in.More() {
		var name json.Token
		if open == json.Delim('{') {
			if name, err = in.Token(); err != nil {
				return methods, err
			}
		}
		var value json.RawMessage
		if err := in.Decode(&value); err != nil {
			return methods, err
		}
		if name, _ := name.(string); isMethodParam(name) {
			var other string
			if json.Unmarshal(value, &other) != nil {
				other = string(value)
			}
			methods = append(methods, other)
		}
	}
	_, err = in.Token()
	return methods, err
}

// isMethodParam reports whether a parameter names another method: _method, _HttpMethod, httpMethod, !method, _method[].
// Parameters named method or http_method do not count, because many APIs have such parameters with another meaning.
func isMethodParam(name string) bool {
	name, _, _ = strings.Cut(name, "\x00") // some frameworks end a name at a NUL byte, as C does
	name, _, _ = strings.Cut(strings.TrimSpace(name), "[")
	switch word := strings.TrimLeft(name, "_.$!@ "); strings.ToLower(word) {
	case "httpmethod":
		return true
	case "method", "http_method":
		return word != name
	}
	return spec.IsMethodOverride(http.CanonicalHeaderKey(name))
}
