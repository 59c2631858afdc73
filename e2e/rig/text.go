// Texts that tests compare and show.

package rig

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"testing"

	"understudy/internal/sample"
)

// JSON returns a value as JSON.
func JSON(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Random returns a source of random numbers. sample.Seed chooses its seed and logs it.
func Random(t testing.TB) *rand.Rand {
	t.Helper()
	return rand.New(rand.NewPCG(sample.Seed(t), 0))
}

// Tail returns the last n bytes of a text.
func Tail(s string, n int) string {
	if len(s) > n {
		return "…" + s[len(s)-n:]
	}
	return s
}

// FirstDifference shows two texts around the first byte in which they differ.
func FirstDifference(want, have []byte) string {
	n := 0
	for n < len(want) && n < len(have) && want[n] == have[n] {
		n++
	}
	around := func(b []byte) []byte { return bytes.ToValidUTF8(b[max(0, n-60):min(len(b), n+120)], []byte("?")) }
	return fmt.Sprintf("at byte %d of %d and %d:\nwant …%s…\nhave …%s…", n, len(want), len(have), around(want), around(have))
}

// AuthToken matches an auth_token of upstream. The server empties it in its answers.
var AuthToken = regexp.MustCompile(`("auth_?[tT]oken": ?)"[0-9a-z]+"`)
