// This file stores ids as bytes: an id in a usual form as 17 bytes or fewer, any other id as its text.

package db

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"understudy"
	"understudy/spec"
)

// The first byte of a stored id gives its form.
const (
	idText   = 0 // the id is stored as its text
	idUsual  = 1 // 16 bytes follow; the id has the usual prefix of its kind
	idPrefix = 2 // one or more groups follow, each with a prefix of 2 bytes and 16 bytes; the text joins them with IDSeparator

	// Only ids of a kind whose stored prefix begins with AllForms have these forms, in which the rest of the prefix is left out.
	idUUID   = 3  // 16 bytes follow; the id is a UUID in lower case
	idBase64 = 4  // 16 bytes follow; the id has 22 characters of base64url
	idNumber = 5  // at most 8 bytes follow; the id is a decimal number without zeros before it
	idHex    = 6  // 16 bytes follow; the id has 32 hexadecimal digits in lower case
	idBase62 = 16 // this and the number of the id's letters and digits; their value in base 62 follows
)

// AllForms begins the prefix of a kind whose ids are stored in all forms. Kinds of earlier versions keep the first three forms, so that no
// id has two forms.
const AllForms = "+"

const maxBase62 = 64 // the maximum number of letters and digits in idBase62

// AppendID appends the stored form of an id. Different ids have different stored forms, and DecodeID returns the exact
// text of the id.
func AppendID(dst []byte, prefix, id string) []byte {
	prefix, all := strings.CutPrefix(prefix, AllForms)
	one, isUsual := understudy.ParseAnyID(id)
	if isUsual && string(one.Prefix[:]) == prefix {
		return append(append(dst, idUsual), one.Raw[:]...)
	}
	start := len(dst)
	if text, ok := strings.CutPrefix(id, prefix); ok && all && !isUsual {
		if dst = appendShort(dst, text); len(dst) > start {
			return dst
		}
	}
	dst = append(dst, idPrefix)
	for part := range strings.SplitSeq(id, spec.IDSeparator) {
		one, ok := understudy.ParseAnyID(part)
		if !ok {
			return append(append(dst[:start], idText), id...)
		}
		dst, _ = one.AppendBinary(dst)
	}
	return dst
}

// appendShort appends the short stored form of an id without its prefix. It appends nothing to an id without such a form.
func appendShort(dst []byte, text string) []byte {
	if n, err := strconv.ParseUint(text, 10, 64); err == nil && strconv.FormatUint(n, 10) == text {
		return append(append(dst, idNumber), strings.TrimLeft(string(binary.BigEndian.AppendUint64(nil, n)), "\x00")...)
	}
	if raw, err := hex.DecodeString(strings.ReplaceAll(text, "-", "")); err == nil && len(raw) == 16 {
		switch text {
		case formatUUID(raw):
			return append(append(dst, idUUID), raw...)
		case hex.EncodeToString(raw):
			return append(append(dst, idHex), raw...)
		}
	}
	if raw, err := base64.RawURLEncoding.Strict().DecodeString(text); err == nil && len(raw) == 16 && len(text) == 22 {
		return append(append(dst, idBase64), raw...)
	}
	isOther := func(r rune) bool { return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') }
	if text == "" || len(text) > maxBase62 || strings.ContainsFunc(text, isOther) {
		return dst
	}
	value, _ := new(big.Int).SetString(text, 62)
	return append(append(dst, byte(idBase62+len(text))), value.Bytes()...)
}

// formatUUID returns the text of the 16 bytes of a UUID.
func formatUUID(raw []byte) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", raw[:4], raw[4:6], raw[6:8], raw[8:10], raw[10:])
}

// DecodeID returns the text of an id from its stored form.
func DecodeID(prefix string, stored []byte) (string, error) {
	if len(stored) == 0 {
		return "", fmt.Errorf("empty id")
	}
	prefix = strings.TrimPrefix(prefix, AllForms)
	switch form, rest := stored[0], stored[1:]; {
	case form == idUUID && len(rest) == 16:
		return prefix + formatUUID(rest), nil
	case form == idHex && len(rest) == 16:
		return prefix + hex.EncodeToString(rest), nil
	case form == idBase64 && len(rest) == 16:
		return prefix + base64.RawURLEncoding.EncodeToString(rest), nil
	case form == idNumber && len(rest) <= 8:
		return prefix + new(big.Int).SetBytes(rest).String(), nil
	case form > idBase62 && form <= idBase62+maxBase62 && len(rest) <= maxBase62:
		text := new(big.Int).SetBytes(rest).Text(62)
		return prefix + strings.Repeat("0", max(int(form)-idBase62-len(text), 0)) + text, nil
	case form == idText:
		return string(rest), nil
	case form == idUsual && len(rest) == 16 && len(prefix) == 2:
		return understudy.AnyID{Prefix: [2]byte{prefix[0], prefix[1]}, Raw: [16]byte(rest)}.String(), nil
	case form == idPrefix && len(rest) > 0 && len(rest)%understudy.AnyIDSize == 0:
		var text []byte
		for ; len(rest) > 0; rest = rest[understudy.AnyIDSize:] {
			if len(text) > 0 {
				text = append(text, spec.IDSeparator...)
			}
			var one understudy.AnyID
			if err := one.UnmarshalBinary(rest[:understudy.AnyIDSize]); err != nil {
				return "", err
			}
			text, _ = one.AppendText(text)
		}
		return string(text), nil
	}
	return "", fmt.Errorf("id of an unknown form (first byte %d, %d bytes)", stored[0], len(stored))
}
