// Document: whether an answer's body is whole, and whether it can be kept.

package upstream

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"mime"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"understudy/kit/jsonspan"
)

// document is a body that is one complete JSON document.
type document struct {
	body []byte
	doc  jsonspan.Value // in body; no kind when the body is not UTF-8
	why  string         // why it cannot be stored faithfully, "" when it can
}

// readDocument decides whether a body is a complete JSON document, empties the
// secrets in it and rewrites its absolute URLs, and says whether it can be
// stored faithfully. It is an error when the document is not complete, or when
// a secret in it cannot be emptied.
func readDocument(contentType string, body []byte, s scrub, needles [][]byte) (document, error) {
	if len(body) == 0 {
		return document{}, errors.New("the body is empty")
	}
	if name, text := unicodeForm(body); name != "" {
		return readForeign(name, body, text, s.secrets, needles)
	}
	body = takeOut(body, needles)
	d := document{body: body}
	if rest, has := bytes.CutPrefix(body, []byte("\ufeff")); has {
		doc, err := jsonspan.Document(rest)
		if err != nil {
			return document{}, notWhole(contentType, err)
		}
		rest, _ = s.clean(rest, doc)
		d.body, d.why = append([]byte("\ufeff"), rest...), "the body begins with a byte order mark"
		return d, nil
	}
	doc, err := jsonspan.Document(body)
	if err != nil {
		return document{}, notWhole(contentType, err)
	}
	d.body, d.doc = s.clean(body, doc)
	if charset := charsetOf(contentType); !isUTF8(charset, d.body) {
		d.why = fmt.Sprintf("the body is declared as %s", clip(charset))
	} else if err := jsonspan.Faithful(d.body); err != nil {
		d.why = err.Error()
	}
	return d, nil
}

// readForeign is readDocument for UTF-16 and UTF-32: such a document passes as
// it is or not at all.
func readForeign(name string, body, text []byte, secrets []secret, needles [][]byte) (document, error) {
	doc, err := jsonspan.Document(text)
	if err != nil {
		return document{}, notWhole(name, err)
	}
	if clean, _ := (scrub{secrets: secrets}).clean(text, doc); !bytes.Equal(takeOut(clean, needles), text) {
		return document{}, fmt.Errorf("the body is %s and holds a secret", name)
	}
	return document{body: body, why: "the body is " + name}, nil
}

func notWhole(what string, err error) error {
	if what == "" {
		what = "an answer without a content type"
	}
	return fmt.Errorf("no complete JSON document (%s): %w", clip(what), err)
}

// charsetOf is the charset a content type declares, "utf-8" when it declares
// none: JSON has no other (RFC 8259, section 8.1).
func charsetOf(contentType string) string {
	if !strings.ContainsAny(contentType, "=") {
		return "utf-8"
	}
	_, params, err := mime.ParseMediaType(contentType)
	if err != nil || params["charset"] == "" {
		return "utf-8"
	}
	return params["charset"]
}

// isUTF8 reports whether a body declared in a charset is UTF-8: because that is
// it, or because the body keeps to ASCII and both mean the same by it.
func isUTF8(charset string, body []byte) bool {
	switch charset = strings.ToLower(charset); {
	case charset == "utf-8", charset == "utf8":
		return true
	case charset == "us-ascii", charset == "ascii", charset == "latin1", strings.HasPrefix(charset, "iso-8859-"), strings.HasPrefix(charset, "windows-125"):
		return !slices.ContainsFunc(body, func(b byte) bool { return b >= utf8.RuneSelf })
	}
	return false
}

// isJSON reports whether a content type promises JSON.
func isJSON(contentType string) bool {
	media, _, _ := strings.Cut(contentType, ";")
	media = strings.ToLower(strings.TrimSpace(media))
	return strings.HasSuffix(media, "/json") || strings.HasSuffix(media, "+json")
}

// unicodeForm recognises UTF-16 and UTF-32, by byte order mark or by the zero
// bytes that a document's first characters, being ASCII, then have, and gives
// the text in UTF-8. The name is "" for anything else.
func unicodeForm(b []byte) (name string, text []byte) {
	var head [4]byte
	n := copy(head[:], b)
	switch {
	case n == 4 && head == [4]byte{0, 0, 0xfe, 0xff}:
		return "UTF-32", from32(b[4:], binary.BigEndian)
	case n == 4 && head == [4]byte{0xff, 0xfe, 0, 0}:
		return "UTF-32", from32(b[4:], binary.LittleEndian)
	case n >= 2 && head[0] == 0xfe && head[1] == 0xff:
		return "UTF-16", from16(b[2:], binary.BigEndian)
	case n >= 2 && head[0] == 0xff && head[1] == 0xfe:
		return "UTF-16", from16(b[2:], binary.LittleEndian)
	case n == 4 && head[0] == 0 && head[1] == 0 && head[2] == 0 && head[3] != 0:
		return "UTF-32", from32(b, binary.BigEndian)
	case n == 4 && head[0] != 0 && head[1] == 0 && head[2] == 0 && head[3] == 0:
		return "UTF-32", from32(b, binary.LittleEndian)
	case n >= 2 && head[0] == 0 && head[1] != 0:
		return "UTF-16", from16(b, binary.BigEndian)
	case n >= 2 && head[0] != 0 && head[1] == 0:
		return "UTF-16", from16(b, binary.LittleEndian)
	}
	return "", nil
}

// from16 gives nothing, and so no document, when a unit is cut.
func from16(b []byte, order binary.ByteOrder) []byte {
	if len(b)%2 != 0 {
		return nil
	}
	out := make([]byte, 0, len(b)/2+len(b)/8)
	for i := 0; i < len(b); i += 2 {
		r := rune(order.Uint16(b[i:]))
		if utf16.IsSurrogate(r) && i+4 <= len(b) {
			if pair := utf16.DecodeRune(r, rune(order.Uint16(b[i+2:]))); pair != utf8.RuneError {
				r, i = pair, i+2
			}
		}
		out = utf8.AppendRune(out, r)
	}
	return out
}

func from32(b []byte, order binary.ByteOrder) []byte {
	if len(b)%4 != 0 {
		return nil
	}
	out := make([]byte, 0, len(b)/4)
	for i := 0; i < len(b); i += 4 {
		u := order.Uint32(b[i:])
		if u > utf8.MaxRune {
			u = utf8.RuneError
		}
		out = utf8.AppendRune(out, rune(u))
	}
	return out
}
