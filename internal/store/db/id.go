// This file stores ids as bytes: an id in a provider's usual form as 17 bytes or a few more, any other id as its text.

package db

import (
	"fmt"
	"strings"

	"understudy"
	"understudy/spec"
)

// The first byte of a stored id gives its form.
const (
	idText   = 0 // the id is stored as its text
	idUsual  = 1 // 16 bytes follow; the id has the usual prefix of its kind
	idPrefix = 2 // one or more groups follow, each with a prefix of 2 bytes and 16 bytes; the text joins them with IDSeparator
)

// AppendID appends the stored form of an id. Different ids have different stored forms, and DecodeID returns the exact
// text of the id.
func AppendID(dst []byte, prefix, id string) []byte {
	if one, ok := understudy.ParseAnyID(id); ok && string(one.Prefix[:]) == prefix {
		return append(append(dst, idUsual), one.Raw[:]...)
	}
	start := len(dst)
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

// DecodeID returns the text of an id from its stored form.
func DecodeID(prefix string, stored []byte) (string, error) {
	if len(stored) == 0 {
		return "", fmt.Errorf("empty id")
	}
	switch form, rest := stored[0], stored[1:]; {
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
