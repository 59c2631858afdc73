// Pairs: habits are dealt out so that every pair that can stand together occurs.

package randomapitest

import (
	"math/rand/v2"
	"slices"
)

// dealer deals habits out. Habits are numbered as in Habits.
type dealer struct {
	rng    *rand.Rand
	axes   [][]int  // habits of each axis
	clash  [][]bool // no API has both
	unseen map[[2]int]bool
}

func newDealer(seed uint64) *dealer {
	d := &dealer{rng: rand.New(rand.NewPCG(seed, 11)), unseen: map[[2]int]bool{}}
	for i, h := range Habits {
		if n := len(d.axes); n == 0 || Habits[d.axes[n-1][0]].Axis != h.Axis {
			d.axes = append(d.axes, nil)
		}
		last := len(d.axes) - 1
		d.axes[last] = append(d.axes[last], i)
		d.clash = append(d.clash, make([]bool, len(Habits)))
		for j, other := range Habits {
			d.clash[i][j] = clash(h, other)
		}
	}
	for i := range Habits {
		for j := range i {
			if !d.clash[i][j] && d.complete([]int{j, i}, false) != nil {
				d.unseen[[2]int{j, i}] = true
			}
		}
	}
	return d
}

// pairs are the pairs that can stand together, all of them before the first deal.
func (d *dealer) pairs() int { return len(d.unseen) }

// complete adds a habit of every axis that chosen lacks; nil: nothing stands together with
// chosen. With greedy it prefers habits that make pairs not seen yet.
func (d *dealer) complete(chosen []int, greedy bool) []int {
	var axis []int // with the fewest habits left
	for _, one := range d.axes {
		if slices.ContainsFunc(chosen, func(i int) bool { return Habits[i].Axis == Habits[one[0]].Axis }) {
			continue
		}
		left := slices.DeleteFunc(slices.Clone(one), func(i int) bool {
			return slices.ContainsFunc(chosen, func(j int) bool { return d.clash[i][j] })
		})
		if len(left) == 0 {
			return nil
		}
		if axis == nil || len(left) < len(axis) {
			axis = left
		}
	}
	if axis == nil {
		return chosen
	}
	if greedy {
		d.rng.Shuffle(len(axis), func(i, j int) { axis[i], axis[j] = axis[j], axis[i] })
		slices.SortStableFunc(axis, func(i, j int) int { return d.gain(chosen, j) - d.gain(chosen, i) })
	}
	for _, i := range axis {
		if all := d.complete(append(slices.Clone(chosen), i), greedy); all != nil {
			return all
		}
	}
	return nil
}

// gain is how many pairs with chosen were not seen yet.
func (d *dealer) gain(chosen []int, i int) (n int) {
	for _, j := range chosen {
		if d.unseen[[2]int{min(i, j), max(i, j)}] {
			n++
		}
	}
	return n
}

// deal is one API's habits, one of each axis.
func (d *dealer) deal() map[string]string {
	chosen := []int{}
	if len(d.unseen) > 0 {
		pair := d.anyUnseen()
		chosen = pair[:]
	}
	all := map[string]string{}
	chosen = d.complete(chosen, true)
	for _, i := range chosen {
		all[Habits[i].Axis] = Habits[i].Name
		for _, j := range chosen {
			delete(d.unseen, [2]int{i, j})
		}
	}
	return all
}

// anyUnseen is a pair not seen yet, chosen by the seed.
func (d *dealer) anyUnseen() [2]int {
	var all [][2]int
	for pair := range d.unseen {
		all = append(all, pair)
	}
	slices.SortFunc(all, func(a, b [2]int) int { return slices.Compare(a[:], b[:]) })
	return all[d.rng.IntN(len(all))]
}
