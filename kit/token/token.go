// Sealer: a few bytes as a text that reveals nothing.

// Package token turns data that a server wants back from a client, such as a position
// in a list, into texts. The texts reveal nothing, and no client can make one. All
// texts of one number of bytes have one length. The same bytes give another text each
// time, so a text does not even show that nothing has changed.
package token

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
)

// KeySize is how many bytes a key has.
const KeySize = 32

// overhead is what a text holds beside its bytes: nonce and tag.
const overhead = 12 + 16

// Sealer is AES-256-GCM with random nonces, in base64url (RFC 4648, 5). It is safe
// for concurrent use.
type Sealer struct{ aead cipher.AEAD }

// New is the sealer of a purpose: its key is derived from the one given (HKDF,
// RFC 5869), so that a text of another purpose does not open. The error is a key
// that has not KeySize bytes.
func New(key []byte, purpose string) (*Sealer, error) {
	if len(key) != KeySize {
		return nil, fmt.Errorf("token: a key has %d bytes, not %d", KeySize, len(key))
	}
	own, err := hkdf.Key(sha256.New, key, nil, purpose, KeySize)
	if err != nil {
		return nil, fmt.Errorf("token: derive a key: %w", err)
	}
	block, err := aes.NewCipher(own)
	if err != nil {
		return nil, fmt.Errorf("token: cipher: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, fmt.Errorf("token: cipher: %w", err)
	}
	return &Sealer{aead}, nil
}

// Append appends the text of some bytes to dst.
func (s *Sealer) Append(dst, data []byte) []byte {
	return base64.RawURLEncoding.AppendEncode(dst, s.aead.Seal(nil, nil, data, nil))
}

// errForeign has no details: trying texts reveals nothing.
var errForeign = errors.New("token: the text is none of this sealer")

// Open is the bytes of a text, which are size many. Any other text is an error,
// and a longer one is not looked at.
func (s *Sealer) Open(text string, size int) ([]byte, error) {
	if len(text) != base64.RawURLEncoding.EncodedLen(size+overhead) {
		return nil, errForeign
	}
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return nil, errForeign
	}
	data, err := s.aead.Open(nil, nil, sealed, nil)
	if err != nil || len(data) != size {
		return nil, errForeign
	}
	return data, nil
}

// Key is the key in a store. It is made and put there at the first use.
func Key(get func() ([]byte, error), put func(key []byte) error) ([]byte, error) {
	key, err := get()
	if err != nil {
		return nil, fmt.Errorf("token: read the key: %w", err)
	}
	if len(key) == KeySize {
		return key, nil
	}
	key = make([]byte, KeySize)
	if _, err := rand.Read(key); err != nil {
		return nil, fmt.Errorf("token: make a key: %w", err)
	}
	if err := put(key); err != nil {
		return nil, fmt.Errorf("token: keep the key: %w", err)
	}
	return key, nil
}
