// Recent: the bound holds whatever is put, and what is used stays.

package lru

import (
	"strconv"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

func TestBoundAndContents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Int64Range(0, 50).Draw(t, "limit")
		c := New[int, string](limit)
		want := map[int]string{}
		for i := range rapid.IntRange(1, 200).Draw(t, "steps") {
			key := rapid.IntRange(0, 20).Draw(t, "key")
			switch rapid.IntRange(0, 3).Draw(t, "do") {
			case 0:
				c.Remove(key)
				delete(want, key)
			case 1:
				if got, ok := c.Get(key); ok && got != want[key] {
					t.Fatalf("Get(%d) = %q, last put was %q", key, got, want[key])
				}
			default:
				want[key] = strconv.Itoa(i)
				c.Put(key, want[key], rapid.Int64Range(0, 30).Draw(t, "weight"))
			}
			if w := c.Weight(); w > limit || w < 0 {
				t.Fatalf("weight %d, limit %d", w, limit)
			}
		}
	})
}

func TestUsedStays(t *testing.T) {
	c := New[int, int](20)
	c.Put(-1, 7, 1)
	for i := range 1000 {
		c.Put(i, i, 1)
		if got, ok := c.Get(-1); !ok || got != 7 {
			t.Fatalf("lost the used value after %d puts", i)
		}
	}
	if _, ok := c.Get(3); ok {
		t.Fatal("a value unused for 996 puts is still there")
	}
	if _, ok := c.Get(999); !ok {
		t.Fatal("the last value put is gone")
	}
}

// A value is kept, replaced or dropped, and dropped once.
func TestEachValueIsKeptOrDropped(t *testing.T) {
	c := New[int, int](20)
	dropped := map[int]int{}
	c.SetDropFunc(func(v int) { dropped[v]++ })
	for v := range 100 {
		c.Put(v, v, 1)
	}
	c.Put(100, 100, 11) // too heavy
	for v := range 101 {
		if _, ok := c.Get(v); ok == (dropped[v] > 0) || dropped[v] > 1 {
			t.Errorf("%d: kept %t, dropped %d times", v, ok, dropped[v])
		}
	}
	c.Clear()
	for v := range 101 {
		if _, ok := c.Get(v); ok || dropped[v] != 1 {
			t.Errorf("cleared: %d: kept %t, dropped %d times", v, ok, dropped[v])
		}
	}
	if c.Weight() != 0 {
		t.Errorf("cleared, it weighs %d", c.Weight())
	}
}

func TestTooHeavy(t *testing.T) {
	c := New[string, int](10)
	c.Put("a", 1, 1)
	c.Put("a", 2, 6)
	if got, ok := c.Get("a"); ok {
		t.Fatalf("Get = %d; a value heavier than half the limit must not be kept, nor the one before it", got)
	}
}

func TestConcurrent(t *testing.T) {
	c := New[int, int](40)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 2000 {
				k := (i*7 + g) % 60
				if v, ok := c.Get(k); ok && v != k {
					t.Errorf("Get(%d) = %d", k, v)
				}
				c.Put(k, k, 1)
			}
		})
	}
	wg.Wait()
}

func BenchmarkGet(b *testing.B) {
	c := New[string, int](1000)
	c.Put("/2010-04-01/Accounts/AC00000000000000000000000000000001/Calls.json", 1, 1)
	for b.Loop() {
		c.Get("/2010-04-01/Accounts/AC00000000000000000000000000000001/Calls.json")
	}
}
