// Dispatch: which subscriber gets which event, in which order, whatever the others do.

package dispatch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"understudy/internal/checktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestOrderErrorsAndStop(t *testing.T) {
	one, two := errors.New("one"), errors.New("two")
	for _, c := range []struct {
		name    string
		returns []error
		heard   string
		want    []error
	}{
		{"all well", []error{nil, nil, nil}, "012", nil},
		{"errors are joined", []error{one, nil, two}, "012", []error{one, two}},
		{"stop is no error", []error{nil, ErrStop, two}, "01", nil},
		{"a wrapped stop", []error{one, fmt.Errorf("enough: %w", ErrStop), two}, "01", []error{one}},
	} {
		b := New[string](Options{})
		heard := ""
		for i, err := range c.returns {
			b.Subscribe(func(_ context.Context, e string) error {
				if e != "x" {
					t.Errorf("%s: heard %q", c.name, e)
				}
				heard += fmt.Sprint(i)
				return err
			})
		}
		err := b.Dispatch(t.Context(), "x")
		checktest.Equal(t, heard, c.heard, "%s: heard; %v", c.name, err)
		checktest.Equal(t, (err == nil), (c.want == nil), "%s: (err == nil)", c.name)
		checktest.True(t, !errors.Is(err, ErrStop), "%s: errors.Is(err, ErrStop) is true", c.name)
		for _, want := range c.want {
			if !errors.Is(err, want) {
				t.Errorf("%s: %v is not in %v", c.name, want, err)
			}
		}
	}
}

// Within a call the list may be changed in every way; the round in progress leaves out
// closed subscribers and does not reach new ones.
func TestSubscribingWithinACall(t *testing.T) {
	b := New[int](Options{})
	var heard []string
	hear := func(name string) func(context.Context, int) error {
		return func(_ context.Context, e int) error {
			heard = append(heard, fmt.Sprint(name, e))
			return nil
		}
	}
	var self, later *Subscription
	self = b.Subscribe(func(ctx context.Context, e int) error {
		heard = append(heard, fmt.Sprint("self", e))
		self.Close()
		self.Close()
		later.Close()
		b.Subscribe(hear("new"))
		if e == 1 {
			return b.Dispatch(ctx, 10)
		}
		return nil
	})
	later = b.Subscribe(hear("later"))
	b.Subscribe(hear("last"))
	for e := 1; e <= 2; e++ {
		if err := b.Dispatch(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"self1", "last10", "new10", "last1", "last2", "new2"}; !slices.Equal(heard, want) {
		t.Errorf("heard %v, want %v", heard, want)
	}
}

func TestClosuresOfOneLiteralAreEachTheirOwn(t *testing.T) {
	b := New[int](Options{})
	var subs []*Subscription
	counts := make([]int, 5)
	for i := range counts {
		subs = append(subs, b.Subscribe(func(context.Context, int) error { counts[i]++; return nil }))
	}
	subs[1].Close()
	subs[3].Close()
	if err := b.Dispatch(t.Context(), 0); err != nil || !slices.Equal(counts, []int{1, 0, 1, 0, 1}) {
		t.Errorf("%v, %v", counts, err)
	}
	select {
	case <-subs[1].EndChannel():
	default:
		t.Error("a closed subscription is not done")
	}
}

func TestAPanicStaysWithItsSubscriber(t *testing.T) {
	b := New[int](Options{})
	heard := 0
	for i := range 10 {
		b.Subscribe(func(context.Context, int) error {
			if i == 4 {
				panic(fs.ErrClosed)
			}
			heard++
			return nil
		})
	}
	err := b.Dispatch(t.Context(), 0)
	var p *PanicError
	checktest.MustEqual(t, heard, 9, "heard; %v", err)
	checktest.MustTrue(t, errors.As(err, &p), "errors.As(err, &p) is false")
	checktest.MustTrue(t, errors.Is(err, fs.ErrClosed), "err is %v, want fs.ErrClosed", err)
	if !strings.Contains(string(p.Stack), "TestAPanicStaysWithItsSubscriber") || strings.Contains(p.Error(), "goroutine") {
		t.Errorf("stack %s, text %s", p.Stack, p)
	}
}

func TestDispatchAllocatesNothing(t *testing.T) {
	b, ctx := busy(t), t.Context()
	if n := testing.AllocsPerRun(1000, func() {
		if err := b.Dispatch(ctx, event{N: 1}); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// event is of the size of what the application dispatches.
type event struct {
	Page    *int
	Changes []int
	N       int64
}

// busy is a bus with four synchronous subscribers.
func busy(t testing.TB) *Bus[event] {
	b := New[event](Options{})
	var sum [4]int64
	for i := range sum {
		b.Subscribe(func(_ context.Context, e event) error { sum[i] += e.N; return nil })
	}
	t.Cleanup(func() {
		if slices.Contains(sum[:], 0) {
			t.Errorf("a subscriber heard nothing: %v", sum)
		}
	})
	return b
}

func BenchmarkDispatch4(b *testing.B) {
	bus, ctx := busy(b), b.Context()
	b.ReportAllocs()
	for b.Loop() {
		if err := bus.Dispatch(ctx, event{N: 1}); err != nil {
			b.Fatal(err)
		}
	}
}
