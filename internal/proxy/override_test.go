// Tests of parameters that name another method.

package proxy_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"strings"
	"testing"
	"unicode/utf16"
)

// utf16Of returns a text in UTF-16.
func utf16Of(text string) string {
	var out []byte
	for _, unit := range utf16.Encode([]rune(text)) {
		out = binary.LittleEndian.AppendUint16(out, unit)
	}
	return string(out)
}

// A parameter that names another method, as frameworks read it, gives nobody a method that the
// caller may not send.
func TestGenericParameterGivesNoOtherMethod(t *testing.T) {
	t.Parallel()
	s := openSite(t)
	const form, part = "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"
	const named = "--x\r\nContent-Disposition: form-data; name=\"_method\"\r\n\r\nDELETE\r\n--x--\r\n"
	for _, c := range []struct {
		method, path, kind, body string
		status                   int
	}{
		{"POST", "/echo", form, "a=1&_method=delete", 403},
		{"POST", "/echo", form, "a=1;%5Fmethod=%44elete", 403},
		{"POST", "/echo?_method=DELETE", "", "", 403},
		{"POST", "/echo?X-HTTP-Method-Override=DELETE", "", "", 403},
		{"POST", "/echo", part, named, 403},
		{"POST", "/echo", "application/json", `{"_method":"DELETE"}`, 403},
		{"GET", "/echo?_method=DELETE", "", "", 400},
		{"GET", "/echo?_method=PUT", "", "", 400},
		{"POST", "/echo", form, "a=1&_method=put", 200}, // it may be sent
		{"POST", "/echo", form, "a=1&_method=post", 200},
		{"POST", "/echo", form, "a=1&_method=", 200},
		{"POST", "/echo", "text/plain", "_method=DELETE", 200},
		{"POST", "/echo", "application/json", `{"x":{"_method":"DELETE"}}`, 200},
		{"POST", "/echo", "", "a=1&_method=DELETE", 403},
		{"POST", "/echo", "", `{"_method":"DELETE"}`, 403},
		{"POST", "/echo", "", named, 403},
		{"POST", "/echo", "", "a=1&method=DELETE", 200},
		{"POST", "/echo", form + "; charset=a; charset=b", "_method=DELETE", 403},
		{"POST", "/echo", form + ", text/plain", "_method=DELETE", 403},
		{"POST", "/echo", "text/plain, " + form, "_method=DELETE", 403},
		{"POST", "/echo", form, "_method[]=DELETE", 403},
		{"POST", "/echo", form, "_HttpMethod=DELETE", 403},
		{"POST", "/echo", form, ".method=DELETE", 403},
		{"POST", "/echo", part, "--x\r\nbroken\r\n\r\n1\r\n" + named, 403},
		{"POST", "/echo", "multipart/form-data", named, 403},
		{"POST", "/echo", "multipart/mixed; boundary=x", named, 403},
		{"POST", "/echo", part, strings.Replace(named, "DELETE", "PUT", 1), 200},
		{"POST", "/echo", part, strings.Replace(named, "_method", "file", 1), 200},
		{"POST", "/echo", "application/json", "\ufeff" + `{"_method":"DELETE"}`, 403},
		{"POST", "/echo", "application/json", `{"_method":"DELETE"} and more`, 403},
		{"POST", "/echo", "application/json", `{"_method":"DELETE",`, 403},
		{"POST", "/echo", "application/json", `{"_method":"DELETE","_method":"POST"}`, 403},
		{"POST", "/echo", "application/json", `{"_method":"\u0050UT"}`, 200},
		{"POST", "/echo", "application/json", `{"a":1} {"_method":"DELETE"}`, 403},
		{"POST", "/echo", "application/json", `{"a":1} {"b":{"_method":"DELETE"}} [{"_method":"DELETE"}] 2`, 200},
		{"POST", "/echo", "application/x-ndjson", "[{}]\n2\n{\"_method\":\"DELETE\"}", 403},
		{"POST", "/echo", "application/x-ndjson", "{\"a\":}\n{\"_method\":\"DELETE\"}", 403},
		{"POST", "/echo", "application/json; charset=utf-16", utf16Of(`{"∀":"∀","_method":"DELETE"}`), 403},
		{"POST", "/echo", "application/json", utf16Of("\ufeff" + `{"_method":"DELETE"}`), 403},
		{"POST", "/echo", "application/json", utf16Of(`{"_method":"DELETE"}`) + "\n", 403},
		{"POST", "/echo", "application/json; charset=utf-16", utf16Of(`{"_method":"PUT"}`), 200},
		{"POST", "/echo", "application/json", `/*c*/{"_method":"DELETE"}`, 403},
		{"POST", "/echo", "application/json", `{'_method':'DELETE'}`, 403},
		{"POST", "/echo", "application/json", `{a: 1, _method: "DELETE"}`, 403},
		{"POST", "/echo", "application/json", `{'method':'DELETE'}`, 200},
		{"POST", "/echo", "application/json", `{"_method\u0000":"DELETE"}`, 403},
		{"POST", "/echo", form, "_method%00=DELETE", 403},
		{"POST", "/echo?_method%00x=DELETE", "", "", 403},
		{"POST", "/echo", part, strings.Replace(named, `name="_method"`, "name*=UTF-8''%5fmethod", 1), 403},
		{"POST", "/echo", part, strings.Replace(named, `name="_method"`, "name*=iso-8859-1'en'_method", 1), 403},
		{"POST", "/echo", part, strings.Replace(named, `name="_method"`, `x=name=a'; name="_method'"; name="_method"`, 1), 403},
		{"POST", "/echo", "application/json", `{"jsonrpc":"2.0","method":"eth_call"}`, 200},
		{"POST", "/echo", "application/json; charset=utf-16le", utf16Of(`{"_method":"DELETE"}`), 403},
		{"POST", "/echo", "application/json; charset=ibm037", "\xc0\x7f\x6d\x94\x85\xa3\x88\x96\x84\x7f", 403},
		{"POST", "/echo", form + "; charset=utf-7", "+AF8-method=DELETE", 403},
		{"POST", "/echo", form + "; charset=UTF-8", "a=1", 200},
		{"POST", "/echo", form + "; charset=iso-8859-1", "a=\xe4", 200},
		{"POST", "/echo", "application/json", `{"_method"/*c*/:/*c*/"DELETE"}`, 403},
		{"POST", "/echo", "application/json", "{\"_method\" // c\n: \"DELETE\"}", 403},
		{"POST", "/echo", "application/json", `{\_method:"DELETE"}`, 403},
		{"POST", "/echo", "application/json", `{"a":"http://x.example/*b*/"}`, 200},
		{"POST", "/echo", "application/json", `{"httpMethod":"DELETE"}`, 403},
		{"POST", "/echo", part, strings.Replace(named, `name="_method"`, `name*0="_met"; name*1="hod"`, 1), 403},
		{"POST", "/echo", part, strings.Replace(named, `name="_method"`, `name="=?utf-8?q?=5fmethod?="`, 1), 403},
		{"POST", "/echo", part, strings.Replace(named, `name="_method"`, `name="\_method"`, 1), 403},
		{"POST", "/echo", part, strings.Replace(named, "form-data; ", "form-data;\rX: y; ", 1), 403},
		{"POST", "/echo", part, strings.Replace(named, `name="_method"`, `name="file"; filename="ä -- b.txt"; filename*=UTF-8''%c3%a4`, 1), 200},
		{"POST", "/echo", part, "--x\r\nContent-Disposition: form-data; name=\"f\"\r\n\r\n-----BEGIN name=\r\n\r\na\r\n--x--\r\n", 200},
		{"GET", "/echo?httpMethod=DELETE", "", "", 400},
		{"GET", "/echo?_HttpMethod=DELETE", "", "", 400},
		{"GET", "/echo?$httpMethod=DELETE", "", "", 400},
		{"GET", "/echo?!method=DELETE", "", "", 400},
		{"GET", "/echo?_method[]=DELETE", "", "", 400},
		{"GET", "/echo?method=DELETE&http_method=PUT", "", "", 200},
	} {
		before := s.count()
		var fields []string
		if c.kind != "" {
			fields = []string{"Content-Type", c.kind}
		}
		resp, _ := s.do(c.method, c.path, c.body, fields...)
		if resp.StatusCode != c.status {
			t.Errorf("%s %s %s %q: %s, want %d", c.method, c.path, c.kind, c.body, resp.Status, c.status)
		}
		if asked := s.count() > before; asked != (c.status == 200) {
			t.Errorf("%s %s %s %q: upstream was asked: %v", c.method, c.path, c.kind, c.body, asked)
		}
	}
}

