// Cutting and folding: tables by script, and what holds for any text.

package tokenizer_test

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"understudy/internal/checktest"
	"understudy/internal/sample"
	"understudy/kit/tokenizer"
)

func TestFold(t *testing.T) {
	for text, want := range map[string]string{
		"":                              "",
		"Hello, World!":                 "hello world",
		"#4711 anna.b@example.com":      "4711 anna b example com",
		"https://example.com/a?b=c-d":   "https example com a b c d",
		"well-known don't snake_case":   "well known don t snake case",
		"+1 (415) 555-0100":             "1 415 555 0100",
		"Straße STRASSE ﬁn":             "strasse strasse fin",
		"Éclair e\u0301clair":           "eclair eclair",
		"İstanbul ISTANBUL ısı":         "istanbul istanbul isi",
		"Łódź Ærø Đorđe":                "lodz aero dorde",
		"ΟΔΟΣ οδός Ἄνθρωπος":            "οδοσ οδοσ ανθρωποσ",
		"Ёлка елка ЙОД и\u0306од":       "елка елка иод иод",
		"مُحَمَّد محمـد":                "محمد محمد",
		"أحمد إحمد احمد ٱحمد على علي":   "احمد احمد احمد احمد علي علي",
		"שָׁלוֹם שלום":                  "שלום שלום",
		"नमस्ते क़लम कलम १२३":           "नमस्ते कलम कलम 123",
		"สวัสดี":                        "ส ว ั ส ด ี",
		"๑๒ ห้อง၃":                      "12 ห ้ อ ง 3",
		"東京tower123":                    "東 京 tower123",
		"こんにちは、世界。":                     "こ ん に ち は 世 界",
		"ｶﾞｯﾀ ガッタ カ\u3099":              "ガ ッ タ ガ ッ タ ガ",
		"한국 \u1112\u1161\u11ab\u1100":   "한 국 한 ᄀ",
		"ＡＢＣ１２":                         "abc12",
		"👍🏽👍 ok":                        "👍 👍 ok",
		"👩‍💻 ❤️ 🇩🇪🇫🇷":                   "👩\u200d💻 ❤ 🇩🇪 🇫🇷",
		"a\u00adb zero\u200bwidth":      "ab zerowidth",
		"\xff\xfea\x80b":                "a b",
		"٣٤ x² №5":                      "34 x2 5",
		"\ufdfa \u00d7 \u2502 \u20ac12": "\ufdfa 12",
	} {
		if got := strings.Join(tokenizer.Fold(text), " "); got != want {
			t.Errorf("%q: %q (%+q), want %q", text, got, got, want)
		}
	}
}

// A mark belongs to the word it stands on.
func TestPlaces(t *testing.T) {
	text := "¡e\u0301t 東\ufe00京👍🏽!"
	var got []string
	for w := range tokenizer.Cut(text) {
		got = append(got, text[w.Start:w.End])
	}
	if want := []string{"e\u0301t", "東\ufe00", "京", "👍🏽"}; !slices.Equal(got, want) {
		t.Errorf("%+q, want %+q", got, want)
	}
}

func TestLongWord(t *testing.T) {
	for _, letter := range []string{"a", "é", "я", "क", "ß", "ﬃ"} {
		got := tokenizer.Fold(strings.Repeat(letter, 1000) + " b")
		checktest.MustEqual(t, len(got), 2, "%s: len(got)", letter)
		checktest.MustTrue(t, len(got[0]) <= tokenizer.MaxWord, "%s: len(got[0]) is %v", letter, len(got[0]))
		checktest.MustTrue(t, len(got[0]) >= tokenizer.MaxWord-3, "%s: len(got[0]) is %v", letter, len(got[0]))
		checktest.Equal(t, got[1], "b", "%s: got[1]", letter)
	}
}

var seeds = []string{"", "Hello, World!", "Straße", "İstanbul", "Éclair e\u0301", "مُحَمَّد", "שָׁלוֹם", "क़लम", "สวัสดี", "東京tower", "ｶﾞｯ",
	"\u1112\u1161\u11ab",
	"👩‍💻👍🏽🇩🇪🇫", "0㊂", "\u200d👍\u200d\u200d", "a\xff\u0301b", "\u3099", "ﬃ\u0345", "\U000e0041", "\u1e9e\u0130", "가\u11a8\u11a8"}

// Every character, by itself and between others, folds to words that fold to
// themselves.
func TestEveryCharacter(t *testing.T) {
	run := sample.OneIn(t, 20)
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if !run() {
			continue
		}
		text := "0" + string(r) + "三" + string(r) + "a"
		for _, w := range tokenizer.Fold(text) {
			if again := tokenizer.Fold(w); len(again) != 1 || again[0] != w {
				t.Errorf("%+q: %+q folds to %+q", text, w, again)
			}
		}
	}
}

