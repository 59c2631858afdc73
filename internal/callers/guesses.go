// This file limits how many wrong secrets can be tried.

package callers

import (
	"crypto/sha256"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"understudy/kit/lockwatch"
)

// The limits on wrong secrets for one user from one address.
const (
	maxGuesses    = 20          // the number of wrong secrets before there is a pause
	guessInterval = time.Second // the time after which one more secret is checked
	maxGuessers   = 4096        // the maximum number of users and addresses that are remembered
)

// Guesses counts wrong secrets by address and user. If there are too many for a user from an address, every secret
// of that user from that address is refused without a check. This includes the correct secret, because otherwise an
// attacker would still find it. Other users at the same address, for example behind one proxy, are not affected.
// Each counter is a bucket of maxGuesses that refills by one each guessInterval (GCRA, ITU-T I.371).
//
// Guesses is safe for concurrent use.
type Guesses struct {
	salt   [sha256.Size]byte
	now    func() time.Time
	hasAny atomic.Bool // whether any wrong secret is counted; if not, no lock is needed
	mu     lockwatch.Mutex
	until  map[guesser]time.Time // when the count of a user and address will be back at zero
	last   time.Time             // the latest time in until
}

type guesser struct {
	peer netip.Prefix // the IPv4 address of the client, or the first 64 bits of its IPv6 address
	user [8]byte      // the first bytes of a salted digest of the user
}

// NewGuesses returns an empty counter. The salt must be secret.
func NewGuesses(salt [sha256.Size]byte, now func() time.Time) *Guesses {
	return &Guesses{salt: salt, now: now, until: map[guesser]time.Time{}}
}

// IsRefused reports whether secrets of a user from the address of a request are refused now.
func (g *Guesses) IsRefused(r *http.Request, user []byte) bool {
	if !g.hasAny.Load() {
		return false
	}
	who, now := g.guesserOf(r, user), g.now()
	g.mu.Lock()
	defer g.mu.Unlock()
	if !now.Before(g.last) {
		clear(g.until)
		g.hasAny.Store(false)
		return false
	}
	return g.until[who].Sub(now) > (maxGuesses-1)*guessInterval
}

// CountWrong counts a wrong secret of a user from the address of a request. If the user is empty, it adds a fifth
// of a wrong secret to the count of the address.
func (g *Guesses) CountWrong(r *http.Request, user []byte) {
	who, now := g.guesserOf(r, user), g.now()
	g.mu.Lock()
	defer g.mu.Unlock()
	until, known := g.until[who]
	if !known && len(g.until) >= maxGuessers {
		g.forget()
	}
	if until.Before(now) {
		until = now
	}
	if user == nil {
		until = until.Add(guessInterval / 5)
	} else {
		until = until.Add(guessInterval)
	}
	g.until[who] = until
	if g.last.Before(until) {
		g.last = until
	}
	g.hasAny.Store(true)
}

// forget looks at a few entries and removes the one that expires first.
func (g *Guesses) forget() {
	var who guesser
	var first time.Time
	n := 0
	for k, until := range g.until {
		if n == 0 || until.Before(first) {
			who, first = k, until
		}
		if n++; n == 16 {
			break
		}
	}
	delete(g.until, who)
}

// guesserOf returns the key under which wrong secrets of a user from an address are counted.
func (g *Guesses) guesserOf(r *http.Request, user []byte) guesser {
	d := digestOf(&g.salt, "", user, nil)
	who := guesser{user: [8]byte(d[:8])}
	if peer, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		addr, bits := peer.Addr().Unmap().WithZone(""), 32
		if addr.Is6() {
			bits = 64
		}
		who.peer, _ = addr.Prefix(bits)
	}
	return who
}
