// Conditions: what a request says of versions it has.

package proxy

import "strings"

// noneMatch reports whether an If-None-Match header names tag, given without
// its quotes, in any of its forms (RFC 9110, 13.1.2: weak comparison; all
// forms are of one version). "*" must stand alone. A line counts up to where it
// is malformed.
func noneMatch(lines []string, tag string) bool {
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
			if version(named) == tag {
				return true
			}
			rest = after
		}
	}
	return false
}

// version is an ETag less the ending of its form.
func version(named string) string {
	for _, ending := range endings[gzipForm:] {
		if bare, ok := strings.CutSuffix(named, ending); ok {
			return bare
		}
	}
	return named
}
