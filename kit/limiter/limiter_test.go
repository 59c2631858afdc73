// Tests: no name takes every slot, every slot comes back, and all are counted.

package limiter

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"understudy/internal/checktest"
)

func TestPlaces(t *testing.T) {
	p := New(3, 2)
	take := func(name string, want error) func() {
		t.Helper()
		leave, err := p.Take(name)
		if !errors.Is(err, want) || (leave == nil) != (want != nil) {
			t.Fatalf("%s: %v, want %v", name, err, want)
		}
		return leave
	}
	first := take("ann", nil)
	take("ann", nil)
	take("ann", ErrEach)
	bob := take("bob", nil)
	take("bob", ErrFull)
	take("ann", ErrEach)
	if got, want := p.Load(), (Load{All: 3, Each: 2, InUse: 3, Busiest: 2, Refused: 1, RefusedEach: 2}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	first()
	first() // a second time gives nothing back
	take("cid", nil)
	take("dan", ErrFull)
	bob()
	p.SetLimits(1, 1) // two are in, and stay
	take("dan", ErrFull)
	if now := p.Load().InUse; now != 2 {
		t.Errorf("%d are in", now)
	}
	p.SetLimits(3, 1)
	take("ann", ErrEach)
	take("dan", nil)
}

func TestNoPlaces(t *testing.T) {
	for _, p := range []*Limiter{New(0, 1), New(1, 0), New(-1, -1)} {
		if _, err := p.Take("ann"); err == nil {
			t.Errorf("%+v lets in", p.Load())
		}
	}
}

// Many at once never are more than they may, and nothing is left of them.
func TestPlacesUnderLoad(t *testing.T) {
	const all, each, names = 7, 3, 5
	p := New(all, each)
	var in atomic.Int64
	var of [names]atomic.Int64
	var entered atomic.Int64
	var wg sync.WaitGroup
	for g := range 16 {
		wg.Go(func() {
			for i := range 2000 {
				n := (g + i) % names
				leave, err := p.Take(strconv.Itoa(n))
				if err != nil {
					continue
				}
				entered.Add(1)
				if a, b := in.Add(1), of[n].Add(1); a > all || b > each {
					t.Errorf("%d in, %d of one name", a, b)
				}
				in.Add(-1)
				of[n].Add(-1)
				leave()
			}
		})
	}
	wg.Wait()
	l := p.Load()
	checktest.Equal(t, l.InUse, 0, "l.InUse")
	checktest.Equal(t, l.Busiest, 0, "l.Busiest")
	checktest.MustEqual(t, len(p.taken), 0, "len(p.taken)")
	checktest.Equal(t, entered.Load()+l.Refused+l.RefusedEach, 16*2000, "entered.Load()+l.Refused+l.RefusedEach")
}

// TestWait: who waits is let in by the next that leaves, unless its name's slots are taken; who has left the wait is not.
func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(2, 1)
		ann, _ := p.Wait(t.Context(), "ann")
		bob, _ := p.Wait(t.Context(), "bob")
		in := make(chan string)
		for _, name := range []string{"ann", "bob", "cid"} {
			go func() {
				leave, err := p.Wait(t.Context(), name)
				if err != nil {
					t.Error(err)
				}
				in <- name
				leave()
			}()
			synctest.Wait()
		}
		short, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.New("enough"))
		defer cancel()
		if _, err := p.Wait(short, "ann"); err == nil || !strings.Contains(err.Error(), "enough") {
			t.Errorf("who waits too long: %v", err)
		}
		bob()
		if first, second := <-in, <-in; first != "bob" || second != "cid" {
			t.Errorf("%s, then %s, are in before ann's slot is free", first, second)
		}
		ann()
		if last := <-in; last != "ann" {
			t.Errorf("%s is in", last)
		}
		synctest.Wait()
		if l := p.Load(); l.InUse != 0 || len(p.waiting) != 0 {
			t.Errorf("%+v, %d wait", l, len(p.waiting))
		}
	})
}
