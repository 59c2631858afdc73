// Package suggest finds the known word closest to a misspelt one.
package suggest

import "strings"

// ClosestWord returns the word of known that has the smallest edit distance to word, or "" if none is close.
// Insertions, deletions, replacements and swaps of neighbours count; letter case does not. A word is close if
// its distance is at most a third of the longer word's length, or 2. No word is close to an empty word. If
// several words are equally close, the first is returned. The cost is len(word) times the length of all known
// words, so shorten untrusted input first.
func ClosestWord(word string, known []string) string {
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

// Hint returns `; did you mean "x"?` with the closest word, or "" if no word is close.
func Hint(word string, known []string) string {
	if w := ClosestWord(word, known); w != "" {
		return `; did you mean "` + w + `"?`
	}
	return ""
}

// distance returns the optimal string alignment distance of two texts, counted in bytes.
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
