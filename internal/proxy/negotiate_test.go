// Negotiation: which form of a body a client gets, by table and by fuzzing.

package proxy

import (
	"strings"
	"testing"

	"understudy/kit/header"
)

func TestNegotiate(t *testing.T) {
	const must = "!" // the plain form is not acceptable
	names := [forms]string{"plain", "gzip", "zstd"}
	for header, want := range map[string]string{
		"": "plain", "gzip": "gzip", "GZIP": "gzip", "x-gzip": "gzip", "deflate, gzip;q=1.0, *;q=0.5": "gzip", "br": "plain",
		"br, deflate, compress": "plain",
		"gzip;q=0":              "plain", "gzip; q=0.000": "plain", "gzip ; Q=0.001": "gzip", "*": "gzip", "*;q=0": "plain",
		"*;q=0, gzip": "gzip" + must,
		"gzip;q=0, *": "plain", "identity": "plain", "identity;q=1, gzip;q=0.5": "plain", "identity;q=0.5, gzip;q=1": "gzip",
		"identity, gzip": "gzip",
		"gzip;q=2":       "plain", "gzip;q=-1": "plain", "gzip;q=0.0001": "plain", "gzip;q=x": "plain", "gzip;q=": "plain", "gzip;q=1.5": "plain",
		"gzip;q=0.-1": "plain", "gzip;q=1.001": "plain", "gzip;q=1.000": "gzip", "gzip;q=0.": "plain", "gzip;q=1.": "gzip",
		"gzipped": "plain", ",,gzip,,": "gzip", "gzip;level=9": "gzip", "gzip;q=0.5;x=1": "gzip", `gzip;q="1"`: "plain",
		"zstd": "zstd", "gzip, zstd": "gzip", "gzip, deflate, br, zstd": "gzip", "gzip;q=0.8, zstd": "zstd", "gzip;q=0.8, zstd;q=0.9": "zstd",
		"zstd;q=0.8, gzip": "gzip", "zstd, *;q=0.1": "zstd", "ZStd, identity;q=0.1": "zstd",
		"zstd;q=0, gzip;q=0": "plain", "gzip;q=0, zstd;q=0.001": "zstd", "identity;q=0.9, zstd;q=0.8": "plain",
		"identity;q=0": "plain", "identity;q=0, gzip": "gzip" + must, "gzip, identity;q=0": "gzip" + must, "zstd, identity;q=0": "zstd" + must,
		"*;q=0, zstd":     "zstd" + must,
		"identity;q=0, *": "gzip" + must, "identity;q=0, *;q=0": "plain", "identity;q=0, br": "plain", "*;q=0, identity, gzip;q=0.5": "plain",
		"*;q=0, identity;q=0.1, gzip": "gzip",
	} {
		best, only := negotiate([]string{header})
		got := names[best]
		if only {
			got += must
		}
		if got != want {
			t.Errorf("%q: %s, want %s", header, got, want)
		}
	}
	if best, _ := negotiate(nil); best != plainForm {
		t.Error("nothing said is not plain")
	}
	if best, _ := negotiate([]string{"br", "gzip"}); best != gzipForm {
		t.Error("lines are one list")
	}
}

// FuzzNegotiate: a form is only picked when the header names it with a weight
// above 0 (or, for gzip, "*"), the plain form is only ruled out by a weight of
// 0 for it or for "*", and a coding that is refused at the end never goes out.
func FuzzNegotiate(f *testing.F) {
	for _, s := range []string{"gzip;q=0.5, *", "zstd, gzip;q=0.9", "identity;q=0", "*;q=0,zstd", `gzip;q="1"`, ";;==", "gzip;;q=0",
		"x-gzip;q=1.000;q=0", "\x00\xff", `"gzip`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		best, must := negotiate([]string{text})
		lower := strings.ToLower(text)
		switch {
		case best == gzipForm && !strings.Contains(lower, "gzip") && !strings.Contains(text, "*"),
			best == zstdForm && !strings.Contains(lower, "zstd"),
			best >= forms,
			must && best == plainForm,
			must && !strings.Contains(lower, "identity") && !strings.Contains(text, "*"),
			must && !strings.Contains(text, ";"):
			t.Fatalf("%q: form %d, must %v", text, best, must)
		}
		if again, m := negotiate([]string{text, text}); again != best || m != must {
			t.Fatalf("%q said twice: %d %v, once %d %v", text, again, m, best, must)
		}
		if again, m := negotiate([]string{"br, deflate;q=0.3", text, "x-unknown;q=0"}); again != best || m != must {
			t.Fatalf("%q beside codings nobody here knows: %d %v, alone %d %v", text, again, m, best, must)
		}
		if strings.Count(text, `"`)%2 == 0 && !strings.Contains(text, "\\") {
			if again, m := negotiate([]string{text + ",identity;q=1"}); m || again != plainForm && best == plainForm {
				t.Fatalf("%q and the plain form in first place: %d %v, before %d", text, again, m, best)
			}
		}
		for item := range header.Items([]string{text}) {
			if _, q := header.Weight(item); q < 0 || q > 1000 {
				t.Fatalf("%q has the weight %d", item, q)
			}
		}
	})
}
