// This file contains questions about a series, and parses their parameters.

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

// Question asks whether and when a series reaches a level.
type Question struct {
	Series  understudy.Series
	Level   string        // the level as a decimal number, as the caller wrote it
	Within  time.Duration // the time span of the question, counted from now
	Percent float64       // the required certainty of the answer, above 0 and below 1
}

// Defaults for the parameters that a caller leaves out.
const (
	DefaultLevel   = "0"
	DefaultWithin  = "30d"
	DefaultPercent = 0.95
)

// Parameters are the names of the query parameters of a question.
var Parameters = []string{"level", "by", "percent"}

// ParseQuestion reads a question about a series from query parameters. Missing or empty parameters
// get their defaults. Errors wrap ErrInvalid and name a valid value.
func ParseQuestion(s understudy.Series, query url.Values) (Question, error) {
	return NewQuestion(s, query.Get("level"), query.Get("by"), query.Get("percent"))
}

// NewQuestion returns the question with the given parameter values. Defaults and errors are those of ParseQuestion.
func NewQuestion(s understudy.Series, level, by, percent string) (q Question, err error) {
	q = Question{Series: s, Level: DefaultLevel, Percent: DefaultPercent}
	if level != "" {
		if v, err := strconv.ParseFloat(level, 64); err != nil || math.IsInf(v, 0) || math.IsNaN(v) || len(level) > maxLevelBytes {
			return q, newInputError("level: %q is not a number; write 0 or 12.50", level)
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
			return q, newInputError("percent: %q is not a number above 0 and below 1; write 0.95", percent)
		}
	}
	return q, nil
}

const (
	maxLevelBytes = 40
	minWithin     = time.Minute
	maxWithin     = 3650 * day
	day           = 24 * time.Hour
)

// ParseWithin parses a duration such as 30d, 2w or a Go duration, from 1 minute to 3650 days. Errors wrap ErrInvalid.
func ParseWithin(text string) (time.Duration, error) {
	d, err := understudy.ParseDuration(text)
	if err != nil || d < minWithin || d > maxWithin {
		return 0, newInputError("by: %q is not a time from 1m to 3650d; write 30d or 12h", text)
	}
	return d, nil
}

func newInputError(format, text string) error {
	return fmt.Errorf("forecast: %w: "+format, understudy.ErrInvalid, understudy.Clip(text))
}

func (q Question) levelNumber() float64 {
	v, _ := strconv.ParseFloat(q.Level, 64) // cannot fail, because NewQuestion has parsed the level
	return v
}
