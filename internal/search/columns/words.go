// Words: the values of a column that many records share, each kept once.

package columns

import (
	"understudy"
	"understudy/internal/query"
	"understudy/kit/e164"
	"understudy/kit/jsonspan"
)

// words numbers values from 1 on. A value that no record has any more is gone at once,
// and its number is given to another.
type words struct {
	raw     []string // as JSON
	text    []string // decoded
	country []string
	refs    []uint32
	free    []uint32
	at      map[string]uint32
	reused  int // how often a number was given to another value
	bytes   int64
}

// add is the number of a value, which one more record has.
func (w *words) add(raw []byte) uint32 {
	if n, ok := w.at[string(raw)]; ok {
		w.refs[n]++
		return n
	}
	if w.at == nil {
		w.at = map[string]uint32{}
		w.raw, w.text, w.country, w.refs = make([]string, 1), make([]string, 1), make([]string, 1), make([]uint32, 1)
	}
	own := string(raw)
	text := valueOf(own, "").Text()
	country := ""
	if p := understudy.ParsePhone(text); p.HasCountryCode {
		country = e164.Country(p.Digits)
	}
	w.bytes += int64(len(own) + len(text) + 64)
	if last := len(w.free) - 1; last >= 0 {
		n := w.free[last]
		w.free = w.free[:last]
		w.reused++
		w.raw[n], w.text[n], w.country[n], w.refs[n], w.at[own] = own, text, country, 1, n
		return n
	}
	n := uint32(len(w.raw))
	w.raw, w.text = append(w.raw, own), append(w.text, text)
	w.country, w.refs = append(w.country, country), append(w.refs, 1)
	w.at[own] = n
	return n
}

// drop says that one record less has a value.
func (w *words) drop(n uint32) {
	if w.refs[n]--; w.refs[n] > 0 {
		return
	}
	w.bytes -= int64(len(w.raw[n]) + len(w.text[n]) + 64)
	delete(w.at, w.raw[n])
	w.raw[n], w.text[n], w.country[n] = "", "", ""
	w.free = append(w.free, n)
}

// valueOf is a value of its JSON.
func valueOf(raw, typ string) query.Value {
	body := []byte(raw)
	doc, err := jsonspan.Parse(body)
	if err != nil {
		return query.Value{}
	}
	return query.NewValue(body, doc, typ)
}
