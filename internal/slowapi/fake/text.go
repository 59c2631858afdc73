// What messages say: many languages, scripts, lengths and awkward characters.
package fake

import (
	_ "embed"
	"strconv"
	"strings"
	"unicode/utf16"

	"understudy/internal/slowapi/format"
)

//go:embed texts.json
var rawTexts []byte

// texts are what people and programs write. {n} is a name, {c} a code, {t} a
// time of day, {a} an amount.
var texts = format.Embedded[struct {
	Short []string
	Long  []string // which fill several segments
	Names []string
}](rawTexts)

// Names returns what people are called.
func Names() []string { return texts().Names }

// Body is what a message says. Those with media may say nothing at all.
func Body(d Rng, media bool) string {
	kind := d.Below(100)
	pick := d.Next()
	switch {
	case media && kind < 40, kind == 99:
		return ""
	case kind < 92:
		return fill(texts().Short[pick%uint64(len(texts().Short))], &d)
	}
	text := texts().Long[pick%uint64(len(texts().Long))]
	text = fill(strings.Repeat(text, 1+d.Below(5)), &d)
	all := []rune(text)
	return string(all[:min(len(all), 1600)])
}

// fill puts names, codes, times and amounts into a text.
func fill(text string, d *Rng) string {
	if !strings.Contains(text, "{") {
		return text
	}
	name := Names()[d.Below(len(Names()))]
	code := strconv.Itoa(100000 + d.Below(900000))
	clock := strconv.Itoa(8+d.Below(12)) + ":" + strconv.Itoa(10*(1+d.Below(5)))
	amount := strconv.Itoa(1+d.Below(900)) + "." + strconv.Itoa(10+d.Below(90))
	return strings.NewReplacer("{n}", name, "{c}", code, "{t}", clock, "{a}", amount).Replace(text)
}

// gsm are the characters of GSM 03.38 that cost one septet, gsmTwice those that
// cost two.
const (
	gsm = "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ " +
		"!\"#¤%&'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà"
	gsmTwice = "\f^{}\\[~]|€"
)

// Segments is how many parts a text is sent in: 160 septets in one part or 153
// in each of several, and 70 or 67 UTF-16 units when it does not fit GSM 03.38.
// Neither a surrogate pair nor an escaped septet is cut.
func Segments(text string) int {
	var septets, units []int
	fits := true
	for _, r := range text {
		units = append(units, utf16.RuneLen(r))
		switch {
		case strings.ContainsRune(gsm, r):
			septets = append(septets, 1)
		case strings.ContainsRune(gsmTwice, r):
			septets = append(septets, 2)
		default:
			fits = false
		}
	}
	if fits {
		return parts(septets, 160, 153)
	}
	return parts(units, 70, 67)
}

func parts(sizes []int, one, each int) int {
	n, at, whole := 1, 0, 0
	for _, size := range sizes {
		whole += size
		if at+size > each {
			n, at = n+1, 0
		}
		at += size
	}
	if whole <= one {
		return 1
	}
	return n
}
