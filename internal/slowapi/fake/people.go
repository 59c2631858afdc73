// People: made-up people with phone numbers of many countries.
package fake

import (
	_ "embed"

	"understudy/internal/slowapi/format"
)

// country describes the phone numbers of a country. A number consists of an area code from Areas and Size more digits.
type country struct {
	Code  string
	Areas []string
	Size  int
	Share int   // how many of a thousand simulated people live in the country
	Cents int64 // the price of a minute of a call or a segment of a message, in hundred-thousandths of a dollar
}

// The tags that separate the random numbers of people from those of phone numbers.
const (
	tagPeople = 0x70656f
	TagOwn    = 0x6f776e
)

//go:embed countries.json
var rawCountries []byte

var countries = format.DecodeEmbedded[[]country](rawCountries)

// Party is the sender or the recipient of a call or message.
type Party struct {
	Own    bool   // whether it is one of the account's own phone numbers
	Index  int64  // the index of the person, or of the account's own number
	Given  bool   // whether a write has set Text, which may then be empty
	Text   string // the text that a write has set, or the name of a party that has no phone number; if it is set, it replaces the number
	Prefix string // the text before a phone number: "whatsapp:" or ""
}

// AppendTo appends the party in Twilio's notation.
func (p *Party) AppendTo(dst []byte, seed uint64) []byte {
	dst = append(dst, p.Prefix...)
	switch {
	case p.Given || p.Text != "":
		return append(dst, p.Text...)
	case p.Own:
		return append(dst, OwnNumber(seed, p.Index)...)
	}
	return AppendPerson(dst, seed, p.Index)
}

// Name returns the party in Twilio's notation.
func (p *Party) Name(seed uint64) string {
	var buf [48]byte
	return string(p.AppendTo(buf[:0], seed))
}

// Is reports whether name is the party in Twilio's notation.
func (p *Party) Is(seed uint64, name string) bool {
	var buf [48]byte
	return string(p.AppendTo(buf[:0], seed)) == name
}

// HomeOf returns the country of a person.
func HomeOf(seed uint64, person int64) *country {
	return countryOf(RngFor(seed, tagPeople, person))
}

func countryOf(d Rng) *country {
	at := d.IntBelow(1000)
	all := countries()
	for i := range all {
		if at -= all[i].Share; at < 0 {
			return &all[i]
		}
	}
	return &all[0]
}

// AppendPerson appends the phone number of a person, in E.164.
func AppendPerson(dst []byte, seed uint64, person int64) []byte {
	d := RngFor(seed, tagPeople, person)
	c := countryOf(d)
	d.Next() // countryOf has used this random number to choose the country
	dst = append(dst, '+')
	dst = append(dst, c.Code...)
	dst = append(dst, c.Areas[d.IntBelow(len(c.Areas))]...)
	return AppendSubscriber(dst, &d, c.Size)
}

// AppendSubscriber appends size random digits. The first is from 2 to 9.
func AppendSubscriber(dst []byte, d *Rng, size int) []byte {
	dst = append(dst, byte('2'+d.IntBelow(8)))
	for range size - 1 {
		dst = append(dst, byte('0'+d.IntBelow(10)))
	}
	return dst
}

// PickPerson returns a random person. People with a low index are chosen more often. people is the number of people.
func PickPerson(d *Rng, people int64) Party {
	a, b := d.Next()%uint64(people), d.Next()%uint64(people)
	return Party{Index: int64(min(a, b))}
}

var ownPrefixes = [...]string{"+1415", "+1212", "+1888", "+447700", "+4420", "+4930", "+614", "+1416"}

var ownSizes = [...]int{7, 7, 7, 6, 8, 8, 8, 7}

// OwnNumber returns one of the account's own phone numbers. If the index is higher than that of the last number it
// owns from the beginning, it returns a similar number.
func OwnNumber(seed uint64, index int64) string {
	kind := index % int64(len(ownPrefixes))
	d := RngFor(seed, TagOwn, index)
	return string(AppendSubscriber([]byte(ownPrefixes[kind]), &d, ownSizes[kind]))
}
