// Guesses: wrong secrets are bounded, right callers are not held up by others.

package callers

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"understudy"
)

// L1: 3,600 secrets a second could be tried on one connection.
func TestGuessesAreBounded(t *testing.T) {
	now := start
	b := book(t, Options{Now: func() time.Time { return now }, Credentials: []Credential{
		credential("ann", "twilio", "ann", "annsecret", "all"), credential("bob", "twilio", "bob", "bobsecret", "all"),
	}})
	try := func(peer, user, secret string) error {
		r := request(basicHeader(user, secret))
		r.RemoteAddr = peer
		_, err := b.Identify(r, "twilio")
		return err
	}
	const here, there = "192.0.2.1:1000", "192.0.2.2:1000"
	looked := 0
	for i := range 3600 {
		if !errors.Is(try(here, "ann", fmt.Sprint("guess", i)), understudy.ErrTooMany) {
			looked++
		}
	}
	if looked != maxGuesses {
		t.Errorf("%d of 3600 guesses were looked at, want %d", looked, maxGuesses)
	}
	if err := try(here, "ann", "annsecret"); !errors.Is(err, understudy.ErrTooMany) || !errors.Is(err, understudy.ErrUnauthorized) {
		t.Errorf("the right secret among the guesses: %v", err)
	}
	for peer, user := range map[string]string{here: "bob", there: "ann"} {
		if err := try(peer, user, user+"secret"); err != nil {
			t.Errorf("%s from %s is held up: %v", user, peer, err)
		}
	}
	// A user that never was is bounded alike: nothing tells which there are.
	for range maxGuesses {
		if err := try(here, "nobody", "x"); errors.Is(err, understudy.ErrTooMany) {
			t.Error("bounded too early")
		}
	}
	if err := try(here, "nobody", "x"); !errors.Is(err, understudy.ErrTooMany) {
		t.Errorf("an unknown user: %v", err)
	}
	now = now.Add(guessInterval)
	if err := try(here, "ann", "annsecret"); err != nil {
		t.Errorf("after a second: %v", err)
	}
	now = now.Add(maxGuesses * guessInterval)
	if err := try(here, "ann", "annsecret"); err != nil || b.Guesses.hasAny.Load() {
		t.Errorf("when all is forgotten: %v, %v", err, b.Guesses.hasAny.Load())
	}
	for i := range 2 * maxGuessers {
		_ = try(here, fmt.Sprint("user", i), "x")
	}
	if n := len(b.Guesses.until); n > maxGuessers {
		t.Errorf("%d guessers are remembered", n)
	}
	_ = try("no address", "x", "y")
	_ = try("[2001:db8::1%eth0]:7", "x", "y")
}
