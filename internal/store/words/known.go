// This file remembers which words each field has in the index, so that a query for another word need not search the
// field.

package words

import (
	"hash/maphash"
	"slices"
	"strings"
	"sync/atomic"

	"understudy/internal/store/wordrows"
	"understudy/kit/tokenizer"
)

// maxKnown is the maximum number of words that are remembered for a field. Most fields contain choices, codes or flags,
// which have fewer different words.
const maxKnown = 64

// seed is the seed for hashes of words. Memory contains only hashes, because a word may be erased later.
var seed = maphash.MakeSeed()

// hashOf returns the hash of a word.
func hashOf(word string) uint64 { return maphash.String(seed, word) }

// hashOfStart returns the hash of the beginning of a word.
func hashOfStart(word string) uint64 { return hashOf("\x00" + word[:min(2, len(word))]) } // the prefix \x00 occurs in no word

// known is the set of words of a field, as long as there are few. It contains the words that are in the index, or were
// in it since the store was opened. A query for another word does not search the field. The first query that uses the
// field reads the index. A saved word is added before the commit. known is safe for concurrent use.
type known struct {
	hashes    atomic.Pointer[[]uint64] // hashes of words and of their beginnings, or nil
	indexRead atomic.Bool              // the words that the index had when the store was opened are included
}

// anyWord replaces the hashes of a field that has more than maxKnown words. Such a field may have any word.
var anyWord = &[]uint64{}

// add adds a word to the set, unless the set already is anyWord.
func (n *known) add(word string) {
	if n.hashes.Load() != anyWord {
		n.addHash(hashOf(word))
		n.addHash(hashOfStart(word))
	}
}

// addHash adds a hash, or sets anyWord if there are too many.
func (n *known) addHash(h uint64) {
	for {
		old := n.hashes.Load()
		if old == anyWord || old != nil && slices.Contains(*old, h) {
			return
		}
		more := anyWord
		switch {
		case old == nil:
			more = &[]uint64{h}
		case len(*old) < 2*maxKnown:
			all := append(slices.Clip(*old), h)
			more = &all
		}
		if n.hashes.CompareAndSwap(old, more) {
			return
		}
	}
}

// canHave reports whether the field may have all words that have the given hashes.
func (n *known) canHave(hashes []uint64) bool {
	all := n.hashes.Load()
	return all == anyWord || all != nil && !slices.ContainsFunc(hashes, func(h uint64) bool { return !slices.Contains(*all, h) })
}

// add adds the words of a row to the known words of their fields, if the row is of this kind.
func (k *Kind) add(row *wordrows.Row) {
	tag := wordTag(k.Number, 0)[:kindTag]
	for _, text := range row {
		for word := range strings.SplitSeq(text, " ") {
			if len(word) <= tagSize || word[:kindTag] != tag {
				continue
			}
			number := strings.IndexByte(digits, word[kindTag])*len(digits) + strings.IndexByte(digits, word[kindTag+1])
			if number >= 0 && number < len(k.known) {
				k.known[number].add(word[tagSize:])
			}
		}
	}
}

// Load adds the words of the pending rows when a file is opened. If they could not be read, every field may have any
// word, and the reader gets the error.
func (k *Kind) Load(pending wordrows.Pending, broken error) {
	if broken != nil {
		k.AllowAny()
	}
	for i := range pending {
		if !pending[i].Delete {
			k.add(&pending[i].Row)
		}
	}
}

// StartEmpty marks the kind as having no words in the index yet, so that no search reads the index for them.
func (k *Kind) StartEmpty() {
	for i := range k.known {
		k.known[i].indexRead.Store(true)
	}
}

// AllowAny makes queries search every field, because another process writes words that this one does not notice.
func (k *Kind) AllowAny() {
	for i := range k.known {
		k.known[i].hashes.Store(anyWord)
	}
}

// Learn reads from the index which words the fields may have, so that no search has to read them. If that fails, the
// first search of a field tries again and returns the error.
func (k *Kind) Learn(s *wordrows.Snapshot) error {
	for number := range k.known {
		if err := k.learn(s, number); err != nil {
			return err
		}
	}
	return nil
}

// learn reads the words of a field in the index, once.
func (k *Kind) learn(s *wordrows.Snapshot, number int) error {
	n := &k.known[number]
	if n.indexRead.Load() {
		return nil
	}
	tag := wordTag(k.Number, number)
	all, many, err := s.Table.ListBeginning(s.C, tag, maxKnown)
	if err != nil {
		return err
	}
	for _, word := range all {
		n.add(word[len(tag):])
	}
	if many {
		n.hashes.Store(anyWord)
	}
	n.indexRead.Store(true)
	return nil
}

// findFields returns the numbers of those fields in in that may have the words of a pattern. If in is nil, it considers
// all fields.
func (k *Kind) findFields(s *wordrows.Snapshot, p tokenizer.Pattern, in map[string][]string) (numbers []int, err error) {
	if in == nil {
		for number := range k.known {
			numbers = append(numbers, number)
		}
	}
	for _, name := range in[k.Name] {
		if f := k.Rule[name]; f.number > 0 {
			numbers = append(numbers, f.number)
		}
	}
	var hashes []uint64
	for _, word := range p.Words() {
		hashes = append(hashes, hashOf(word))
	}
	if last := len(hashes) - 1; p.IsPrefix() {
		if word := p.Words()[last]; len(word) > 1 {
			hashes[last] = hashOfStart(word)
		} else {
			hashes = hashes[:last]
		}
	}
	return slices.DeleteFunc(numbers, func(number int) bool {
		if e := k.learn(s, number); e != nil {
			err = e
		}
		return !k.known[number].canHave(hashes)
	}), err
}
