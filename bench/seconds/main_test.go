package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"understudy/internal/checktest"
)

// A package that passes is one line; of one that fails everything is shown.
func TestWatchAndTable(t *testing.T) {
	keep := filepath.Join(t.TempDir(), "seconds")
	var out strings.Builder
	err := watch(strings.NewReader(`{"Action":"build-output","ImportPath":"m/c","Output":"c.go:1: wrong\n"}
{"Action":"output","Package":"m/a","Test":"TestWell","Output":"nobody wants to read this\n"}
{"Action":"pass","Package":"m/a","Test":"TestWell","Elapsed":21.5}
{"Action":"pass","Package":"m/a","Test":"TestWell/part","Elapsed":21}
{"Action":"output","Package":"m/a","Output":"PASS\n"}
{"Action":"output","Package":"m/a","Output":"ok  \tm/a\t22.0s\n"}
{"Action":"pass","Package":"m/a","Elapsed":22}
{"Action":"output","Package":"m/b","Test":"TestBad","Output":"    b_test.go:1: want 1\n"}
{"Action":"fail","Package":"m/b","Test":"TestBad","Elapsed":0.1}
{"Action":"output","Package":"m/b","Output":"FAIL\tm/b\t0.2s\n"}
{"Action":"fail","Package":"m/b","Elapsed":0.2}
go: a word of go itself
`), &out, keep)
	if err != nil {
		t.Fatal(err)
	}
	want := "c.go:1: wrong\nok  \tm/a\t22.0s\n    b_test.go:1: want 1\nFAIL\tm/b\t0.2s\ngo: a word of go itself\n"
	if out.String() != want {
		t.Errorf("printed %q\nwant    %q", out.String(), want)
	}
	out.Reset()
	if err := show(&out, keep, 12*time.Minute, 13*time.Minute); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"22.0  m/a\n", "0.2  parts below two seconds\n", "21.5 seconds, above 20s: m/a TestWell;", "failed: m/b TestBad: b_test.go:1: want 1\n", "all together 12m0s of 13m0s; "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "TestWell/part") {
		t.Errorf("a part of a test is no test:\n%s", out.String())
	}
	if err := show(&out, keep, 14*time.Minute, 13*time.Minute); err == nil || !strings.Contains(err.Error(), "14m0s") {
		t.Errorf("too long a run is well: %v", err)
	}
	// A machine of half the speed may take longer, one of twice the speed as long.
	for _, c := range []struct {
		slow string
		well bool
	}{{"slower\t1.50\nslower\t1.70\n", true}, {"slower\t0.50\n", false}, {"slower\t1.01\n", false}} {
		must(t, os.WriteFile(keep, []byte(c.slow), 0o644))
		if err := show(&out, keep, 20*time.Minute, 13*time.Minute); (err == nil) != c.well {
			t.Errorf("%q: %v", c.slow, err)
		}
	}
	must(t, os.WriteFile(keep, nil, 0o644))
	must(t, measure(keep))
	{
		_, _, slow, err := read(keep)
		checktest.MustNoError(t, err, "measured")
		checktest.MustEqual(t, len(slow), 1, "measured: len(slow)")
		checktest.True(t, slow[0] > 0, "measured: slow[0] is %v, want > 0", slow[0])
	}
	if err := os.WriteFile(keep, []byte("no table\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := show(&out, keep, time.Minute, time.Hour); err == nil {
		t.Error("a file that is no table is well")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
