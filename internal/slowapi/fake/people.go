// The people of the world: a book of numbers in many countries.
package fake

import (
	_ "embed"

	"understudy/internal/slowapi/format"
)

// country says how its numbers look. Codes of areas stand in Areas; Size is
// how many digits follow the area.
type country struct {
	Code  string
	Areas []string
	Size  int
	Share int   // of a thousand people
	Cents int64 // what a minute or a segment costs, in hundred-thousandths of a dollar
}

// Tags of what is drawn here.
const (
	tagPeople = 0x70656f
	TagOwn    = 0x6f776e
)

//go:embed countries.json
var rawCountries []byte

var countries = format.Embedded[[]country](rawCountries)

// Party is one side of a call or message.
type Party struct {
	Own    bool   // one of our numbers, by its index
	Index  int64  // in the book, or among our numbers
	Given  bool   // by a write: text is all there is, even when empty
	Text   string // what a write named, or a side that is no number; wins when set
	Prefix string // "whatsapp:" or nothing
}

// AppendTo appends the party as Twilio names it.
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

// Name returns the party as Twilio names it.
func (p *Party) Name(seed uint64) string {
	var buf [48]byte
	return string(p.AppendTo(buf[:0], seed))
}

// Is reports whether Twilio names the party so.
func (p *Party) Is(seed uint64, name string) bool {
	var buf [48]byte
	return string(p.AppendTo(buf[:0], seed)) == name
}

// HomeOf is the country of a person of the book.
func HomeOf(seed uint64, person int64) *country {
	return countryOf(RngFor(seed, tagPeople, person))
}

func countryOf(d Rng) *country {
	at := d.Below(1000)
	all := countries()
	for i := range all {
		if at -= all[i].Share; at < 0 {
			return &all[i]
		}
	}
	return &all[0]
}

// AppendPerson appends the number of a person of the book, in E.164.
func AppendPerson(dst []byte, seed uint64, person int64) []byte {
	d := RngFor(seed, tagPeople, person)
	c := countryOf(d)
	d.Next() // the country's
	dst = append(dst, '+')
	dst = append(dst, c.Code...)
	dst = append(dst, c.Areas[d.Below(len(c.Areas))]...)
	return AppendSubscriber(dst, &d, c.Size)
}

// AppendSubscriber appends digits that begin with 2 to 9.
func AppendSubscriber(dst []byte, d *Rng, size int) []byte {
	dst = append(dst, byte('2'+d.Below(8)))
	for range size - 1 {
		dst = append(dst, byte('0'+d.Below(10)))
	}
	return dst
}

// Somebody picks from a book of so many people; those in front are picked more often.
func Somebody(d *Rng, people int64) Party {
	a, b := d.Next()%uint64(people), d.Next()%uint64(people)
	return Party{Index: int64(min(a, b))}
}

var ownFronts = [...]string{"+1415", "+1212", "+1888", "+447700", "+4420", "+4930", "+614", "+1416"}

var ownSizes = [...]int{7, 7, 7, 6, 8, 8, 8, 7}

// OwnNumber is one of the numbers the account owns from the beginning, or one
// like them for an index past those.
func OwnNumber(seed uint64, index int64) string {
	kind := index % int64(len(ownFronts))
	d := RngFor(seed, TagOwn, index)
	return string(AppendSubscriber([]byte(ownFronts[kind]), &d, ownSizes[kind]))
}
