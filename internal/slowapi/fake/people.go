// The people of the world: a book of numbers in many countries.
package fake

// country says how its numbers look. Codes of areas stand in areas; size is
// how many digits follow the area.
type country struct {
	Code  string
	areas []string
	size  int
	share int   // of a thousand people
	Cents int64 // what a minute or a segment costs, in hundred-thousandths of a dollar
}

// Tags of what is drawn here.
const (
	tagPeople = 0x70656f
	TagOwn    = 0x6f776e
)

var countries = []country{
	{"1", []string{"212", "305", "312", "404", "415", "503", "602", "617", "702", "713", "808", "919"}, 7, 440, 1400},
	{"1", []string{"416", "514", "604", "780"}, 7, 60, 1400},
	{"44", []string{"20", "113", "121", "161"}, 8, 60, 1580},
	{"44", []string{"7400", "7700", "7911", "7975"}, 6, 50, 4000},
	{"49", []string{"30", "40", "89", "151", "170"}, 8, 60, 2300},
	{"33", []string{"1", "4", "6", "7"}, 8, 40, 2150},
	{"34", []string{"91", "93", "61"}, 7, 30, 1900},
	{"39", []string{"02", "06", "347"}, 7, 20, 2480},
	{"41", []string{"44", "22", "79"}, 7, 20, 2720},
	{"31", []string{"20", "6"}, 7, 15, 2600},
	{"48", []string{"22", "501", "602"}, 6, 15, 2810},
	{"46", []string{"8", "70"}, 7, 15, 2230},
	{"61", []string{"2", "3", "4"}, 8, 25, 3210},
	{"81", []string{"3", "6", "90", "80"}, 8, 25, 7450},
	{"82", []string{"2", "10"}, 8, 10, 3320},
	{"86", []string{"10", "21", "138", "139"}, 8, 20, 2650},
	{"91", []string{"11", "22", "98", "99"}, 8, 30, 4490},
	{"972", []string{"2", "3", "50", "54"}, 7, 15, 1120},
	{"971", []string{"4", "50"}, 7, 10, 18900},
	{"966", []string{"11", "50"}, 7, 5, 15100},
	{"20", []string{"2", "10"}, 8, 5, 14500},
	{"234", []string{"1", "803"}, 7, 5, 15500},
	{"27", []string{"11", "21", "82"}, 7, 5, 8800},
	{"55", []string{"11", "21"}, 9, 10, 5100},
	{"52", []string{"55", "81"}, 8, 10, 1750},
}

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

// Is tells whether the party is the one a caller asked for.
func (p *Party) Is(seed uint64, asked string) bool {
	var buf [48]byte
	return string(p.AppendTo(buf[:0], seed)) == asked
}

// HomeOf is the country of a person of the book.
func HomeOf(seed uint64, person int64) *country {
	return countryOf(RngFor(seed, tagPeople, person))
}

func countryOf(d Rng) *country {
	at := d.Below(1000)
	for i := range countries {
		at -= countries[i].share
		if at < 0 {
			return &countries[i]
		}
	}
	return &countries[0]
}

// AppendPerson appends the number of a person of the book, in E.164.
func AppendPerson(dst []byte, seed uint64, person int64) []byte {
	d := RngFor(seed, tagPeople, person)
	c := countryOf(d)
	d.Next() // the country's
	dst = append(dst, '+')
	dst = append(dst, c.Code...)
	dst = append(dst, c.areas[d.Below(len(c.areas))]...)
	return AppendSubscriber(dst, &d, c.size)
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

// OwnTypes are what sort of number each of the eight own ones is.
var OwnTypes = [...]string{"local", "local", "toll-free", "mobile", "local", "local", "mobile", "local"}

var ownFronts = [...]string{"+1415", "+1212", "+1888", "+447700", "+4420", "+4930", "+614", "+1416"}

var ownSizes = [...]int{7, 7, 7, 6, 8, 8, 8, 7}

// OwnNumber is one of the numbers the account owns from the beginning, or one
// like them for an index past those.
func OwnNumber(seed uint64, index int64) string {
	kind := index % int64(len(ownFronts))
	d := RngFor(seed, TagOwn, index)
	return string(AppendSubscriber([]byte(ownFronts[kind]), &d, ownSizes[kind]))
}
