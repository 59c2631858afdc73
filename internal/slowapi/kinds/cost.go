// Cost: what calls and messages have cost since the world began.
package kinds

import (
	"strconv"
	"strings"

	"understudy/internal/slowapi/world"
)

// priced is a row whose record costs something once it is settled.
type priced interface {
	world.Row
	// charge is what the record costs by its rate, in hundred-thousandths of a dollar.
	charge(w *world.World) int64
	settled() bool
}

func (c *Call) settled() bool    { return c.Progress.Settled() }
func (m *message) settled() bool { return m.progress.Settled() }

// Spent is what the calls and messages of an account have cost since the world began, in
// hundred-thousandths of a dollar: the prices that have appeared since, and what edits
// made of others. A deleted record stays paid for. The caller holds mu.
func Spent(w *world.World, account int) (amount int64) {
	for row, k := range map[priced]*world.Kind{new(Call): Calls, new(message): Messages} {
		s := w.Of(k, account)
		first := max(s.Base-world.Unfinished, 0)
		for i := first; i < s.Count(); i++ {
			amount += costSince(w, s, row, i)
		}
		for i := range s.Marks {
			if i < first {
				amount += costSince(w, s, row, i)
			}
		}
	}
	return amount
}

// costSince is what one record costs now, less what it cost when the world began.
func costSince(w *world.World, s *world.Sequence, row priced, i int64) (amount int64) {
	text, edited := s.Form(i, world.EditedPrice)
	began := world.SettledAtFirst(s, i)
	if began && !edited {
		return 0
	}
	row.Load(w, s, i)
	if edited {
		amount = amountOf(text)
	} else if row.settled() {
		amount = row.charge(w)
	}
	if began {
		amount -= row.charge(w)
	}
	return amount
}

// amountOf reads a price, which is written as a negative number of dollars, as
// hundred-thousandths that were spent. A text that is none is nothing.
func amountOf(price string) int64 {
	sign := int64(-1)
	if rest, negative := strings.CutPrefix(price, "-"); negative {
		sign, price = 1, rest
	}
	whole, fraction, _ := strings.Cut(price, ".")
	n, err := strconv.ParseInt(whole+(fraction + "00000")[:5], 10, 64)
	if err != nil || strings.ContainsAny(whole, "+-") {
		return 0
	}
	return sign * n
}
