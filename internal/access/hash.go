// This file computes hashes of hidden values. A caller who may not see the values can count, join and compare their hashes.
//
//	h: + base32( tag )                 of a text
//	h: + base32( tag | sealed number ) of a number in a field of class phone
//
// The tag is the beginning of an HMAC-SHA256 of the value. A number is encrypted behind the tag with a key stream
// whose initial vector is the tag (SIV, RFC 5297). The gate can decrypt the number and look it up in an index.
// Without the keys a hash tells only whether two values are equal.

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

// The parts of a hash and their lengths.
const (
	hashPrefix = "h:"
	tagSize    = 10 // the length of a tag, in bytes; among 10^9 values two share a tag with a probability of 1 in 2 million
	sealedSize = 7  // the length of an encrypted number of up to 15 digits, in bytes
	textHash   = 16 // the length of the hash of a text, in letters
	numberHash = 28 // the length of the hash of a number, in letters
)

// hashLetters encodes the bytes of a hash in lower-case letters and digits.
var hashLetters = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// Hasher computes the hashes of one installation. After Open it is safe for concurrent use.
type Hasher struct {
	macs  sync.Pool // unused values of type hash.Hash, kept for reuse
	block cipher.Block
}

// kvKey is the name under which the key for the hashes is stored.
const kvKey = "access/hash key"

// NewHasher creates a Hasher with a new random key.
func NewHasher() (*Hasher, error) {
	key := make([]byte, token.KeySize)
	_, _ = rand.Read(key) // crypto/rand returns no error; it ends the program instead
	h := &Hasher{}
	return h, h.derive(key)
}

// Open loads the stored key of the installation. The first call creates it.
func (h *Hasher) Open(ctx context.Context, n understudy.KV) error {
	key, err := token.Key(func() ([]byte, error) { return understudy.ReadValue(ctx, n, kvKey) },
		func(change func([]byte) ([]byte, error)) error { return n.Change(ctx, kvKey, change) })
	if err != nil {
		return fmt.Errorf("access: the key of hashes: %w", err)
	}
	return h.derive(key)
}

// derive derives the key for tags and the key for numbers from one key.
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

// append appends the hash of a text. In a field of class phone, every spelling of a number has the hash of its digits.
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

// tag returns the beginning of the HMAC of a value. sort is the type of the value: 'n' for a number, 't' for a text.
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

// stream encrypts a packed number, or decrypts an encrypted number.
func (h *Hasher) stream(tag [tagSize]byte, number [sealedSize]byte) [sealedSize]byte {
	var block [aes.BlockSize]byte
	copy(block[:], tag[:])
	h.block.Encrypt(block[:], block[:])
	for i := range number {
		number[i] ^= block[i]
	}
	return number
}

// number returns the number in a hash, in the form of ReadPhone. It returns "" if the hash is the hash of a text,
// or was made with the keys of another installation.
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

// pack encodes a number in 7 bytes: 50 bits for the digits, one bit for the country code, 4 bits for the number of digits.
func pack(p understudy.Phone) (packed [sealedSize]byte) {
	n, _ := strconv.ParseUint(p.Digits, 10, 64) // cannot fail, because there are at most 15 digits
	n |= uint64(len(p.Digits)) << 51
	if p.HasCountryCode {
		n |= 1 << 50
	}
	var all [8]byte
	binary.BigEndian.PutUint64(all[:], n)
	copy(packed[:], all[1:])
	return packed
}

// unpack returns the number that pack encoded.
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

// hashTest is a test whether a value has a given hash.
type hashTest struct {
	hash  *Hasher
	phone bool
	want  string
}

// Match reports whether the value is a text with that hash.
func (t hashTest) Match(v query.Value) bool {
	var buf [maxMasked]byte
	return v.IsString() && string(t.hash.append(buf[:0], v.Text(), t.phone)) == t.want
}

// Equal returns the condition that a field has the value behind a hash, or a number that ends in four given digits
// (written …4176). ok is false for any other text, and for a text that does not show what the caller sees of the
// field. A caller that fully sees a field may use the last four digits or the hash of a number. It may not use a
// hash if its role sees hashes: the visible field beside it would reveal the value behind each hash.
//
// An index finds a number and last digits. For other hashes, a search or a composed list compares each record that
// it reads, within its limits.
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
	case level == Hash, level == See && number != "" && !hasHashes(g.roles[c.Role()]):
	default:
		return e, false
	}
	e.Test = hashTest{g.hash, phone, text}
	switch {
	case number != "":
		e.Predicate = &query.Predicate{Field: field, Number: number}
	case len(text) == len(hashPrefix)+numberHash: // this hash of a number was made by another installation, so no record has it
		e.Predicate = &query.Predicate{Field: field, Any: []string{text}}
	}
	return e, true
}

// hasHashes reports whether a role sees hashes in any source. Equal values have equal hashes in all sources.
func hasHashes(sources map[string]*grants) bool {
	for _, r := range sources {
		if r.hashes {
			return true
		}
	}
	return false
}

// equalities returns the filters of a list whose value is a hash, by parameter name, or nil.
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
