// Documents and secrets: what is whole, what can be kept, what is emptied.

package upstream

import (
	"encoding/binary"
	"strings"
	"testing"
	"unicode/utf16"

	"understudy/kit/charset"
)

func utf16Text(order binary.AppendByteOrder, bom bool, s string) string {
	var b []byte
	if bom {
		b = order.AppendUint16(b, 0xfeff)
	}
	for _, u := range utf16.Encode([]rune(s)) {
		b = order.AppendUint16(b, u)
	}
	return string(b)
}

func utf32Text(order binary.AppendByteOrder, bom bool, s string) string {
	var b []byte
	if bom {
		b = order.AppendUint32(b, 0xfeff)
	}
	for _, r := range s {
		b = order.AppendUint32(b, uint32(r))
	}
	return string(b)
}

func TestReadDocument(t *testing.T) {
	const js = "application/json"
	secrets := []secret{"auth_token", "vault.code"}
	needles := [][]byte{[]byte("ourowntoken")}
	for _, c := range []struct{ name, ct, body, want, why, err string }{
		{"plain", js, `{"a":"é😀"}`, `{"a":"é😀"}`, "", ""},
		{"spaces stay", js, " {\"a\" : 1}\n", " {\"a\" : 1}\n", "", ""},
		{"declared utf-8", js + ";charset=UTF-8", `{}`, `{}`, "", ""},
		{"quoted utf8", js + `; charset="utf8"`, `{}`, `{}`, "", ""},
		{"not called JSON", "text/plain", `{}`, `{}`, "", ""},
		{"no type", "", `{}`, `{}`, "", ""},
		{"broken type", "application/json; charset", `{}`, `{}`, "", ""},
		{"latin-1 declared", js + "; charset=iso-8859-1", "{\"a\":\"\xe9\"}", "{\"a\":\"\xe9\"}", "", ""},
		{"latin-1 undeclared", js, "{\"a\":\"\xe9\"}", "{\"a\":\"\xe9\"}", "offset 6: invalid UTF-8", ""},
		{"overlong", js, "{\"a\":\"\xc0\xaf\"}", "{\"a\":\"\xc0\xaf\"}", "invalid UTF-8", ""},
		{"lone surrogate", js, `{"a":"\ud800"}`, `{"a":"\ud800"}`, `lone surrogate \ud800`, ""},
		{"a BOM", js, "\ufeff{}", "\ufeff{}", "", ""},
		{"a BOM and a secret", js, "\ufeff{\"auth_token\":\"x\"}", "\ufeff{\"auth_token\":\"\"}", "", ""},
		{"UTF-16LE BOM", js, utf16Text(binary.LittleEndian, true, `{"a":"😀"}`), "=", "", ""},
		{"UTF-16BE BOM", js, utf16Text(binary.BigEndian, true, `{"a":"😀"}`), "=", "", ""},
		{"UTF-16LE", js, utf16Text(binary.LittleEndian, false, `{"a":1}`), "=", "", ""},
		{"UTF-16BE", js, utf16Text(binary.BigEndian, false, `[1]`), "=", "", ""},
		{"UTF-16LE, no UTF-32", js, utf16Text(binary.LittleEndian, false, `"Ā"`), "=", "", ""},
		{"UTF-16 and half a unit", js, utf16Text(binary.LittleEndian, false, `[1]`) + "\x20", "", "", "no complete JSON document (UTF-16)"},
		{"UTF-32LE BOM", js, utf32Text(binary.LittleEndian, true, `{}`), "=", "UTF-32", ""},
		{"UTF-32BE BOM", js, utf32Text(binary.BigEndian, true, `{}`), "=", "UTF-32", ""},
		{"UTF-32LE", js, utf32Text(binary.LittleEndian, false, `[]`), "=", "UTF-32", ""},
		{"UTF-32BE", js, utf32Text(binary.BigEndian, false, `[]`), "=", "UTF-32", ""},
		{"UTF-16 cut", js, utf16Text(binary.LittleEndian, true, `{"a":1}`)[:13], "", "", "no complete JSON document"},
		{"UTF-16 of half a document", js, utf16Text(binary.LittleEndian, true, `{"a":`), "", "", "no complete JSON document"},
		{"UTF-16 with a secret", js, utf16Text(binary.BigEndian, true, `{"auth_token":12}`),
			utf16Text(binary.BigEndian, true, `{"auth_token":""}`), "", ""},
		{"UTF-16 with our token", js, utf16Text(binary.BigEndian, true, `["ourowntoken"]`), utf16Text(binary.BigEndian, true, `[""]`), "", ""},
		{"UTF-32 with a secret", js, utf32Text(binary.BigEndian, true, `{"auth_token":12}`), "", "", "UTF-32 and contains a secret"},
		{"UTF-32 with our token", js, utf32Text(binary.BigEndian, true, `["ourowntoken"]`), "", "", "UTF-32 and contains a secret"},
		{"empty", js, "", "", "", "empty"},
		{"HTML", "text/html", "<html></html>", "", "", "no complete JSON document (text/html)"},
		{"cut", js, `{"a":"b`, "", "", "no complete JSON document (application/json)"},
		{"BOM and cut", js, "\ufeff{", "", "", "no complete JSON document"},
		{"a secret", js, `{"x":{"auth_token":"abc"},"b":1}`, `{"x":{"auth_token":""},"b":1}`, "", ""},
		{"an escaped name", js, `[{"auth\u005ftoken":"abc"}]`, `[{"auth\u005ftoken":""}]`, "", ""},
		{"appears twice", js, `{"auth_token":"abc","auth_token":"def"}`, `{"auth_token":"","auth_token":""}`, "", ""},
		{"of any kind", js, `{"auth_token":{"a":["b"]},"y":{"auth_token":[1]},"z":{"auth_token": -1.5 }}`,
			`{"auth_token":"","y":{"auth_token":""},"z":{"auth_token": "" }}`, "", ""},
		{"null and empty stay", js, `{"auth_token":null,"y":{"auth_token":""}}`, `{"auth_token":null,"y":{"auth_token":""}}`, "", ""},
		{"a longer name stays", js, `{"auth_token2":"x","auth_toke":"y"}`, `{"auth_token2":"x","auth_toke":"y"}`, "", ""},
		{"dotted", js, `{"code":"a","vault":{"code":"b","x":{"code":"c"}},"q":{"vault":[{"code":"d"}]}}`,
			`{"code":"a","vault":{"code":"","x":{"code":"c"}},"q":{"vault":[{"code":""}]}}`, "", ""},
		{"our token anywhere", js, `{"error":"Basic ourowntoken was refused"}`, `{"error":"Basic  was refused"}`, "", ""},
	} {
		d, err := readDocument(c.ct, []byte(c.body), redaction{secrets: secrets}, needles)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: error %v, want %q", c.name, err, c.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if c.want == "=" {
			c.want = c.body
		}
		wire, ok := charset.Charset(d.charset).Encode(d.body)
		if !ok || string(wire) != c.want {
			t.Errorf("%s: body %q, want %q", c.name, wire, c.want)
		}
		if (d.why == "") != (c.why == "") || !strings.Contains(d.why, c.why) {
			t.Errorf("%s: why %q, want %q", c.name, d.why, c.why)
		}
		if d.why == "" && string(d.doc.Bytes(d.body)) != strings.TrimSpace(string(d.body)) {
			t.Errorf("%s: the document is said to be %q", c.name, d.doc.Bytes(d.body))
		}
	}
}

