// Cursor: a place in the feed that tells nothing, for those who may not count.

package feed

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"

	"understudy"
)

// keyNote is the note that holds the key.
const keyNote = "feed/key"

const keySize = 32

// sealingKey is the key kept in the store, made when there is none.
func sealingKey(ctx context.Context, s Store) ([]byte, error) {
	key, err := s.Note(ctx, keyNote)
	if err != nil && !errors.Is(err, understudy.ErrNotFound) {
		return nil, fmt.Errorf("feed: read the key of cursors: %w", err)
	}
	if len(key) == keySize {
		return key, nil
	}
	key = make([]byte, keySize)
	if _, err := rand.Read(key); err != nil {
		return nil, fmt.Errorf("feed: make the key of cursors: %w", err)
	}
	if err := s.SetNote(ctx, keyNote, key); err != nil {
		return nil, fmt.Errorf("feed: keep the key of cursors: %w", err)
	}
	return key, nil
}

// seal turns numbers into cursors and back: AES-256-GCM under a key of the
// source and the role alone, with a random nonce. So a cursor is as long as any
// other, the same place has a new one each time it is told (a cursor that has
// not changed would tell that nothing hidden happened), and one of another role
// or source does not open.
type seal struct{ aead cipher.AEAD }

func newSeal(key []byte, source, role string) (*seal, error) {
	own, err := hkdf.Key(sha256.New, key, nil, "feed cursor\x00"+source+"\x00"+role, keySize)
	if err != nil {
		return nil, fmt.Errorf("feed: derive a key: %w", err)
	}
	block, err := aes.NewCipher(own)
	if err != nil {
		return nil, fmt.Errorf("feed: cipher: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, fmt.Errorf("feed: cipher: %w", err)
	}
	return &seal{aead}, nil
}

// append writes the cursor of a number.
func (s *seal) append(dst []byte, n int64) []byte {
	var number [8]byte
	binary.BigEndian.PutUint64(number[:], uint64(n))
	return base64.RawURLEncoding.AppendEncode(dst, s.aead.Seal(nil, nil, number[:], nil))
}

// maxCursor bounds what is looked at as a cursor, in bytes.
const maxCursor = 64

// open is the number of a cursor.
func (s *seal) open(cursor string) (int64, error) {
	wrong := fmt.Errorf("feed: %w: that is no cursor of this feed for this role; begin with after=now or after=0", understudy.ErrInvalid)
	if len(cursor) > maxCursor {
		return 0, wrong
	}
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil {
		return 0, wrong
	}
	number, err := s.aead.Open(nil, nil, sealed, nil)
	if err != nil || len(number) != 8 {
		return 0, wrong
	}
	return int64(binary.BigEndian.Uint64(number)), nil
}
