// Durations as people write them.

package understudy

import (
	"fmt"
	"strconv"
	"time"
)

// maxDays bounds a duration in days or weeks: what time.Duration can hold.
const maxDays = 106_751

// ParseDuration reads a duration as time.ParseDuration does, and days (d, 24 hours) and
// weeks (w) before it: 30d, 2w, 1d12h, 1.5d, 90s. The error names the text and the forms.
func ParseDuration(text string) (time.Duration, error) {
	rest, days := text, 0.0
	for rest != "" {
		end := 0
		for end < len(rest) && (rest[end] == '.' || rest[end] >= '0' && rest[end] <= '9') {
			end++
		}
		if end == len(rest) || rest[end] != 'd' && rest[end] != 'w' {
			break
		}
		count, err := strconv.ParseFloat(rest[:end], 64)
		if err != nil {
			break
		}
		if rest[end] == 'w' {
			count *= 7
		}
		days, rest = days+count, rest[end+1:]
	}
	var left time.Duration
	var err error
	if rest != "" || text == "" {
		left, err = time.ParseDuration(rest)
	}
	if err != nil || days > 0 && left < 0 || days > maxDays-1 {
		return 0, fmt.Errorf("%q is no duration; write 30s, 5m, 24h, 30d or 2w", Clip(text))
	}
	total := time.Duration(days*24*float64(time.Hour)) + left
	if total < left {
		return 0, fmt.Errorf("%q is no duration; write 30s, 5m, 24h, 30d or 2w", Clip(text))
	}
	return total, nil
}
