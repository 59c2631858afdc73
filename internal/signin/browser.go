// This file remembers in which browsers a person has signed in, so that wrong passwords there are counted separately.

package signin

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"net/http"
	"time"

	"understudy"
	"understudy/kit/token"
)

const (
	browserCookie   = "__Host-understudy-browser"
	browserKey      = "browsers/key"
	browserLifetime = 180 * 24 * time.Hour
	// the length of the encrypted content: a time, a random id of the browser, and a hash of the person's name
	browserSize = 8 + 16 + sha256.Size
)

// loadBrowsers reads the key that encrypts the cookies of known browsers. It creates the key if it is missing.
func (s *Sessions) loadBrowsers(ctx context.Context, kv understudy.SharedKV) error {
	key := make([]byte, token.KeySize)
	_, _ = rand.Read(key) // rand.Read never fails
	err := kv.Change(ctx, browserKey, func(old []byte) ([]byte, error) {
		if len(old) == token.KeySize {
			key = old
		}
		return key, nil
	})
	if err != nil && !errors.Is(err, understudy.ErrNotStored) { // if the key can't be stored, it is valid until the process ends
		return err
	}
	s.browsers, err = token.New(key, "browser")
	return err
}

// rememberBrowser sets a cookie which says that a person has signed in with this browser.
func (s *Sessions) rememberBrowser(w http.ResponseWriter, name string) {
	if s.browsers == nil {
		return
	}
	data := binary.BigEndian.AppendUint64(nil, uint64(s.now().Unix()))
	var id [16]byte
	_, _ = rand.Read(id[:]) // rand.Read never fails
	sum := sha256.Sum256([]byte(name))
	data = append(append(data, id[:]...), sum[:]...)
	setCookie(w, browserCookie, string(s.browsers.Append(nil, data)), browserLifetime)
}

// guessKeys returns the keys under which the wrong passwords of a request are counted. These are the name, and nil
// for all names of its address. If the person has signed in with this browser before, the only key is the browser,
// so that other people can't lock the person out.
func (s *Sessions) guessKeys(r *http.Request, name string) [][]byte {
	unknown := [][]byte{[]byte(name), nil}
	cookie, err := r.Cookie(browserCookie)
	if err != nil || s.browsers == nil {
		return unknown
	}
	data, err := s.browsers.Open(cookie.Value, browserSize)
	if err != nil || [sha256.Size]byte(data[24:]) != sha256.Sum256([]byte(name)) {
		return unknown
	}
	if s.now().Sub(time.Unix(int64(binary.BigEndian.Uint64(data)), 0)) >= browserLifetime {
		return unknown
	}
	return [][]byte{[]byte(name + "\x00" + base64.RawStdEncoding.EncodeToString(data[8:24]))}
}
