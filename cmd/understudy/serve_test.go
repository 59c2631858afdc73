package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"understudy"
	"understudy/internal/checktest"
)

// TestServerStartsAgain: a server whose database was taken over starts again, and goes on while the new one refuses connections. It
// ends with any other error.
func TestServerStartsAgain(t *testing.T) {
	t.Parallel()
	replaced, refused := fmt.Errorf("node: %w", understudy.ErrReplaced), errors.New("connection refused")
	type result struct {
		answered bool
		err      error
	}
	for _, c := range []struct {
		name    string
		results []result
		want    error
	}{
		{"a signal", []result{{true, nil}}, nil},
		{"a wrong setting", []result{{false, refused}}, refused},
		{"an error while it answers", []result{{true, refused}}, refused},
		{"two others take over", []result{{true, replaced}, {true, replaced}, {true, nil}}, nil},
		{"the new one refuses twice", []result{{true, replaced}, {false, refused}, {false, refused}, {true, nil}}, nil},
		{"the new one refuses forever", append([]result{{true, replaced}}, slices.Repeat([]result{{false, refused}}, maxReopens)...), refused},
		{"the new one refuses, and later something fails", []result{{true, replaced}, {false, refused}, {true, refused}}, refused},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			calls := 0
			err := restart(t.Context(), io.Discard, 1, false, func() (bool, error) {
				calls++
				return c.results[calls-1].answered, c.results[calls-1].err
			})
			checktest.True(t, errors.Is(err, c.want), "it ends with %v, want %v", err, c.want)
			checktest.Equal(t, calls, len(c.results), "starts")
		})
	}
}
