// This file signs checkpoints, and hashes values so that only the owner of the key can search for a value.

package audit

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
	"unicode"

	"understudy"
	"understudy/internal/datadir"
	"understudy/internal/smallfile"
)

// Key is the secret of a log: 32 random bytes. A signing key and a hashing key are derived from them (HKDF, RFC 5869).
type Key struct {
	signing ed25519.PrivateKey
	hashing []byte
}

// keyBytes is the length of a key in bytes.
const keyBytes = 32

// ParseKey parses a key: 32 bytes in base64.
func ParseKey(secret understudy.Secret) (Key, error) {
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(secret.Reveal()))
	if err != nil || len(raw) != keyBytes {
		return Key{}, errors.New("audit: a key is 32 random bytes in base64; make one with head -c 32 /dev/urandom | base64")
	}
	seed, err := hkdf.Key(sha256.New, raw, nil, "understudy audit: sign", ed25519.SeedSize)
	if err != nil {
		return Key{}, err
	}
	hashing, err := hkdf.Key(sha256.New, raw, nil, "understudy audit: hash", sha256.Size)
	return Key{signing: ed25519.NewKeyFromSeed(seed), hashing: hashing}, err
}

// maxKeyFile is the maximum size of a key file in bytes.
const maxKeyFile = 1 << 10

// ReadKey reads a key from a file. If the file is missing and make is true, it writes a new key that only the
// file's owner may read.
func ReadKey(path string, make bool) (Key, error) {
	data, err := smallfile.Read(path, maxKeyFile)
	if errors.Is(err, os.ErrNotExist) && make {
		raw := [keyBytes]byte{}
		_, _ = rand.Read(raw[:]) // rand.Read never fails
		data = append(base64.StdEncoding.AppendEncode(nil, raw[:]), '\n')
		err = datadir.WriteFile(path, data)
	}
	if err != nil {
		return Key{}, fmt.Errorf("audit: key: %w", err)
	}
	return ParseKey(understudy.NewSecret(string(data)))
}

// PublicKey returns the public key in base64.
func (k Key) PublicKey() string {
	return base64.StdEncoding.EncodeToString(k.signing.Public().(ed25519.PublicKey))
}

// message returns the text of a checkpoint that is signed.
func (c *Checkpoint) message() []byte {
	return fmt.Appendf(nil, "understudy audit checkpoint 1\n%s\n%d\n%s\n%d\n", c.Chain, c.Count, c.Head, c.At.UnixNano())
}

func (k Key) sign(c *Checkpoint) {
	c.Key, c.Sig = k.PublicKey(), base64.StdEncoding.EncodeToString(ed25519.Sign(k.signing, c.message()))
}

// isSigned reports whether the checkpoint has a valid signature of the key that it names.
func (c *Checkpoint) isSigned() bool {
	public, err := base64.StdEncoding.DecodeString(c.Key)
	sig, bad := base64.StdEncoding.DecodeString(c.Sig)
	return err == nil && bad == nil && len(public) == ed25519.PublicKeySize && ed25519.Verify(public, c.message(), sig)
}

// hashBytes is the length of a value's hash: 128 bits, so that two values of a log never share a hash.
const hashBytes = 16

// Hash returns the keyed hash of a value in hex (HMAC-SHA256, RFC 2104). All notations of a phone number with
// its country code have the same hash, and so have upper and lower case.
func (k Key) Hash(value string) string {
	mac := hmac.New(sha256.New, k.hashing)
	_, _ = mac.Write([]byte(normalizeValue(value))) // writing to a hash never returns an error
	return hex.EncodeToString(mac.Sum(nil)[:hashBytes])
}

func normalizeValue(value string) string {
	value = strings.TrimSpace(value)
	if p := understudy.ParsePhone(value); p.Digits != "" {
		return "number " + p.Digits
	}
	return "word " + strings.ToLower(value)
}

// Hashes returns the hashes of the values and of the words in them, without duplicates.
func (k Key) Hashes(values []string) (all []string) {
	seen := map[string]bool{}
	add := func(value string) {
		if value = normalizeValue(value); value == "word " || seen[value] || len(all) >= maxValues {
			return
		}
		seen[value] = true
		_, bare, _ := strings.Cut(value, " ")
		all = append(all, k.Hash(bare))
	}
	for _, value := range values {
		add(value)
		for _, word := range words(value) {
			add(word)
		}
	}
	return all
}

// words returns the parts of a search text that somebody may look for: texts in quotes, and texts between spaces
// and operators.
func words(text string) (all []string) {
	quoted := false
	for i, part := range strings.Split(text, `"`) {
		if quoted = i%2 == 1; quoted {
			all = append(all, part)
		}
		all = append(all, strings.FieldsFunc(part, func(r rune) bool {
			return unicode.IsSpace(r) || strings.ContainsRune(`:<>=!()[]{},;*`, r)
		})...)
	}
	return all
}
