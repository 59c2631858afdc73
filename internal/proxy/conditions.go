// This file reads from a request which versions of a response the client already has.

package proxy

import "strings"

// hasTag reports whether an If-None-Match header contains tag, given without quotes, for any compression of the
// body (RFC 9110, 13.1.2: weak comparison; all compressions belong to one version). "*" must stand alone. A line is
// read up to its first syntax error.
func hasTag(lines []string, tag string) bool {
	if len(lines) == 1 && strings.Trim(lines[0], " \t") == "*" {
		return true
	}
	for _, rest := range lines {
		for rest != "" {
			rest = strings.TrimPrefix(strings.TrimLeft(rest, " \t,"), "W/")
			text, quoted := strings.CutPrefix(rest, `"`)
			named, after, closed := strings.Cut(text, `"`)
			after = strings.TrimLeft(after, " \t")
			if !quoted || !closed || after != "" && after[0] != ',' {
				break
			}
			if tagVersion(named) == tag {
				return true
			}
			rest = after
		}
	}
	return false
}

// tagVersion returns an ETag without the ending that names the compression.
func tagVersion(named string) string {
	for _, ending := range etagEndings[gzipForm:] {
		if bare, ok := strings.CutSuffix(named, ending); ok {
			return bare
		}
	}
	return named
}
