// Question: what is asked of a series, and how it is written.

package forecast

import (
	"cmp"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"time"

	"understudy"
)

// Question asks when a series reaches a level.
type Question struct {
	Series  understudy.Series
	Level   string        // a decimal, as it was written
	Within  time.Duration // from now
	Percent float64       // a probability, above 0 and below 1: how sure an answer is to be
}

// What is asked where nothing is said.
const (
	DefaultLevel   = "0"
	DefaultWithin  = "30d"
	DefaultPercent = 0.95
)

// Parameters are the names of a question's parts in the query of an address.
var Parameters = []string{"level", "by", "percent"}

// ParseQuestion reads a question about a series; parts that are missing or empty have
// their defaults. Errors wrap ErrInvalid and say what to write.
func ParseQuestion(s understudy.Series, query url.Values) (Question, error) {
	return NewQuestion(s, query.Get("level"), query.Get("by"), query.Get("percent"))
}

// NewQuestion is ParseQuestion of the parts alone.
func NewQuestion(s understudy.Series, level, by, percent string) (q Question, err error) {
	q = Question{Series: s, Level: DefaultLevel, Percent: DefaultPercent}
	if level != "" {
		if v, err := strconv.ParseFloat(level, 64); err != nil || math.IsInf(v, 0) || math.IsNaN(v) || len(level) > mostLevel {
			return q, invalid("level: %q is no number; write 0 or 12.50", level)
		}
		q.Level = level
	}
	by = cmp.Or(by, DefaultWithin)
	if q.Within, err = ParseWithin(by); err != nil {
		return q, err
	}
	if percent != "" {
		q.Percent, err = strconv.ParseFloat(percent, 64)
		if err != nil || !(q.Percent > 0 && q.Percent < 1) {
			return q, invalid("percent: %q is no probability above 0 and below 1; write 0.95", percent)
		}
	}
	return q, nil
}

const (
	mostLevel   = 40 // bytes
	leastWithin = time.Minute
	mostWithin  = 3650 * day
	day         = 24 * time.Hour
)

// ParseWithin reads a time as 30d, 2w or a Go duration, from a minute to ten years. Errors
// wrap ErrInvalid.
func ParseWithin(text string) (time.Duration, error) {
	d, err := understudy.ParseDuration(text)
	if err != nil || d < leastWithin || d > mostWithin {
		return 0, invalid("by: %q is no time from 1m to 3650d; write 30d or 12h", text)
	}
	return d, nil
}

func invalid(format, text string) error {
	return fmt.Errorf("forecast: %w: "+format, understudy.ErrInvalid, understudy.Clip(text))
}

// level is the level as a number.
func (q Question) level() float64 {
	v, _ := strconv.ParseFloat(q.Level, 64) // it was checked
	return v
}
