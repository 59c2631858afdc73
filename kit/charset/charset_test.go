package charset_test

import (
	"bytes"
	"fmt"
	"testing"
	"unicode/utf8"

	"understudy/internal/checktest"
	"understudy/kit/charset"
)

func ExampleGuess() {
	body := []byte("{\"name\":\"Zo\xeb\"}")
	c, known := charset.Guess("ISO-8859-1", body)
	text, ok := c.Decode(body)
	again, _ := c.Encode(text)
	fmt.Println(c, known, string(text), ok, bytes.Equal(again, body))
	// Output: windows-1252 true {"name":"Zoë"} true true
}

func TestOf(t *testing.T) {
	for _, c := range []struct {
		label, body string
		want        charset.Charset
		known       bool
	}{
		{"", "{}", charset.UTF8, true},
		{"UTF-8", "{\"a\":\"ë\"}", charset.UTF8, true},
		{"utf-8", "\xef\xbb\xbf{}", charset.UTF8Marked, true},
		{"latin1", "{}", charset.UTF8, true},
		{"latin1", "{\"a\":\"\xeb\"}", charset.Windows1252, true},
		{"latin1", "{\"a\":\"ë\"}", charset.UTF8, false}, // it is UTF-8: the label is wrong
		{"Windows-1252", "{\"a\":\"\x80\"}", charset.Windows1252, true},
		{"iso-8859-15", "{}", charset.UTF8, true},
		{"iso-8859-15", "{\"a\":\"\xa4\"}", charset.UTF8, false}, // the euro sign, and no euro sign in 1252
		{"utf-16", "\xff\xfe{\x00}\x00", charset.UTF16LEMarked, true},
		{"", "\xfe\xff\x00{\x00}", charset.UTF16BEMarked, true},
		{"", "{\x00}\x00", charset.UTF16LE, true},
		{"", "\x00{\x00}", charset.UTF16BE, true},
		{"utf-16", "{}", charset.UTF8, false},
		{"", "\x00\x00\x00{", charset.UTF8, false},
		{"", "{\x00\x00\x00", charset.UTF8, false},
		{"", "\xff\xfe\x00\x00{\x00\x00\x00", charset.UTF8, false},
		{"shift_jis", "{\"a\":\"\x95\x5c\"}", charset.UTF8, false},
	} {
		if got, known := charset.Guess(c.label, []byte(c.body)); got != c.want || known != c.known {
			t.Errorf("Of(%q, %q) = %q, %v; want %q, %v", c.label, c.body, got, known, c.want, c.known)
		}
	}
}

// What cannot be given back is refused.
func TestDecodeRefuses(t *testing.T) {
	for _, c := range []struct {
		of   charset.Charset
		body string
	}{
		{charset.UTF16LE, "{\x00\x00\xd8"},     // half a pair
		{charset.UTF16LE, "{\x00}"},            // a cut unit
		{charset.UTF16BEMarked, "\x00{\x00}"},  // no mark
		{charset.UTF8Marked, "{}"},             // no mark
		{charset.Charset("koi8-r"), "{\"a\"}"}, // not known
	} {
		if text, ok := c.of.Decode([]byte(c.body)); ok {
			t.Errorf("%s: %q is %q", c.of, c.body, text)
		}
	}
	if b, ok := charset.Windows1252.Encode([]byte("山")); ok {
		t.Errorf("windows-1252 has 山: %q", b)
	}
}

// All 256 bytes of windows-1252 come back.
func TestWindows1252(t *testing.T) {
	var all []byte
	for i := range 256 {
		all = append(all, byte(i))
	}
	text, ok := charset.Windows1252.Decode(all)
	checktest.MustTrue(t, ok, "ok is false; text %q", text)
	checktest.MustTrue(t, utf8.Valid(text), "utf8.Valid(text) is false")
	checktest.MustEqual(t, utf8.RuneCount(text), 256, "utf8.RuneCount(text)")
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{"{}", "\xef\xbb\xbf{}", "\xff\xfe{\x00}\x00", "\x00{\x00}", "Zo\xeb \x80", "\xff\xfe=\xd8\x00\xde"} {
		f.Add("latin1", []byte(seed))
	}
	f.Fuzz(func(t *testing.T, label string, b []byte) {
		c, known := charset.Guess(label, b)
		if !known {
			return
		}
		text, ok := c.Decode(b)
		if !ok {
			return
		}
		if c != charset.UTF8 && c != charset.UTF8Marked && !utf8.Valid(text) {
			t.Fatalf("%s: %q is no UTF-8", c, text)
		}
		if again, ok := c.Encode(text); !ok || !bytes.Equal(again, b) {
			t.Fatalf("%s: %q became %q", c, b, again)
		}
	})
}
