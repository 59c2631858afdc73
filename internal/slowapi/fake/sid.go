// Package fake generates people, texts and ids from a seed, so that the same seed always gives the same data.
package fake

import (
	"encoding/binary"
	"encoding/hex"
	"slices"
)

// mix spreads the bits of x evenly over all 64 bits (the finaliser of splitmix64).
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// Rng is a pseudo-random number generator. Its numbers depend only on its starting value.
type Rng uint64

// RngFor returns the generator for a record or another simulated object. It depends only on the seed, the tag and the index.
func RngFor(seed uint64, tag uint64, index int64) Rng {
	return Rng(mix(seed ^ mix(tag^mix(uint64(index)+0x9e3779b97f4a7c15))))
}

// Next returns the next random number.
func (d *Rng) Next() uint64 {
	*d += 0x9e3779b97f4a7c15
	return mix(uint64(*d))
}

// IntBelow returns a number in [0, n).
func (d *Rng) IntBelow(n int) int {
	return int(d.Next() % uint64(n))
}

// Hex appends n random bytes as 2n hexadecimal digits.
func (d *Rng) Hex(dst []byte, n int) []byte {
	for ; n > 0; n -= 8 {
		var word [8]byte
		binary.BigEndian.PutUint64(word[:], d.Next())
		dst = hex.AppendEncode(dst, word[:min(n, 8)])
	}
	return dst
}

// Cipher encrypts the index and the owner of a record to 128 bits that look random, and decrypts them. It is a Feistel network
// whose key is the seed. So the index of a record can be computed from its SID, and no table of SIDs is needed.
type Cipher struct {
	keys [6]uint64
}

// NewCipher returns the cipher of a seed.
func NewCipher(seed uint64) Cipher {
	var c Cipher
	d := RngFor(seed, 0x51d, 0)
	for i := range c.keys {
		c.keys[i] = d.Next()
	}
	return c
}

// owner packs the number of an account and the tag of a kind. This is the half of a SID that shows whether the SID
// belongs to this simulated world.
func owner(account int, tag uint64) uint64 {
	return uint64(account)<<32 | tag
}

// AppendSID appends the SID of a record.
func (c *Cipher) AppendSID(dst []byte, prefix string, account int, tag uint64, index int64) []byte {
	a, b := uint64(index), owner(account, tag)
	for _, key := range c.keys {
		a, b = b, a^mix(b^key)
	}
	var raw [16]byte
	binary.BigEndian.PutUint64(raw[:8], a)
	binary.BigEndian.PutUint64(raw[8:], b)
	dst = append(dst, prefix...)
	return hex.AppendEncode(dst, raw[:])
}

// Index returns the index in a SID of the given kind and account. ok is false for any other text. The caller must
// check the two letters at the beginning of the SID.
func (c *Cipher) Index(sid string, account int, tag uint64) (int64, bool) {
	if len(sid) != 34 {
		return 0, false
	}
	var raw [16]byte
	if _, err := hex.Decode(raw[:], []byte(sid[2:])); err != nil {
		return 0, false
	}
	a, b := binary.BigEndian.Uint64(raw[:8]), binary.BigEndian.Uint64(raw[8:])
	for _, key := range slices.Backward(c.keys[:]) {
		a, b = b^mix(a^key), a
	}
	if b != owner(account, tag) || a > 1<<62 {
		return 0, false
	}
	return int64(a), true
}
