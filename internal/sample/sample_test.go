package sample_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"understudy/internal/sample"
)

// About one case in n runs, never none of many; with UNDERSTUDY_PROVE all.
func TestOneIn(t *testing.T) {
	t.Setenv("UNDERSTUDY_PROVE", "")
	for seed := range 50 {
		t.Setenv("UNDERSTUDY_SEED", string(rune('0'+seed%10))+string(rune('0'+seed/10)))
		run, ran := sample.OneIn(t, 10), 0
		for range 1000 {
			if run() {
				ran++
			}
		}
		if ran < 80 || ran > 130 {
			t.Errorf("seed %d: %d cases of 1000", seed, ran)
		}
	}
	t.Setenv("UNDERSTUDY_PROVE", "1")
	for run, i := sample.OneIn(t, 10), 0; i < 100; i++ {
		if !run() {
			t.Fatal("a case is left out")
		}
	}
}

// About one test in ten has servers without the express lane, the same with the same seed. Its
// settings say so once; limits of its own stay.
func TestLane(t *testing.T) {
	t.Setenv("UNDERSTUDY_LANE", "")
	file := filepath.Join(t.TempDir(), "understudy.yml")
	lane := func(seed, test, settings string) (on bool, after string) {
		t.Helper()
		t.Setenv("UNDERSTUDY_SEED", seed)
		if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			var err error
			if on, err = sample.ChooseLane(test, file); err != nil {
				t.Fatal(err)
			}
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return on, string(text)
	}
	const settings, limits = "data: x\n", "data: x\nlimits: {queue: 1}\n"
	for seed := range 3 {
		without := 0
		for n := range 500 {
			on, after := lane(fmt.Sprint(seed), fmt.Sprint("TestOne", n), settings)
			if on != (after == settings) || strings.Count(after, "express: 0") > 1 {
				t.Fatalf("on: %v, with the settings %q", on, after)
			}
			if !on {
				without++
			}
		}
		if without < 25 || without > 75 {
			t.Errorf("seed %d: %d of 500 are without", seed, without)
		}
	}
	t.Setenv("UNDERSTUDY_LANE", "off")
	for _, c := range []struct {
		test, settings string
		on             bool
	}{{"TestOne", settings, false}, {"TestExpressEnds", settings, true}, {"TestOne", limits, true}} {
		if on, after := lane("", c.test, c.settings); on != c.on || on && after != c.settings {
			t.Errorf("%s: %v, with the settings %q", c.test, on, after)
		}
	}
	t.Setenv("UNDERSTUDY_LANE", "")
	if on, _ := lane("", "TestOne", settings); !on {
		t.Error("without a seed a test has no lane")
	}
}

// A count is the usual one, and with UNDERSTUDY_PROVE the full one; a variable's number goes before the usual one.
func TestCount(t *testing.T) {
	t.Setenv("UNDERSTUDY_PROVE", "")
	if got := sample.Count(4, 200); got != 4 {
		t.Errorf("usually %d, want 4", got)
	}
	t.Setenv("UNDERSTUDY_PROVE", "1")
	if got := sample.Count(4, 200); got != 200 {
		t.Errorf("with UNDERSTUDY_PROVE %d, want 200", got)
	}
	for text, want := range map[string]int{"": 10, "many": 10, "500": 500} {
		t.Setenv("PROVE_KILLS", text)
		if got := sample.CountFrom("PROVE_KILLS", 10); got != want {
			t.Errorf("with PROVE_KILLS=%q %d, want %d", text, got, want)
		}
	}
}
