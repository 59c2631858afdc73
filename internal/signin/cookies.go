// Cookies: small values that a browser keeps for us and can neither read nor change.

package signin

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"understudy"
	"understudy/kit/token"
)

// The keys of cookies.
const (
	kvKeys    = "cookies/keys"
	keyLasts  = 24 * time.Hour // a key seals as long, and opens twice as long
	maxCookie = 2 << 10        // bytes of a value
	cookieFit = 256            // values are padded to a multiple of it
)

// Cookies seals values into cookies. Its keys are kept in the store and replaced by
// Run. Safe for concurrent use.
type Cookies struct {
	kv   understudy.KV
	now  func() time.Time
	ring *token.Ring

	mu   sync.Mutex
	keys []datedKey // the newest first
}

type datedKey struct {
	Key  []byte    `json:"key"`
	Made time.Time `json:"made"`
}

// NewCookies seals with a key of its own until Load.
func NewCookies(now func() time.Time) (*Cookies, error) {
	c := &Cookies{now: now, keys: []datedKey{newKey(now())}}
	var err error
	c.ring, err = token.NewRing("cookie", c.keys[0].Key)
	return c, err
}

func newKey(now time.Time) datedKey {
	key := make([]byte, token.KeySize)
	_, _ = rand.Read(key) // it never fails
	return datedKey{Key: key, Made: now}
}

// Load reads the keys of a store, before any other method is called.
func (c *Cookies) Load(ctx context.Context, kv understudy.KV) error {
	kept, err := kv.Values(ctx, kvKeys)
	if err != nil {
		return err
	}
	c.kv, c.keys[0].Made = kv, time.Time{} // the own key is replaced
	if value, ok := kept[kvKeys]; ok {
		if err := json.Unmarshal(value, &c.keys); err != nil {
			return fmt.Errorf("signin: the value of %s holds no keys", kvKeys)
		}
	}
	_ = c.rotate(ctx) // what could not be written is written by Run
	return nil
}

// rotate replaces the key that seals when it is old, and forgets those that are older.
func (c *Cookies) rotate(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	keys := slices.DeleteFunc(slices.Clone(c.keys), func(k datedKey) bool { return now.Sub(k.Made) >= 2*keyLasts })
	if len(keys) == 0 || now.Sub(keys[0].Made) >= keyLasts {
		keys = append([]datedKey{newKey(now)}, keys...)
		if err := understudy.WriteJSON(ctx, c.kv, kvKeys, keys); err != nil {
			return err
		}
	}
	c.keys = keys
	raw := make([][]byte, len(keys))
	for i, k := range keys {
		raw[i] = k.Key
	}
	return c.ring.Replace(raw...)
}

// Set has a browser keep a value under a name for a time. A value that is too large
// is not kept.
func (c *Cookies) Set(w http.ResponseWriter, name string, value []byte, lasts time.Duration) {
	if len(value) > maxCookie {
		return
	}
	data := binary.BigEndian.AppendUint64(nil, uint64(c.now().Add(lasts).Unix()))
	data = binary.BigEndian.AppendUint16(data, uint16(len(name)))
	data = append(append(data, name...), value...)
	data = append(data, 0x80) // marks the end of the value
	data = append(data, make([]byte, (cookieFit-len(data)%cookieFit)%cookieFit)...)
	setCookie(w, name, string(c.ring.Append(nil, data)), lasts)
}

// Take is the value that a browser kept under a name; it keeps it no longer. ok is false
// when there is none, when it is over, or when it was not made here for this name.
func (c *Cookies) Take(w http.ResponseWriter, r *http.Request, name string) (value []byte, ok bool) {
	cookie, err := r.Cookie(name)
	if err != nil {
		return nil, false
	}
	setCookie(w, name, "", -time.Second)
	return c.open(name, cookie.Value)
}

func (c *Cookies) open(name, text string) (value []byte, ok bool) {
	size := token.SizeOf(text)
	if size <= 0 || size > maxCookie+2*cookieFit {
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
	tick := time.NewTicker(keyLasts / 24)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			_ = c.rotate(ctx) // what could not be written is written by the next
		case <-ctx.Done():
			return nil
		}
	}
}
