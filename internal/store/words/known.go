// Known: which words the index may have, field by field.

package words

import (
	"hash/maphash"
	"slices"
	"strings"
	"sync/atomic"

	"understudy/internal/store/fts5"
	"understudy/internal/store/sqlite"
	"understudy/kit/tokenizer"
)

// maxKnown is how many words of a field are known. Most fields of a kind are choices, codes
// and flags, which have fewer.
const maxKnown = 64

// seed makes the hashes of words. Memory keeps hashes in place of words, since words can be erased.
var seed = maphash.MakeSeed()

// hashOf returns the hash of a word.
func hashOf(word string) uint64 { return maphash.String(seed, word) }

// hashOfStart returns the hash of how a word begins.
func hashOfStart(word string) uint64 { return hashOf("\x00" + word[:min(2, len(word))]) } // words have no such character

// known is the words of a field while they are few: those that are in the index, or were since the store was opened.
// A query for another word does not look in the field. The index is read when the first query asks for the field. A
// word that is saved is added before it is committed. Many goroutines may use it at once.
type known struct {
	hashes atomic.Pointer[[]uint64] // of words and of how they begin; nil: none
	learnt atomic.Bool              // the words are known that were in the index before
}

// anyWord stands for the hashes of a field that has more than maxKnown words.
var anyWord = &[]uint64{}

// add adds a word, unless the field may have any.
func (n *known) add(word string) {
	if n.hashes.Load() != anyWord {
		n.addHash(hashOf(word))
		n.addHash(hashOfStart(word))
	}
}

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

// mayHave reports whether the field may have all words that some hashes are of.
func (n *known) mayHave(hashes []uint64) bool {
	all := n.hashes.Load()
	return all == anyWord || all != nil && !slices.ContainsFunc(hashes, func(h uint64) bool { return !slices.Contains(*all, h) })
}

// add adds the words of a row, if they are of the kind.
func (k *Kind) add(row *fts5.Row) {
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

// Load learns the words that are pending when a file is opened. Where these cannot be read
// every field may have any word: the reader gets the error.
func (k *Kind) Load(pending fts5.Pending, broken error) {
	for i := range k.known {
		if broken != nil {
			k.known[i].hashes.Store(anyWord)
		}
	}
	for i := range pending {
		if !pending[i].Out {
			k.add(&pending[i].Row)
		}
	}
}

// StartEmpty says that the index has no words of the kind yet: no search has to look for some.
func (k *Kind) StartEmpty() {
	for i := range k.known {
		k.known[i].learnt.Store(true)
	}
}

// Learn reads from the index which words the fields may have, so that no search has to. What cannot be
// read is read again, and its error returned, by the first search for it.
func (k *Kind) Learn(c *sqlite.Conn) error {
	for number := range k.known {
		if err := k.learn(c, number); err != nil {
			return err
		}
	}
	return nil
}

// learn learns the words of a field that are in the index, once.
func (k *Kind) learn(c *sqlite.Conn, number int) error {
	n := &k.known[number]
	if n.learnt.Load() {
		return nil
	}
	tag := wordTag(k.Number, number)
	all, many, err := fts5.Beginning(c, tag, maxKnown)
	if err != nil {
		return err
	}
	for _, word := range all {
		n.add(word[len(tag):])
	}
	if many {
		n.hashes.Store(anyWord)
	}
	n.learnt.Store(true)
	return nil
}

// fieldsWith returns the fields, of those that a query names, that may have the words of a pattern. nil names all.
func (k *Kind) fieldsWith(c *sqlite.Conn, p tokenizer.Pattern, in map[string][]string) (numbers []int, err error) {
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
		if e := k.learn(c, number); e != nil {
			err = e
		}
		return !k.known[number].mayHave(hashes)
	}), err
}
