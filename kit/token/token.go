// This file seals a few bytes into a text that reveals nothing about them.

// Package token seals data that a server wants back from a client, such as a position in a list. The sealed
// texts reveal nothing, and no client can forge one. Data of the same size gives texts of the same length.
// Sealing the same data twice gives different texts, so a text does not even show that nothing has changed.
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

// KeySize is the size of a key in bytes.
const KeySize = 32

// overhead is the number of bytes that sealing adds: the nonce and the tag.
const overhead = 12 + 16

// Sealer seals with AES-256-GCM and random nonces, and encodes in base64url (RFC 4648, 5). It is safe for
// concurrent use.
type Sealer struct{ aead cipher.AEAD }

// New returns a sealer for a purpose. It derives its key from the given key and the purpose (HKDF, RFC 5869),
// so that it can't open a text of another purpose. New returns an error if the key does not have KeySize bytes.
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

// Append seals data and appends the text to dst.
func (s *Sealer) Append(dst, data []byte) []byte {
	return base64.RawURLEncoding.AppendEncode(dst, s.aead.Seal(nil, nil, data, nil))
}

// errForeign gives no details, so that a client that tries out texts learns nothing.
var errForeign = errors.New("token: the text is none of this sealer")

// Open returns the data of a text. It returns an error if the data does not have size bytes or the text was not sealed
// with this key and purpose. It does not decode a text whose length does not fit size.
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

// Key returns the key that the function get reads from a store. If there is none, Key creates a key and stores it with
// the function change, which replaces the stored key in one step. So processes that start at once get the same key.
func Key(get func() ([]byte, error), change func(func(old []byte) (key []byte, err error)) error) ([]byte, error) {
	key, err := get()
	if err != nil {
		return nil, fmt.Errorf("token: read the key: %w", err)
	}
	if len(key) == KeySize {
		return key, nil
	}
	err = change(func(old []byte) ([]byte, error) {
		if len(old) == KeySize {
			key = old
			return old, nil
		}
		key = make([]byte, KeySize)
		_, err := rand.Read(key)
		return key, err
	})
	if err != nil {
		return nil, fmt.Errorf("token: keep the key: %w", err)
	}
	return key, nil
}