// What holds for any text: words are in order, folded ones fold to themselves,
// ASCII in them is lower-case letters and digits, a word is found in
// the text it is from, and what is beyond it is not in it.
func FuzzCut(f *testing.F) {
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		end := 0
		var all []string
		for w := range tokenizer.Cut(text) {
			checktest.MustTrue(t, w.Start >= end, "%q: w.Start is %v", text, w.Start)
			checktest.MustTrue(t, w.End > w.Start, "%q: w.End is %v", text, w.End)
			checktest.MustTrue(t, w.End <= len(text), "%q: w.End is %v", text, w.End)
			end = w.End
			folded := string(w.Folded)
			all = append(all, folded)
			checktest.MustTrue(t, folded != "", "%q: folded is empty", text)
			checktest.MustTrue(t, len(folded) <= tokenizer.MaxWord, "%q: len(folded) is %v", text, len(folded))
			checktest.MustTrue(t, utf8.ValidString(folded), "%q: utf8.ValidString(folded) is false", text)
			for _, b := range w.Folded {
				if b < 0x80 && !('a' <= b && b <= 'z' || '0' <= b && b <= '9') {
					t.Fatalf("%q: %q has %q", text, folded, b)
				}
			}
			if again := tokenizer.Fold(folded); len(again) != 1 || again[0] != folded {
				t.Fatalf("%q: %+q folds to %+q", text, folded, again)
			}
			if again := tokenizer.Fold(text[w.Start:w.End]); len(again) != 1 || again[0] != folded {
				t.Fatalf("%q: %+q by itself folds to %+q, not to %+q", text, text[w.Start:w.End], again, folded)
			}
		}
		if n := linear(t, text); n != len(all) {
			t.Fatalf("%q: %d words, then %d", text, len(all), n)
		}
		if len(all) > 0 && len(all) <= tokenizer.MaxPhrase && !tokenizer.Phrase(false, text).MatchText("x. "+text+" y") {
			t.Fatalf("%q is not found in itself", text)
		}
		if up := tokenizer.Fold(strings.ToUpper(text)); isASCII(text) && !slices.Equal(up, all) {
			t.Fatalf("%q: %q in upper case", all, up)
		}
	})
}

func isASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}

// FuzzFind compares looking with comparing words one by one.
func FuzzFind(f *testing.F) {
	f.Add("the quick brown fox", "quick br", true)
	f.Add("東京都に住む", "京都", false)
	f.Add("aa aa aa aab", "aa aa", true)
	f.Fuzz(func(t *testing.T, text, phrase string, prefix bool) {
		p := tokenizer.Phrase(prefix, phrase)
		want, have := p.Words(), slices.Collect(tokenizer.Cut(text))
		folded := tokenizer.Fold(text)
		var places []int
		for i := range folded {
			if len(want) == 0 || i+len(want) > len(folded) {
				break
			}
			n := len(want) - 1
			last := folded[i+n] == want[n] || p.IsPrefix() && strings.HasPrefix(folded[i+n], want[n])
			if slices.Equal(folded[i:i+n], want[:n]) && last {
				places = append(places, have[i].Start, have[i+n].End)
			}
		}
		var got []int
		for start, end := range p.Find(text) {
			got = append(got, start, end)
		}
		if !slices.Equal(got, places) {
			t.Fatalf("%q in %q: %v, want %v", phrase, text, got, places)
		}
	})
}

func TestCutterAllocatesNothing(t *testing.T) {
	text := strings.Repeat("The quick brown fox (415) 555-0100 jumps over Straße und 東京. ", 20)
	var c tokenizer.Cutter
	p := tokenizer.Phrase(true, "quick brown wolf")
	n := 0
	if allocs := testing.AllocsPerRun(20, func() {
		c.Reset(text)
		for c.Next() {
			n += len(c.Word.Folded)
		}
	}); allocs > 0 {
		t.Errorf("%v allocations to cut", allocs)
	}
	if allocs := testing.AllocsPerRun(20, func() {
		if p.MatchText(text) {
			t.Error("found")
		}
	}); allocs > 1 {
		t.Errorf("%v allocations to look", allocs)
	}
}

func BenchmarkCut(b *testing.B) {
	for name, text := range map[string]string{
		"ascii":    strings.Repeat("Your parcel 4711 arrives today between 10 and 12. ", 20),
		"cyrillic": strings.Repeat("Ваша посылка прибудет сегодня, ёлка. ", 20),
		"japanese": strings.Repeat("お荷物は本日到着します。", 20),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			var c tokenizer.Cutter
			for b.Loop() {
				c.Reset(text)
				for c.Next() {
				}
			}
		})
	}
}

func BenchmarkFind(b *testing.B) {
	text := strings.Repeat("Your parcel 4711 arrives today between 10 and 12. ", 20)
	p := tokenizer.Phrase(true, "today between eleven")
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		p.MatchText(text)
	}
}