// Every cut of a document, in any of the forms, is no document.
func TestCutDocuments(t *testing.T) {
	for _, whole := range []string{
		`{"calls":[{"sid":"CA1"}],"b":"é"}`, "\ufeff{\"a\":[1]}", utf16Text(binary.LittleEndian, true, `{"a":1}`),
		utf16Text(binary.BigEndian, false, `{"a":1}`), utf32Text(binary.LittleEndian, true, `{"a":1}`),
	} {
		for i := range len(whole) {
			if d, err := readDocument("application/json", []byte(whole[:i]), redaction{}, nil); err == nil {
				t.Errorf("%q is taken for whole: %+v", whole[:i], d)
			}
		}
	}
}

func TestSecretsFor(t *testing.T) {
	s := specFile(t, "shelf")
	// books says "code" of itself is no secret, vault.code is; loans know neither.
	body := `{"session":"s","paging":{"session":"s"},"pin":"1","code":"2","vault":{"code":"3"}}`
	for kind, want := range map[string]string{
		"books": `{"session":"s","paging":{"session":""},"pin":"","code":"2","vault":{"code":""}}`,
		"loans": `{"session":"s","paging":{"session":""},"pin":"","code":"2","vault":{"code":""}}`,
	} {
		d, err := readDocument("", []byte(body), redaction{secrets: secretsFor(s, s.Kind(kind))}, nil)
		if err != nil || string(d.body) != want {
			t.Errorf("%s: %s %v, want %s", kind, d.body, err, want)
		}
	}
	// A kind that names the field as plain keeps it.
	s.Kind("loans").Fields[0].Name = "pin"
	d, err := readDocument("", []byte(`{"pin":"1"}`), redaction{secrets: secretsFor(s, s.Kind("loans"))}, nil)
	if err != nil || string(d.body) != `{"pin":"1"}` {
		t.Errorf("a plain field is emptied: %s %v", d.body, err)
	}
}

func TestNamesSecret(t *testing.T) {
	secrets := []secret{"auth_token"}
	for text, want := range map[string]bool{
		"<AuthToken>x</AuthToken>": true, "auth-token=x": true, "AUTH_TOKEN: x": true, "<Author/>": false,
	} {
		if hasSecretName([]byte(text), secrets) != want {
			t.Errorf("%s: not %v", text, want)
		}
	}
}

func TestDistinct(t *testing.T) {
	for text, want := range map[string]bool{
		"slowapitoken": true, "deadbeef": true, "short": false, "12345678": false, "12345e67": false, "1234567a": true,
		"has space1": false, `has"quote`: false, "": false, "ünïcödë-x": false,
	} {
		if isDistinct(text) != want {
			t.Errorf("%q: not %v", text, want)
		}
	}
}
