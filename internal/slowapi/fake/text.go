// Text: the texts of messages, in many languages, scripts and lengths.
package fake

import (
	_ "embed"
	"strconv"
	"strings"

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
