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

// texts are texts of messages from people and programs. The placeholders stand for a name {n}, a code {c}, a time of
// day {t} and an amount {a}.
var texts = format.DecodeEmbedded[struct {
	Short []string
	Long  []string // texts that need several SMS segments
	Names []string
}](rawTexts)

// Names returns the names of people.
func Names() []string { return texts().Names }

// Body returns the text of a message. If the message has media, the text may be empty.
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

// fill replaces the placeholders in a text by random values.
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
