package rig

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var drawOverview = flag.Bool("overview", false, "write docs/overview.svg anew")

// TestTheOverviewShowsTheKeptResults compares the chart of the README with the results that are committed.
func TestTheOverviewShowsTheKeptResults(t *testing.T) {
	drawn, err := DrawOverview("../results")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("../../docs", OverviewFile)
	if *drawOverview {
		if err := os.WriteFile(path, drawn, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(kept) != string(drawn) {
		t.Errorf("%s is not what bench/results say: go test ./rig -run Overview -overview", path)
	}
}

func TestAnOverviewWithoutItsResultsIsAnError(t *testing.T) {
	dir := t.TempDir()
	if _, err := DrawOverview(dir); err == nil || !strings.Contains(err.Error(), "next.txt") {
		t.Errorf("no file: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "next.txt"), []byte("nothing\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := DrawOverview(dir); err == nil || !strings.Contains(err.Error(), "has no line") {
		t.Errorf("no line: %v", err)
	}
}
