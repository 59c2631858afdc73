// This file requests access tokens with refresh tokens, which may change whenever they are used.

package tokens

import (
	"cmp"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"understudy"
	"understudy/kit/retry"
)

// The pause between two looks at the claim of another process, and how long before its end a stored token is no longer used.
const claimPause, minLeft = 100 * time.Millisecond, 5 * time.Second

// stored is what all processes on one database know about the tokens that replace a first refresh token.
type stored struct {
	Refresh string    `json:"refresh"`
	Access  string    `json:"access,omitempty"`
	Ends    time.Time `json:"ends,omitzero"`
	Claim   string    `json:"claim,omitempty"` // the request for the next token that runs now, or ""
}

// refresh requests an access token with the newest refresh token. If the answer contains a new refresh token, refresh
// stores it before it returns the access token, because the former refresh token may no longer be valid. If another process
// on the same database requests a token at the same time, refresh waits and returns that token.
//
// The tokens are stored encrypted with a key derived from the first refresh token, which is only in the settings. The
// name under which they are stored is also derived from the first token. If the settings have another first token, that is
// used instead of the stored one.
func (s *Issuer) refresh(ctx context.Context, first understudy.Secret) (understudy.Secret, time.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fail := func(err error) (understudy.Secret, time.Time, error) { return understudy.Secret{}, time.Time{}, err }
	v, err := s.openVault(first)
	if err != nil {
		return fail(err)
	}
	claim := rand.Text()
	now, err := s.claim(ctx, v, claim)
	if err != nil {
		return fail(fmt.Errorf("no token: the stored refresh token cannot be used: %w", err))
	}
	if now.Claim == claim {
		used := now.Refresh
		a, refused := s.grant(ctx, url.Values{"grant_type": {RefreshToken}, "refresh_token": {used}}, s.o.Secret)
		// The tokens are stored even if the caller has left, because there is no other copy of them.
		err := s.o.KV.Change(context.WithoutCancel(ctx), v.name, v.change(func() error {
			if now.Claim == claim {
				now.Claim = ""
			}
			if refused == nil && now.Refresh != used {
				return errors.New("another process has used the former one meanwhile")
			} else if refused == nil {
				now.Refresh, now.Access, now.Ends = cmp.Or(a.Refresh, used), a.token().Reveal(), a.ends
			}
			return nil
		}, &now))
		switch {
		case refused != nil:
			return fail(refused)
		case err != nil:
			v.claim, v.claimAt = claim, time.Time{} // so that the next call does not wait for this claim
			return fail(fmt.Errorf("no token: the new refresh token could not be stored: %w", err))
		}
	}
	v.issued = now.Access
	return understudy.NewSecret(now.Access), now.Ends, nil
}

// claim claims the next request for a token. If another process has received a token meanwhile, the result has that token
// instead of the claim. While another process has a claim, claim waits. It ignores a claim that does not end in time.
func (s *Issuer) claim(ctx context.Context, v *vault, claim string) (now stored, err error) {
	for waited := false; ; waited = true {
		usable := false
		err := s.o.KV.Change(ctx, v.name, v.change(func() error {
			at := s.o.Now()
			usable = now.Access != "" && now.Access != v.issued && (waited || v.issued != "") &&
				(now.Ends.IsZero() || at.Add(minLeft).Before(now.Ends))
			if now.Claim != v.claim {
				v.claim, v.claimAt = now.Claim, at
			}
			if !usable && (now.Claim == "" || at.Sub(v.claimAt) >= exchangeTimeout) {
				now.Claim = claim
			}
			return nil
		}, &now))
		if err != nil || usable || now.Claim == claim {
			return now, err
		}
		if err := retry.Wait(ctx, claimPause); err != nil {
			return now, err
		}
	}
}

// vault encrypts the tokens that replace a first refresh token, and has what this process knows about them.
type vault struct {
	first   string
	name    string // the name under which the tokens are stored
	seal    cipher.AEAD
	issued  string    // the last access token that this process received
	claim   string    // the last claim of another process that was seen
	claimAt time.Time // when claim was first seen
}

// openVault returns the vault of a first refresh token.
func (s *Issuer) openVault(first understudy.Secret) (*vault, error) {
	if v := s.vaults[first.Reveal()]; v != nil {
		return v, nil
	}
	key, err := hkdf.Key(sha256.New, []byte(first.Reveal()), nil, "understudy refresh token "+s.o.Source, 32)
	if err != nil {
		return nil, err
	}
	id, err := hkdf.Key(sha256.New, []byte(first.Reveal()), nil, "understudy refresh token name "+s.o.Source, 8)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	seal, err := cipher.NewGCM(block)
	v := &vault{first: first.Reveal(), name: "upstream/refresh/" + s.o.Source + "/" + hex.EncodeToString(id), seal: seal}
	s.vaults[first.Reveal()] = v
	return v, err
}

// change returns a function for KV.Change. It decrypts the value into now, calls update, and encrypts now again.
func (v *vault) change(update func() error, now *stored) func(old []byte) (value []byte, err error) {
	return func(old []byte) ([]byte, error) {
		*now = stored{Refresh: v.first}
		n := v.seal.NonceSize()
		if len(old) > 0 {
			text, err := v.seal.Open(nil, slices.Grow(old, n)[:n], old[min(n, len(old)):], []byte(v.name))
			if err != nil { // also if the value is shorter than a nonce
				return nil, errors.New("it is damaged")
			}
			if json.Unmarshal(text, now) != nil {
				*now = stored{Refresh: string(text)} // the format of an earlier release
			}
		}
		before := *now
		if err := update(); err != nil || *now == before {
			return old, err
		}
		text, err := json.Marshal(now)
		nonce := make([]byte, n)
		_, _ = rand.Read(nonce) // never returns an error
		return v.seal.Seal(nonce, nonce, text, []byte(v.name)), err
	}
}
