// Hashes: texts that stand for values, so that equal ones can be counted, joined and found by who may not see them.
//
//	h: + base32( tag )                 of a text
//	h: + base32( tag | sealed number ) of a number in a field of class phone
//
// The tag is the beginning of an HMAC-SHA256 of the value. A number is sealed beside it by a key stream whose initial
// vector is the tag (SIV, RFC 5297), so that the gate reads the number from the hash and asks an index for it.
// Without the keys a hash tells whether two values are equal, and nothing else.

package access

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"hash"
	"strconv"
	"strings"
	"sync"

	"understudy"
	"understudy/internal/query"
	"understudy/kit/token"
	"understudy/spec"
)

// The parts of a hash.
const (
	hashPrefix = "h:"
	tagSize    = 10 // bytes: 10^9 values share none but with a chance of 1 to 2 million
	sealedSize = 7  // bytes of a number of at most 15 digits
	textHash   = 16 // letters
	numberHash = 28
)

var hashLetters = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// Hasher makes the hashes of one installation. Once Open has returned it is safe for concurrent use.
type Hasher struct {
	macs  sync.Pool // of hash.Hash
	block cipher.Block
}

// kvKey is the value that holds the key of hashes.
const kvKey = "access/hash key"

// NewHasher makes a Hasher with a key that no other has.
func NewHasher() (*Hasher, error) {
	key := make([]byte, token.KeySize)
	_, _ = rand.Read(key) // never fails
	h := &Hasher{}
	return h, h.derive(key)
}

// Open takes over the key of an installation. It is made at the first call.
func (h *Hasher) Open(ctx context.Context, n understudy.KV) error {
	key, err := token.Key(func() ([]byte, error) { return understudy.ReadValue(ctx, n, kvKey) },
		func(key []byte) error { return n.SetValue(ctx, kvKey, key) })
	if err != nil {
		return fmt.Errorf("access: the key of hashes: %w", err)
	}
	return h.derive(key)
}

// derive makes the two keys of one.
func (h *Hasher) derive(key []byte) error {
	tag, err := hkdf.Key(sha256.New, key, nil, "access hash tag", sha256.Size)
	if err != nil {
		return fmt.Errorf("access: the key of hashes: %w", err)
	}
	seal, err := hkdf.Key(sha256.New, key, nil, "access hash number", 32)
	if err != nil {
		return fmt.Errorf("access: the key of hashes: %w", err)
	}
	if h.block, err = aes.NewCipher(seal); err != nil {
		return fmt.Errorf("access: the key of hashes: %w", err)
	}
	h.macs = sync.Pool{New: func() any { return hmac.New(sha256.New, tag) }}
	return nil
}

// append appends the hash of a text. In a field of class phone every spelling of a number has the hash of its digits.
func (h *Hasher) append(dst []byte, text string, phone bool) []byte {
	dst = append(dst, hashPrefix...)
	if p := understudy.ParsePhone(text); phone && p.Digits != "" {
		plain := pack(p)
		tag := h.tag('n', plain[:])
		sealed := h.stream(tag, plain)
		return hashLetters.AppendEncode(dst, append(tag[:], sealed[:]...))
	}
	tag := h.tag('t', []byte(text))
	return hashLetters.AppendEncode(dst, tag[:])
}

// tag is the beginning of the HMAC of a sort of value.
func (h *Hasher) tag(sort byte, value []byte) (tag [tagSize]byte) {
	mac := h.macs.Get().(hash.Hash)
	defer h.macs.Put(mac)
	mac.Reset()
	mac.Write([]byte{sort})
	mac.Write(value)
	var sum [sha256.Size]byte
	copy(tag[:], mac.Sum(sum[:0]))
	return tag
}

// stream seals a packed number, and opens a sealed one.
func (h *Hasher) stream(tag [tagSize]byte, number [sealedSize]byte) [sealedSize]byte {
	var block [aes.BlockSize]byte
	copy(block[:], tag[:])
	h.block.Encrypt(block[:], block[:])
	for i := range number {
		number[i] ^= block[i]
	}
	return number
}

// number is the number of a hash, as ParsePhone reads it; "" of a hash of a text or of another installation.
func (h *Hasher) number(text string) string {
	letters, ok := strings.CutPrefix(text, hashPrefix)
	if !ok || len(letters) != numberHash {
		return ""
	}
	var raw [tagSize + sealedSize]byte
	if n, err := hashLetters.Decode(raw[:], []byte(letters)); err != nil || n != len(raw) {
		return ""
	}
	tag := [tagSize]byte(raw[:tagSize])
	plain := h.stream(tag, [sealedSize]byte(raw[tagSize:]))
	if whole := h.tag('n', plain[:]); !hmac.Equal(tag[:], whole[:]) {
		return ""
	}
	return unpack(plain)
}

