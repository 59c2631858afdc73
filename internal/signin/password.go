// Password: kept as an argon2id hash (RFC 9106), in the PHC string format.

// Package signin knows people: by a file of users, and by the sessions of their browsers.
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

// What a hash costs: 19 MiB and two passes, as the OWASP Password Storage Cheat Sheet
// asks for at least.
const (
	hashMemory = 19 << 10 // KiB
	hashPasses = 2
	hashLanes  = 1
	saltBytes  = 16
	keyBytes   = 32
)

// Bounds of what is read, and of what is done at once.
const (
	maxMemory    = 256 << 10 // KiB
	maxPasses    = 16
	maxPassword  = 256 // bytes
	hashesAtOnce = 4
)

// leastPassword is how many characters a password has at least (NIST SP 800-63B-4).
const leastPassword = 15

// hash is what is kept of a password.
type hash struct {
	memory, passes uint32
	lanes          uint8
	salt, key      []byte
}

// CheckPassword refuses a password that is too easy to guess, or too long.
func CheckPassword(name, password string) error {
	switch n := utf8.RuneCountInString(password); {
	case !utf8.ValidString(password):
		return fmt.Errorf("%w: the password is not UTF-8", understudy.ErrInvalid)
	case n < leastPassword:
		return fmt.Errorf("%w: the password has %d characters; take at least %d, such as four words", understudy.ErrInvalid, n, leastPassword)
	case len(password) > maxPassword:
		return fmt.Errorf("%w: the password is longer than %d bytes", understudy.ErrInvalid, maxPassword)
	case strings.Contains(strings.ToLower(password), strings.ToLower(name)) && len(name)*2 > len(password):
		return fmt.Errorf("%w: the password is little more than the name", understudy.ErrInvalid)
	case different(password) < 5:
		return fmt.Errorf("%w: the password repeats a few characters", understudy.ErrInvalid)
	}
	return nil
}

func different(text string) int {
	seen := map[rune]bool{}
	for _, r := range text {
		seen[r] = true
	}
	return len(seen)
}

// hashOf makes the hash of a password with a new salt.
func hashOf(password string) hash {
	h := hash{memory: hashMemory, passes: hashPasses, lanes: hashLanes, salt: make([]byte, saltBytes)}
	_, _ = rand.Read(h.salt) // it never fails
	h.key = argon2.IDKey([]byte(password), h.salt, h.passes, h.memory, h.lanes, keyBytes)
	return h
}

// String is the hash in the PHC string format.
func (h hash) String() string {
	text := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, h.memory, h.passes, h.lanes, text(h.salt), text(h.key))
}

// parseHash reads a hash. One that is cheaper than ours, or dearer than the bounds, is an error.
func parseHash(text string) (h hash, err error) {
	parts := strings.Split(text, "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" || strings.ContainsAny(text, "\r\n") { // base64 skips line ends
		return h, fmt.Errorf("no argon2id hash, which begins $argon2id$v=%d$", argon2.Version)
	}
	if parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return h, fmt.Errorf("argon2id %s, want v=%d", understudy.Clip(parts[2]), argon2.Version)
	}
	n, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &h.memory, &h.passes, &h.lanes)
	if err != nil || n != 3 || parts[3] != fmt.Sprintf("m=%d,t=%d,p=%d", h.memory, h.passes, h.lanes) {
		return h, fmt.Errorf("argon2id costs %s, want m=N,t=N,p=N", understudy.Clip(parts[3]))
	}
	if uint64(h.memory)*uint64(h.passes) < hashMemory*hashPasses || h.memory > maxMemory || h.passes > maxPasses || h.lanes == 0 {
		return h, fmt.Errorf("argon2id costs %s, want m*t of at least %d, m of at most %d, t of at most %d", parts[3],
			hashMemory*hashPasses, maxMemory, maxPasses)
	}
	if h.salt, err = base64.RawStdEncoding.Strict().DecodeString(parts[4]); err != nil || len(h.salt) < 8 || len(h.salt) > 64 {
		return h, fmt.Errorf("argon2id salt is no base64 of 8 to 64 bytes")
	}
	if h.key, err = base64.RawStdEncoding.Strict().DecodeString(parts[5]); err != nil || len(h.key) < 16 || len(h.key) > 64 {
		return h, fmt.Errorf("argon2id hash is no base64 of 16 to 64 bytes")
	}
	return h, nil
}

// hashing bounds how many hashes are computed at once: each takes its memory. hashingNew bounds how many
// of them come from browsers that are not known, so that a known one never waits behind all the others.
var hashing, hashingNew = make(chan struct{}, hashesAtOnce), make(chan struct{}, hashesAtOnce-1)

// acquire waits for one of some slots. ErrTooMany: ctx ended before its turn came.
func acquire(ctx context.Context, slots chan struct{}) (release func(), err error) {
	select {
	case slots <- struct{}{}:
		return func() { <-slots }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("signin: %w: too many people sign in at once", understudy.ErrTooMany)
	}
}

// matches computes the hash of a password and compares. ErrTooMany: ctx ended before
// its turn came.
func (h hash) matches(ctx context.Context, password string) (bool, error) {
	if len(password) > maxPassword {
		password = "" // as long to refuse as any other
	}
	release, err := acquire(ctx, hashing)
	if err != nil {
		return false, err
	}
	defer release()
	key := argon2.IDKey([]byte(password), h.salt, h.passes, h.memory, h.lanes, uint32(len(h.key)))
	return subtle.ConstantTimeCompare(key, h.key) == 1 && password != "", nil
}
