// Package suggest finds the known word closest to a misspelt one.
package suggest

import "strings"

// Word is the word of known with the smallest edit distance (insert, delete,
// replace, swap of neighbours; letter case does not count) to word, or "" when
// nothing is near: a distance above a third of the longer word's length, 2 at
// least. Nothing is near an empty word. Of equals the first wins. Cost is len(word) times the length of all
// known words; clip foreign input first.
func Word(word string, known []string) string {
	if word == "" {
		return ""
	}
	best, bestDistance := "", -1
	lower := strings.ToLower(word)
	for _, k := range known {
		d := distance(lower, strings.ToLower(k))
		if d <= max(2, max(len(word), len(k))/3) && (bestDistance < 0 || d < bestDistance) {
			best, bestDistance = k, d
		}
	}
	return best
}

// Hint is `; did you mean "x"?` for the nearest word, or "".
func Hint(word string, known []string) string {
	if w := Word(word, known); w != "" {
		return `; did you mean "` + w + `"?`
	}
	return ""
}

// distance is the optimal string alignment distance over bytes.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(row[j-1]+1, last[j]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
