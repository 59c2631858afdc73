package sample_test

import (
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
