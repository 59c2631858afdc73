// This file hashes passwords with argon2id (RFC 9106), in the PHC string format.

// Package signin identifies people, by a file of users or an OpenID provider, and by the sessions of their browsers.
package signin

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"

	"understudy"
)

// The cost of a hash: 19 MiB of memory and two passes, the minimum of the OWASP Password Storage Cheat Sheet.
const (
	hashMemory = 19 << 10 // the memory that a new hash needs, in KiB
	hashPasses = 2
	hashLanes  = 1
	saltBytes  = 16
	keyBytes   = 32
)

// Limits for stored hashes and passwords, and for concurrent hashes.
const (
	maxMemory   = 256 << 10 // the maximum memory of a stored hash, in KiB
	maxPasses   = 16
	maxPassword = 256 // the maximum length of a password, in bytes
	maxHashes   = 4
)

// minPassword is the minimum number of characters of a password (NIST SP 800-63B-4).
const minPassword = 15

// hash is the stored hash of a password.
type hash struct {
	memory, passes uint32
	lanes          uint8
	salt, key      []byte
}

// CheckPassword returns an error for a password that is easy to guess, or too long.
func CheckPassword(name, password string) error {
	switch n := utf8.RuneCountInString(password); {
	case !utf8.ValidString(password):
		return fmt.Errorf("%w: the password is not UTF-8", understudy.ErrInvalid)
	case n < minPassword:
		return fmt.Errorf("%w: the password has %d characters; take at least %d, such as four words", understudy.ErrInvalid, n, minPassword)
	case len(password) > maxPassword:
		return fmt.Errorf("%w: the password is longer than %d bytes", understudy.ErrInvalid, maxPassword)
	case strings.Contains(strings.ToLower(password), strings.ToLower(name)) && len(name)*2 > len(password):
		return fmt.Errorf("%w: the password is little more than the name", understudy.ErrInvalid)
	case countDistinct(password) < 5:
		return fmt.Errorf("%w: the password repeats a few characters", understudy.ErrInvalid)
	}
	return nil
}

func countDistinct(text string) int {
	seen := map[rune]bool{}
	for _, r := range text {
		seen[r] = true
	}
	return len(seen)
}

// hashOf returns the hash of a password with a new salt.
func hashOf(password string) hash {
	h := hash{memory: hashMemory, passes: hashPasses, lanes: hashLanes, salt: make([]byte, saltBytes)}
	_, _ = rand.Read(h.salt) // rand.Read never fails
	h.key = argon2.IDKey([]byte(password), h.salt, h.passes, h.memory, h.lanes, keyBytes)
	return h
}

// String returns the hash in the PHC string format.
func (h hash) String() string {
	text := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, h.memory, h.passes, h.lanes, text(h.salt), text(h.key))
}

// parseHash parses a stored hash. It returns an error if the hash is cheaper to compute than those of this server,
// or exceeds the limits.
func parseHash(text string) (h hash, err error) {
	parts := strings.Split(text, "$")
	// line ends are refused here, because the base64 decoder would ignore them
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" || strings.ContainsAny(text, "\r\n") {
		return h, fmt.Errorf("it is not an argon2id hash, which begins $argon2id$v=%d$", argon2.Version)
	}
	if parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return h, fmt.Errorf("the hash has argon2id %s; only v=%d is supported", understudy.Clip(parts[2]), argon2.Version)
	}
	n, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &h.memory, &h.passes, &h.lanes)
	if err != nil || n != 3 || parts[3] != fmt.Sprintf("m=%d,t=%d,p=%d", h.memory, h.passes, h.lanes) {
		return h, fmt.Errorf("the costs of the argon2id hash are %s; write m=N,t=N,p=N", understudy.Clip(parts[3]))
	}
	if uint64(h.memory)*uint64(h.passes) < hashMemory*hashPasses || h.memory > maxMemory || h.passes > maxPasses || h.lanes == 0 {
		return h, fmt.Errorf("the costs of the argon2id hash are %s; m*t must be at least %d, m at most %d, t at most %d, p at least 1", parts[3],
			hashMemory*hashPasses, maxMemory, maxPasses)
	}
	if h.salt, err = base64.RawStdEncoding.Strict().DecodeString(parts[4]); err != nil || len(h.salt) < 8 || len(h.salt) > 64 {
		return h, fmt.Errorf("the salt of the argon2id hash is not base64 of 8 to 64 bytes")
	}
	if h.key, err = base64.RawStdEncoding.Strict().DecodeString(parts[5]); err != nil || len(h.key) < 16 || len(h.key) > 64 {
		return h, fmt.Errorf("argon2id hash is not base64 of 16 to 64 bytes")
	}
	return h, nil
}

// hashSlots limits how many hashes are computed at once, because each hash needs much memory. newBrowserHashSlots
// limits the hashes for unknown browsers to a smaller number, so that at least one slot is left for known browsers.
var hashSlots, newBrowserHashSlots = make(chan struct{}, maxHashes), make(chan struct{}, maxHashes-1)

// acquire waits for a free slot. It returns ErrTooMany if ctx ends first.
func acquire(ctx context.Context, slots chan struct{}) (release func(), err error) {
	select {
	case slots <- struct{}{}:
		return func() { <-slots }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("signin: %w: too many people are signing in", understudy.ErrTooMany)
	}
}

// match computes the hash of a password and compares it. It returns ErrTooMany if ctx ends before there is a free slot.
func (h hash) match(ctx context.Context, password string) (bool, error) {
	if len(password) > maxPassword {
		password = "" // the empty password takes as long as any other password, and never matches
	}
	release, err := acquire(ctx, hashSlots)
	if err != nil {
		return false, err
	}
	defer release()
	key := argon2.IDKey([]byte(password), h.salt, h.passes, h.memory, h.lanes, uint32(len(h.key)))
	return subtle.ConstantTimeCompare(key, h.key) == 1 && password != "", nil
}
