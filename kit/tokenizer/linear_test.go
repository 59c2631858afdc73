// Cutting looks at no character more than a few times, whatever the text.

package tokenizer_test

import (
	"strings"
	"testing"

	"understudy/internal/sample"
	"understudy/kit/tokenizer"
)

// linear cuts a text and reports whether it was looked at as often as its length
// allows, and no word came from where one had been taken.
func linear(t *testing.T, text string) (n int) {
	t.Helper()
	var c tokenizer.Cutter
	c.Reset(text)
	for end := 0; c.Next(); n++ {
		if c.Word.Start < end || c.Word.End <= c.Word.Start {
			t.Fatalf("a word at %d to %d after %d", c.Word.Start, c.Word.End, end)
		}
		end = c.Word.End
	}
	if most := 2*len(text) + 2; c.Looks() > most {
		t.Fatalf("%d looks at %d bytes, want at most %d", c.Looks(), len(text), most)
	}
	return n
}

// Texts of one thing again and again are the worst: long words, words written in parts,
// emoji joined without end, beginnings that never become a word.
func TestCuttingIsLinear(t *testing.T) {
	long := sample.OneIn(t, 8)
	for _, unit := range []string{
		"a", "é", "я", "ß", "क", "क़", "\u0301", "e\u0301", "\u0345", "\u3099", "か\u3099", "ｶﾞ", "\u1100", "\u1100\u1161", "\u1100\u1161\u11a8",
		"한",
		"東", "東\ufe00", "ส", "ห้", "\u200d", "👩", "👩\u200d", "👩\u200d👩", "👩\u200d東", "👩\u200da", "\u200d👩\u200d\u200d", "👍🏽", "🏽", "🇩", "🇩🇪",
		"\U000e0041", "👍\U000e0041", "\ufe0f", "❤\ufe0f", "\u00ad", "a\u00ad", "東\u00ad", "\xff", "\xe3\x81", "\xf0\x9f\x91", "a\xff", "東\xff",
		"👩\xff", "\x00", "\u0640", "م\u064f", "\ue000", "\U0010ffff", " ",
	} {
		sizes := []int{1 << 10, 1 << 20}
		if !long() {
			sizes = sizes[:1]
		}
		for _, size := range sizes {
			few := size / len(unit)
			text := strings.Repeat(unit, few)
			linear(t, text)
			for _, around := range []string{"a", "東", "👩", "\u3099"} {
				linear(t, around+text[:len(text)/16]+around)
			}
		}
	}
	if n := linear(t, strings.Repeat("東", 1<<18)); n != 1<<18 {
		t.Errorf("%d words of as many as there are characters", n)
	}
	if n := linear(t, strings.Repeat("👩\u200d", 1<<17)); n != 1 {
		t.Errorf("%d words of people joined by the hand", n)
	}
}
