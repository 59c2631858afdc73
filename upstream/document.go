// This file checks whether an answer's body is a complete JSON document, and whether it can be stored.

package upstream

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"mime"
	"strings"
	"unicode/utf8"

	"understudy"
	"understudy/kit/charset"
	"understudy/kit/jsonspan"
)

// document is a body that is one complete JSON document.
type document struct {
	body    []byte         // the body in UTF-8, or the original bytes if they could not be decoded
	charset string         // the encoding in which the upstream sent the body, or "" if it was UTF-8
	doc     jsonspan.Value // the outermost value in body; None if body is not UTF-8
	why     string         // why the document cannot be stored without loss, or ""
}

// readDocument checks that a body is a complete JSON document and decodes it. It empties the secrets and
// rewrites absolute URLs, and says whether the document can be stored without loss. It returns an error if the
// document is incomplete or a secret in it cannot be emptied.
func readDocument(contentType string, body []byte, s redaction, needles [][]byte) (document, error) {
	if len(body) == 0 {
		return document{}, errors.New("the body is empty")
	}
	label := charsetOf(contentType)
	c, known := charset.Guess(label, body)
	text, decoded := c.Decode(body)
	switch {
	case known && !decoded:
		return readForeign("UTF-16", body, text, s.secrets, needles)
	case !known:
		if text, ok := decodeUTF32(body); ok {
			return readForeign("UTF-32", body, text, s.secrets, needles)
		}
		text, c = body, charset.UTF8
	}
	text = removeNeedles(text, needles)
	doc, err := jsonspan.Parse(text)
	if err != nil {
		return document{}, wrapIncomplete(contentType, err)
	}
	d := document{charset: string(c)}
	d.body, d.doc = s.clean(text, doc)
	if !known {
		d.why = fmt.Sprintf("the body is declared as %s", understudy.Clip(label))
	} else if err := jsonspan.CheckLossless(d.body); err != nil {
		d.why = err.Error()
	}
	return d, nil
}

// readForeign reads UTF-32, and UTF-16 that decoding and encoding would change. Such a document is forwarded unchanged
// or not at all.
func readForeign(name string, body, text []byte, secrets []secret, needles [][]byte) (document, error) {
	doc, err := jsonspan.Parse(text)
	if err != nil {
		return document{}, wrapIncomplete(name, err)
	}
	if clean, _ := (redaction{secrets: secrets}).clean(text, doc); !bytes.Equal(removeNeedles(clean, needles), text) {
		return document{}, fmt.Errorf("the body is %s and contains a secret", name)
	}
	return document{body: body, why: "the body is " + name}, nil
}

// wrapIncomplete returns the error for a body that is not a complete JSON document.
func wrapIncomplete(what string, err error) error {
	what = cmp.Or(what, "an answer without a content type")
	return fmt.Errorf("no complete JSON document (%s): %w", understudy.Clip(what), err)
}

// charsetOf returns the charset that a content type declares. Without a declaration it is "utf-8", the only charset of
// JSON (RFC 8259, section 8.1).
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

// isJSON reports whether a content type means JSON.
func isJSON(contentType string) bool {
	media, _, _ := strings.Cut(contentType, ";")
	media = strings.ToLower(strings.TrimSpace(media))
	return strings.HasSuffix(media, "/json") || strings.HasSuffix(media, "+json")
}

// decodeUTF32 recognizes UTF-32 and converts it to UTF-8. It looks for a byte order mark, or for the zero bytes
// around the document's first character, which is ASCII.
func decodeUTF32(b []byte) (text []byte, ok bool) {
	if len(b) < 4 {
		return nil, false
	}
	switch head := [4]byte(b); {
	case head == [4]byte{0, 0, 0xfe, 0xff}:
		return convertUTF32(b[4:], binary.BigEndian), true
	case head == [4]byte{0xff, 0xfe, 0, 0}:
		return convertUTF32(b[4:], binary.LittleEndian), true
	case head[0] == 0 && head[1] == 0 && head[2] == 0 && head[3] != 0:
		return convertUTF32(b, binary.BigEndian), true
	case head[0] != 0 && head[1] == 0 && head[2] == 0 && head[3] == 0:
		return convertUTF32(b, binary.LittleEndian), true
	}
	return nil, false
}

// convertUTF32 converts UTF-32 to UTF-8. It returns nil if the last character is incomplete.
func convertUTF32(b []byte, order binary.ByteOrder) []byte {
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
