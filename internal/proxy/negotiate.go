// Negotiate: in which form a body goes out.

package proxy

import (
	"strconv"
	"strings"

	"understudy/kit/header"
)

// form is how a body goes out.
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

// endings tell the ETag of a compressed form from that of the plain one: a
// strong ETag names bytes (RFC 9110, 8.8.3.3 has the same scheme).
var endings = [forms]string{gzipForm: "-gzip", zstdForm: "-zstd"}

// negotiate picks the form of an answer (RFC 9110, 12.5.3): the one we know with the
// highest weight, gzip where it is as welcome as zstd, and
// the plain form where its weight is named and higher. "*" stands for gzip
// where gzip is not named, never for zstd. must says that the plain form is
// not acceptable; with no form acceptable the plain one goes out all the same.
func negotiate(lines []string) (best form, must bool) {
	if len(lines) == 0 {
		return plainForm, false
	}
	gzip, zstd, star, identity := -1, -1, -1, -1 // thousandths; -1: not named
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

// weight reads the q parameter in thousandths; 1000 without one, 0 for a malformed one.
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
