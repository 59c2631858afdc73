// Browsers in which a person has signed in before: their wrong passwords are counted apart.

package signin

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"net/http"
	"time"

	"understudy"
	"understudy/kit/token"
)

const (
	browserCookie = "__Host-understudy-browser"
	browserKey    = "browsers/key"
	browserLasts  = 180 * 24 * time.Hour
	browserSize   = 8 + 16 + sha256.Size // when it was sealed, what the browser is called, whose it is
)

// loadBrowsers reads the key that seals the cookies of browsers, and makes it when it is new.
func (s *Sessions) loadBrowsers(ctx context.Context, kv understudy.KV) error {
	kept, err := kv.Values(ctx, browserKey)
	if err != nil {
		return err
	}
	key := kept[browserKey]
	if len(key) != token.KeySize {
		key = make([]byte, token.KeySize)
		_, _ = rand.Read(key)                 // it never fails
		_ = kv.SetValue(ctx, browserKey, key) // one that is not saved ends with the process
	}
	s.browsers, err = token.New(key, "browser")
	return err
}

// rememberBrowser has a browser keep that a person has signed in there.
func (s *Sessions) rememberBrowser(w http.ResponseWriter, name string) {
	if s.browsers == nil {
		return
	}
	data := binary.BigEndian.AppendUint64(nil, uint64(s.now().Unix()))
	var id [16]byte
	_, _ = rand.Read(id[:]) // it never fails
	sum := sha256.Sum256([]byte(name))
	data = append(append(data, id[:]...), sum[:]...)
	setCookie(w, browserCookie, string(s.browsers.Append(nil, data)), browserLasts)
}

// counted returns under what the wrong passwords of a request are counted: the name, and all
// names of its address (nil); or the browser alone if that person has signed in there before.
// So nobody else keeps the person out.
func (s *Sessions) counted(r *http.Request, name string) [][]byte {
	unknown := [][]byte{[]byte(name), nil}
	cookie, err := r.Cookie(browserCookie)
	if err != nil || s.browsers == nil {
		return unknown
	}
	data, err := s.browsers.Open(cookie.Value, browserSize)
	if err != nil || [sha256.Size]byte(data[24:]) != sha256.Sum256([]byte(name)) {
		return unknown
	}
	if s.now().Sub(time.Unix(int64(binary.BigEndian.Uint64(data)), 0)) >= browserLasts {
		return unknown
	}
	return [][]byte{[]byte(name + "\x00" + base64.RawStdEncoding.EncodeToString(data[8:24]))}
}