// TestACodedBodyGivesNoOtherMethod: a body that is packed may name any method.
func TestACodedBodyGivesNoOtherMethod(t *testing.T) {
	t.Parallel()
	s := openSite(t)
	for _, c := range []struct {
		coding, kind string
		status       int
	}{
		{"gzip", "application/json", 403}, {"deflate", "application/x-www-form-urlencoded", 403}, {"gzip", "", 403},
		{"identity", "application/json", 200}, {"gzip", "application/octet-stream", 200},
	} {
		resp, _ := s.do("POST", "/echo", `{"a":1}`, "Content-Type", c.kind, "Content-Encoding", c.coding)
		if resp.StatusCode != c.status {
			t.Errorf("%s of %q: %s, want %d", c.coding, c.kind, resp.Status, c.status)
		}
	}
}

// gzipped returns texts as gzip, a stream each.
func gzipped(texts ...string) string {
	var out bytes.Buffer
	for _, text := range texts {
		z := gzip.NewWriter(&out)
		_, _ = z.Write([]byte(text)) // a buffer has no error
		_ = z.Close()
	}
	return out.String()
}

// A client may pack a body whose caller may not send every method, where what is in it names none.
func TestGzippedBodyIsReadForOtherMethods(t *testing.T) {
	t.Parallel()
	s := openSite(t)
	const form, part = "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"
	const named = "--x\r\nContent-Disposition: form-data; name=\"_method\"\r\n\r\nDELETE\r\n--x--\r\n"
	for _, c := range []struct {
		name, coding, kind, body string
		status                   int
	}{
		{"JSON", "gzip", "application/json", gzipped(`{"a":1}`), 200},
		{"JSON as x-gzip", "X-GZIP", "application/json", gzipped(`{"a":1}`), 200},
		{"a form", "gzip", form, gzipped("a=1"), 200},
		{"parts", "gzip", part, gzipped(strings.Replace(named, "_method", "file", 1)), 200},
		{"a method that may be sent", "gzip", form, gzipped("_method=PUT"), 200},
		{"JSON in UTF-16", "gzip", "application/json; charset=utf-16", gzipped(utf16Of(`{"a":1}`)), 200},
		{"a method in JSON", "gzip", "application/json", gzipped(`{"_method":"DELETE"}`), 403},
		{"a method in UTF-16", "gzip", "application/json", gzipped(utf16Of(`{"_method":"DELETE"}`)), 403},
		{"a method in a form", "gzip", form, gzipped("_method=DELETE"), 403},
		{"a method in parts", "gzip", part, gzipped(named), 403},
		{"a method without a type", "gzip", "", gzipped("_method=DELETE"), 403},
		{"two streams", "gzip", form, gzipped("a=1", "&b=1"), 403},
		{"a stream and more", "gzip", form, gzipped("a=1") + "&b=1", 403},
		{"a cut stream", "gzip", form, gzipped("a=1")[:20], 403},
		{"packed twice", "gzip, gzip", form, gzipped(gzipped("a=1")), 403},
		{"more than is unpacked", "gzip", form, gzipped("a=" + strings.Repeat("1", 8<<20)), 403},
		{"another coding", "br", form, "a=1", 403},
	} {
		before := s.count()
		resp, _ := s.do("POST", "/echo", c.body, "Content-Type", c.kind, "Content-Encoding", c.coding)
		if resp.StatusCode != c.status {
			t.Errorf("%s: %s, want %d", c.name, resp.Status, c.status)
		}
		if asked := s.count() > before; asked != (c.status == 200) {
			t.Errorf("%s: upstream was asked: %v", c.name, asked)
		}
	}
}
