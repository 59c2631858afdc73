// Tokens: the hashes that stand for what a record says.

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

// tokenOf is what stands for a value in the index: 60 bits of its FNV-1a hash
// (draft-eastlake-fnv). Values that share one are told apart by the body.
func tokenOf(shape int64, field, value string) int64 {
	const offset, prime = 14695981039346656037, 1099511628211
	n := (uint64(offset) ^ uint64(shape&0xff)) * prime
	n = (n ^ uint64(shape>>8)) * prime
	for i := range len(field) {
		n = (n ^ uint64(field[i])) * prime
	}
	n *= prime // a border
	for i := range len(value) {
		n = (n ^ uint64(value[i])) * prime
	}
	n ^= n >> 32
	return int64(n & (1<<60 - 1))
}

// perLastFour is how many tokens of a field stand for numbers that end in the same four digits.
const perLastFour = 100_000

// numberToken is what stands for a number: below bits of its field its last digits, which are the same however it is written,
// the last four of them first. So the numbers that end so are side by side, and all of a field, where they take fewer bytes.
func numberToken(shape int64, field, text string) int64 {
	digits, ending := query.LastFour(text)
	if !ending {
		if digits = understudy.ReadPhone(text).Digits; digits == "" {
			return tokenOf(shape, field, strings.ToLower(text))
		}
	}
	n, _ := strconv.ParseInt(digits[max(len(digits)-understudy.NationalPhone, 0):], 10, 64)
	return tokenOf(shape, field, "#")>>30<<30 | n%10_000*perLastFour + n/10_000
}

// dayOf is the number of a day since 1970, monthOf of a month since the year 0; both in UTC.
func dayOf(unix int64) int64 {
	const day = 24 * 60 * 60
	if unix < 0 {
		return (unix+1)/day - 1
	}
	return unix / day
}

func monthOf(unix int64) int64 {
	t := time.Unix(unix, 0).UTC()
	return int64(t.Year())*12 + int64(t.Month()) - 1
}

func dayTerm(day int64) string     { return "d" + strconv.FormatInt(day, 10) }
func monthTerm(month int64) string { return "m" + strconv.FormatInt(month, 10) }

// monthStart is when a month begins.
func monthStart(month int64) int64 {
	return time.Date(int(month/12), time.Month(month%12)+1, 1, 0, 0, 0, 0, time.UTC).Unix()
}

// farTerm is a value of every time that is far from its record's place.
const farTerm = "far"

// noTerm is a value of every time a record has not.
const noTerm = "none"

// nearTime is how far, in seconds, a time may be from the second of its record's place to be found by that place
// alone. Most are nearer: what began when it is said to have, and ended some minutes later.
const nearTime = 60 * 60

// nearName is what ranges call the differences between a field's times and the
// seconds of the places, of those times that are near.
func nearName(field string) string { return "~" + field }

// appendTokens appends the tokens of a record at a posting. Times that are far from it, and by nearName the
// differences of the others, are told to seen.
func (k *Kind) appendTokens(dst []int64, posting int64, f *query.Facts, seen func(field string, unix int64)) []int64 {
	fields, shape, second := k.Fields, postings.Shape(posting), postings.Second(postings.Position(posting))
	add := func(field, value string) { dst = append(dst, tokenOf(shape, field, value)) }
	if f.Parent != "" {
		add(parentField, f.Parent)
	}
	body := f.Body
	one := func(f *Field, v jsonspan.Value) {
		if f.way == byTime {
			at := query.Of(body, v, f.typ).Unix()
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
		text := textOf(body, v)
		if text != "" && f.way == byNumber {
			number := numberToken(shape, f.name, text)
			dst = append(dst, number)
			ending := string(query.AppendLast4([]byte(query.LastFourMark), text))
			if ending == query.LastFourMark {
				return
			}
			if least := numberToken(shape, f.name, ending); number < least || number >= least+perLastFour {
				dst = append(dst, least) // it is read as another number than is shown
			}
		} else if text != "" {
			add(f.name, text)
		}
	}
	if f.Doc.Kind != jsonspan.Object {
		return dst
	}
	// Of two members of a name the last counts, as Find has it.
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

// textOf is a value as tokens have it.
func textOf(body []byte, v jsonspan.Value) string {
	value := query.Of(body, v, "")
	if value.Nested() {
		return ""
	}
	return value.Text()
}
