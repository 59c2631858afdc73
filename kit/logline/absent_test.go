// What is wrong with inconshreveable/log15, whose speed an article describes, is absent here. Each mistake is shown on a copy of its lines:
//
//	its mistake                                       the test that it is absent
//	control characters reach the terminal             TestControlCharactersAreEscaped
//	a line of JSON loses the order of its fields      TestJSONKeepsTheOrder
//	an integer is formatted by fmt, and allocates     TestIntegersAllocateNothing
//	a key that is no text leaves an empty value       none: slog.Attr has no such key
//	an io.Discard as the target of a benchmark        BenchmarkTenFields counts bytes; package log returns at once for io.Discard

package logline

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
	"unicode"

	"understudy/internal/sample"
)

// escapeLog15 is escapeString of log15.
func escapeLog15(s string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`, "\t", `\t`).Replace(s)
}

func TestControlCharactersAreEscaped(t *testing.T) {
	const attack = "name\x1b]0;owned\x07\u009b2J\x00\x7f"
	if !strings.ContainsFunc(escapeLog15(attack), unicode.IsControl) {
		t.Error("the original escapes them")
	}
	for _, f := range []Format{Logfmt, JSON, Terminal} {
		var out bytes.Buffer
		if err := New(&out, Options{Format: f}).Begin(time.Time{}, slog.LevelInfo, attack).Attr(slog.String(attack, attack)).Write(); err != nil {
			t.Fatal(err)
		}
		if line := strings.TrimSuffix(out.String(), "\n"); strings.ContainsFunc(line, unicode.IsControl) {
			t.Errorf("format %d: %q", f, line)
		}
	}
}

func TestJSONKeepsTheOrder(t *testing.T) {
	original, err := json.Marshal(map[string]any{"z": 1, "a": 2, "m": 3})
	if err != nil || strings.Index(string(original), `"z"`) < strings.Index(string(original), `"a"`) {
		t.Errorf("the original keeps the order: %s (%v)", original, err)
	}
	var out bytes.Buffer
	err = New(&out, Options{Format: JSON}).Begin(time.Time{}, slog.LevelInfo, "m").Int64(NewKey("z"), 1).Int64(NewKey("a"), 2).
		Int64(NewKey("m"), 3).Write()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), `"z":1,"a":2,"m":3`) {
		t.Error(out.String())
	}
}

func TestIntegersAllocateNothing(t *testing.T) {
	number := 1 << 20 // small integers are never allocated
	if n := testing.AllocsPerRun(100, func() { number++; _ = fmt.Sprintf("%d", any(number)) }); n == 0 {
		t.Error("the original allocates nothing")
	}
	h, key := New(&counting{}, Options{}), NewKey("n")
	n := testing.AllocsPerRun(100, func() {
		number++
		_ = h.Begin(start, slog.LevelInfo, "m").Attr(slog.Int("n", number)).Int64(key, int64(number)).Write()
	})
	if n > 0 && !sample.UnderRace {
		t.Errorf("%v allocations", n)
	}
}
