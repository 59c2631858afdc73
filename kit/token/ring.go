// Ring: keys that are replaced while their texts are on the way.

package token

import (
	"fmt"
	"sync/atomic"
)

// Ring seals with the newest of some keys and opens with each of them: a text of
// before a rotation opens until its key is taken out. It is safe for concurrent use.
type Ring struct {
	purpose string
	sealers atomic.Pointer[[]*Sealer]
}

// NewRing is a ring of a purpose, as of New, with at least one key, the newest first.
func NewRing(purpose string, keys ...[]byte) (*Ring, error) {
	r := &Ring{purpose: purpose}
	return r, r.Replace(keys...)
}

// Replace puts other keys in place of all. On an error the former ones stay.
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

// Append is Sealer.Append with the newest key.
func (r *Ring) Append(dst, data []byte) []byte { return (*r.sealers.Load())[0].Append(dst, data) }

// Open is Sealer.Open with each key.
func (r *Ring) Open(text string, size int) ([]byte, error) {
	for _, s := range *r.sealers.Load() {
		if data, err := s.Open(text, size); err == nil {
			return data, nil
		}
	}
	return nil, errForeign
}

// SizeOf is how many bytes a text holds, as Open takes them; negative: it is none.
func SizeOf(text string) int { return len(text)*3/4 - overhead }
