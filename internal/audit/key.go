// Key: signs checkpoints, and hashes values so that only who has it can look for one.

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

// Key is the secret of a log: 32 random bytes, of which one key signs and another hashes
// (HKDF, RFC 5869).
type Key struct {
	signing ed25519.PrivateKey
	hashing []byte
}

// keyBytes is the length of a key.
const keyBytes = 32

// ParseKey reads a key: 32 bytes in base64.
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

// maxKeyFile bounds the file of a key, in bytes.
const maxKeyFile = 1 << 10

// ReadKey reads the key of a file, and with make writes a new one when there is none. Its
// owner alone may read it.
func ReadKey(path string, make bool) (Key, error) {
	data, err := smallfile.Read(path, maxKeyFile)
	if errors.Is(err, os.ErrNotExist) && make {
		raw := [keyBytes]byte{}
		_, _ = rand.Read(raw[:]) // it never fails (crypto/rand)
		data = append(base64.StdEncoding.AppendEncode(nil, raw[:]), '\n')
		err = datadir.WriteFile(path, data)
	}
	if err != nil {
		return Key{}, fmt.Errorf("audit: key: %w", err)
	}
	return ParseKey(understudy.NewSecret(string(data)))
}

// Public is the public key, base64.
func (k Key) Public() string {
	return base64.StdEncoding.EncodeToString(k.signing.Public().(ed25519.PublicKey))
}

// message is what a signature is of.
func (c *Checkpoint) message() []byte {
	return fmt.Appendf(nil, "understudy audit checkpoint 1\n%s\n%d\n%s\n%d\n", c.Chain, c.Count, c.Head, c.At.UnixNano())
}

func (k Key) sign(c *Checkpoint) {
	c.Key, c.Sig = k.Public(), base64.StdEncoding.EncodeToString(ed25519.Sign(k.signing, c.message()))
}

// signed reports whether a checkpoint is signed by the key it names.
func (c *Checkpoint) signed() bool {
	public, err := base64.StdEncoding.DecodeString(c.Key)
	sig, bad := base64.StdEncoding.DecodeString(c.Sig)
	return err == nil && bad == nil && len(public) == ed25519.PublicKeySize && ed25519.Verify(public, c.message(), sig)
}

// hashBytes is the length of a hash of a value: 128 bits, too many for two values of one
// log to share one.
const hashBytes = 16

// Hash is the keyed hash of a value, in hex (HMAC-SHA256, RFC 2104). All ways to write a
// phone number with its country's code have one hash, and so have small and capital
// letters.
func (k Key) Hash(value string) string {
	mac := hmac.New(sha256.New, k.hashing)
	_, _ = mac.Write([]byte(canonical(value))) // no hash fails
	return hex.EncodeToString(mac.Sum(nil)[:hashBytes])
}

func canonical(value string) string {
	value = strings.TrimSpace(value)
	if p := understudy.ReadPhone(value); p.Digits != "" {
		return "number " + p.Digits
	}
	return "word " + strings.ToLower(value)
}

// Hashes are those of values and of the words in them, each once.
func (k Key) Hashes(values []string) (all []string) {
	seen := map[string]bool{}
	add := func(value string) {
		if value = canonical(value); value == "word " || seen[value] || len(all) >= mostValues {
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

// words are the parts of a search that somebody may look for: what stands between spaces
// and operators, or in quotes.
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
