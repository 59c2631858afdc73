// This file stores each distinct value of a column once, under a code.

package columns

import (
	"understudy"
	"understudy/internal/query"
	"understudy/kit/e164"
	"understudy/kit/jsonspan"
)

// valueTable assigns codes to values, starting with 1. A value without records is deleted at once and its code is reused.
type valueTable struct {
	raw     []string // the values as JSON, by code
	text    []string // the values as text, by code
	country []string
	refs    []uint32 // the number of records that have each value, by code
	free    []uint32
	codes   map[string]uint32
	reuses  int // the number of times that a code was given to another value
	bytes   int64
}

// addReference counts one more record with a value, and returns the code of the value.
func (w *valueTable) addReference(raw []byte) uint32 {
	if n, ok := w.codes[string(raw)]; ok {
		w.refs[n]++
		return n
	}
	if w.codes == nil {
		w.codes = map[string]uint32{}
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
		w.reuses++
		w.raw[n], w.text[n], w.country[n], w.refs[n], w.codes[own] = own, text, country, 1, n
		return n
	}
	n := uint32(len(w.raw))
	w.raw, w.text = append(w.raw, own), append(w.text, text)
	w.country, w.refs = append(w.country, country), append(w.refs, 1)
	w.codes[own] = n
	return n
}

// release counts one record less with the value of a code. It deletes a value without records.
func (w *valueTable) release(n uint32) {
	if w.refs[n]--; w.refs[n] > 0 {
		return
	}
	w.bytes -= int64(len(w.raw[n]) + len(w.text[n]) + 64)
	delete(w.codes, w.raw[n])
	w.raw[n], w.text[n], w.country[n] = "", "", ""
	w.free = append(w.free, n)
}

func valueOf(raw, typ string) query.Value {
	body := []byte(raw)
	doc, err := jsonspan.Parse(body)
	if err != nil {
		return query.Value{}
	}
	return query.NewValue(body, doc, typ)
}
