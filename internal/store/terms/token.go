// This file computes tokens: hashes that stand for the values of a record.

package terms

import (
	"strconv"
	"strings"
	"time"

	"understudy"
	"understudy/internal/query"
	"understudy/internal/store/postings"
	"understudy/kit/jsonspan"
)

// tokenOf returns the token of a value: 60 bits of its FNV-1a hash (draft-eastlake-fnv). If different values have the
// same token, the search compares the bodies.
func tokenOf(shape int64, field, value string) int64 {
	const offset, prime = 14695981039346656037, 1099511628211
	n := (uint64(offset) ^ uint64(shape&0xff)) * prime
	n = (n ^ uint64(shape>>8)) * prime
	for i := range len(field) {
		n = (n ^ uint64(field[i])) * prime
	}
	n *= prime // separates the field's name from the value
	for i := range len(value) {
		n = (n ^ uint64(value[i])) * prime
	}
	n ^= n >> 32
	return int64(n & (1<<60 - 1))
}

// perLastFour is the number of tokens of a field for all phone numbers with the same last four digits.
const perLastFour = 100_000

// numberToken returns the token of a phone number. The high bits come from its field. The low bits come from the last
// digits of the number, which are the same in every way of writing it. The last four digits come first. So numbers with
// the same ending have adjacent tokens, as have all numbers of a field, which saves bytes.
func numberToken(shape int64, field, text string) int64 {
	digits, ending := query.LastFour(text)
	if !ending {
		if digits = understudy.ParsePhone(text).Digits; digits == "" {
			return tokenOf(shape, field, strings.ToLower(text))
		}
	}
	n, _ := strconv.ParseInt(digits[max(len(digits)-understudy.MinNationalDigits, 0):], 10, 64)
	return tokenOf(shape, field, "#")>>30<<30 | n%10_000*perLastFour + n/10_000
}

// dayOf returns the number of days from 1970 to a time, in UTC.
func dayOf(unix int64) int64 {
	const day = 24 * 60 * 60
	if unix < 0 {
		return (unix+1)/day - 1
	}
	return unix / day
}

// monthOf returns the number of months from the year 0 to a time, in UTC.
func monthOf(unix int64) int64 {
	t := time.Unix(unix, 0).UTC()
	return int64(t.Year())*12 + int64(t.Month()) - 1
}

func dayTerm(day int64) string     { return "d" + strconv.FormatInt(day, 10) }
func monthTerm(month int64) string { return "m" + strconv.FormatInt(month, 10) }

// monthStart returns the Unix time at which a month begins.
func monthStart(month int64) int64 {
	return time.Date(int(month/12), time.Month(month%12)+1, 1, 0, 0, 0, 0, time.UTC).Unix()
}

// farTerm is a value that a time field has in the index if the time is far from the record's position.
const farTerm = "far"

// noTerm is a value that a time field has in the index if the record has no time in it.
const noTerm = "none"

// nearTime is the maximum distance in seconds between a near time and the second of its record's position. A near time
// is found by the position alone. Most times are near, such as the start of a call, and its end some minutes later.
const nearTime = 60 * 60

// differenceName returns the name in Ranges for the differences between the near times of a field and the seconds of
// their positions.
func differenceName(field string) string { return "~" + field }

// appendTokens appends the tokens of a record at a posting. It calls seen with times that are far from the
// position, and under differenceName with the differences of near times.
func (k *Kind) appendTokens(dst []int64, posting int64, f *query.Facts, seen func(field string, unix int64)) []int64 {
	fields, shape, second := k.Fields, postings.Shape(posting), postings.PositionSecond(postings.Position(posting))
	add := func(field, value string) { dst = append(dst, tokenOf(shape, field, value)) }
	if f.Parent != "" {
		add(parentField, f.Parent)
	}
	body := f.Body
	one := func(f *Field, v jsonspan.Value) {
		if f.way == byTime {
			at := query.NewValue(body, v, f.typ).Unix()
			name, value := f.name, at
			switch off := at - second; {
			case at == 0:
				add(f.name, noTerm)
				return
			case off >= -nearTime && off <= nearTime:
				name, value = f.near, off
			default:
				add(f.name, farTerm)
				add(f.name, dayTerm(dayOf(at)))
				add(f.name, monthTerm(monthOf(at)))
			}
			if seen != nil {
				seen(name, value)
			}
			return
		}
		text, value := "", query.NewValue(body, v, "")
		if !value.IsNested() {
			text = value.Text()
		}
		if text != "" && f.way == byNumber {
			number := numberToken(shape, f.name, text)
			dst = append(dst, number)
			ending := string(query.AppendLast4([]byte(query.LastFourMark), text))
			if ending == query.LastFourMark {
				return
			}
			if least := numberToken(shape, f.name, ending); number < least || number >= least+perLastFour {
				dst = append(dst, least) // the number's token is not among those of its last four digits, so these get a token of their own
			}
		} else if text != "" {
			add(f.name, text)
		}
	}
	if f.Doc.Kind != jsonspan.Object {
		return dst
	}
	// If two members have the same name, the last member counts, as in jsonspan.Find.
	var buf [64]jsonspan.Value
	values := append(buf[:0], make([]jsonspan.Value, len(fields))...)
	for _, m := range f.Members {
		for i := range fields {
			if len(fields[i].name) <= len(m.Name) && jsonspan.MatchName(m.Name, fields[i].name) {
				values[i] = m.Value
				break
			}
		}
	}
	for i := range fields {
		if name := fields[i].name; strings.Contains(name, ".") {
			values[i], _ = jsonspan.Find(body, f.Doc, name)
		}
		if values[i].Kind != jsonspan.None || fields[i].way == byTime {
			one(&fields[i], values[i])
		}
	}
	return dst
}
