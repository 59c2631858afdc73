// ID: a provider's id as a prefix and 16 bytes.

package understudy

import "encoding/hex"

// ID is an id of the form two letters and 32 lower-case hex digits
// (CA0123…), in 18 bytes. Ids of any other form stay text.
type ID struct {
	Prefix [2]byte
	Raw    [16]byte
}

// ParseID reads an ID; ok is false when the text has another form, so that
// AppendText always gives back exactly what was read. It does not allocate.
func ParseID(text string) (id ID, ok bool) {
	if len(text) != 34 || !letter(text[0]) || !letter(text[1]) {
		return ID{}, false
	}
	id.Prefix = [2]byte{text[0], text[1]}
	for i := range id.Raw {
		hi, lo := lowerUnhex(text[2+2*i]), lowerUnhex(text[3+2*i])
		if hi > 15 || lo > 15 {
			return ID{}, false
		}
		id.Raw[i] = hi<<4 | lo
	}
	return id, true
}

// AppendText appends the 34 characters to dst. It does not allocate when dst
// has room.
func (id ID) AppendText(dst []byte) ([]byte, error) {
	dst = append(dst, id.Prefix[0], id.Prefix[1])
	return hex.AppendEncode(dst, id.Raw[:]), nil
}

// String is the 34 characters.
func (id ID) String() string {
	var buf [34]byte
	b, _ := id.AppendText(buf[:0])
	return string(b)
}

func letter(c byte) bool { return 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' }

func lowerUnhex(c byte) byte {
	if 'A' <= c && c <= 'F' {
		return 255
	}
	return unhex(c)
}
