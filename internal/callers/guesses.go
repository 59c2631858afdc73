// Guesses: how often a wrong secret may be tried.

package callers

import (
	"crypto/sha256"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// The bound on wrong secrets of one user from one address.
const (
	guessesAtOnce = 20          // before there is a pause
	guessEvery    = time.Second // then one is looked at in this time
	maxGuessers   = 4096        // users and addresses that are remembered
)

// Guesses counts wrong secrets by address and user. While a user has too many
// from an address, every secret of that user from there is refused unread. This
// includes the correct secret, otherwise an attacker would still find it. Other
// users of the same address, for example behind one proxy, are not affected.
// Each counter is a bucket of guessesAtOnce that refills by one each guessEvery
// (GCRA, ITU-T I.371).
//
// It is safe for concurrent use.
type Guesses struct {
	salt  [sha256.Size]byte
	now   func() time.Time
	some  atomic.Bool // there is any; spares right callers the lock
	mu    sync.Mutex
	until map[guesser]time.Time // when all that is counted is forgotten
	last  time.Time             // of them
}

type guesser struct {
	peer netip.Prefix // an IPv4 address, or the 64 bits of an IPv6 network
	user [8]byte      // of a salted digest
}

// NewGuesses counts from now on. The salt must be secret.
func NewGuesses(salt [sha256.Size]byte, now func() time.Time) *Guesses {
	return &Guesses{salt: salt, now: now, until: map[guesser]time.Time{}}
}

// Refused reports whether no secret of a user from an address is looked at now.
func (g *Guesses) Refused(r *http.Request, user []byte) bool {
	if !g.some.Load() {
		return false
	}
	who, now := g.guesserOf(r, user), g.now()
	g.mu.Lock()
	defer g.mu.Unlock()
	if !now.Before(g.last) {
		clear(g.until)
		g.some.Store(false)
		return false
	}
	return g.until[who].Sub(now) > (guessesAtOnce-1)*guessEvery
}

// Wrong counts a wrong secret of a user from an address. Without a user it counts for all of the address together, a
// fifth each.
func (g *Guesses) Wrong(r *http.Request, user []byte) {
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
		until = until.Add(guessEvery / 5)
	} else {
		until = until.Add(guessEvery)
	}
	g.until[who] = until
	if g.last.Before(until) {
		g.last = until
	}
	g.some.Store(true)
}

// forget removes one entry: of a few entries, the one that expires first.
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

// guesserOf returns the key that counts wrong secrets of a user from an address.
func (g *Guesses) guesserOf(r *http.Request, user []byte) guesser {
	d := sum(&g.salt, "", user, nil)
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