// pack is a number in few bytes: 50 bits of the digits, one bit for the country code,
// 4 bits for how many digits there are.
func pack(p understudy.Phone) (packed [sealedSize]byte) {
	n, _ := strconv.ParseUint(p.Digits, 10, 64) // 15 digits at most
	n |= uint64(len(p.Digits)) << 51
	if p.HasCountryCode {
		n |= 1 << 50
	}
	var all [8]byte
	binary.BigEndian.PutUint64(all[:], n)
	copy(packed[:], all[1:])
	return packed
}

func unpack(packed [sealedSize]byte) string {
	var all [8]byte
	copy(all[1:], packed[:])
	n := binary.BigEndian.Uint64(all[:])
	digits := fmt.Sprintf("%0*d", int(n>>51), n&(1<<50-1))
	if n>>50&1 == 1 {
		return "+" + digits
	}
	return digits
}

// isHash reports whether a text has the form of a hash.
func isHash(text string) bool {
	letters, ok := strings.CutPrefix(text, hashPrefix)
	return ok && (len(letters) == textHash || len(letters) == numberHash) && strings.Trim(letters, "abcdefghijklmnopqrstuvwxyz234567") == ""
}

// hasHash is the test of a text's hash.
type hasHash struct {
	hash  *Hasher
	phone bool
	want  string
}

// Match reports whether the value is a text with that hash.
func (t hasHash) Match(v query.Value) bool {
	var buf [maxMasked]byte
	return v.IsString() && string(t.hash.append(buf[:0], v.Text(), t.phone)) == t.want
}

// Equal is the condition that a field of a kind has the value that a hash stands for, or that a number ends in four
// digits, written …4176. ok is false for any other text, and when the caller sees another part of the field than the
// text is. Who sees the field as it is may ask for the last four digits and for the hash of a number, too; for the
// hash not if the role sees hashes: beside a field that is seen they would tell whose hash each is.
//
// An index is asked for a number and for last digits. Any other value is compared with what is read, within
// the bounds of a search or a composed list.
func (g *Gate) Equal(c understudy.Caller, source, kind, field, text string) (e query.Equality, ok bool) {
	_, four := query.LastFour(text)
	if !four && !isHash(text) || g.specs[source] == nil || g.specs[source].Kind(kind) == nil {
		return e, false
	}
	f := g.specs[source].Kind(kind).Field(field)
	if f == nil || f.Type == spec.TypeMedia {
		return e, false
	}
	phone, level := f.Class == spec.ClassPhone, g.Level(c, source, kind, field)
	if four {
		e.Test, e.Predicate = query.NewPhoneNumber(text), &query.Predicate{Field: field, Number: text}
		return e, phone && (level == Last4 || level == See)
	}
	number := ""
	if phone {
		number = g.hash.number(text)
	}
	switch {
	case level == Hash, level == See && number != "" && !seesHashes(g.roles[c.Role()]):
	default:
		return e, false
	}
	e.Test = hasHash{g.hash, phone, text}
	switch {
	case number != "":
		e.Predicate = &query.Predicate{Field: field, Number: number}
	case len(text) == len(hashPrefix)+numberHash: // of another installation: nothing has it
		e.Predicate = &query.Predicate{Field: field, Any: []string{text}}
	}
	return e, true
}

// seesHashes reports whether a role sees hashes, of whatever source: equal values have equal ones in all of them.
func seesHashes(sources map[string]*grants) bool {
	for _, r := range sources {
		if r.hashes {
			return true
		}
	}
	return false
}

// equalities are the filters of a list that are given a hash, by name; nil: none is.
func (g *Gate) equalities(c understudy.Caller, t *spec.Target) (all map[string]query.Equality) {
	if t.List == nil || t.Kind == nil {
		return nil
	}
	for _, param := range t.Query {
		f := t.List.Filter(param.Name)
		if f == nil || f.Op != "is" || f.Field == "" || !isHash(param.Value) ||
			g.Level(c, t.Key.Source, t.Kind.Name, f.Field) != Hash {
			continue
		}
		if e, ok := g.Equal(c, t.Key.Source, t.Kind.Name, f.Field, param.Value); ok {
			if all == nil {
				all = map[string]query.Equality{}
			}
			all[param.Name] = e
		}
	}
	return all
}
