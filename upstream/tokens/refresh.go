// This file requests access tokens with refresh tokens, which may change whenever they are used.

package tokens

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"time"

	"understudy"
)

// refresh requests an access token with the newest refresh token. If the answer contains a new refresh token, refresh
// stores it before it returns the access token, because the former refresh token may no longer be valid.
//
// The stored token is encrypted with a key derived from the first refresh token, which is only in the settings. The
// name under which it is stored is also derived from the first token. If the settings have another first token, that is
// used instead of the stored one.
func (s *Issuer) refresh(ctx context.Context, first understudy.Secret) (understudy.Secret, time.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fail := func(err error) (understudy.Secret, time.Time, error) { return understudy.Secret{}, time.Time{}, err }
	seal, name, err := s.sealOf(first)
	if err != nil {
		return fail(err)
	}
	kept, err := s.o.KV.Value(ctx, name)
	if err != nil && !errors.Is(err, understudy.ErrNotFound) {
		return fail(fmt.Errorf("no token: the stored refresh token cannot be read: %w", err))
	}
	newest := first.Reveal()
	if len(kept) > 0 {
		n := seal.NonceSize()
		if len(kept) < n {
			return fail(errors.New("no token: the stored refresh token is damaged"))
		}
		text, err := seal.Open(nil, kept[:n], kept[n:], []byte(name))
		if err != nil {
			return fail(errors.New("no token: the stored refresh token is damaged"))
		}
		newest = string(text)
	}
	a, err := s.grant(ctx, url.Values{"grant_type": {RefreshToken}, "refresh_token": {newest}}, s.o.Secret)
	if err != nil {
		return fail(err)
	}
	if a.Refresh != "" && a.Refresh != newest {
		nonce := make([]byte, seal.NonceSize())
		_, _ = rand.Read(nonce) // never returns an error
		// The token is stored even if the caller has left, because there is no other copy of it.
		if err := s.o.KV.SetValue(context.WithoutCancel(ctx), name, seal.Seal(nonce, nonce, []byte(a.Refresh), []byte(name))); err != nil {
			return fail(fmt.Errorf("no token: the new refresh token could not be stored: %w", err))
		}
	}
	return a.token(), a.ends, nil
}

// sealOf returns the cipher for the tokens that replace a first token, and the name under which they are stored.
func (s *Issuer) sealOf(first understudy.Secret) (cipher.AEAD, string, error) {
	key, err := hkdf.Key(sha256.New, []byte(first.Reveal()), nil, "understudy refresh token "+s.o.Source, 32)
	if err != nil {
		return nil, "", err
	}
	id, err := hkdf.Key(sha256.New, []byte(first.Reveal()), nil, "understudy refresh token name "+s.o.Source, 8)
	if err != nil {
		return nil, "", err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, "", err
	}
	seal, err := cipher.NewGCM(block)
	return seal, "upstream/refresh/" + s.o.Source + "/" + hex.EncodeToString(id), err
}
