// This file chooses the compression in which a body is sent.

package proxy

import (
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

// codings are the values of Content-Encoding. Header maps share these slices. Appending to such a slice never
// changes it, because it has no spare capacity.
var codings = [forms][]string{gzipForm: {"gzip"}, zstdForm: {"zstd"}}

// etagEndings are the endings that the ETags of compressed bodies have. A strong ETag names exact bytes, so it must
// differ from the ETag of the plain body (RFC 9110, 8.8.3.3 has the same scheme).
var etagEndings = [forms]string{gzipForm: "-gzip", zstdForm: "-zstd"}

// negotiate chooses the compression of a response from the lines of Accept-Encoding (RFC 9110, 12.5.3). It chooses
// the supported compression with the highest weight, and gzip if gzip and zstd have the same weight. It chooses no
// compression if "identity" has a higher weight. "*" stands for gzip if gzip is not named, never for zstd. must is
// true if the client does not accept a plain body. If nothing is acceptable, the plain body is sent.
func negotiate(lines []string) (best form, must bool) {
	if len(lines) == 0 {
		return plainForm, false
	}
	gzip, zstd, star, identity := -1, -1, -1, -1 // the weights in thousandths; -1 means that the header does not name the coding
	for item := range header.Items(lines) {
		switch name, q := header.Weight(item); strings.ToLower(name) {
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
