// Guesses: how often a wrong secret may be tried.

package callers

import (
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

// guesses counts wrong secrets by address and user. While a user has too many
// from an address, every secret of that user from there is refused unread. This
// includes the correct secret, otherwise an attacker would still find it. Other
// users of the same address, for example behind one proxy, are not affected.
// Each counter is a bucket of guessesAtOnce that refills by one each guessEvery
// (GCRA, ITU-T I.371).
type guesses struct {
	some  atomic.Bool // there is any; spares right callers the lock
	mu    sync.Mutex
	until map[guesser]time.Time // when all that is counted is forgotten
	last  time.Time             // of them
}

type guesser struct {
	peer netip.Prefix // an IPv4 address, or the 64 bits of an IPv6 network
	user [8]byte      // of a salted digest
}

// bounded reports whether the secrets of a guesser are refused unread now.
func (g *guesses) bounded(who guesser, now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !now.Before(g.last) {
		clear(g.until)
		g.some.Store(false)
		return false
	}
	return g.until[who].Sub(now) > (guessesAtOnce-1)*guessEvery
}

// wrong counts a wrong secret.
func (g *guesses) wrong(who guesser, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.until == nil {
		g.until = map[guesser]time.Time{}
	}
	until, known := g.until[who]
	if !known && len(g.until) >= maxGuessers {
		g.forget()
	}
	if until.Before(now) {
		until = now
	}
	until = until.Add(guessEvery)
	g.until[who] = until
	if g.last.Before(until) {
		g.last = until
	}
	g.some.Store(true)
}

// forget removes one entry: of a few entries, the one that expires first.
func (g *guesses) forget() {
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
func (b *Book) guesserOf(r *http.Request, user []byte) guesser {
	d := sum(&b.salt, "", user, nil)
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
