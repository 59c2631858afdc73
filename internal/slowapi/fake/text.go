// Text: the texts of messages, in many languages, scripts and lengths.
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

// texts are the texts of people and programs. {n} stands for a name, {c} for a code, {t} for a time of day, {a}
// for an amount.
var texts = format.DecodeEmbedded[struct {
	Short []string
	Long  []string // texts that fill several segments
	Names []string
}](rawTexts)

// Names returns the names of people.
func Names() []string { return texts().Names }

// Body returns the text of a message. The text of a message with media may be empty.
func Body(d Rng, media bool) string {
	kind := d.IntBelow(100)
	pick := d.Next()
	switch {
	case media && kind < 40, kind == 99:
		return ""
	case kind < 92:
		return fill(texts().Short[pick%uint64(len(texts().Short))], &d)
	}
	text := texts().Long[pick%uint64(len(texts().Long))]
	text = fill(strings.Repeat(text, 1+d.IntBelow(5)), &d)
	all := []rune(text)
	return string(all[:min(len(all), 1600)])
}

// fill replaces the placeholders of a text by names, codes, times and amounts.
func fill(text string, d *Rng) string {
	if !strings.Contains(text, "{") {
		return text
	}
	name := Names()[d.IntBelow(len(Names()))]
	code := strconv.Itoa(100000 + d.IntBelow(900000))
	clock := strconv.Itoa(8+d.IntBelow(12)) + ":" + strconv.Itoa(10*(1+d.IntBelow(5)))
	amount := strconv.Itoa(1+d.IntBelow(900)) + "." + strconv.Itoa(10+d.IntBelow(90))
	return strings.NewReplacer("{n}", name, "{c}", code, "{t}", clock, "{a}", amount).Replace(text)
}

// gsm are the characters of GSM 03.38 that take one septet, gsmExtension those that take two.
const (
	gsm = "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ " +
		"!\"#¤%&'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà"
	gsmExtension = "\f^{}\\[~]|€"
)

// Segments returns the number of parts in which a text is sent. In GSM 03.38 a single part has 160 septets, and
// each of several parts 153; other texts have 70 or 67 UTF-16 units. Neither a surrogate pair nor an escaped
// septet is cut.
func Segments(text string) int {
	var septets, units []int
	fits := true
	for _, r := range text {
		units = append(units, utf16.RuneLen(r))
		switch {
		case strings.ContainsRune(gsm, r):
			septets = append(septets, 1)
		case strings.ContainsRune(gsmExtension, r):
			septets = append(septets, 2)
		default:
			fits = false
		}
	}
	if fits {
		return countParts(septets, 160, 153)
	}
	return countParts(units, 70, 67)
}

func countParts(sizes []int, one, each int) int {
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
