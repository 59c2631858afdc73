// This file seals and opens texts with several keys, so that keys can be replaced while sealed texts are in use.

package token

import (
	"fmt"
	"sync/atomic"
)

// Ring seals with the newest of several keys and opens with each of them. A text sealed before a rotation can
// be opened until its key is removed. It is safe for concurrent use.
type Ring struct {
	purpose string
	sealers atomic.Pointer[[]*Sealer]
}

// NewRing returns a ring for a purpose (see New) with at least one key, the newest first.
func NewRing(purpose string, keys ...[]byte) (*Ring, error) {
	r := &Ring{purpose: purpose}
	return r, r.Replace(keys...)
}

// Replace replaces all keys. After an error the ring keeps its old keys.
func (r *Ring) Replace(keys ...[]byte) error {
	if len(keys) == 0 {
		return fmt.Errorf("token: a ring has no key")
	}
	sealers := make([]*Sealer, len(keys))
	for i, key := range keys {
		var err error
		if sealers[i], err = New(key, r.purpose); err != nil {
			return err
		}
	}
	r.sealers.Store(&sealers)
	return nil
}

// Append seals data with the newest key and appends the text to dst.
func (r *Ring) Append(dst, data []byte) []byte { return (*r.sealers.Load())[0].Append(dst, data) }

// Open opens a text with each key in turn, until a key fits.
func (r *Ring) Open(text string, size int) ([]byte, error) {
	for _, s := range *r.sealers.Load() {
		if data, err := s.Open(text, size); err == nil {
			return data, nil
		}
	}
	return nil, errForeign
}

// SizeOf returns the size of the data in a text, as Open expects it. It is negative if the text is too short.
func SizeOf(text string) int { return len(text)*3/4 - overhead }
