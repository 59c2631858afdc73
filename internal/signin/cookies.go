// This file stores small values for the server in encrypted cookies, which the browser can neither read nor change.

package signin

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"understudy"
	"understudy/kit/lockwatch"
	"understudy/kit/token"
)

// Limits and names of cookies and their keys.
const (
	keyPrefix     = "cookies/" // the beginning of kvKeys
	kvKeys        = keyPrefix + "keys"
	keyLifetime   = 24 * time.Hour // how long a key encrypts cookies; it can decrypt them for twice as long
	maxCookie     = 2 << 10        // the maximum size of a value, in bytes
	cookiePadding = 256            // the padding of values, which are extended to a multiple of this number of bytes
)

// Cookies encrypts values into cookies. Its keys are stored, and Run replaces them. It is safe for concurrent use.
type Cookies struct {
	kv   understudy.SharedKV
	now  func() time.Time
	ring *token.Ring

	mu   lockwatch.Mutex // never held while kv is used
	keys []datedKey      // the keys that encrypt cookies, the newest first
}

type datedKey struct {
	Key  []byte    `json:"key"`
	Made time.Time `json:"made"`
}

// NewCookies returns Cookies with a new key, which is used until Load.
func NewCookies(now func() time.Time) (*Cookies, error) {
	c := &Cookies{now: now, keys: []datedKey{newKey(now())}}
	var err error
	c.ring, err = token.NewRing("cookie", c.keys[0].Key)
	return c, err
}

func newKey(now time.Time) datedKey {
	key := make([]byte, token.KeySize)
	_, _ = rand.Read(key) // rand.Read never fails
	return datedKey{Key: key, Made: now}
}

// Load reads the keys from a store. Call it before any other method.
func (c *Cookies) Load(ctx context.Context, kv understudy.SharedKV) error {
	c.kv, c.keys[0].Made = kv, time.Time{} // the zero time makes rotate replace the key of NewCookies
	if err := kv.Watch(ctx, keyPrefix, c.put); err != nil {
		return err
	}
	_ = c.rotate(ctx) // if the key can't be stored, Run tries again
	return nil
}

// put replaces the keys in memory by the stored keys, which another process may have changed.
func (c *Cookies) put(name string, value []byte) error {
	if name != kvKeys || value == nil {
		return nil
	}
	keys, err := decodeKeys(value)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.replace(keys)
}

// decodeKeys returns the keys in a stored value, which may be nil.
func decodeKeys(value []byte) (keys []datedKey, err error) {
	if value != nil && json.Unmarshal(value, &keys) != nil {
		return nil, fmt.Errorf("signin: the value of %s has no valid keys", kvKeys)
	}
	return keys, nil
}

// replace makes keys the keys of the cookies. The caller must hold c.mu.
func (c *Cookies) replace(keys []datedKey) error {
	if len(keys) == 0 {
		return nil // the former keys are used until rotate
	}
	raw := make([][]byte, len(keys))
	for i, k := range keys {
		raw[i] = k.Key
	}
	c.keys = keys
	return c.ring.Replace(raw...)
}

// rotate creates a new key if the newest stored key is old, and removes keys that are too old to decrypt a cookie.
func (c *Cookies) rotate(ctx context.Context) error {
	c.mu.Lock()
	keys := c.dropOld(c.keys)
	if len(keys) > 0 && !c.isOld(keys[0]) {
		defer c.mu.Unlock()
		return c.replace(keys)
	}
	c.mu.Unlock()
	return c.kv.Change(ctx, kvKeys, func(old []byte) ([]byte, error) { // the store calls put
		keys, err := decodeKeys(old)
		if err != nil {
			return nil, err
		}
		if keys = c.dropOld(keys); len(keys) == 0 || c.isOld(keys[0]) {
			keys = append([]datedKey{newKey(c.now())}, keys...)
		}
		return json.Marshal(keys)
	})
}

// isOld reports whether a key no longer encrypts cookies.
func (c *Cookies) isOld(k datedKey) bool { return c.now().Sub(k.Made) >= keyLifetime }

// dropOld returns the keys without those that are too old to decrypt a cookie.
func (c *Cookies) dropOld(keys []datedKey) []datedKey {
	now := c.now()
	return slices.DeleteFunc(slices.Clone(keys), func(k datedKey) bool { return now.Sub(k.Made) >= 2*keyLifetime })
}

// Set stores a value in the browser under a name, for the time lasts. A value that is too large is not stored.
func (c *Cookies) Set(w http.ResponseWriter, name string, value []byte, lasts time.Duration) {
	if len(value) > maxCookie {
		return
	}
	data := binary.BigEndian.AppendUint64(nil, uint64(c.now().Add(lasts).Unix()))
	data = binary.BigEndian.AppendUint16(data, uint16(len(name)))
	data = append(append(data, name...), value...)
	data = append(data, 0x80) // a mark at the end of the value, before the padding
	data = append(data, make([]byte, (cookiePadding-len(data)%cookiePadding)%cookiePadding)...)
	setCookie(w, name, string(c.ring.Append(nil, data)), lasts)
}

// Take returns the value that the browser stored under a name, and deletes the cookie. ok is false if there is
// no cookie, if it has expired, or if it was not made by this server for this name.
func (c *Cookies) Take(w http.ResponseWriter, r *http.Request, name string) (value []byte, ok bool) {
	cookie, err := r.Cookie(name)
	if err != nil {
		return nil, false
	}
	setCookie(w, name, "", -time.Second)
	return c.openValue(name, cookie.Value)
}

// openValue decrypts the value in the text of a cookie. ok is false as for Take.
func (c *Cookies) openValue(name, text string) (value []byte, ok bool) {
	size := token.SizeOf(text)
	if size <= 0 || size > maxCookie+2*cookiePadding {
		return nil, false
	}
	data, err := c.ring.Open(text, size)
	if err != nil || len(data) < 10+len(name) {
		return nil, false
	}
	over := time.Unix(int64(binary.BigEndian.Uint64(data)), 0)
	rest := data[10:]
	if int(binary.BigEndian.Uint16(data[8:])) != len(name) || string(rest[:len(name)]) != name || !c.now().Before(over) {
		return nil, false
	}
	rest = rest[len(name):]
	for len(rest) > 0 && rest[len(rest)-1] == 0 {
		rest = rest[:len(rest)-1]
	}
	if len(rest) == 0 || rest[len(rest)-1] != 0x80 {
		return nil, false
	}
	return rest[:len(rest)-1], true
}

// Run replaces keys until ctx ends.
func (c *Cookies) Run(ctx context.Context) error {
	tick := time.NewTicker(keyLifetime / 24)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			_ = c.rotate(ctx) // if the key can't be stored, the next round tries again
		case <-ctx.Done():
			return nil
		}
	}
}
