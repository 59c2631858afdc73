// Negotiate: in which compression a body is sent.

package proxy

import (
	"strconv"
	"strings"

	"understudy/kit/header"
)

// form is the compression of a body.
type form uint8

const (
	plainForm form = iota
	gzipForm
	zstdForm
	forms
)

// codings are the values of Content-Encoding. Header maps share these slices. An
// append never writes into them, because they have no spare capacity.
var codings = [forms][]string{gzipForm: {"gzip"}, zstdForm: {"zstd"}}

// etagEndings distinguish the ETag of a compressed form from that of the plain form. A strong ETag names exact
// bytes (RFC 9110, 8.8.3.3 has the same scheme).
var etagEndings = [forms]string{gzipForm: "-gzip", zstdForm: "-zstd"}

// negotiate chooses the form of a response (RFC 9110, 12.5.3). It is the supported form with the highest
// weight; gzip if gzip and zstd have the same weight; the plain form if its weight is given and higher. "*"
// stands for gzip if gzip is not given, never for zstd. must is true if the plain form is not acceptable. If no
// form is acceptable, the plain form is sent.
func negotiate(lines []string) (best form, must bool) {
	if len(lines) == 0 {
		return plainForm, false
	}
	gzip, zstd, star, identity := -1, -1, -1, -1 // quality values in thousandths; -1 means not named
	for item := range header.Items(lines) {
		name, params, _ := strings.Cut(item, ";")
		switch q := weight(params); strings.ToLower(strings.Trim(name, " \t")) {
		case "gzip", "x-gzip":
			gzip = max(gzip, q)
		case "zstd":
			zstd = max(zstd, q)
		case "*":
			star = max(star, q)
		case "identity":
			identity = max(identity, q)
		}
	}
	if gzip < 0 {
		gzip = star
	}
	best, q := gzipForm, gzip
	if zstd > gzip {
		best, q = zstdForm, zstd
	}
	if q <= 0 || q < identity {
		return plainForm, false
	}
	return best, identity == 0 || identity < 0 && star == 0
}

// weight returns the q parameter in thousandths. It returns 1000 if there is none, and 0 for a malformed one.
func weight(params string) int {
	for params != "" {
		var param string
		param, params, _ = strings.Cut(params, ";")
		name, value, ok := strings.Cut(strings.Trim(param, " \t"), "=")
		if !ok || !strings.EqualFold(name, "q") {
			continue
		}
		whole, fraction, _ := strings.Cut(value, ".")
		if whole != "0" && whole != "1" || len(fraction) > 3 {
			return 0
		}
		n, err := strconv.Atoi(whole + (fraction + "000")[:3])
		if err != nil || n < 0 || n > 1000 || strings.ContainsAny(fraction, "+-") {
			return 0
		}
		return n
	}
	return 1000
}
