// Durations as people write them.

package understudy

import (
	"fmt"
	"regexp"
	"strconv"
	"time"
)

// longUnit is a part of a duration that time.ParseDuration does not know.
var longUnit = regexp.MustCompile(`^(\d+(?:\.\d+)?)([dw])`)

// ParseDuration reads a duration as time.ParseDuration does, and days (d, 24 hours) and
// weeks (w) before it: 30d, 2w, 1d12h, 1.5d, 90s. The error names the text and the forms.
func ParseDuration(text string) (time.Duration, error) {
	hours, rest := "", text
	for part := longUnit.FindStringSubmatch(rest); part != nil; part = longUnit.FindStringSubmatch(rest) {
		n, _ := strconv.ParseFloat(part[1], 64) // too many become a text that is refused below
		if part[2] == "w" {
			n *= 7
		}
		hours += strconv.FormatFloat(24*n, 'f', -1, 64) + "h"
		rest = rest[len(part[0]):]
	}
	d, err := time.ParseDuration(hours + rest)
	if err != nil {
		return 0, fmt.Errorf("%q is no duration; write 30s, 5m, 24h, 30d or 2w", Clip(text))
	}
	return d, nil
}
