package format

import (
	"bytes"
	"encoding/json"
	"testing"
)

func FuzzText(f *testing.F) {
	f.Add([]byte("a\"\\/\n\r\t\x00\x7f<>&\u2028é👍\xff\xc3"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		got := AppendText(nil, raw)
		if !bytes.Equal(got, AppendText(nil, string(raw))) {
			t.Fatal("string and bytes differ")
		}
		var back string
		if err := json.Unmarshal(got, &back); err != nil {
			t.Fatalf("%q: %v", got, err)
		}
		if want := string([]rune(string(raw))); back != want {
			t.Fatalf("%q, want %q", back, want)
		}
	})
}
