// Override: parameters by which a request to a generic source names another method.

package proxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"understudy"
	"understudy/kit/charset"
	"understudy/spec"
)

// mayOverride returns nil where no parameter of the query or of the body names another method, as frameworks read it
// (_method of Rails, Laravel and Symfony), or where the caller may send that method, too.
func (v generic) mayOverride(body []byte) error {
	named := append(overridesOfForm(v.exchange.r.URL.RawQuery), overridesOfBody(v.exchange.r.Header["Content-Type"], body)...)
	for _, other := range named {
		if other = strings.ToUpper(strings.TrimSpace(other)); other == v.exchange.r.Method || other == "" {
			continue
		}
		if slices.Contains(v.exchange.proxy.o.Source.Spec.Headers.Pass, "X-Http-Method-Override") {
			return nil
		}
		if read, _ := method(v.exchange.r.Method); read || v.exchange.r.Method == http.MethodOptions {
			return fmt.Errorf("proxy: %w: a parameter names another method; use the method itself", understudy.ErrInvalid)
		}
		if err := v.exchange.proxy.o.Gate.Write(v.exchange.caller, v.exchange.target, other); err != nil {
			return err
		}
	}
	return nil
}

// overridesOfBody returns the methods that parameters in a body name. Frameworks read a type that
// is missing or cannot be parsed in ways of their own, so that such a body is read as every form.
func overridesOfBody(types []string, body []byte) (methods []string) {
	if len(body) == 0 {
		return nil
	}
	kind, params, err := mime.ParseMediaType(strings.Join(types, ", "))
	unclear := err != nil || !strings.Contains(kind, "/")
	if unclear || strings.Contains(kind, "form-urlencoded") {
		methods = append(methods, overridesOfForm(string(body))...)
	}
	if unclear || strings.HasPrefix(kind, "multipart/") {
		methods = append(methods, overridesOfParts(body)...)
	}
	if unclear || strings.Contains(kind, "json") {
		coded, _ := charset.Of(params["charset"], body)
		text, _ := coded.Decode(body)
		if text == nil {
			text = body
		}
		methods = append(methods, overridesOfJSON(text)...)
	}
	return methods
}

// overridesOfForm returns the methods that parameters of a query or a form name.
func overridesOfForm(pairs string) (methods []string) {
	given, _ := url.ParseQuery(strings.ReplaceAll(pairs, ";", "&")) // a pair that cannot be read names none
	for name, values := range given {
		if namesMethod(name) {
			methods = append(methods, values...)
		}
	}
	return methods
}

var partName = regexp.MustCompile(`(?i)name\*?\s*=\s*"?(?:[\w-]*'[\w-]*')?"?([^";\r\n]*)`)

// overridesOfParts returns the methods that the parts of a multipart body name. Each line that begins
// as a delimiter does is taken for one, and no line of a part's header needs to be right.
func overridesOfParts(body []byte) (methods []string) {
	text := strings.ReplaceAll(string(body), "\r\n", "\n")
	_, parts, _ := strings.Cut("\n"+text, "\n--")
	for part := range strings.SplitSeq(parts, "\n--") {
		head, value, _ := strings.Cut(part, "\n\n")
		for _, name := range partName.FindAllStringSubmatch(head, -1) {
			plain, err := url.PathUnescape(name[1]) // as name* has it
			if namesMethod(name[1]) || err == nil && namesMethod(plain) {
				methods = append(methods, value)
			}
		}
	}
	return methods
}

// looseMember is a name, a colon and a word, in quotes or without.
var looseMember = regexp.MustCompile(`([^"'\s{},:]+)["']?\s*:\s*["']?(\w+)`)

// overridesOfJSON returns the methods that members of objects name, which may follow each other.
func overridesOfJSON(text []byte) (methods []string) {
	in := json.NewDecoder(bytes.NewReader(text))
	for {
		named, err := overridesOfValue(in)
		methods = append(methods, named...)
		if errors.Is(err, io.EOF) {
			return methods
		}
		if err == nil {
			continue
		}
		// Some read more than JSON, such as comments and single quotes.
		for _, member := range looseMember.FindAllStringSubmatch(strings.ReplaceAll(string(text), "\x00", ""), -1) {
			if namesMethod(member[1]) {
				methods = append(methods, member[2])
			}
		}
		return methods
	}
}

// overridesOfValue reads a value, and returns the methods that its members name where it is an object.
func overridesOfValue(in *json.Decoder) (methods []string, err error) {
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
		if name, _ := name.(string); namesMethod(name) {
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

// namesMethod reports a parameter that names another method: _method, _HttpMethod, !method, _method[].
// One that is named method alone is an ordinary parameter of many APIs.
func namesMethod(name string) bool {
	name, _, _ = strings.Cut(name, "\x00") // where C ends it
	name, _, _ = strings.Cut(strings.TrimSpace(name), "[")
	switch word := strings.TrimLeft(name, "_.$!@ "); strings.ToLower(word) {
	case "method", "httpmethod", "http_method":
		return word != name
	}
	return spec.Overrides(http.CanonicalHeaderKey(name))
}
